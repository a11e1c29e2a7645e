//! `tasks`, what a policy may see, and `task_secrets`, what it must not. They are apart so that a rollout worker needs no
//! right to read the second.

use crate::columns::{col, opt, provenance, text};
use crate::{Provenance, Row};
use arrow::datatypes::{DataType, FieldRef};
use serde::{Deserialize, Serialize};

/// One admitted task, without its secrets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Id from the content.
    pub task_id: String,
    /// The set it comes from.
    pub source: String,
    /// Its name in that set.
    pub source_id: String,
    /// SPDX licence, or `unknown`.
    pub licence: String,
    /// Programming language.
    pub language: String,
    /// `function`, `program`, `server` or `repository`.
    pub kind: String,
    /// What it exercises.
    pub ability: String,
    /// Difficulty as the source states it.
    pub difficulty: String,
    /// Family: never in two splits.
    pub group: String,
    /// `train` or `heldout`.
    pub split: String,
    /// Grading tier: `T0`, `T1`, `T2`.
    pub tier: String,
    /// The text a policy gets.
    pub instruction: String,
    /// Name of the function asked for.
    pub entry_point: String,
    /// Tests shown to the policy: a JSON array of cases, or an object of another kind.
    pub visible_tests: String,
    /// What verification saw, as JSON: isolation, counts of cases, and by suite which orders of calls the reference survives.
    pub verified: String,
    /// Where the row comes from.
    pub provenance: Provenance,
}

impl Row for Task {
    const TABLE: &'static str = "tasks";
    const VERSION: u32 = 1;

    fn columns() -> Vec<FieldRef> {
        let texts = ["task_id", "source", "source_id", "licence", "language", "kind", "ability", "difficulty", "group"];
        let mut columns: Vec<FieldRef> = texts.into_iter().map(text).collect();
        columns.extend(["split", "tier", "instruction", "entry_point", "visible_tests", "verified"].map(text));
        columns.push(provenance());
        columns
    }

    fn key(&self) -> String {
        self.task_id.clone()
    }
}

/// What grades a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskSecret {
    /// Id of the task.
    pub task_id: String,
    /// `train` or `heldout`.
    pub split: String,
    /// Name of the function asked for.
    pub entry_point: String,
    /// A solution that passes.
    pub reference: String,
    /// Hidden tests A: a JSON array of cases, or an object of another kind.
    pub tests_a: String,
    /// How many cases A has.
    pub tests_a_count: i32,
    /// Independent tests B in the same form, or null.
    pub tests_b: Option<String>,
    /// Where the row comes from.
    pub provenance: Provenance,
}

impl Row for TaskSecret {
    const TABLE: &'static str = "task_secrets";
    const VERSION: u32 = 1;

    fn columns() -> Vec<FieldRef> {
        let mut columns: Vec<FieldRef> =
            ["task_id", "split", "entry_point", "reference", "tests_a"].into_iter().map(text).collect();
        columns.push(col("tests_a_count", DataType::Int32));
        columns.push(opt("tests_b", DataType::Utf8));
        columns.push(provenance());
        columns
    }

    fn key(&self) -> String {
        self.task_id.clone()
    }
}
