//! `rewards`: what a trajectory is worth, by score version.

use crate::columns::{col, opt, provenance, text};
use crate::{Provenance, Row};
use arrow::datatypes::{DataType, FieldRef};
use serde::{Deserialize, Serialize};

/// The grade of one trajectory. Null counts and totals mean that it could not be graded, which is no zero.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reward {
    /// Id of the trajectory.
    pub trajectory_id: String,
    /// Id of the task.
    pub task_id: String,
    /// The set it was rolled out for.
    pub split: String,
    /// Number of the sample.
    pub sample: i32,
    /// Version of the scoring.
    pub version: String,
    /// `graded` or `infrastructure`.
    pub status: String,
    /// Grading tier.
    pub tier: String,
    /// Whether the source compiles and defines the function.
    pub compiles: Option<bool>,
    /// Hidden tests A passed.
    pub tests_a_passed: Option<i32>,
    /// Hidden tests A in all.
    pub tests_a_total: Option<i32>,
    /// Independent tests B passed.
    pub tests_b_passed: Option<i32>,
    /// Independent tests B in all.
    pub tests_b_total: Option<i32>,
    /// Style component, 0 to 1.
    pub style: Option<f64>,
    /// The reward, 0 to 1.
    pub total: Option<f64>,
    /// Every test A and B passed: what pass@k counts.
    pub solved: Option<bool>,
    /// Reward of each step as a JSON array: the terminal reward on the last step.
    pub step_rewards: String,
    /// Verdict per case with evidence, as JSON.
    pub verdicts: String,
    /// Isolation of the sandbox, as JSON.
    pub isolation: String,
    /// Whether the verdict cannot be forged: tests A or B at tier T0 or T1. Null in rows of version 1, all of T0.
    pub proven: Option<bool>,
    /// Set where a person should look.
    pub quarantine: Option<String>,
    /// Where the row comes from.
    pub provenance: Provenance,
}

impl Row for Reward {
    const TABLE: &'static str = "rewards";
    const VERSION: u32 = 2;

    fn columns() -> Vec<FieldRef> {
        vec![
            text("trajectory_id"),
            text("task_id"),
            text("split"),
            col("sample", DataType::Int32),
            text("version"),
            text("status"),
            text("tier"),
            opt("compiles", DataType::Boolean),
            opt("tests_a_passed", DataType::Int32),
            opt("tests_a_total", DataType::Int32),
            opt("tests_b_passed", DataType::Int32),
            opt("tests_b_total", DataType::Int32),
            opt("style", DataType::Float64),
            opt("total", DataType::Float64),
            opt("solved", DataType::Boolean),
            text("step_rewards"),
            text("verdicts"),
            text("isolation"),
            opt("proven", DataType::Boolean),
            opt("quarantine", DataType::Utf8),
            provenance(),
        ]
    }

    fn key(&self) -> String {
        self.trajectory_id.clone()
    }
}
