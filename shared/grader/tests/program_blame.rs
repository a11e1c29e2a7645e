//! Whose fault the end of a program is, against a sandbox that reports whatever facts the test wants: no real time passes.

#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

use rollmill_grader::CaseOutcome::{Died, Oom, Passed, Timeout, Wrong};
use rollmill_grader::t1::{Language, ProgramCase, Programs, T1Options, grade_programs};
use rollmill_grader::{CaseOutcome, GradeError};
use rollmill_sandbox::{Facts, Finished, Isolation, Level, Sandbox, SandboxError, Session, Spec};
use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

struct Scripted {
    isolation: Isolation,
    runs: Mutex<VecDeque<Finished>>,
}

impl Sandbox for Scripted {
    fn level(&self) -> &Isolation {
        &self.isolation
    }

    fn run(&self, _: &Spec) -> Result<Finished, SandboxError> {
        Ok(self.runs.lock().unwrap().pop_front().expect("more runs than the script has"))
    }

    fn start(&self, _: &Spec) -> Result<Box<dyn Session>, SandboxError> {
        panic!("programs are not talked to")
    }
}

fn ended(facts: Facts) -> Finished {
    Finished { facts, stdout: b"right\n".to_vec(), ..Finished::default() }
}

fn exit(code: i32) -> Facts {
    Facts { exit: Some(code), ..Facts::default() }
}

/// Killed at a limit on time after so many milliseconds.
fn late(cpu: u64, wall: u64, idle: bool) -> Facts {
    let ms = Duration::from_millis;
    Facts { cpu: ms(cpu), wall: ms(wall), idle, timed_out: true, signal: Some(9), ..Facts::default() }
}

/// A program that prints what is wanted and ends so, with 1 s of CPU allowed; compiling ends as `compile` says.
fn outcome_of(compile: Facts, run: Facts, wanted_exit: Option<i32>) -> Result<(bool, CaseOutcome), GradeError> {
    play(vec![compile, run], wanted_exit)
}

fn play(runs: Vec<Facts>, wanted_exit: Option<i32>) -> Result<(bool, CaseOutcome), GradeError> {
    let isolation = Isolation {
        backend: "scripted".into(),
        level: Level::OwnUid,
        cgroup: String::new(),
        rootfs_digest: String::new(),
        notes: vec![],
    };
    let sandbox = Scripted { isolation, runs: Mutex::new(runs.into_iter().map(ended).collect()) };
    let cases = [ProgramCase { exit: wanted_exit, ..ProgramCase::new("", "right") }];
    let suite = Programs { language: Language::Python, cases: &cases, checker: None };
    let opts = T1Options { per_case: Duration::from_secs(1), ..T1Options::default() };
    let result = grade_programs(&sandbox, &Language::Python.solution("x"), &suite, &opts)?;
    Ok((result.compiled, result.verdicts[0].outcome))
}

fn outcome(run: Facts) -> Result<CaseOutcome, GradeError> {
    outcome_of(exit(0), run, Some(0)).map(|(_, outcome)| outcome)
}

#[test]
fn right_output_counts_only_with_the_wanted_end() {
    assert_eq!(outcome(exit(0)).unwrap(), Passed);
    assert_eq!(outcome(exit(1)).unwrap(), Died);
    assert_eq!(outcome(Facts { signal: Some(11), ..Facts::default() }).unwrap(), Died);
    assert_eq!(outcome(Facts { oom: true, signal: Some(9), ..Facts::default() }).unwrap(), Oom);
    assert_eq!(outcome(Facts { output_cut: true, ..exit(0) }).unwrap(), Wrong);
    for (wanted, code, passes) in [(Some(3), 3, true), (Some(3), 0, false), (None, 7, true)] {
        let (_, got) = outcome_of(exit(0), exit(code), wanted).unwrap();
        assert_eq!(got == Passed, passes, "{wanted:?} {code}");
    }
    let killed = Facts { signal: Some(9), ..Facts::default() };
    assert_eq!(outcome_of(exit(0), killed, None).unwrap().1, Died, "any exit is still an exit");
}

#[test]
fn a_time_limit_counts_if_the_program_was_busy_or_asleep() {
    assert_eq!(outcome(late(900, 1000, false)).unwrap(), Timeout, "busy");
    assert_eq!(outcome(late(10, 4000, true)).unwrap(), Timeout, "asleep");
    assert_eq!(outcome(late(1000, 4000, false)).unwrap(), Timeout, "slowly, but it got its second of cpu");
    let starved = late(500, 4000, false);
    let again = |second: Facts| play(vec![exit(0), starved.clone(), second], Some(0)).map(|(_, outcome)| outcome);
    assert_eq!(again(exit(0)).unwrap(), Passed, "with more time it gets there");
    assert_eq!(again(late(1000, 19_000, false)).unwrap(), Timeout, "with more time it spends its second");
    let error = again(starved.clone()).unwrap_err();
    assert!(matches!(error, GradeError::Overloaded { cpu_ms: 500, wall_ms: 4000 }) && error.is_transient());
}

#[test]
fn compilers_are_judged_alike() {
    let compiling = |facts| outcome_of(facts, exit(0), Some(0));
    assert_eq!(compiling(exit(1)).unwrap(), (false, CaseOutcome::SyntaxError));
    assert_eq!(compiling(late(30_000, 30_000, false)).unwrap(), (false, Timeout));
    assert!(compiling(late(1000, 30_000, false)).unwrap_err().is_transient(), "starved");
    assert!(matches!(compiling(exit(127)), Err(GradeError::NoTool(_))), "no such tool");
}
