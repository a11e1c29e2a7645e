//! Errors of the frame. Each answers: retry the item, give it up, or stop the run?

use rollmill_schema::PartError;
use rollmill_store::StoreError;

/// What a job answers for an item that gave no row.
#[derive(Debug, thiserror::Error)]
pub enum ItemError {
    /// Something passed by that is not the item's fault: try it again, a set number of times, then record a failed row.
    #[error("{0}")]
    Retry(String),
    /// A service the worker needs is away: save what is done and exit 75.
    #[error("{0}")]
    Unavailable(String),
    /// Nothing this worker does would be right: stop with exit 10.
    #[error("{0}")]
    Stop(String),
}

/// Why a job ended without its outcome.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// A configuration or flag is wrong.
    #[error("{place}: {reason}")]
    Config {
        /// File, section or flag.
        place: String,
        /// What is wrong and what to do.
        reason: String,
    },
    /// There is no run at the address.
    #[error("{address}: holds no run (no run.toml); make one with `rollmill init --config FILE --run {address}`")]
    NoRun {
        /// Where it was looked for.
        address: String,
    },
    /// The configuration differs from the one the run was made with.
    #[error(
        "{address}: this run was made with another configuration: {difference}; use a new --run address, or undo the change"
    )]
    RunChanged {
        /// The run.
        address: String,
        /// Which keys, from what to what.
        difference: String,
    },
    /// A plan exists and the command would make another one.
    #[error("stage {stage}: its plan is frozen and differs: {difference}; undo the change or use a new run")]
    PlanRefused {
        /// The stage.
        stage: String,
        /// What differs.
        difference: String,
    },
    /// The stage before has not been run.
    #[error("stage {stage} has not been planned yet; run it first")]
    InputAbsent {
        /// The missing stage.
        stage: String,
    },
    /// The stage before is not finished.
    #[error("stage {stage} is not finished: {have} of {want} parts, no seal; run it to its end, then this again")]
    InputIncomplete {
        /// The stage.
        stage: String,
        /// Parts there.
        have: usize,
        /// Parts planned.
        want: usize,
    },
    /// A stored object is not what its record says.
    #[error("{key}: {reason}; the object was damaged or written by hand, restore it from the bucket's versions")]
    Corrupt {
        /// The object.
        key: String,
        /// What does not fit.
        reason: String,
    },
    /// A checkpoint whose files `gc` removed when it was asked to.
    #[error("checkpoint {checkpoint}: its files were retired by `rollmill gc`; use a later checkpoint")]
    Retired {
        /// Its id.
        checkpoint: String,
    },
    /// Another attempt does the same work and won.
    #[error("{what}: another attempt is alive and was first; this one stops")]
    Fenced {
        /// What was lost.
        what: String,
    },
    /// A service is away.
    #[error("{reason}; what was done is saved, run the same command again")]
    Unavailable {
        /// Which, and what it said.
        reason: String,
    },
    /// An item said that nothing here would be right.
    #[error("stopped at item {key}: {reason}")]
    Stopped {
        /// The item.
        key: String,
        /// What it said.
        reason: String,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A part cannot be read or written.
    #[error(transparent)]
    Part(#[from] PartError),
}

impl From<rollmill_store::key::InvalidKey> for JobError {
    fn from(e: rollmill_store::key::InvalidKey) -> JobError {
        JobError::Store(e.into())
    }
}
