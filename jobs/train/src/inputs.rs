//! From rows to experiences.

use rollmill_job::checkpoint::Manifest;
use rollmill_job::{InputRef, JobError, Run, Stage, seal};
use rollmill_schema::{Reward, Trajectory};
use rollmill_train::Experience;
use std::collections::HashMap;

/// What a round is trained on.
pub struct Inputs {
    /// One per graded trajectory.
    pub experiences: Vec<Experience>,
    /// The sealed stages they come from.
    pub inputs: Vec<InputRef>,
    /// Temperature all rows were sampled at.
    pub temperature: f64,
    /// Share of rows left out because of failures that are not the policy's.
    pub left_out: f64,
    /// Share of well-formed trajectories.
    pub well_formed: f64,
}

/// Reads the round's rows, all of which must have been sampled by `policy`.
pub async fn read(run: &Run, round: u32, policy: &Manifest) -> Result<Inputs, JobError> {
    let version = run.score_version()?;
    let (trajectories, _) = seal::read_sealed::<Trajectory>(run, &Stage::rollout("train", round)).await?;
    let (rewards, input) = seal::read_sealed::<Reward>(run, &Stage::score(&version, "train", round)).await?;
    let rewards: HashMap<&str, &Reward> = rewards.iter().map(|r| (r.trajectory_id.as_str(), r)).collect();
    let bad =
        |t: &Trajectory, reason: String| JobError::Corrupt { key: format!("trajectory {}", t.trajectory_id), reason };
    let mut experiences = Vec::new();
    let temperature = trajectories.first().map_or(1.0, |t| t.temperature);
    for t in &trajectories {
        let reward = rewards.get(t.trajectory_id.as_str()).and_then(|r| r.total);
        let (None, Some(reward)) = (&t.error_class, reward) else { continue };
        if t.checkpoint != policy.id() {
            return Err(bad(t, format!("it was sampled by {}, not by {}", t.checkpoint, policy.id())));
        }
        if t.temperature != temperature || t.top_p < 1.0 {
            return Err(bad(
                t,
                format!("temperature {} and top_p {} are not those of the round", t.temperature, t.top_p),
            ));
        }
        experiences.push(Experience {
            task_id: t.task_id.clone(),
            tokens: t.token_ids.iter().map(|&id| i64::from(id)).collect(),
            trainable: t.trainable.clone(),
            log_probs: t.log_probs.clone(),
            reward,
            truncated: t.truncated,
        });
    }
    let all = trajectories.len().max(1) as f64;
    let well_formed = trajectories.iter().filter(|t| t.well_formed).count() as f64 / all;
    let left_out = 1.0 - experiences.len() as f64 / all;
    Ok(Inputs { experiences, inputs: vec![input, policy.input()], temperature, left_out, well_formed })
}
