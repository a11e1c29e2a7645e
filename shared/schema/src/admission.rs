//! `admissions`: the one table that `verify` commits. `tasks`, `task_secrets` and `rejections` are projections of it.

use crate::columns::{col, opt, provenance, text};
use crate::{Candidate, Provenance, Row, Task, TaskSecret};
use arrow::datatypes::{DataType, FieldRef};
use serde::{Deserialize, Serialize};

/// What verification decided about one candidate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Admission {
    /// Id of the task.
    pub task_id: String,
    /// True: it becomes a task.
    pub admitted: bool,
    /// Why not, in one word such as `reference_fails`; null if admitted.
    pub reason: Option<String>,
    /// The evidence for people: which test, what came out.
    pub detail: String,
    /// The split its group belongs to.
    pub split: String,
    /// What was seen, as JSON: counts, isolation of the sandbox.
    pub verified: String,
    /// The candidate, as JSON.
    pub candidate: String,
    /// Where the row comes from.
    pub provenance: Provenance,
}

impl Row for Admission {
    const TABLE: &'static str = "admissions";
    const VERSION: u32 = 1;

    fn columns() -> Vec<FieldRef> {
        vec![
            text("task_id"),
            col("admitted", DataType::Boolean),
            opt("reason", DataType::Utf8),
            text("detail"),
            text("split"),
            text("verified"),
            text("candidate"),
            provenance(),
        ]
    }

    fn key(&self) -> String {
        self.task_id.clone()
    }
}

/// One candidate that was not admitted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rejection {
    /// Id of the candidate.
    pub task_id: String,
    /// The set it comes from.
    pub source: String,
    /// Its name in that set.
    pub source_id: String,
    /// Why, in one word.
    pub reason: String,
    /// The evidence for people.
    pub detail: String,
    /// Where the row comes from.
    pub provenance: Provenance,
}

impl Row for Rejection {
    const TABLE: &'static str = "rejections";
    const VERSION: u32 = 1;

    fn columns() -> Vec<FieldRef> {
        vec![text("task_id"), text("source"), text("source_id"), text("reason"), text("detail"), provenance()]
    }

    fn key(&self) -> String {
        self.task_id.clone()
    }
}

impl Admission {
    /// The candidate this decision is about.
    pub fn parse_candidate(&self) -> Result<Candidate, serde_json::Error> {
        serde_json::from_str(&self.candidate)
    }

    /// The task, if admitted.
    pub fn to_task(&self, c: &Candidate) -> Option<Task> {
        self.admitted.then(|| Task {
            task_id: self.task_id.clone(),
            source: c.source.clone(),
            source_id: c.source_id.clone(),
            licence: c.licence.clone(),
            language: c.language.clone(),
            kind: c.kind.clone(),
            ability: c.ability.clone(),
            difficulty: c.difficulty.clone(),
            group: c.group.clone(),
            split: self.split.clone(),
            tier: self.tier(),
            instruction: c.instruction.clone(),
            entry_point: c.entry_point.clone(),
            visible_tests: c.visible_tests.clone(),
            verified: self.verified.clone(),
            provenance: self.provenance.clone(),
        })
    }

    /// The tier that verification saw; T0 in rows that do not say.
    fn tier(&self) -> String {
        let verified: serde_json::Value = serde_json::from_str(&self.verified).unwrap_or_default();
        verified["tier"].as_str().unwrap_or("T0").into()
    }

    /// What grades the task, if admitted.
    pub fn to_secret(&self, c: &Candidate) -> Option<TaskSecret> {
        let count = || cases_in(&serde_json::from_str(&c.tests_a).unwrap_or_default());
        self.admitted.then(|| TaskSecret {
            task_id: self.task_id.clone(),
            split: self.split.clone(),
            entry_point: c.entry_point.clone(),
            reference: c.reference.clone().unwrap_or_default(),
            tests_a: c.tests_a.clone(),
            tests_a_count: i32::try_from(count()).unwrap_or(i32::MAX),
            tests_b: c.tests_b.clone(),
            provenance: self.provenance.clone(),
        })
    }

    /// The rejection, if not admitted.
    pub fn to_rejection(&self, c: &Candidate) -> Option<Rejection> {
        self.reason.as_ref().filter(|_| !self.admitted).map(|reason| Rejection {
            task_id: self.task_id.clone(),
            source: c.source.clone(),
            source_id: c.source_id.clone(),
            reason: reason.clone(),
            detail: self.detail.clone(),
            provenance: self.provenance.clone(),
        })
    }
}

/// Cases of an array, or of the list that an object of another kind holds.
fn cases_in(tests: &serde_json::Value) -> usize {
    let lists = ["cases", "sessions", "ids", "tests"].iter().find_map(|name| tests.get(name)?.as_array());
    tests.as_array().or(lists).map_or(0, Vec::len)
}
