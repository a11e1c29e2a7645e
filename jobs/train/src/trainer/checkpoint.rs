//! A trainer as a folder. In and out: `actor/` (a Hugging Face folder, float32), `optimizer-actor.safetensors`, `state.json`;
//! with a critic `critic/`, `critic/value_head.safetensors` and `optimizer-critic.safetensors`; with adapters
//! `lora-actor.safetensors` and `lora-critic.safetensors`; and `round.safetensors` in mid-round.
//! Must hold: the same state gives the same bytes; state.json is written last; the reference is not in it (it never
//! changes and is half a gigabyte), only its hash, which `load` checks.

use std::path::{Path, PathBuf};

use rollmill_model::{Decoder, ValueHead};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tch::{Device, Kind, Tensor};

use super::prepare::{PerToken, Prepared, to_vec};
use super::round::{Metrics, Optimizers, Progress, Trainer, adamw_config};
use crate::adamw::AdamW;
use crate::config::TrainConfig;
use crate::error::{Result, TrainError};
use crate::tensor_file;

const FORMAT: u32 = 2;
const HEAD: &str = "critic/value_head.safetensors";
const ACTOR_MOMENTS: &str = "optimizer-actor.safetensors";
const CRITIC_MOMENTS: &str = "optimizer-critic.safetensors";

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
    skipped: u64,
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
        save_network(&self.actor, dir, "actor")?;
        if let Some(critic) = &self.critic {
            save_network(&critic.trunk, dir, "critic")?;
            critic.head.save(&dir.join(HEAD))?;
        }
        let optimizers = [(&self.optimizers.actor, ACTOR_MOMENTS), (&self.optimizers.critic, CRITIC_MOMENTS)];
        for (optimizer, name) in optimizers {
            optimizer.as_ref().map_or(Ok(()), |optimizer| optimizer.save(&dir.join(name)))?;
        }
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
    /// middle of a round the config must be the saved one (except for how often checkpoints are made and when alerts are
    /// raised); between rounds all but the adapters may change. Another algorithm begins with fresh optimizers, and with a fresh critic if the
    /// saved trainer had none.
    pub fn load(dir: &Path, reference: Decoder, config: TrainConfig) -> Result<Trainer> {
        let state = read_state(&dir.join("state.json"))?;
        if state.config.lora != config.lora {
            let reason =
                "[train.lora] is another one than the checkpoint was trained with; change it back, or make another run";
            return Err(TrainError::Config(reason.to_owned()));
        }
        let device = reference.device();
        let actor = load_network(dir, "actor", &reference, &config)?;
        let critic = load_critic(dir, &actor, &reference, &config)?;
        let mut trainer = Trainer::new(actor, critic, reference, config)?;
        if trainer.reference_sha256 != state.reference_sha256 {
            let path = dir.join("state.json");
            return Err(TrainError::checkpoint(&path, "was trained against another reference network; give that one"));
        }
        trainer.step = state.step;
        if state.config.algorithm == trainer.config.algorithm {
            trainer.optimizers = trainer.load_optimizers(dir, device)?;
            trainer.rounds = state.rounds;
        }
        if let Some(position) = state.progress {
            let saved = TrainConfig {
                checkpoint_every: trainer.config.checkpoint_every,
                keep_checkpoints: trainer.config.keep_checkpoints,
                alerts: trainer.config.alerts.clone(),
                ..state.config
            };
            if saved != trainer.config {
                return Err(TrainError::OtherRound("the config is another one than the round began with".to_owned()));
            }
            let prepared = load_lists(&dir.join("round.safetensors"), &position)?;
            trainer.progress = Some(Progress {
                cursor: position.cursor,
                skipped: position.skipped,
                batch: position.batch_sha256,
                prepared,
            });
        }
        Ok(trainer)
    }

    fn load_optimizers(&self, dir: &Path, device: Device) -> Result<Optimizers> {
        let load = |name: &str, parameters: Vec<(String, Tensor)>| {
            AdamW::load(&dir.join(name), &parameters, adamw_config(&self.config), device)
        };
        let moves = self.config.algorithm.moves_policy();
        Ok(Optimizers {
            actor: moves.then(|| load(ACTOR_MOMENTS, self.actor.trainable())).transpose()?,
            critic: self.critic.as_ref().map(|critic| load(CRITIC_MOMENTS, critic.trainable())).transpose()?,
        })
    }
}

