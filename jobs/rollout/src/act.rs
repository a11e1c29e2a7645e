//! The policy acts on one task: one growing token sequence of prompt, plan, code, test output and repaired code.
//!
//! In: a policy, its tokenizer and chat template, a task's visible side, a seed and a tester of visible tests. Out: the
//! sequence with its mask and log-probs, and what happened step by step. Must hold: sampled ids stand in the sequence
//! exactly as received, each request's prompt is the previous one with its answer and forced tokens appended, only
//! sampled tokens are trainable, and whatever the task or a sandbox wrote cannot become a control token.

mod config;
mod prompt;
mod record;
mod sequence;
mod walk;

pub use config::{ActConfig, ProgramWording};
pub use record::{Acted, Message, Phase, StepRecord, StopReason};
pub use walk::act;

use rollmill_policy::{EndpointError, Next, TokenizerError};

/// What the policy may see of a task.
#[derive(Debug, Clone, Copy)]
pub struct ActTask<'a> {
    /// Id of the task.
    pub task_id: &'a str,
    /// The instruction, as text.
    pub question: &'a str,
    /// Name of the function asked for.
    pub entry_point: &'a str,
    /// Visible tests as texts: `assert f(1) == 2`.
    pub visible_tests: &'a [String],
    /// What is asked for, where it is no Python function.
    pub program: Option<Program<'a>>,
}

/// A program of one file.
#[derive(Debug, Clone, Copy)]
pub struct Program<'a> {
    /// Its language, as a block of code names it.
    pub language: &'a str,
    /// The file that the code becomes.
    pub file: &'a str,
}

/// Runs the visible tests on an attempt's code.
#[async_trait::async_trait]
pub trait Tester: Send + Sync {
    /// Tests `code`. Whatever the code does is a [`Tested`]; an error is never the code's fault.
    async fn test(&self, code: &str) -> Result<Tested, TesterError>;
}

/// What the visible tests said.
#[derive(Debug, Clone, PartialEq)]
pub struct Tested {
    /// All visible tests passed.
    pub passed: bool,
    /// What the policy is shown: short and deterministic.
    pub text: String,
    /// Time the tests took, in milliseconds.
    pub ms: u64,
    /// What the sandbox reports (limits reached, isolation), as JSON.
    pub facts: serde_json::Value,
}

/// The tests could not be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the visible tests could not be run: {message}")]
pub struct TesterError {
    /// What happened, and what to do about it.
    pub message: String,
    /// Whether to retry, to give up the task or to stop the run.
    pub next: Next,
}

/// Why there is no trajectory. Never the policy's fault: such a trajectory is a third outcome, no reward of 0.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    /// The policy did not answer, or not usably.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The tests could not be run.
    #[error(transparent)]
    Tester(#[from] TesterError),
    /// The tokenizer failed.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// The prompt alone fills the context.
    #[error("the prompt of task {task_id} has {tokens} tokens and leaves no room in a context of {context}")]
    PromptTooLong {
        /// The task.
        task_id: String,
        /// Tokens of its prompt.
        tokens: usize,
        /// The configured context.
        context: usize,
    },
    /// The configuration cannot work.
    #[error("rollout configuration: {0}")]
    Config(String),
}

impl ActError {
    /// Whether to retry the trajectory, to give it up or to stop the run.
    pub fn next(&self) -> Next {
        match self {
            Self::Endpoint(e) => e.next(),
            Self::Tester(e) => e.next,
            Self::PromptTooLong { .. } => Next::GiveUpItem,
            Self::Tokenizer(_) | Self::Config(_) => Next::Stop,
        }
    }
}

#[cfg(test)]
mod tests;
