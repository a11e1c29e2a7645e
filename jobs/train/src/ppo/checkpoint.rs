//! A trainer as a folder. In and out: `actor/` and `critic/` (Hugging Face folders, float32), `critic/value_head.safetensors`,
//! `optimizer-actor.safetensors`, `optimizer-critic.safetensors`, `state.json`, and `round.safetensors` in mid-round.
//! Must hold: the same state gives the same bytes; state.json is written last; the reference is not in it (it never
//! changes and is half a gigabyte), only its hash, which `load` checks.

use std::path::Path;

use rollmill_model::{Decoder, ValueHead};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tch::{Device, Kind, Tensor};

use super::prepare::{PerToken, Prepared, to_vec};
use super::trainer::{Metrics, Optimizers, Progress, Trainer, adamw_config, critic_parameters, named};
use crate::adamw::AdamW;
use crate::config::TrainConfig;
use crate::error::{Result, TrainError};
use crate::tensor_file;

const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
struct State {
    format: u32,
    step: u64,
    rounds: u64,
    reference_sha256: String,
    config: TrainConfig,
    progress: Option<Position>,
}

/// A round under way; its lists are in `round.safetensors`.
#[derive(Serialize, Deserialize)]
struct Position {
    cursor: usize,
    batch_sha256: String,
    /// Trainable tokens of each trajectory.
    lengths: Vec<usize>,
    stats: Metrics,
}

/// SHA-256 of a network's weights, in hex.
pub(super) fn digest(network: &Decoder) -> String {
    let mut hash = Sha256::new();
    for (name, tensor) in network.parameters() {
        let flat = tensor.detach().to_device(Device::Cpu).contiguous();
        let mut bytes = vec![0; flat.numel() * flat.kind().elt_size_in_bytes()];
        flat.copy_data_u8(&mut bytes, flat.numel());
        hash.update(name.as_bytes());
        hash.update(&bytes);
    }
    hex::encode(hash.finalize())
}

impl Trainer {
    /// Writes everything but the reference into `dir`, which is made. Give each checkpoint a folder of its own.
    pub fn save(&self, dir: &Path) -> Result<()> {
        for (name, network) in [("actor", &self.actor), ("critic", &self.critic)] {
            let folder = dir.join(name);
            std::fs::create_dir_all(&folder).map_err(TrainError::io(&folder))?;
            network.save(&folder)?;
        }
        self.value_head.save(&dir.join("critic/value_head.safetensors"))?;
        self.optimizers.actor.save(&dir.join("optimizer-actor.safetensors"))?;
        self.optimizers.critic.save(&dir.join("optimizer-critic.safetensors"))?;
        if let Some(progress) = &self.progress {
            save_lists(&dir.join("round.safetensors"), &progress.prepared)?;
        }
        let state = State {
            format: FORMAT,
            step: self.step,
            rounds: self.rounds,
            reference_sha256: self.reference_sha256.clone(),
            config: self.config.clone(),
            progress: self.progress.as_ref().map(position),
        };
        let path = dir.join("state.json");
        let json = serde_json::to_vec_pretty(&state).map_err(|e| TrainError::checkpoint(&path, e.to_string()))?;
        std::fs::write(&path, json).map_err(TrainError::io(&path))
    }

    /// Reads what `save` wrote, onto the reference's device. `reference` must be the network the trainer began with. In the
    /// middle of a round the config must be the saved one (except for `checkpoint_every`); between rounds it may change.
    pub fn load(dir: &Path, reference: Decoder, config: TrainConfig) -> Result<Trainer> {
        let path = dir.join("state.json");
        let json = std::fs::read(&path).map_err(TrainError::io(&path))?;
        let state: State = serde_json::from_slice(&json).map_err(|e| TrainError::checkpoint(&path, e.to_string()))?;
        if state.format != FORMAT {
            return Err(TrainError::checkpoint(
                &path,
                format!("has format {}, this program reads {FORMAT}", state.format),
            ));
        }
        let device = reference.device();
        let actor = Decoder::load(&dir.join("actor"), Kind::Float, device)?;
        let critic = Decoder::load(&dir.join("critic"), Kind::Float, device)?;
        let head = ValueHead::load(&dir.join("critic/value_head.safetensors"), device)?;
        let mut trainer = Trainer::new(actor, critic, head, reference, config)?;
        if trainer.reference_sha256 != state.reference_sha256 {
            return Err(TrainError::checkpoint(&path, "was trained against another reference network; give that one"));
        }
        trainer.optimizers = trainer.load_optimizers(dir, device)?;
        (trainer.step, trainer.rounds) = (state.step, state.rounds);
        if let Some(position) = state.progress {
            let saved = TrainConfig { checkpoint_every: trainer.config.checkpoint_every, ..state.config };
            if saved != trainer.config {
                return Err(TrainError::OtherRound("the config is another one than the round began with".to_owned()));
            }
            let prepared = load_lists(&dir.join("round.safetensors"), &position)?;
            trainer.progress = Some(Progress { cursor: position.cursor, batch: position.batch_sha256, prepared });
        }
        Ok(trainer)
    }

    fn load_optimizers(&self, dir: &Path, device: Device) -> Result<Optimizers> {
        let config = adamw_config(&self.config);
        let actor = named(self.actor.parameters());
        let critic = critic_parameters(&self.critic, &self.value_head);
        Ok(Optimizers {
            actor: AdamW::load(&dir.join("optimizer-actor.safetensors"), &actor, config, device)?,
            critic: AdamW::load(&dir.join("optimizer-critic.safetensors"), &critic, config, device)?,
        })
    }
}

fn position(progress: &Progress) -> Position {
    Position {
        cursor: progress.cursor,
        batch_sha256: progress.batch.clone(),
        lengths: progress.prepared.old.iter().map(Vec::len).collect(),
        stats: progress.prepared.stats.clone(),
    }
}

/// The lists by name, each flat.
fn save_lists(path: &Path, prepared: &Prepared) -> Result<()> {
    let Prepared { old, values, advantages, returns, reference, .. } = prepared;
    let flat = |name: &str, lists: &PerToken| (name.to_owned(), Tensor::from_slice(&lists.concat()));
    let mut named =
        vec![flat("old", old), flat("values", values), flat("advantages", advantages), flat("returns", returns)];
    named.extend(reference.as_ref().map(|lists| flat("reference", lists)));
    tensor_file::write(path, named.iter().map(|(name, tensor)| (name.clone(), tensor)))
}

fn load_lists(path: &Path, position: &Position) -> Result<Prepared> {
    let mut found = tensor_file::read(path, Device::Cpu)?;
    let has_reference = found.contains_key("reference");
    let total = position.lengths.iter().sum::<usize>() as i64;
    let mut lists = |name: &str| -> Result<PerToken> {
        let mut rest = to_vec(&tensor_file::take(&mut found, path, name, &[total])?);
        Ok(position.lengths.iter().map(|&length| rest.drain(..length).collect()).collect())
    };
    Ok(Prepared {
        old: lists("old")?,
        values: lists("values")?,
        advantages: lists("advantages")?,
        returns: lists("returns")?,
        reference: has_reference.then(|| lists("reference")).transpose()?,
        stats: position.stats.clone(),
    })
}
