//! `[score]`: the version, the reward, the limits.

use rollmill_grader::RewardConfig;
use rollmill_job::JobError;
use rollmill_sandbox::Level;
use serde::{Deserialize, Serialize};

/// The section.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScoreConfig {
    /// Name of this scoring: its folder and a column.
    pub version: String,
    /// How counts become a number.
    pub reward: RewardConfig,
    /// Seconds one call may take.
    pub call_seconds: f64,
    /// Trajectories per shard.
    pub shard_size: usize,
    /// The weakest isolation a sandbox may have.
    pub floor: Level,
}

impl Default for ScoreConfig {
    fn default() -> ScoreConfig {
        ScoreConfig {
            version: "v1".into(),
            reward: RewardConfig::default(),
            call_seconds: 2.0,
            shard_size: 256,
            floor: Level::Watched,
        }
    }
}

impl ScoreConfig {
    /// Refuses settings that cannot work.
    pub fn check(&self) -> Result<(), JobError> {
        let bad = |reason: &str| Err(JobError::Config { place: "[score]".into(), reason: reason.into() });
        let named = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
        if self.version.is_empty() || self.version.starts_with('.') || !self.version.bytes().all(named) {
            return bad("version must be of letters, digits, - _ and .");
        }
        if !(self.call_seconds > 0.0 && self.call_seconds <= 3600.0) {
            return bad("call_seconds must be above 0");
        }
        self.reward.check().map_err(|e| JobError::Config { place: "[score]".into(), reason: e.to_string() })
    }
}
