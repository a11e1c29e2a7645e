//! Plans: the frozen list of shards with the keys of their items, and the sealed inputs they were made from.

use crate::{JobError, Run, Stage};
use rollmill_store::Nonce;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// Part numbers have five digits, and listings are in the order of names.
const MAX_SHARDS: usize = 100_000;

/// A sealed stage that a plan rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputRef {
    /// Name of the stage, or a checkpoint's id.
    pub stage: String,
    /// Nonce of its seal or manifest.
    pub nonce: String,
}

/// What a job proposes.
#[derive(Clone, Debug, Default)]
pub struct PlanDraft {
    /// Keys of all items, in order.
    pub keys: Vec<String>,
    /// Items per shard.
    pub shard_size: usize,
    /// Sealed inputs.
    pub inputs: Vec<InputRef>,
    /// Settings that the rows depend on and the run's configuration does not hold.
    pub settings: serde_json::Value,
}

/// A frozen plan, as stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Format of this record.
    pub version: u32,
    /// The stage.
    pub stage: String,
    /// Makes this plan unlike all others; every part of the stage carries it.
    pub nonce: Nonce,
    /// Sealed inputs.
    pub inputs: Vec<InputRef>,
    /// Settings that the rows depend on.
    pub settings: serde_json::Value,
    /// Keys of each shard's items.
    pub shards: Vec<Vec<String>>,
}

impl Plan {
    /// Freezes the stage's plan from `draft`, or returns the frozen one if `draft` says the same.
    pub async fn ensure(run: &Run, stage: &Stage, draft: PlanDraft) -> Result<Plan, JobError> {
        let refuse = |difference: String| JobError::PlanRefused { stage: stage.name().into(), difference };
        let mut seen = HashSet::new();
        if let Some(twice) = draft.keys.iter().find(|k| !seen.insert(k.as_str())) {
            return Err(refuse(format!("item {twice} is planned twice")));
        }
        let mine = Plan {
            version: 1,
            stage: stage.name().into(),
            nonce: Nonce::of(&run.attempt, stage.plan()?),
            inputs: draft.inputs,
            settings: draft.settings,
            shards: draft.keys.chunks(draft.shard_size.max(1)).map(<[String]>::to_vec).collect(),
        };
        if mine.shards.len() > MAX_SHARDS {
            let (shards, items) = (mine.shards.len(), mine.items());
            return Err(refuse(format!(
                "{items} items would make {shards} shards, more than {MAX_SHARDS}: make shards larger"
            )));
        }
        let key = stage.plan()?;
        let frozen = match run.read_record::<Plan>(&key).await? {
            Some(frozen) => frozen,
            None => run.record(&key, mine.clone()).await?.0,
        };
        match frozen.difference(&mine) {
            None => Ok(frozen),
            Some(difference) => Err(refuse(difference)),
        }
    }

    /// Reads the frozen plan.
    pub async fn read(run: &Run, stage: &Stage) -> Result<Option<Plan>, JobError> {
        run.read_record(&stage.plan()?).await
    }

    /// Number of planned items.
    pub fn items(&self) -> usize {
        self.shards.iter().map(Vec::len).sum()
    }

    /// In what `new` says other things than this frozen plan; none if they agree.
    fn difference(&self, new: &Plan) -> Option<String> {
        if self.inputs != new.inputs {
            let names =
                |p: &Plan| p.inputs.iter().map(|i| format!("{}@{}", i.stage, i.nonce)).collect::<Vec<_>>().join(", ");
            return Some(format!("inputs were [{}], now [{}]", names(self), names(new)));
        }
        if self.settings != new.settings {
            return Some(format!("settings were {}, now {}", self.settings, new.settings));
        }
        if self.shards.len() != new.shards.len() {
            return Some(format!("it has {} shards, now {}", self.shards.len(), new.shards.len()));
        }
        let moved = (0..self.shards.len()).find(|&i| self.shards[i] != new.shards[i])?;
        Some(format!("shard {moved} holds other items"))
    }
}
