//! What came of a repository suite.

use crate::blame::{Failure, suite_result};
use crate::t0::{CaseOutcome, SuiteResult, clip};
use rollmill_sandbox::{Isolation, Limits};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How a suite is run.
#[derive(Clone, Debug, PartialEq)]
pub struct T2Options {
    /// CPU time of one test; four times as much wall clock, not counting what it stood without a CPU, and twenty times as much
    /// before a starved test is given up.
    pub per_test: Duration,
    /// Whether the twins of passed tests are run.
    pub twins: bool,
    /// Memory, processes, disk and output; wall clock and CPU are set from the number of tests.
    pub limits: Limits,
    /// Seed of tickets.
    pub seed: u64,
}

impl Default for T2Options {
    /// 20 s a test, with twins, 1 GiB of memory.
    fn default() -> T2Options {
        let limits = Limits { memory_bytes: 1 << 30, pids: 64, ..Limits::default() };
        T2Options { per_test: Duration::from_secs(20), twins: true, limits, seed: 0 }
    }
}

/// What came of one test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TestOutcome {
    /// It passed, and its twin, if it has one, failed.
    Passed,
    /// An expectation did not hold.
    Failed,
    /// Something was raised outside the test's own expectations, or in its set-up.
    Errored,
    /// It was skipped, or skipped itself.
    Skipped,
    /// It was marked as expected to fail, whatever it did.
    Xfailed,
    /// There is no such test, or it was not run.
    Missing,
    /// Reported more than once.
    Duplicate,
    /// A limit on time passed, and the test had spent the CPU or was truly idle.
    Timeout,
    /// The memory limit ended it.
    Oom,
    /// Its process ended before it reported.
    Died,
    /// What it reported is of no agreed shape.
    Protocol,
    /// It passed, and so did its twin: whatever made it pass, it was not that its expectations hold.
    Forged,
}

/// The verdict on one test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestVerdict {
    /// The id, as the task spells it.
    pub id: String,
    /// What came of it.
    pub outcome: TestOutcome,
    /// What the solution did, at most 300 characters; never what was wanted.
    pub detail: String,
}

impl TestVerdict {
    pub(super) fn new(id: &str, outcome: TestOutcome, detail: &str) -> TestVerdict {
        TestVerdict { id: id.to_owned(), outcome, detail: clip(detail, 300) }
    }
}

/// The verdicts on all tests that the task names, in its order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RepositoryResult {
    /// One an id.
    pub verdicts: Vec<TestVerdict>,
    /// Tests that passed and have no twin to hold against that: none can be made, or the reference passes it.
    pub without_twin: Vec<String>,
    /// Whether independent tests at a tier that cannot be forged stand behind this one.
    pub proven: bool,
    /// [`Isolation`] under which this was measured.
    pub isolation: serde_json::Value,
}

impl RepositoryResult {
    pub(super) fn new(verdicts: Vec<TestVerdict>, isolation: &Isolation, proven: bool) -> RepositoryResult {
        let isolation = serde_json::to_value(isolation).unwrap_or(serde_json::Value::Null);
        RepositoryResult { verdicts, without_twin: vec![], proven, isolation }
    }

    /// Tests passed.
    pub fn passed(&self) -> usize {
        self.verdicts.iter().filter(|v| v.outcome == TestOutcome::Passed).count()
    }

    /// The same in the words of the other tiers; the outcome's own name begins the detail where those have none.
    pub fn to_suite(&self, isolation: &Isolation) -> SuiteResult {
        suite_result(self.verdicts.iter().map(to_failure).collect(), isolation)
    }
}

fn to_failure(verdict: &TestVerdict) -> Option<Failure> {
    let (outcome, word) = match verdict.outcome {
        TestOutcome::Passed => return None,
        TestOutcome::Failed => (CaseOutcome::Wrong, "failed"),
        TestOutcome::Errored => (CaseOutcome::Exception, "errored"),
        TestOutcome::Skipped => (CaseOutcome::Wrong, "skipped"),
        TestOutcome::Xfailed => (CaseOutcome::Wrong, "expected to fail"),
        TestOutcome::Missing => (CaseOutcome::NoFunction, "missing"),
        TestOutcome::Duplicate => (CaseOutcome::Protocol, "reported twice"),
        TestOutcome::Timeout => (CaseOutcome::Timeout, "took too long"),
        TestOutcome::Oom => (CaseOutcome::Oom, "the memory limit was exceeded"),
        TestOutcome::Died => (CaseOutcome::Died, "died"),
        TestOutcome::Protocol => (CaseOutcome::Protocol, "reported nonsense"),
        TestOutcome::Forged => (CaseOutcome::Protocol, "forged"),
    };
    let detail = if verdict.detail.is_empty() { word.to_owned() } else { format!("{word}: {}", verdict.detail) };
    Some(Failure::new(outcome, detail))
}
