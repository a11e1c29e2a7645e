//! Written asserts (HumanEval's `check(candidate)`, MBPP's `test_list`) as calls of tier T0.
//!
//! In: the text of tests, which is read by `runner/asserts.py` in a Python of this machine and never run. Out: per source
//! its cases as literals, or why it is rejected. What must hold: every returned case parses; a source whose reading ends
//! the Python process is rejected and the others go on; the meaning is that of the asserts or the source is rejected whole.

use crate::cases::{Case, CasesError};
use crate::compare::Comparator;
use crate::literal;
use crate::value::Value;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const CONVERTER: &str = include_str!("../runner/asserts.py");
/// The longest answer line that is read, in bytes.
const MAX_LINE: u64 = 64 << 20;

/// Tests as they were written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AssertSource {
    /// Statements before the tests (MBPP's `test_setup_code`); only constants in them are used.
    pub setup: String,
    /// Python texts: one with a function `check(candidate)`, or asserts one by one.
    pub tests: Vec<String>,
    /// The function's name; without it, it is taken from the asserts.
    pub entry_point: Option<String>,
}

/// A case as literals, in the spelling of the public form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaseText {
    /// The function that is called.
    pub entry_point: String,
    /// A literal tuple of all arguments.
    pub args: String,
    /// The expected value as a literal.
    pub expected: String,
    /// The comparator's name.
    pub comparator: String,
    /// Which of the source's `tests` it comes from, from 0.
    pub test: usize,
}

impl CaseText {
    /// The case itself.
    pub fn to_case(&self) -> Result<Case, CasesError> {
        let field = |field: &str, what: String| CasesError::Field { index: self.test, field: field.to_owned(), what };
        let args = match literal::parse(&self.args).map_err(|e| field("args", e.to_string()))? {
            Value::Tuple(args) => args,
            other => return Err(field("args", format!("must be a tuple, not a {}", other.type_name()))),
        };
        let expected = literal::parse(&self.expected).map_err(|e| field("expected", e.to_string()))?;
        let comparator: Comparator = self
            .comparator
            .parse()
            .map_err(|e: crate::compare::UnknownComparator| field("comparator", e.to_string()))?;
        Ok(Case { comparator, ..Case::exact(args, expected) })
    }
}

/// Why a source cannot be turned into calls: give up this item.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("asserts cannot be turned into calls: {reason}")]
pub struct Rejected {
    /// The reason, one line.
    pub reason: String,
}

/// The converter could not be run: stop the run.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// No Python.
    #[error("cannot run {python}: {source}: name a python3 of version 3.8 or newer")]
    Python {
        /// What was run.
        python: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It failed before it had read anything, or answered nonsense.
    #[error("the assert converter failed under {python}: {what}: name a python3 of version 3.8 or newer")]
    Broken {
        /// What was run.
        python: PathBuf,
        /// Its last words.
        what: String,
    },
}

#[derive(Deserialize)]
struct Answer {
    cases: Option<Vec<CaseText>>,
    rejected: Option<String>,
}

/// Converts each source, in order.
pub fn convert_asserts(
    python: &Path,
    items: &[AssertSource],
) -> Result<Vec<Result<Vec<CaseText>, Rejected>>, ConvertError> {
    let mut results = Vec::with_capacity(items.len());
    while results.len() < items.len() {
        let before = results.len();
        let last_words = batch(python, &items[before..], &mut results)?;
        if results.len() == items.len() {
            break;
        }
        // The process ended while it read the next item. An item that follows answered ones is at fault; so is the very
        // first, if the converter answers an empty item.
        if results.is_empty() && !answers_at_all(python)? {
            return Err(ConvertError::Broken { python: python.to_owned(), what: last_words });
        }
        results.push(Err(Rejected { reason: "reading it ended the converter".to_owned() }));
    }
    Ok(results)
}

fn answers_at_all(python: &Path) -> Result<bool, ConvertError> {
    let mut results = Vec::new();
    batch(python, &[AssertSource::default()], &mut results)?;
    Ok(!results.is_empty())
}

/// Sends items to one process and takes its answers until it ends; gives back what it wrote to stderr.
fn batch(
    python: &Path,
    items: &[AssertSource],
    results: &mut Vec<Result<Vec<CaseText>, Rejected>>,
) -> Result<String, ConvertError> {
    let failed = |source| ConvertError::Python { python: python.to_owned(), source };
    let broken = |what: String| ConvertError::Broken { python: python.to_owned(), what };
    let mut child = start(python).map_err(failed)?;
    let (Some(stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(broken("no pipes".to_owned()));
    };
    let (answered, last_words) = std::thread::scope(|scope| {
        let writer = scope.spawn(move || send(stdin, items));
        let listener = scope.spawn(move || {
            let mut text = String::new();
            let _ = BufReader::new(stderr).take(1 << 16).read_to_string(&mut text);
            text
        });
        let answered = receive(stdout, items.len(), results);
        if answered.is_err() {
            let _ = child.kill();
        }
        let _ = writer.join();
        (answered, listener.join().unwrap_or_default())
    });
    child.wait().map_err(failed)?;
    answered.map_err(broken)?;
    Ok(last_words.lines().last().unwrap_or("it ended without a word").chars().take(200).collect())
}

fn start(python: &Path) -> io::Result<Child> {
    Command::new(python)
        .args(["-I", "-S", "-c", CONVERTER])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
}

/// A converter that ended no longer reads; what it did not answer is sent to the next one.
fn send(mut stdin: impl Write, items: &[AssertSource]) {
    for item in items {
        let Ok(mut line) = serde_json::to_vec(item) else { return };
        line.push(b'\n');
        if stdin.write_all(&line).is_err() {
            return;
        }
    }
}

fn receive(stdout: impl Read, wanted: usize, results: &mut Vec<Result<Vec<CaseText>, Rejected>>) -> Result<(), String> {
    let mut stdout = BufReader::new(stdout);
    for _ in 0..wanted {
        let mut line = Vec::new();
        stdout.by_ref().take(MAX_LINE).read_until(b'\n', &mut line).map_err(|e| e.to_string())?;
        if line.last() != Some(&b'\n') {
            return Ok(()); // ended, or over the cap
        }
        let answer: Answer = serde_json::from_slice(&line).map_err(|e| e.to_string())?;
        results.push(match (answer.cases, answer.rejected) {
            (Some(cases), None) => checked(cases),
            (_, reason) => Err(Rejected { reason: reason.unwrap_or_default() }),
        });
    }
    Ok(())
}

/// Cases that this side can read, too.
fn checked(cases: Vec<CaseText>) -> Result<Vec<CaseText>, Rejected> {
    match cases.iter().find_map(|case| case.to_case().err()) {
        Some(error) => Err(Rejected { reason: error.to_string() }),
        None => Ok(cases),
    }
}
