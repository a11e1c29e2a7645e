//! `[sft]`: imitation before the first round. Its result is a later checkpoint of round 0, which the first round then
//! starts from and measures its KL against.

use rollmill_job::JobError;
use rollmill_job::config::Config;
use rollmill_train::{Algorithm, TrainConfig, TrainError};
use serde_json::{Map, Value};
use std::path::PathBuf;

/// The section: where the demonstrations are, and any field of `[train]`.
pub struct Imitation {
    /// JSONL of conversations, see [`crate::demonstrations`].
    pub demonstrations: PathBuf,
    /// How to train on them. Its algorithm is always SFT.
    pub train: TrainConfig,
}

/// Reads `[sft]`; none where the configuration has no such section.
pub fn imitation(config: &Config) -> Result<Option<Imitation>, JobError> {
    let bad = |reason: String| JobError::Config { place: "[sft]".into(), reason };
    let mut section: Map<String, Value> = config.section("sft")?;
    if section.is_empty() {
        return Ok(None);
    }
    let Some(Value::String(demonstrations)) = section.remove("demonstrations") else {
        return Err(bad("needs demonstrations, the path of a JSONL file of conversations".into()));
    };
    let train: TrainConfig = serde_json::from_value(Value::Object(section)).map_err(|e| bad(e.to_string()))?;
    let train = TrainConfig { algorithm: Algorithm::Sft, passing_reward: 0.0, ..train };
    train.validate().map_err(|e: TrainError| bad(e.to_string()))?;
    Ok(Some(Imitation { demonstrations: demonstrations.into(), train }))
}
