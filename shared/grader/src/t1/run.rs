//! A program compiled in one sandbox and run in others.
//!
//! In: a solution, a language, inputs. Out: what it wrote, or why that does not count. What must hold: nothing of the
//! compile's sandbox reaches a run but the compiled file, and nothing of one run reaches the next.

use super::language::Language;
use super::{ProgramCase, T1Options};
use crate::blame::{Failure, why_ended};
use crate::diff::{Files, misplaced};
use crate::t0::{CaseOutcome, GradeError, Solution, clip};
use rollmill_sandbox::toolchain::PROGRAM;
use rollmill_sandbox::{Facts, Finished, Limits, Sandbox, Spec};
use std::time::Duration;

/// What runs: the files under /work, and the command without the case's arguments.
pub(super) struct Executable {
    pub files: Files,
    pub argv: Vec<String>,
    pub env: Vec<(String, String)>,
    /// Of the language; callers set the wall clock and CPU.
    pub limits: Limits,
}

/// Compiles or checks the solution; the compiler's first lines if it refuses.
pub(super) fn compile(
    sandbox: &dyn Sandbox,
    language: Language,
    solution: &Solution,
) -> Result<Result<Executable, Failure>, GradeError> {
    let refused = |what: String| Ok(Err(Failure::new(CaseOutcome::SyntaxError, what)));
    if !solution.files.iter().any(|(name, _)| *name == solution.main) {
        return refused(format!("there is no file {}", clip(&solution.main, 80)));
    }
    let mut files: Files = solution.files.iter().cloned().collect();
    if language.is_compiled() {
        files.remove(PROGRAM);
    }
    if let Some(path) = misplaced(&files).or(files.keys().map(String::as_str).find(|p| below_program(language, p))) {
        return refused(format!("the file {} cannot be put there", clip(path, 80)));
    }
    let limits = language.compile_limits();
    let allowed = limits.cpu;
    let spec = Spec {
        argv: language.compile_command(solution),
        env: language.env(),
        files: files.clone().into_iter().collect(),
        collect: if language.is_compiled() { vec![PROGRAM.to_owned()] } else { vec![] },
        limits,
        ..Spec::default()
    };
    let done = sandbox.run(&spec)?;
    let facts = &done.facts;
    let messages = [done.stderr.as_slice(), &done.stdout].concat();
    if facts.exit == Some(127) {
        // by the sandbox's contract there is no such program; no compiler ends so
        return Err(GradeError::NoTool(spec.argv[0].clone()));
    }
    if facts.oom || facts.timed_out {
        return Ok(Err(why_ended(facts, allowed)?));
    }
    if facts.exit != Some(0) {
        return refused(first_lines(&messages));
    }
    // What the program reads beside it (data, templates) stays; sources do no harm.
    if language.is_compiled() {
        let program = done.collected.files.into_iter().find(|(path, _)| path == PROGRAM);
        let Some((path, bytes)) = program else {
            return refused("the compiler left no program, or one that is too large".to_owned());
        };
        files.insert(path, bytes);
    }
    let mut env = language.env();
    env.extend([("LC_ALL", "C.UTF-8"), ("PYTHONHASHSEED", "0")].map(|(name, value)| (name.into(), value.into())));
    let argv = language.run_command(&solution.main);
    Ok(Ok(Executable { files, argv, env, limits: language.run_limits() }))
}

fn below_program(language: Language, path: &str) -> bool {
    language.is_compiled() && path.strip_prefix(PROGRAM).is_some_and(|rest| rest.starts_with('/'))
}

fn first_lines(messages: &[u8]) -> String {
    let text = String::from_utf8_lossy(messages);
    let lines = text.lines().map(str::trim_end).filter(|l| !l.is_empty()).take(6);
    let clean = |l: &str| l.chars().filter(|c| !c.is_control()).collect::<String>();
    clip(&lines.map(clean).collect::<Vec<_>>().join("\n"), 300)
}

/// What a run cost, and what it wrote or why that does not count.
pub(super) struct Run {
    pub spent: Duration,
    pub output: Result<Vec<u8>, Failure>,
}

/// How much wall clock a case gets for each second of CPU, and how much when it was starved the first time: by then a busy
/// program has spent its CPU time, and a sleeping one was found out before.
const PATIENCE: [u32; 2] = [4, 20];

/// Runs the program on one case. Its standard input is a file, so that it ends.
pub(super) fn run(
    sandbox: &dyn Sandbox,
    program: &Executable,
    case: &ProgramCase,
    opts: &T1Options,
) -> Result<Run, GradeError> {
    let mut files = program.files.clone();
    files.extend(case.files.iter().map(|(name, text)| (name.clone(), text.clone().into_bytes())));
    if misplaced(&files).is_some() {
        let failure = Failure::new(CaseOutcome::Died, "its files are where files of the case must be");
        return Ok(Run { spent: Duration::ZERO, output: Err(failure) });
    }
    let mut argv: Vec<String> = ["sh", "-c", "exec \"$@\" < /pristine/stdin", "sh"].map(str::to_owned).to_vec();
    argv.extend(program.argv.iter().cloned());
    argv.extend(case.args.iter().cloned());
    let limits = opts.limits.clone().unwrap_or_else(|| program.limits.clone());
    let mut spec = Spec {
        argv,
        env: program.env.clone(),
        files: files.into_iter().collect(),
        pristine: vec![("stdin".to_owned(), case.stdin.clone().into_bytes())],
        limits: Limits { wall: PATIENCE[0] * opts.per_case, cpu: opts.per_case, ..limits },
        ..Spec::default()
    };
    match judged(sandbox.run(&spec)?, case, opts) {
        Err(GradeError::Overloaded { .. }) => {
            spec.limits.wall = PATIENCE[1] * opts.per_case;
            judged(sandbox.run(&spec)?, case, opts)
        }
        settled => settled,
    }
}

fn judged(done: Finished, case: &ProgramCase, opts: &T1Options) -> Result<Run, GradeError> {
    let facts = &done.facts;
    let spent = if facts.idle { facts.wall } else { facts.cpu };
    let output = match ended_well(facts, case, &done.stderr, opts.per_case)? {
        None => Ok(done.stdout),
        Some(failure) => Err(failure),
    };
    Ok(Run { spent, output })
}

/// Why a run does not count whatever it wrote.
fn ended_well(
    facts: &Facts,
    case: &ProgramCase,
    stderr: &[u8],
    allowed: Duration,
) -> Result<Option<Failure>, GradeError> {
    if facts.output_cut && !facts.timed_out && !facts.oom {
        return Ok(Some(Failure::new(CaseOutcome::Wrong, "more output than the limit")));
    }
    let wanted = facts.exit.is_some() && case.exit.is_none_or(|code| facts.exit == Some(code));
    // An exit that was asked for is one even if a child had died for memory; a limit that acted is none.
    if wanted && !facts.timed_out {
        return Ok(None);
    }
    let mut failure = why_ended(facts, allowed)?;
    if failure.outcome == CaseOutcome::Died && !stderr.is_empty() {
        failure.detail = format!("{}: {}", failure.detail, crate::channel::last_words(stderr));
    }
    Ok(Some(failure))
}
