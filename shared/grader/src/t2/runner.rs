//! One run of a list of tests by the trusted runner, in a fresh sandbox.
//!
//! In: files for /work, test files, ids. Out: an outcome an id, in their order. What must hold: frames come in order, one an
//! id, under this run's ticket; what never came has failed; a time limit that passed on a starved machine is an error.

use super::outcome::{T2Options, TestOutcome, TestVerdict};
use super::python::PythonSuite;
use crate::blame::{at_fault, overloaded};
use crate::channel::{Channel, Heard, last_words};
use crate::diff::Files;
use crate::t0::{GradeError, ticket};
use rollmill_sandbox::{Facts, Limits, Sandbox, Spec, WarmOptions};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

const RUNNER: &str = concat!(
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/runner/frames.py")),
    "\n",
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/runner/twin_sites.py")),
    "\n",
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/runner/suite.py"))
);
/// Where a run finds it.
const RUNNER_PATH: &str = "/pristine/runner/suite.py";
/// How long the runner may take until it speaks, with nothing of the solution read.
const START: Duration = Duration::from_secs(30);
/// What it may need between two tests on a busy machine.
const BETWEEN: Duration = Duration::from_secs(10);

/// How much wall clock a starved test gets for each second of CPU, as the runner has it.
const PATIENCE: u32 = 20;

#[derive(Serialize)]
struct Request<'a> {
    seq: u64,
    framework: &'a str,
    ids: &'a [String],
    limit: f64,
    paths: &'a [String],
}

#[derive(Deserialize)]
struct Ready {
    seq: u64,
    error: String,
}

#[derive(Deserialize)]
struct Report {
    seq: u64,
    index: usize,
    outcome: String,
    detail: String,
    cpu: f64,
    waiting: f64,
    wall: f64,
}

/// Runs `ids` over `files`, with `tests` under /pristine.
pub(super) fn run(
    sandbox: &dyn Sandbox,
    files: &Files,
    suite: &PythonSuite<'_>,
    tests: &Files,
    ids: &[String],
    opts: &T2Options,
) -> Result<Vec<TestVerdict>, GradeError> {
    let count = u32::try_from(ids.len()).unwrap_or(u32::MAX);
    let wall = START + PATIENCE * opts.per_test + (4 * opts.per_test).saturating_mul(count) + BETWEEN;
    let mut channel = Channel::open(sandbox, &spec(files, suite, tests, wall, opts))?;
    let end = Instant::now() + wall + BETWEEN;
    let seq = ticket(opts.seed, 1);
    let limit = opts.per_test.as_secs_f64();
    let paths = suite.import_paths;
    channel.send(&Request { seq, framework: suite.framework.name(), ids, limit, paths }, Instant::now() + START)?;
    match channel.hear(Instant::now() + START)? {
        Heard::Frame(body)
            if serde_json::from_slice::<Ready>(&body).is_ok_and(|r| r.seq == seq && r.error.is_empty()) => {}
        Heard::Frame(_) => return Err(GradeError::NoTool(suite.framework.name().to_owned())),
        Heard::Late => return Err(overloaded(&channel.finish()?.facts)),
        Heard::Ended | Heard::Malformed(_) => return Err(GradeError::Worker(last_words(&channel.finish()?.stderr))),
    }
    let mut verdicts = Vec::with_capacity(ids.len());
    let broken = loop {
        let Some(id) = ids.get(verdicts.len()) else { break None };
        match channel.hear(Instant::now() + PATIENCE * opts.per_test + BETWEEN)? {
            Heard::Frame(body) => match serde_json::from_slice::<Report>(&body) {
                Ok(report) if report.seq == seq && report.index == verdicts.len() => {
                    verdicts.push(verdict(id, &report, opts.per_test)?);
                }
                _ => break Some(Heard::Malformed("a report of no agreed shape")),
            },
            other => break Some(other),
        }
    };
    let facts = if broken == Some(Heard::Late) { channel.outlast(end)?.facts } else { channel.finish()?.facts };
    if facts.oom {
        let died = verdicts.iter_mut().filter(|v| v.outcome == TestOutcome::Died);
        died.for_each(|v| v.outcome = TestOutcome::Oom);
    }
    if broken.is_some() {
        let (outcome, detail) = stopped(&facts, opts.per_test * count)?;
        let rest = &ids[verdicts.len()..];
        verdicts.extend(rest.iter().map(|id| TestVerdict::new(id, outcome, detail)));
    }
    Ok(verdicts)
}

