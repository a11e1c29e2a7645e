//! The update loop of all algorithms. In: batches of experiences. Out: weights moved in place, a flat map of metrics per
//! step, checkpoints.
//! Must hold: the actor's step touches the actor alone and the critic's the critic alone; everything a round needs besides
//! the weights is computed once at its start and is part of a checkpoint, so a killed round goes on where it was.

mod actor;
mod checkpoint;
mod critic;
mod estimate;
mod gradients;
mod mirror;
mod pairs;
mod pass;
mod prepare;
mod pretrain;
mod round;
mod schedule;
mod selection;
mod spread;
mod stats;
#[cfg(test)]
mod tests;

pub use critic::Critic;
pub use round::{Control, Metrics, Optimizers, RoundMetrics, StepMetrics, Trainer};
