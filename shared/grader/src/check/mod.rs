//! Static checks: questions about the files of a solution, not about what they do.
//!
//! In: files, a check that came with the task. Out: whether it holds, with a remark. What must hold: a script runs in a
//! sandbox of its own, over files under /pristine that nothing there can change, and nothing of the solution ever runs in
//! it; its answer is what its function returned, whatever it or the files print. A script that breaks on a solution, and
//! not on the task's own files, fails the solution: breaking a check is no way past it.

use crate::diff::Files;
use crate::script::{Script, Told, ask};
use crate::t0::{GradeError, clip};
use rollmill_sandbox::Sandbox;
use serde::{Deserialize, Serialize};

const IMPORTS: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/runner/check_imports.py"));
const STRIP: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/runner/check_strip.py"));

/// A question about files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "check", rename_all = "snake_case")]
pub enum Check {
    /// No file has more bytes.
    MaxFileBytes {
        /// The most bytes.
        bytes: u64,
    },
    /// No Python file imports one of these modules or a part of them, by statement or by a call with a literal name. A name
    /// that is put together when the program runs is not seen: what must not be used is best made absent.
    ForbidsImports {
        /// `socket`, `os.path`
        modules: Vec<String>,
    },
    /// The task's own: Python text that defines `check(folder)`, which returns whether the files in the folder are fine, or
    /// a pair of that and a remark.
    Script {
        /// The text.
        text: String,
        /// Whether comments are taken out of Python files first, so that a linter cannot be told to look away.
        without_comments: bool,
    },
}

/// What came of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckVerdict {
    /// Whether it holds.
    pub passed: bool,
    /// Why not, at most 300 characters.
    pub remark: String,
}

impl CheckVerdict {
    fn new(passed: bool, remark: &str) -> CheckVerdict {
        CheckVerdict { passed, remark: clip(remark, 300) }
    }
}

/// Asks whether `check` holds for `files`. `control` are files that the check must be able to read, such as the reference
/// solution's: if it breaks on those too, the task is at fault.
pub fn check(
    sandbox: &dyn Sandbox,
    check: &Check,
    files: &Files,
    control: &Files,
    seed: u64,
) -> Result<CheckVerdict, GradeError> {
    if let Check::MaxFileBytes { bytes } = check {
        let large = files.iter().find(|(_, content)| content.len() as u64 > *bytes);
        let remark = large.map_or(String::new(), |(path, content)| format!("{path} has {} bytes", content.len()));
        return Ok(CheckVerdict::new(large.is_none(), &remark));
    }
    match told(sandbox, check, files, seed)? {
        Told::Yes => Ok(CheckVerdict::new(true, "")),
        Told::No(remark) => Ok(CheckVerdict::new(false, &remark)),
        Told::Broken(_) => match told(sandbox, check, control, seed)? {
            Told::Broken(why) => Err(GradeError::Task(format!("its check fails on the task's own files: {why}"))),
            Told::Yes | Told::No(_) => Ok(CheckVerdict::new(false, "the check cannot read these files")),
        },
    }
}

fn told(sandbox: &dyn Sandbox, check: &Check, files: &Files, seed: u64) -> Result<Told, GradeError> {
    let mut arguments = vec!["/pristine/code".to_owned()];
    let text = match check {
        Check::ForbidsImports { modules } => {
            arguments.extend(modules.iter().cloned());
            IMPORTS.to_owned()
        }
        Check::Script { text, without_comments: false } => text.clone(),
        Check::Script { text, without_comments: true } => format!("{text}\n{STRIP}"),
        Check::MaxFileBytes { .. } => return Ok(Told::Yes), // asked out here
    };
    let mut files: Vec<_> = files.iter().map(|(path, bytes)| (format!("code/{path}"), bytes.clone())).collect();
    if files.is_empty() {
        files.push(("code/.empty".to_owned(), vec![])); // an empty solution has a folder too
    }
    ask(sandbox, &Script { text: &text, files, arguments, seed })
}
