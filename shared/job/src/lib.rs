//! The frame every job runs in: plan, claim, checkpoint, commit; flags, configuration, exit codes and signals.
//!
//! In: a [`Job`], which plans keys and turns one key into one row. Out: a table of parts that holds exactly the planned
//! keys, once each, whoever was killed on the way.
//!
//! What must hold: a plan is frozen once created; a part is its own commit; chunks may overlap and parts may not; leases
//! and clocks only save work. A job's author sees no bucket, no lease and no clock.
//!
//! What it does not know: what a task, a reward or a model is.

mod board;
pub mod budget;
pub mod checkpoint;
mod chunk;
pub mod clock;
pub mod config;
pub mod drain;
pub mod env;
mod error;
mod exit;
mod fork;
mod frame;
pub mod gc;
pub mod inspect;
mod items;
pub mod layout;
mod note;
mod patience;
pub mod plan;
pub mod progress;
mod report;
mod run;
mod sandbox_settings;
pub mod seal;
pub mod service;
mod shard;
mod turn;

pub use clock::{Clock, SystemClock};
pub use drain::Drain;
pub use error::{ItemError, JobError};
pub use exit::{Exit, command_line};
pub use fork::ForkedFrom;
pub use frame::{Outcome, WorkerOptions, work};
pub use items::Job;
pub use layout::Stage;
pub use note::Note;
pub use plan::{InputRef, Plan, PlanDraft};
pub use report::{StageReport, peak_memory_bytes, peak_memory_of, reports_on, write_report};
pub use rollmill_store::AttemptId;
pub use run::{Run, RunArgs};

/// Version written into every row's provenance.
pub const CODE_VERSION: &str = env!("CARGO_PKG_VERSION");