/// A whole network, adapters merged, and beside it the adapters themselves.
fn save_network(network: &Decoder, dir: &Path, name: &str) -> Result<()> {
    let folder = dir.join(name);
    std::fs::create_dir_all(&folder).map_err(TrainError::io(&folder))?;
    network.save(&folder)?;
    if network.has_lora() {
        network.save_lora(&adapters(dir, name))?;
    }
    Ok(())
}

fn adapters(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!("lora-{name}.safetensors"))
}

/// What `save_network` wrote. Adapters are laid over the reference, which is what they were made for.
fn load_network(dir: &Path, name: &str, reference: &Decoder, config: &TrainConfig) -> Result<Decoder> {
    if let Some(lora) = &config.lora {
        let mut network = reference.deep_copy().with_lora(lora)?;
        network.load_lora(&adapters(dir, name))?;
        return Ok(network);
    }
    let folder = dir.join(name);
    let network = Decoder::load(&folder, Kind::Float, reference.device())?;
    same_shape(&network, reference, &folder)?;
    Ok(network)
}

fn read_state(path: &Path) -> Result<State> {
    let json = std::fs::read(path).map_err(TrainError::io(path))?;
    let state: State = serde_json::from_slice(&json).map_err(|e| TrainError::checkpoint(path, e.to_string()))?;
    match state.format {
        FORMAT => Ok(state),
        other => Err(TrainError::checkpoint(path, format!("has format {other}, this program reads {FORMAT}"))),
    }
}

/// The critic of a folder, or a fresh one from the policy where the folder has none.
fn load_critic(
    dir: &Path,
    actor: &Decoder,
    reference: &Decoder,
    config: &TrainConfig,
) -> Result<Option<(Decoder, ValueHead)>> {
    if !config.algorithm.has_critic() {
        return Ok(None);
    }
    if !dir.join("critic").exists() {
        return Ok(Some((actor.deep_copy(), ValueHead::zeros(actor))));
    }
    let trunk = load_network(dir, "critic", reference, config)?;
    Ok(Some((trunk, ValueHead::load(&dir.join(HEAD), reference.device())?)))
}

/// Refuses a network of another architecture than the one it is to continue.
fn same_shape(network: &Decoder, like: &Decoder, folder: &Path) -> Result<()> {
    let shapes = |of: &Decoder| of.parameters().iter().map(|(n, t)| ((*n).to_owned(), t.size())).collect::<Vec<_>>();
    match shapes(network) == shapes(like) {
        true => Ok(()),
        false => Err(TrainError::checkpoint(folder, "is a model of another architecture than the base model")),
    }
}

fn position(progress: &Progress) -> Position {
    Position {
        cursor: progress.cursor,
        skipped: progress.skipped,
        batch_sha256: progress.batch.clone(),
        lengths: progress.prepared.old.iter().map(Vec::len).collect(),
        stats: progress.prepared.stats.clone(),
    }
}

/// The lists by name, each flat.
fn save_lists(path: &Path, prepared: &Prepared) -> Result<()> {
    let Prepared { old, importance, advantages, values, returns, reference, stats: _ } = prepared;
    let all = [
        ("old", Some(old)),
        ("importance", importance.as_ref()),
        ("advantages", advantages.as_ref()),
        ("values", values.as_ref()),
        ("returns", returns.as_ref()),
        ("reference", reference.as_ref()),
    ];
    let flat = |(name, lists): (&str, Option<&PerToken>)| Some((name.to_owned(), Tensor::from_slice(&lists?.concat())));
    let named: Vec<(String, Tensor)> = all.into_iter().filter_map(flat).collect();
    tensor_file::write(path, named.iter().map(|(name, tensor)| (name.clone(), tensor)))
}

fn load_lists(path: &Path, position: &Position) -> Result<Prepared> {
    let mut found = tensor_file::read(path, Device::Cpu)?;
    let total = position.lengths.iter().sum::<usize>() as i64;
    let mut lists = |name: &str| -> Result<Option<PerToken>> {
        if !found.contains_key(name) {
            return Ok(None);
        }
        let mut rest = to_vec(&tensor_file::take(&mut found, path, name, &[total])?);
        Ok(Some(position.lengths.iter().map(|&length| rest.drain(..length).collect()).collect()))
    };
    Ok(Prepared {
        old: lists("old")?.ok_or_else(|| TrainError::checkpoint(path, "lacks old"))?,
        importance: lists("importance")?,
        advantages: lists("advantages")?,
        values: lists("values")?,
        returns: lists("returns")?,
        reference: lists("reference")?,
        stats: position.stats.clone(),
    })
}
