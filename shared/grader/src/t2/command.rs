//! Suites that a command of the task's tool chain runs: JUnit XML, TAP, `cargo test`, `go test -json`.

use super::outcome::{RepositoryResult, T2Options, TestOutcome, TestVerdict};
use super::report::{Reported, cargo_test, go_test, junit, tap};
use crate::blame::{at_fault, overloaded};
use crate::diff::Files;
use crate::t0::GradeError;
use rollmill_sandbox::{Finished, Limits, Sandbox, Spec};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Where the report is, and in which form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "form", rename_all = "snake_case")]
pub enum Source {
    /// A file of JUnit XML.
    Junit {
        /// Its path under /work.
        path: String,
    },
    /// TAP on stdout.
    Tap,
    /// What `cargo test` prints.
    Cargo,
    /// What `go test -json` prints.
    Go,
}

/// A task's tests, and the command that runs them.
#[derive(Clone, Copy, Debug)]
pub struct CommandSuite<'a> {
    /// The command; it begins in /work.
    pub argv: &'a [String],
    /// Its environment.
    pub env: &'a [(String, String)],
    /// Tests and configuration, put under /pristine/suite for commands that can take them from there.
    pub tests: &'a Files,
    /// Where the report is.
    pub source: &'a Source,
    /// The ids that count, as the report spells them.
    pub ids: &'a [String],
    /// CPU time of the whole command; three times as much wall clock.
    pub allowed: Duration,
    /// Whether the task has tests B at tier T0 or T1.
    pub has_tests_b: bool,
}

/// Runs the command over `files` and reads its report. Its exit code means nothing: a command that is not there leaves every
/// test missing, for the reference as well. An error says that nothing is known
/// about the solution.
pub fn grade_command(
    sandbox: &dyn Sandbox,
    files: &Files,
    suite: &CommandSuite<'_>,
    opts: &T2Options,
) -> Result<RepositoryResult, GradeError> {
    let collect = match suite.source {
        Source::Junit { path } => vec![path.clone()],
        _ => vec![],
    };
    // A report that was there before is no report.
    let files = files.iter().filter(|(path, _)| !collect.contains(path));
    let spec = Spec {
        argv: suite.argv.to_vec(),
        env: suite.env.to_vec(),
        files: files.map(|(path, bytes)| (path.clone(), bytes.clone())).collect(),
        pristine: suite.tests.iter().map(|(path, bytes)| (format!("suite/{path}"), bytes.clone())).collect(),
        collect,
        limits: Limits { wall: 3 * suite.allowed, cpu: suite.allowed, ..opts.limits.clone() },
    };
    let done = sandbox.run(&spec)?;
    if done.facts.timed_out && !at_fault(&done.facts, suite.allowed) {
        return Err(overloaded(&done.facts));
    }
    let reported = read(suite.source, &done);
    let verdicts = suite.ids.iter().map(|id| verdict(id, &reported, &done)).collect();
    let mut result = RepositoryResult::new(verdicts, sandbox.level(), suite.has_tests_b);
    let passed = result.verdicts.iter().filter(|v| v.outcome == TestOutcome::Passed);
    result.without_twin = passed.map(|v| v.id.clone()).collect();
    Ok(result)
}

fn read(source: &Source, done: &Finished) -> Reported {
    if done.facts.output_cut && !matches!(source, Source::Junit { .. }) {
        return Reported::default();
    }
    let stdout = String::from_utf8_lossy(&done.stdout);
    match source {
        Source::Junit { path } => {
            let file = done.collected.files.iter().find(|(p, _)| p == path);
            file.map_or(Reported::default(), |(_, bytes)| junit(&String::from_utf8_lossy(bytes)))
        }
        Source::Tap => tap(&stdout),
        Source::Cargo => cargo_test(&stdout),
        Source::Go => go_test(&stdout),
    }
}

fn verdict(id: &str, reported: &Reported, done: &Finished) -> TestVerdict {
    let facts = &done.facts;
    match reported.outcome(id) {
        TestOutcome::Missing if facts.oom => TestVerdict::new(id, TestOutcome::Oom, ""),
        TestOutcome::Missing if facts.timed_out => TestVerdict::new(id, TestOutcome::Timeout, ""),
        outcome => TestVerdict::new(id, outcome, ""),
    }
}
