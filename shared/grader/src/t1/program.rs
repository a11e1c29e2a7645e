//! Programs over stdin and stdout: the loop over a suite.

use super::custom::{Judged, judge};
use super::run::{Executable, compile, run};
use super::{Checker, Language, ProgramCase};
use crate::blame::{Failure, suite_result};
use crate::t0::{CaseOutcome, GradeError, Solution, SuiteResult, clip};
use rollmill_sandbox::{Limits, Sandbox};
use std::time::Duration;

/// How a suite is run.
#[derive(Clone, Debug, PartialEq)]
pub struct T1Options {
    /// CPU time of one case, or sleep. Four times as much wall clock passes first, and twenty times as much for a
    /// run that was starved, before that is given up.
    pub per_case: Duration,
    /// CPU time, or sleep, of all cases together; later cases fail.
    pub total: Duration,
    /// Memory, processes, disk and output of a case, instead of the language's own; its wall clock and CPU are set from the
    /// fields above.
    pub limits: Option<Limits>,
    /// Seed of tickets.
    pub seed: u64,
}

impl Default for T1Options {
    /// 5 s a case, 60 s in all.
    fn default() -> T1Options {
        let seconds = Duration::from_secs;
        T1Options { per_case: seconds(5), total: seconds(60), limits: None, seed: 0 }
    }
}

/// A suite of cases.
#[derive(Clone, Copy, Debug)]
pub struct Programs<'a> {
    /// The language that a solution is written in.
    pub language: Language,
    /// The cases.
    pub cases: &'a [ProgramCase],
    /// The task's own checker, for cases that say `custom`: Python text that defines `check(input, expected, output)`, three
    /// paths of files, which returns whether the output is right, or a pair of that and a remark for the policy. It is
    /// trusted, and never runs where anything of the solution does. See [`Checker::Custom`].
    pub checker: Option<&'a str>,
}

/// Grades a program: compiles it once, then runs every case in a sandbox of its own.
///
/// One verdict a case, in the order of the cases. An error says that nothing is known about the solution.
pub fn grade_programs(
    sandbox: &dyn Sandbox,
    solution: &Solution,
    suite: &Programs<'_>,
    opts: &T1Options,
) -> Result<SuiteResult, GradeError> {
    if suite.checker.is_none() && suite.cases.iter().any(|c| c.checker == Checker::Custom) {
        return Err(GradeError::Task("a case asks for a custom checker, and the task has none".to_owned()));
    }
    let failures = match compile(sandbox, suite.language, solution)? {
        Ok(program) => run_all(sandbox, &program, suite, opts)?,
        Err(failure) => {
            let failures = suite.cases.iter().map(|_| Some(failure.clone())).collect();
            let refused = suite_result(failures, sandbox.level());
            return Ok(SuiteResult { compiled: false, import_error: Some(failure.detail), ..refused });
        }
    };
    Ok(suite_result(failures, sandbox.level()))
}

fn run_all(
    sandbox: &dyn Sandbox,
    program: &Executable,
    suite: &Programs<'_>,
    opts: &T1Options,
) -> Result<Vec<Option<Failure>>, GradeError> {
    let mut spent = Duration::ZERO;
    let mut failures = Vec::with_capacity(suite.cases.len());
    for case in suite.cases {
        if spent >= opts.total {
            failures.push(Some(Failure::new(CaseOutcome::Timeout, "the time for all cases was used up")));
            continue;
        }
        let run = run(sandbox, program, case, opts)?;
        spent += run.spent;
        failures.push(match run.output {
            Ok(output) => compared(sandbox, suite, case, &output, opts)?,
            Err(failure) => Some(failure),
        });
    }
    Ok(failures)
}

fn compared(
    sandbox: &dyn Sandbox,
    suite: &Programs<'_>,
    case: &ProgramCase,
    output: &[u8],
    opts: &T1Options,
) -> Result<Option<Failure>, GradeError> {
    let printed = || format!("printed {:?}", clip(&String::from_utf8_lossy(output), 120));
    let remark = match (case.checker, suite.checker) {
        (Checker::Custom, Some(script)) => match judge(sandbox, script, case, output, opts)? {
            Judged::Right => return Ok(None),
            Judged::Wrong(remark) => remark,
        },
        (checker, _) if checker.accepts(&case.stdout, output) => return Ok(None),
        _ => String::new(),
    };
    let detail = if remark.is_empty() { printed() } else { format!("{}: {remark}", printed()) };
    Ok(Some(Failure::new(CaseOutcome::Wrong, detail)))
}

const SHOWN: usize = 300;

/// What a policy sees after an attempt at the visible tests: how many passed, and of the first that did not, the input, what
/// was expected and what came. At most 300 characters.
pub fn visible_program_output(result: &SuiteResult, cases: &[ProgramCase]) -> String {
    if let Some(error) = &result.import_error {
        return clip(&format!("the solution does not compile: {error}"), SHOWN);
    }
    let head = format!("{} of {} visible tests passed.", result.passed, result.total);
    let first = result.verdicts.iter().find(|v| v.outcome != CaseOutcome::Passed);
    let Some((verdict, case)) = first.and_then(|v| Some((v, cases.get(v.index as usize)?))) else { return head };
    let (stdin, wanted) = (clip(&case.stdin, 60), clip(&case.stdout, 60));
    let args = if case.args.is_empty() { String::new() } else { format!(" and arguments {:?}", case.args) };
    let given = clip(&format!("input {stdin:?}{args}"), 90);
    clip(&format!("{head} Test {} with {given}: expected {wanted:?}, but {}", verdict.index + 1, verdict.detail), SHOWN)
}
