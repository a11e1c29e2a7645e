//! PPO with a separate critic (Schulman et al. 2017; VAPO, Yue et al. 2025). In: batches of experiences. Out: weights moved
//! in place, a flat map of metrics per step, checkpoints.
//! Must hold: the actor's step touches the actor alone and the critic's the critic alone; everything a round needs besides
//! the weights is computed once at its start and is part of a checkpoint, so a killed round goes on where it was.

mod actor;
mod checkpoint;
mod critic;
mod gradients;
mod mirror;
mod prepare;
mod pretrain;
mod schedule;
mod selection;
#[cfg(test)]
mod tests;
mod trainer;

pub use trainer::{Control, Metrics, Optimizers, RoundMetrics, StepMetrics, Trainer};
