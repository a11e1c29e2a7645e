//! `[verify]`: what a task must stand, and how the set is split.

use rollmill_sandbox::Level;
use serde::{Deserialize, Serialize};

/// The section.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VerifyConfig {
    /// How often the reference must pass, each time in another order.
    pub repeats: u32,
    /// Share of the tasks that is held out, by whole groups.
    pub heldout: f64,
    /// Changes which groups are held out.
    pub salt: String,
    /// Seconds one call may take.
    pub call_seconds: f64,
    /// Candidates per shard.
    pub shard_size: usize,
    /// The weakest isolation a sandbox may have.
    pub floor: Level,
}

impl VerifyConfig {
    /// Refuses settings that cannot work.
    pub fn check(&self) -> Result<(), rollmill_job::JobError> {
        if self.call_seconds > 0.0 && self.call_seconds <= 3600.0 && (0.0..=1.0).contains(&self.heldout) {
            return Ok(());
        }
        let reason = "call_seconds must be above 0, heldout from 0 to 1".into();
        Err(rollmill_job::JobError::Config { place: "[verify]".into(), reason })
    }
}

impl Default for VerifyConfig {
    fn default() -> VerifyConfig {
        VerifyConfig {
            repeats: 3,
            heldout: 0.3,
            salt: String::new(),
            call_seconds: 1.0,
            shard_size: 200,
            floor: Level::Watched,
        }
    }
}
