//! What a run needs from a scheduler: which jobs, after which, how large, and what of it is already done.
//!
//! In: a configuration, and the run if it is there. Out: a [`Chain`] of steps with their state and an [`Estimate`]; text and
//! calls for Slurm, objects for Kubernetes. What must hold: a chain follows from the configuration alone; what is done is read from the store, what is
//! under way from the scheduler, so that submitting twice adds nothing.
//!
//! What it does not know: how a job does its work. It knows their command lines.

mod chain;
mod command;
mod estimate;
pub mod k8s;
mod program;
mod progress;
mod settings;
pub mod slurm;

pub use chain::{Chain, Node, Step};
pub use command::Flags;
pub use estimate::{Estimate, Facts, Sizes};
pub use progress::{Progress, State};
pub use settings::{ClusterSettings, EndpointSettings};
