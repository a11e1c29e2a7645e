//! How far each step of a chain is, from the store alone.

use crate::chain::{Chain, Step};
use rollmill_job::inspect::{self, Left};
use rollmill_job::{JobError, Run, Stage, checkpoint};

/// How far a step is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing is left to do.
    Done,
    /// These shards of a frozen plan are left, of so many.
    Open(Vec<u32>, u32),
    /// Nobody has planned it: how many shards it will have is a guess.
    Unplanned,
}

/// The state of every step, in the order of the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress(pub Vec<State>);

impl Progress {
    /// Of a run that is not there yet.
    pub fn none(chain: &Chain) -> Progress {
        Progress(vec![State::Unplanned; chain.nodes.len()])
    }

    /// Reads it.
    pub async fn read(run: &Run, chain: &Chain) -> Result<Progress, JobError> {
        let mut states = Vec::new();
        for node in &chain.nodes {
            states.push(state(run, &chain.version, &node.step).await?);
        }
        Ok(Progress(states))
    }

    /// Reads what may have come since: what is done stays done, and what comes after something that is not cannot be.
    pub async fn advance(&mut self, run: &Run, chain: &Chain) -> Result<(), JobError> {
        for (at, node) in chain.nodes.iter().enumerate() {
            let ready = node.after.iter().all(|&before| self.0[before] == State::Done);
            if self.0[at] != State::Done && ready {
                self.0[at] = state(run, &chain.version, &node.step).await?;
            }
        }
        Ok(())
    }
}

async fn state(run: &Run, version: &str, step: &Step) -> Result<State, JobError> {
    if let Some(stage) = step.stage(version) {
        return stage_state(run, &stage).await;
    }
    let done = match step {
        Step::Train { round } => checkpoint::trained(run, *round).await?.is_some(),
        Step::Endpoint { until, .. } => {
            let mut done = true;
            for stage in until {
                done = done && stage_state(run, stage).await? == State::Done;
            }
            done
        }
        _ => false,
    };
    Ok(if done { State::Done } else { State::Unplanned })
}

/// Any worker of its job seals a stage that only its job may seal.
async fn stage_state(run: &Run, stage: &Stage) -> Result<State, JobError> {
    Ok(match inspect::left(run, stage).await? {
        Left::Done => State::Done,
        Left::Unsealed(shards) => State::Open(vec![0], shards),
        Left::Open(open, shards) => State::Open(open, shards),
        Left::Unplanned => State::Unplanned,
    })
}
