//! Must-fail twins of Python tests: where the expectations of a test hold, its twin fails.
//!
//! In: test files, ids. Out: the files with negated expectations, under the same names, and the ids that have a twin. The text
//! is made in a sandbox in which nothing of a solution runs.

use super::outcome::T2Options;
use super::python::PythonSuite;
use crate::blame::overloaded;
use crate::channel::{Channel, Heard, last_words, script};
use crate::diff::Files;
use crate::t0::{GradeError, ticket};
use rollmill_sandbox::{Limits, Sandbox, Spec};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

const TRANSFORM: &str = script!("twin_transform.py");
const ALLOWED: Duration = Duration::from_secs(60);

/// Negated tests.
pub(super) struct Twins {
    /// All test files, those of `ids` negated.
    pub tests: Files,
    /// Which of the ids have a twin.
    pub ids: Vec<String>,
}

#[derive(Serialize)]
struct Request<'a> {
    seq: u64,
    files: &'a BTreeSet<String>,
}

#[derive(Deserialize)]
struct Answer {
    seq: u64,
    files: BTreeMap<String, String>,
    tests: BTreeMap<String, BTreeSet<String>>,
}

pub(super) fn twins_of(
    sandbox: &dyn Sandbox,
    suite: &PythonSuite<'_>,
    ids: &[String],
    opts: &T2Options,
) -> Result<Twins, GradeError> {
    let places: Vec<_> = ids.iter().filter_map(|id| Some((id, suite.framework.place(id, suite.tests)?))).collect();
    let files: BTreeSet<String> = places.iter().map(|(_, (path, _))| path.clone()).collect();
    let answer = transform(sandbox, suite.tests, &files, opts)?;
    let has_twin = |path: &String, name: &String| answer.tests.get(path).is_some_and(|names| names.contains(name));
    let with_twin =
        places.iter().filter(|(_, (path, name))| has_twin(path, name)).map(|(id, _)| (*id).clone()).collect();
    let mut tests = suite.tests.clone();
    tests.extend(answer.files.into_iter().map(|(path, text)| (path, text.into_bytes())));
    Ok(Twins { tests, ids: with_twin })
}

fn transform(
    sandbox: &dyn Sandbox,
    tests: &Files,
    files: &BTreeSet<String>,
    opts: &T2Options,
) -> Result<Answer, GradeError> {
    let deadline = Instant::now() + 3 * ALLOWED;
    let spec = Spec {
        argv: ["python3", "-I", "-B", "-c", TRANSFORM].map(str::to_owned).to_vec(),
        pristine: tests.iter().map(|(path, bytes)| (format!("suite/{path}"), bytes.clone())).collect(),
        limits: Limits { wall: 2 * ALLOWED, cpu: ALLOWED, ..Limits::default() },
        ..Spec::default()
    };
    let mut channel = Channel::open(sandbox, &spec)?;
    let seq = ticket(opts.seed, 2);
    channel.send(&Request { seq, files }, deadline)?;
    let heard = channel.hear(deadline)?;
    let done = channel.finish()?;
    if let Heard::Frame(body) = heard
        && let Ok(answer) = serde_json::from_slice::<Answer>(&body)
        && answer.seq == seq
    {
        return Ok(answer);
    }
    if done.facts.timed_out && done.facts.cpu < ALLOWED {
        return Err(overloaded(&done.facts));
    }
    Err(GradeError::Task(format!("its tests cannot be negated: {}", last_words(&done.stderr))))
}
