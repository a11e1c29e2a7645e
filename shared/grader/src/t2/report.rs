//! Reports of test tools, read as hostile text: JUnit XML, TAP, `cargo test`, `go test -json`.
//!
//! In: bytes. Out: what they say of each id. What must hold: no panic, time and memory in proportion to the bytes; an id that
//! is named twice is [`TestOutcome::Duplicate`], so that a line forged beside the true one does not pass.

mod cargo;
mod go;
mod junit;
mod tap;

pub use cargo::cargo_test;
pub use go::go_test;
pub use junit::junit;
pub use tap::tap;

use super::outcome::TestOutcome;
use std::collections::BTreeMap;

/// The longest id that is kept; longer ones are no task's.
const MAX_ID: usize = 1000;
/// The most ids that are kept.
const MAX_IDS: usize = 100_000;

/// What a report says of each id.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reported {
    outcomes: BTreeMap<String, TestOutcome>,
}

impl Reported {
    /// Notes one line of a report.
    pub(super) fn note(&mut self, id: &str, outcome: TestOutcome) {
        if id.is_empty() || id.len() > MAX_ID || self.outcomes.len() >= MAX_IDS {
            return;
        }
        self.outcomes.entry(id.to_owned()).and_modify(|o| *o = TestOutcome::Duplicate).or_insert(outcome);
    }

    /// What came of an id; [`TestOutcome::Missing`] if nothing is said of it.
    pub fn outcome(&self, id: &str) -> TestOutcome {
        self.outcomes.get(id).copied().unwrap_or(TestOutcome::Missing)
    }

    /// How many ids are named.
    pub fn len(&self) -> usize {
        self.outcomes.len()
    }

    /// Whether no id is named.
    pub fn is_empty(&self) -> bool {
        self.outcomes.is_empty()
    }
}

#[cfg(test)]
mod tests;