/// As -I but for -E: the environment is ours, and it fixes the order of sets of strings.
const INTERPRETER: [&str; 3] = ["python3", "-s", "-B"];

fn environment() -> Vec<(String, String)> {
    let pairs = [("LC_ALL", "C.UTF-8"), ("PYTHONHASHSEED", "0"), ("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")];
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
}

/// What the runner and pytest import before they look at anything of a task.
const PRELOAD: &str = "import json, os, select, signal, time, unittest, unittest.mock
try:
    import faulthandler, importlib, pdb, pytest, _pytest._argcomplete, _pytest.config.compat
    from _pytest.config import default_plugins
    for plugin in default_plugins:
        importlib.import_module('_pytest.' + plugin)
except ImportError:
    pass  # a root file system without pytest runs suites of unittest
";

/// The interpreter that suites begin in, for a sandbox that keeps interpreters loaded.
pub fn interpreter() -> WarmOptions {
    WarmOptions {
        argv: INTERPRETER.map(str::to_owned).to_vec(),
        preload: PRELOAD.to_owned(),
        programs: vec![(RUNNER_PATH.to_owned(), RUNNER.to_owned())],
        env: environment(),
    }
}

fn spec(files: &Files, suite: &PythonSuite<'_>, tests: &Files, wall: Duration, opts: &T2Options) -> Spec {
    let under = |folder: &'static str, files: &Files| -> Vec<(String, Vec<u8>)> {
        files.iter().map(|(path, bytes)| (format!("{folder}/{path}"), bytes.clone())).collect()
    };
    let runner = ("runner/suite.py".to_owned(), RUNNER.as_bytes().to_vec());
    Spec {
        argv: INTERPRETER.into_iter().chain([RUNNER_PATH]).map(str::to_owned).collect(),
        env: environment(),
        files: files.iter().map(|(path, bytes)| (path.clone(), bytes.clone())).collect(),
        pristine: [vec![runner], under("suite", tests), under("site", suite.site)].concat(),
        limits: Limits { wall, cpu: wall, ..opts.limits.clone() },
        ..Spec::default()
    }
}

fn verdict(id: &str, report: &Report, allowed: Duration) -> Result<TestVerdict, GradeError> {
    let outcome = match report.outcome.as_str() {
        "passed" => TestOutcome::Passed,
        "failed" => TestOutcome::Failed,
        "errored" => TestOutcome::Errored,
        "skipped" => TestOutcome::Skipped,
        "xfailed" => TestOutcome::Xfailed,
        "missing" => TestOutcome::Missing,
        "died" => TestOutcome::Died,
        "timeout" => TestOutcome::Timeout,
        _ => TestOutcome::Protocol,
    };
    if outcome == TestOutcome::Timeout {
        let seconds = |s: f64| Duration::try_from_secs_f64(s).unwrap_or_default();
        // Most of what it did not wait for a CPU, it slept.
        let idle = report.wall - report.waiting > 3.9 * allowed.as_secs_f64();
        let facts = Facts { cpu: seconds(report.cpu), wall: seconds(report.wall), idle, ..Facts::default() };
        if !at_fault(&facts, allowed) {
            return Err(overloaded(&facts));
        }
    }
    Ok(TestVerdict::new(id, outcome, &report.detail))
}

/// What the tests come to that the runner said nothing about.
fn stopped(facts: &Facts, allowed: Duration) -> Result<(TestOutcome, &'static str), GradeError> {
    if facts.oom {
        return Ok((TestOutcome::Oom, "the memory limit was exceeded"));
    }
    if facts.timed_out && !at_fault(facts, allowed) {
        return Err(overloaded(facts));
    }
    Ok((TestOutcome::Died, "the tests' runner was stopped before or in this test"))
}
