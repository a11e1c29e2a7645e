//! `candidates`: what a source offers, before anything has been run.

use crate::columns::{opt, provenance, text};
use crate::{Provenance, Row};
use arrow::datatypes::{DataType, FieldRef};
use serde::{Deserialize, Serialize};

/// One offered task with everything known about it, secrets included.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// Id from the content: equal tasks have equal ids.
    pub task_id: String,
    /// The set it comes from, such as `humaneval`.
    pub source: String,
    /// Its name in that set.
    pub source_id: String,
    /// SPDX licence, or `unknown`.
    pub licence: String,
    /// Programming language.
    pub language: String,
    /// `function`, `program`, `server` or `repository`.
    pub kind: String,
    /// What it exercises, in one word.
    pub ability: String,
    /// Difficulty as the source states it.
    pub difficulty: String,
    /// Family: tasks of one group never lie in two splits.
    pub group: String,
    /// The text a policy gets.
    pub instruction: String,
    /// Name of the function asked for.
    pub entry_point: String,
    /// Cases shown to the policy: JSON array in the form of `test_cases`.
    pub visible_tests: String,
    /// Hidden tests A: a JSON array of cases, or an object of another kind.
    pub tests_a: String,
    /// Independent tests B in the same form, or null.
    pub tests_b: Option<String>,
    /// A solution that should pass.
    pub reference: Option<String>,
    /// Only for evaluation: never trained on.
    pub eval_only: bool,
    /// Why its tests can neither be turned into calls nor run as they are written; null if they can.
    pub unconvertible: Option<String>,
    /// Unknown fields of the source, as JSON.
    pub metadata: String,
    /// Where the row comes from.
    pub provenance: Provenance,
}

impl Row for Candidate {
    const TABLE: &'static str = "candidates";
    const VERSION: u32 = 1;

    fn columns() -> Vec<FieldRef> {
        let texts = ["task_id", "source", "source_id", "licence", "language", "kind", "ability", "difficulty", "group"];
        let mut columns: Vec<FieldRef> = texts.into_iter().map(text).collect();
        columns.extend(["instruction", "entry_point", "visible_tests", "tests_a"].map(text));
        columns.push(opt("tests_b", DataType::Utf8));
        columns.push(opt("reference", DataType::Utf8));
        columns.push(crate::columns::col("eval_only", DataType::Boolean));
        columns.push(opt("unconvertible", DataType::Utf8));
        columns.push(text("metadata"));
        columns.push(provenance());
        columns
    }

    fn key(&self) -> String {
        self.task_id.clone()
    }
}
