//! `evaluate`: rewards and trajectories of a set to metrics with intervals.
//!
//! In: sealed `trajectories` and `rewards` of one set and round, `tasks`. Out: the `metrics` table: unbiased pass@k, mean
//! reward, format compliance and counts; over all tasks, by ability, by task. What must hold: rows that failed for reasons
//! that are not the policy's are in no statistic, and are counted apart; the same inputs give the same numbers.

mod measure;
pub mod stats;

pub use measure::{Sample, Table, samples};

use async_trait::async_trait;
use rollmill_job::{Exit, ItemError, Job, JobError, Plan, PlanDraft, Run, RunArgs, Stage, WorkerOptions, seal, work};
use rollmill_schema::{Metric, Reward, Row, Task, Trajectory};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Flags of `rollmill evaluate`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example:\n  rollmill evaluate --run runs/demo --round 0 --split heldout")]
pub struct Args {
    #[command(flatten)]
    run: RunArgs,
    /// The round; 0 is the base model
    #[arg(long)]
    round: u32,
    /// Name of the evaluation set, or `train`
    #[arg(long, default_value = "heldout")]
    split: String,
    /// Measure the rewards of this version instead of the configuration's
    #[arg(long, value_name = "NAME")]
    score_version: Option<String>,
}

/// `[evaluate]`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EvaluateConfig {
    /// The k of pass@k; those above the number of samples are left out.
    pub k: Vec<u32>,
    /// Resamples of a bootstrap.
    pub resamples: u32,
    /// Seed of the resampling.
    pub seed: u64,
}

impl Default for EvaluateConfig {
    fn default() -> EvaluateConfig {
        EvaluateConfig { k: vec![1, 2, 4, 8], resamples: 2000, seed: 1 }
    }
}

struct Evaluate {
    metrics: HashMap<String, Metric>,
}

#[async_trait]
impl Job for Evaluate {
    type Row = Metric;

    async fn process(&self, key: &str) -> Result<Metric, ItemError> {
        self.metrics.get(key).cloned().ok_or_else(|| ItemError::Stop("the metric is not planned".into()))
    }

    fn failed(&self, _key: &str, _reason: &str) -> Option<Metric> {
        None
    }
}

/// Runs the job.
pub async fn run(args: &Args) -> Result<Exit, JobError> {
    let run = Run::from_args(&args.run).await?;
    let config: EvaluateConfig = run.config.section("evaluate")?;
    let version = args.score_version.clone().map_or_else(|| run.score_version(), Ok)?;
    let (trajectories, _) = seal::read_sealed::<Trajectory>(&run, &Stage::rollout(&args.split, args.round)).await?;
    let (rewards, input) = seal::read_sealed::<Reward>(&run, &Stage::score(&version, &args.split, args.round)).await?;
    let (tasks, _) = seal::read_sealed::<Task>(&run, &Stage::verify()).await?;
    let table = Table { samples: samples(&trajectories, &rewards), tasks: &tasks };
    let mut metrics = table.measure(&config);
    for metric in &mut metrics {
        metric.split.clone_from(&args.split);
        metric.provenance = run.provenance(args.round, config.seed as i64);
    }
    let stage = Stage::evaluate(&version, &args.split, args.round);
    let draft = PlanDraft {
        keys: metrics.iter().map(Metric::key).collect(),
        shard_size: usize::MAX,
        inputs: vec![input],
        settings: serde_json::json!({}),
    };
    let plan = Plan::ensure(&run, &stage, draft).await?;
    let job = Evaluate { metrics: metrics.into_iter().map(|m| (m.key(), m)).collect() };
    let outcome = work(&run, &stage, &plan, &job, WorkerOptions::from(&args.run)).await?;
    Ok(Exit::from(&outcome))
}
