//! From rows to experiences. In: the sealed trajectories and rewards of a round, and of earlier ones where old rows may be
//! used. Out: one experience per trajectory, and what is known of them besides.
//! Must hold: a row is trained on only if its log-probs are those of the distribution it was sampled from.

use rollmill_job::checkpoint::{self, Manifest};
use rollmill_job::{InputRef, JobError, Plan, Run, Stage, seal};
use rollmill_schema::{Reward, Trajectory};
use rollmill_train::{Experience, Metrics, TrainConfig};
use std::collections::HashMap;

/// What a round is trained on.
pub struct Inputs {
    /// One per trajectory.
    pub experiences: Vec<Experience>,
    /// The sealed stages they come from.
    pub inputs: Vec<InputRef>,
    /// Temperature all rows were sampled at.
    pub temperature: f64,
    /// Turns, stop reasons, share of well-formed answers, age: numbers of the round that the trainer does not see.
    pub facts: Metrics,
}

/// Sums over the rows that are used.
#[derive(Default)]
struct Facts {
    rows: f64,
    turns: f64,
    well_formed: f64,
    age: f64,
    stops: HashMap<String, f64>,
}

/// Reads the rows that `policy`, the checkpoint of the round before, or a recent enough predecessor has sampled.
pub async fn read(run: &Run, round: u32, policy: &Manifest, config: &TrainConfig) -> Result<Inputs, JobError> {
    let mut read = Inputs { experiences: vec![], inputs: vec![], temperature: 1.0, facts: Metrics::new() };
    let mut facts = Facts::default();
    let mut temperature = None;
    for sampled_in in round.saturating_sub(config.max_age).max(1)..=round {
        let version = run.score_version()?;
        let sampler = sampler(run, sampled_in, policy).await?;
        let age = policy.round - sampler.round;
        if age > config.max_age {
            // With a lag, rows of an earlier round may be older than that round is.
            too_old(sampled_in, round, &sampler, config.max_age)?;
            continue;
        }
        let (trajectories, _) = seal::read_sealed::<Trajectory>(run, &Stage::rollout("train", sampled_in)).await?;
        let (rewards, input) = seal::read_sealed::<Reward>(run, &Stage::score(&version, "train", sampled_in)).await?;
        read.inputs.push(input);
        let rewards: HashMap<&str, &Reward> = rewards.iter().map(|r| (r.trajectory_id.as_str(), r)).collect();
        for t in &trajectories {
            check(t, &sampler, *temperature.get_or_insert(t.temperature))?;
            let reward = rewards.get(t.trajectory_id.as_str()).and_then(|r| r.total);
            facts.add(t, age);
            let mut experience = experience(t, reward);
            if sampled_in < round {
                // Samples of different policies are no group.
                experience.task_id = format!("{} of round {sampled_in}", t.task_id);
            }
            read.experiences.push(experience);
        }
    }
    read.temperature = temperature.unwrap_or(1.0);
    read.facts = facts.metrics();
    read.inputs.push(policy.input());
    Ok(read)
}

/// The checkpoint that sampled the rows of round `sampled_in`: what their plan rests on, else that of the round before.
async fn sampler(run: &Run, sampled_in: u32, policy: &Manifest) -> Result<Manifest, JobError> {
    let plan = Plan::read(run, &Stage::rollout("train", sampled_in)).await?;
    let round = plan.as_ref().and_then(checkpoint::pinned).unwrap_or(sampled_in - 1);
    if round >= policy.round {
        return Ok(policy.clone());
    }
    checkpoint::of_round(run, round).await
}

/// Without the rows of its own round there is nothing to learn.
fn too_old(sampled_in: u32, round: u32, sampler: &Manifest, max_age: u32) -> Result<(), JobError> {
    if sampled_in < round {
        return Ok(());
    }
    let reason = format!(
        "round {round} was sampled by the policy of round {}, which is older than max_age = {max_age} allows: raise it (it needs an off_policy), or lower [rollout] max_lag",
        sampler.round
    );
    Err(JobError::Config { place: "[train]".into(), reason })
}

/// Refuses rows that another policy sampled, or from another distribution than is trained.
fn check(t: &Trajectory, sampler: &Manifest, temperature: f64) -> Result<(), JobError> {
    if t.checkpoint != sampler.id() {
        let reason = format!("it was sampled by {}, not by {}", t.checkpoint, sampler.id());
        return Err(JobError::Corrupt { key: format!("trajectory {}", t.trajectory_id), reason });
    }
    if t.temperature != temperature || t.top_p < 1.0 {
        let reason = format!(
            "trajectory {} was sampled at temperature {} and top_p {}, others at {temperature} and 1; set max_age = 0, or sample alike",
            t.trajectory_id, t.temperature, t.top_p
        );
        return Err(JobError::Config { place: "[rollout.act]".into(), reason });
    }
    Ok(())
}

/// A trajectory that failed for a reason that is not the policy's has no reward, and no token to train.
fn experience(t: &Trajectory, reward: Option<f64>) -> Experience {
    let failed = t.error_class.is_some() || reward.is_none();
    let whole = |_: &i32| !failed;
    Experience {
        task_id: t.task_id.clone(),
        tokens: t.token_ids.iter().copied().filter(whole).map(i64::from).collect(),
        trainable: if failed { vec![] } else { t.trainable.clone() },
        log_probs: if failed { vec![] } else { t.log_probs.clone() },
        reward: reward.filter(|_| !failed),
        truncated: t.truncated,
    }
}

impl Facts {
    fn add(&mut self, t: &Trajectory, age: u32) {
        self.rows += 1.0;
        self.turns += t.steps.len() as f64;
        self.well_formed += f64::from(u8::from(t.well_formed));
        self.age += f64::from(age);
        *self.stops.entry(t.stop_reason.clone()).or_default() += 1.0;
    }

    fn metrics(self) -> Metrics {
        let share = |sum: f64| sum / self.rows.max(1.0);
        let stops = self.stops.iter().map(|(reason, count)| (format!("stop/{reason}"), share(*count)));
        let apart = [("turns", share(self.turns)), ("well_formed", share(self.well_formed)), ("age", share(self.age))];
        stops.chain(apart.map(|(name, value)| (name.to_owned(), value))).collect()
    }
}
