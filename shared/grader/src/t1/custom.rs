//! A task's own checker, asked in a sandbox of its own.
//!
//! In: its text, a case, the solution's output as bytes. Out: right or wrong. What must hold: the output is only data there;
//! a checker that breaks on it, and not on the expected output, fails the solution and never the task.

use super::{ProgramCase, T1Options};
use crate::script::{Script, Told, ask};
use crate::t0::{GradeError, clip};
use rollmill_sandbox::Sandbox;

pub(super) enum Judged {
    Right,
    /// With the checker's remark.
    Wrong(String),
}

/// Asks the checker.
pub(super) fn judge(
    sandbox: &dyn Sandbox,
    script: &str,
    case: &ProgramCase,
    output: &[u8],
    opts: &T1Options,
) -> Result<Judged, GradeError> {
    match told(sandbox, script, case, output, opts)? {
        Told::Yes => Ok(Judged::Right),
        Told::No(remark) => Ok(Judged::Wrong(clip(&remark, 120))),
        Told::Broken(_) => match told(sandbox, script, case, case.stdout.as_bytes(), opts)? {
            Told::Yes => Ok(Judged::Wrong("the checker cannot read it".to_owned())),
            Told::No(_) => Err(GradeError::Task("its checker refuses the expected output".to_owned())),
            Told::Broken(why) => Err(GradeError::Task(format!("its checker fails on the expected output: {why}"))),
        },
    }
}

fn told(
    sandbox: &dyn Sandbox,
    text: &str,
    case: &ProgramCase,
    output: &[u8],
    opts: &T1Options,
) -> Result<Told, GradeError> {
    let files = [("input", case.stdin.as_bytes()), ("expected", case.stdout.as_bytes()), ("output", output)];
    let files = files.map(|(name, bytes)| (format!("case/{name}"), bytes.to_vec())).to_vec();
    let arguments = ["input", "expected", "output"].map(|name| format!("/pristine/case/{name}")).to_vec();
    ask(sandbox, &Script { text, files, arguments, seed: opts.seed })
}
