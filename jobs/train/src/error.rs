//! What can go wrong, by what to do about it: an experience that is malformed is the caller's to drop or fix, everything
//! else stops the run. Nothing here is worth a retry: the same input gives the same error.

use std::path::{Path, PathBuf};

use crate::experience::Experience;

/// Errors of training. All of them stop the run; see each message for what to do.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// The configuration contradicts itself.
    #[error("config: {0}")]
    Config(String),
    /// One experience is malformed: drop it or fix its producer.
    #[error("experience {index} (task {task}): {problem}")]
    Experience {
        /// Position in the batch.
        index: usize,
        /// Its task.
        task: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A batch without a row that has a reward and a trainable token.
    #[error(
        "nothing to learn from in a batch of {0} experiences: check the trainable masks, and which rows have a reward"
    )]
    EmptyBatch(usize),
    /// The checkpoint stands in the middle of a round over other experiences or under another config.
    #[error("cannot resume this round: {0}; call with the same batch and config as the interrupted run")]
    OtherRound(String),
    /// A loss or gradient became NaN or infinite; the weights have not been touched by it.
    #[error("step {step}: {what} is not finite on {rows}; look at those rows, or lower the learning rate")]
    NotFinite {
        /// Optimizer step it happened in.
        step: u64,
        /// Which number.
        what: &'static str,
        /// The rows that caused it, or among which the cause is.
        rows: String,
    },
    /// An update of a critic was asked of an algorithm that has none.
    #[error("this algorithm has no critic: set algorithm = \"ppo\"")]
    NoCritic,
    /// A checkpoint folder is damaged or of another model.
    #[error("checkpoint {}: {problem}; take another checkpoint", path.display())]
    Checkpoint {
        /// File or folder.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// Reading or writing a file failed.
    #[error("{}: {source}; check the disk and permissions", path.display())]
    Io {
        /// File or folder.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// The model's files.
    #[error(transparent)]
    Model(#[from] rollmill_model::ModelError),
    /// What the caller's `on_step` answered.
    #[error("after a step: {0}")]
    OnStep(Box<dyn std::error::Error + Send + Sync>),
}

/// Result of this crate.
pub type Result<T> = std::result::Result<T, TrainError>;

impl TrainError {
    /// Names the first rows by position and task.
    pub(crate) fn not_finite(step: u64, what: &'static str, batch: &[Experience], rows: &[usize]) -> TrainError {
        const SHOWN: usize = 5;
        let named: Vec<String> =
            rows.iter().take(SHOWN).map(|&row| format!("row {row} (task {})", batch[row].task_id)).collect();
        let more = rows.len().saturating_sub(SHOWN);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        TrainError::NotFinite { step, what, rows: named.join(", ") + &more }
    }

    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> TrainError {
        move |source| TrainError::Io { path: path.to_owned(), source }
    }

    pub(crate) fn checkpoint(path: &Path, problem: impl Into<String>) -> TrainError {
        TrainError::Checkpoint { path: path.to_owned(), problem: problem.into() }
    }
}
