//! All sections of a configuration, checked before anything is created.

use rollmill_job::JobError;
use rollmill_job::config::Config;
use serde::{Deserialize, Serialize};

/// `[policy]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PolicyConfig {
    /// The base model: an HF folder, or the name of one below the cache's `models` folder.
    pub model: String,
}

/// Sections there are.
const SECTIONS: [&str; 9] = ["policy", "synthesize", "verify", "sft", "rollout", "score", "train", "evaluate", "serve"];

/// `[serve]`: how `run` starts `rollmill-serve`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServeConfig {
    /// Requests decoded together.
    pub slots: u32,
    /// Longest sequence.
    pub context: u32,
    /// Numbers to compute in.
    pub dtype: Dtype,
}

/// Numbers a model computes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dtype {
    /// Log-probs within 1e-4 of the trainer's.
    F32,
    /// About twice as fast where the processor multiplies it.
    Bf16,
}

impl Default for ServeConfig {
    fn default() -> ServeConfig {
        ServeConfig { slots: 16, context: 768, dtype: Dtype::F32 }
    }
}

/// Refuses a configuration with unknown sections, unknown keys or settings that cannot work. `[sft]` and `[train]`
/// are checked by `rollmill-train`, which knows them.
pub fn check(config: &Config) -> Result<(), JobError> {
    config.check_sections(&SECTIONS)?;
    config.operations()?;
    config.section::<PolicyConfig>("policy")?;
    config.section::<ServeConfig>("serve")?;
    config.section::<rollmill_synthesize::SynthesizeConfig>("synthesize")?;
    let verify = config.section::<rollmill_verify::VerifyConfig>("verify")?;
    let rollout = config.section::<rollmill_rollout::RolloutConfig>("rollout")?;
    let score = config.section::<rollmill_score::ScoreConfig>("score")?;
    verify.check()?;
    rollout.check()?;
    score.check()?;
    if verify.call_seconds > score.call_seconds.min(rollout.call_seconds) {
        let reason =
            "call_seconds is above that of [score] or [rollout]: references would be admitted that nobody may repeat";
        return Err(JobError::Config { place: "[verify]".into(), reason: reason.into() });
    }
    config.section::<rollmill_evaluate::EvaluateConfig>("evaluate")?;
    config.section::<rollmill_job::budget::Budget>("budget")?;
    config.section::<rollmill_submit::ClusterSettings>("cluster")?.check()?;
    Ok(())
}
