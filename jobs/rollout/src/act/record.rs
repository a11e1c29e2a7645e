//! What is kept of one trajectory.

use rollmill_policy::grammar::{Malformed, SegmentEnd};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// One trajectory. `tokens`, `trainable` and `log_probs` have one length.
#[derive(Debug, Clone, PartialEq)]
pub struct Acted {
    /// The whole sequence: prompt, sampled and forced tokens.
    pub tokens: Vec<u32>,
    /// Sampled by the policy.
    pub trainable: Vec<bool>,
    /// Natural log-prob at the sampling temperature; 0 where not trainable.
    pub log_probs: Vec<f32>,
    /// Plan, act and repairs, in order.
    pub steps: Vec<StepRecord>,
    /// The conversation as text.
    pub messages: Vec<Message>,
    /// The plan.
    pub plan: String,
    /// The last code written; empty where there is none.
    pub final_code: String,
    /// Pieces of code sampled.
    pub attempts: u32,
    /// The final code passed all visible tests.
    pub passed_visible: bool,
    /// Every sampled segment kept to the grammar.
    pub well_formed: bool,
    /// Why it ended.
    pub stop_reason: StopReason,
    /// Cut off, not finished: the last sampled segment hit a cap without passing, or the context was full.
    pub truncated: bool,
    /// Tokens before the first sampled one.
    pub prompt_tokens: u32,
    /// Trainable tokens.
    pub sampled_tokens: u32,
}

/// Why a trajectory ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The visible tests passed.
    Passed,
    /// The last attempt failed.
    AttemptsSpent,
    /// An attempt repeated the code before it.
    Repeated,
    /// The last attempt failed and was cut by the cap of tokens.
    Length,
    /// The context was full.
    Context,
}

/// What a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The plan is written.
    Plan,
    /// The first code is written and tested.
    Act,
    /// Later code is written and tested.
    Repair,
}

/// One step: an action and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepRecord {
    /// What it is.
    pub phase: Phase,
    /// The plan, at plan and act; else empty.
    pub reasoning: String,
    /// The code; empty at plan.
    pub action: String,
    /// The test output, whole; empty where nothing ran.
    pub observation: String,
    /// SHA-256 of the observation, in hex.
    pub observation_sha256: String,
    /// Plan: it is well formed. Code: the visible tests passed.
    pub ok: bool,
    /// How the sampled segment ended.
    pub stop: SegmentEnd,
    /// What of the grammar was broken.
    pub fault: Option<Malformed>,
    /// Time of the tests, in milliseconds.
    pub ms: u64,
    /// What the sandbox reports; null where nothing ran.
    pub facts: serde_json::Value,
}

/// One message of the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// `system`, `user` or `assistant`.
    pub role: String,
    /// Its text, without the template's control tokens.
    pub content: String,
}

impl Message {
    pub(super) fn new(role: &str, content: impl Into<String>) -> Self {
        Self { role: role.to_owned(), content: content.into() }
    }
}

pub(super) fn sha256(text: &str) -> String {
    hex::encode(Sha256::digest(text.as_bytes()))
}
