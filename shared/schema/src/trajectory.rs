//! `trajectories`: a policy acting on a task, with everything a trainer and a reader need.

use crate::columns::{col, list, opt, provenance, record, text};
use crate::{Provenance, Row};
use arrow::datatypes::{DataType, Field, FieldRef};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One action and its observation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepRow {
    /// `plan`, `act` or `repair`.
    pub phase: String,
    /// What the policy said before acting.
    pub reasoning: String,
    /// The code or plan itself.
    pub action: String,
    /// What came back, whole up to a cap.
    pub observation: String,
    /// SHA-256 of the uncut observation, in hex.
    pub observation_sha256: String,
    /// Whether the visible tests passed after this step.
    pub ok: bool,
    /// Why sampling ended: `stop`, `length`.
    pub stop: String,
    /// Wall-clock milliseconds, for people; no canonical column.
    pub ms: i64,
}

/// One trajectory. `token_ids`, `trainable` and `log_probs` have one length.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trajectory {
    /// `<task>.<sample>`: unique within split and round.
    pub trajectory_id: String,
    /// Id of the task.
    pub task_id: String,
    /// The set it was rolled out for, such as `train` or `heldout`.
    pub split: String,
    /// Number of the sample within its task.
    pub sample: i32,
    /// When it was sampled: RFC 3339, UTC.
    pub sampled_at: String,
    /// The endpoint's name for the policy.
    pub policy: String,
    /// The checkpoint that the endpoint served: the policy's version.
    pub checkpoint: String,
    /// Round of that checkpoint; 0 is the base model.
    pub policy_round: i32,
    /// Sampling temperature; 0 is greedy.
    pub temperature: f64,
    /// Nucleus; 1 is the whole distribution.
    pub top_p: f64,
    /// All messages as JSON, for people and exports.
    pub messages: String,
    /// The plan alone.
    pub plan: String,
    /// Everything the policy said before acting, step by step, one a line.
    pub reasoning: String,
    /// What was done.
    pub steps: Vec<StepRow>,
    /// The solution: file name to content, as JSON.
    pub final_files: String,
    /// Tokens of the whole sequence, exactly as sent and sampled.
    pub token_ids: Vec<i32>,
    /// True where the policy sampled the token.
    pub trainable: Vec<bool>,
    /// Log-probability under the distribution sampled from, 0 where not trainable.
    pub log_probs: Vec<f32>,
    /// Tokens of the first prompt.
    pub prompt_tokens: i32,
    /// Tokens sampled.
    pub sampled_tokens: i32,
    /// Attempts at the code.
    pub attempts: i32,
    /// Whether the last attempt passed the visible tests.
    pub passed_visible: bool,
    /// Whether every action was well-formed.
    pub well_formed: bool,
    /// Why it ended: `passed`, `attempts_spent`, `repeated`, `length`, `context`.
    pub stop_reason: String,
    /// Cut off by a token limit rather than finished: the critic bootstraps.
    pub truncated: bool,
    /// Isolation of the sandbox the visible tests ran in, as JSON.
    pub isolation: String,
    /// Set when the failure was not the policy's: such a row is in no statistic.
    pub error_class: Option<String>,
    /// What happened, if so.
    pub error: Option<String>,
    /// Where the row comes from.
    pub provenance: Provenance,
}

fn steps() -> FieldRef {
    let step = record(vec![
        text("phase"),
        text("reasoning"),
        text("action"),
        text("observation"),
        text("observation_sha256"),
        col("ok", DataType::Boolean),
        text("stop"),
        col("ms", DataType::Int64),
    ]);
    col("steps", DataType::List(Arc::new(Field::new("item", step, false))))
}

impl Row for Trajectory {
    const TABLE: &'static str = "trajectories";
    const VERSION: u32 = 1;

    fn columns() -> Vec<FieldRef> {
        vec![
            text("trajectory_id"),
            text("task_id"),
            text("split"),
            col("sample", DataType::Int32),
            text("sampled_at"),
            text("policy"),
            text("checkpoint"),
            col("policy_round", DataType::Int32),
            col("temperature", DataType::Float64),
            col("top_p", DataType::Float64),
            text("messages"),
            text("plan"),
            text("reasoning"),
            steps(),
            text("final_files"),
            list("token_ids", DataType::Int32),
            list("trainable", DataType::Boolean),
            list("log_probs", DataType::Float32),
            col("prompt_tokens", DataType::Int32),
            col("sampled_tokens", DataType::Int32),
            col("attempts", DataType::Int32),
            col("passed_visible", DataType::Boolean),
            col("well_formed", DataType::Boolean),
            text("stop_reason"),
            col("truncated", DataType::Boolean),
            text("isolation"),
            opt("error_class", DataType::Utf8),
            opt("error", DataType::Utf8),
            provenance(),
        ]
    }

    fn key(&self) -> String {
        self.trajectory_id.clone()
    }
}
