//! `rollmill report`: what a run achieved, from its tables alone: before and after with intervals, rewards per round,
//! rejections, repairs, and what each job cost.

mod compare;
mod cost;
mod curves;
mod picture;

use rollmill_job::{Exit, JobError, Run, Stage, env, inspect, seal};
use rollmill_rollout::{RolloutConfig, TRAIN};
use rollmill_schema::{Rejection, Reward, Trajectory};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Flags.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  rollmill report --run runs/demo\n  \
    rollmill report --run runs/learn-ppo --beside runs/learn-grpo --curves curves.svg")]
pub struct Args {
    /// The run
    #[arg(long, env = env::RUN, value_name = "URI")]
    run: String,
    /// Draw what was measured round by round into this SVG file, instead of printing
    #[arg(long, value_name = "FILE")]
    curves: Option<PathBuf>,
    /// Another run to draw beside it; may be given more than once
    #[arg(long, value_name = "URI", requires = "curves")]
    beside: Vec<String>,
}

/// Runs the command.
pub async fn run(args: &Args) -> Result<Exit, JobError> {
    match &args.curves {
        Some(file) => draw(args, file).await?,
        None => print(&Run::open(&args.run).await?).await?,
    }
    Ok(Exit::Complete)
}

async fn draw(args: &Args, file: &Path) -> Result<(), JobError> {
    let failed = |reason: String| JobError::Config { place: file.display().to_string(), reason };
    let mut runs = Vec::new();
    for address in std::iter::once(&args.run).chain(&args.beside) {
        let name = address.trim_end_matches('/').rsplit('/').next().unwrap_or(address);
        runs.push((name.to_string(), curves::read(&Run::open(address).await?).await?));
    }
    if runs.iter().all(|(_, curves)| curves.is_empty()) {
        return Err(failed("nothing was measured yet: run at least one evaluation or one round".into()));
    }
    let svg = picture::draw(&runs).map_err(|e| failed(format!("cannot be drawn ({e})")))?;
    std::fs::write(file, svg).map_err(|e| failed(format!("cannot be written ({e})")))
}

/// One finished rollout of a set in a round, graded.
pub(crate) struct Batch {
    set: String,
    round: u32,
    trajectories: Vec<Trajectory>,
    rewards: Vec<Reward>,
}

impl Batch {
    /// Temperature it was sampled at.
    pub(crate) fn temperature(&self) -> Option<f64> {
        self.trajectories.first().map(|t| t.temperature)
    }
}

/// Prints everything.
pub async fn print(run: &Run) -> Result<(), JobError> {
    let batches = batches(run).await?;
    let rollout: RolloutConfig = run.config.section("rollout")?;
    let evaluate: rollmill_evaluate::EvaluateConfig = run.config.section("evaluate")?;
    println!("\nBefore and after (pass@1, 95 % interval; change: paired bootstrap by task)");
    compare::print(&batches, &rollout, &evaluate);
    println!("\nTraining rounds");
    println!(
        "  {:<6} {:>12} {:>8} {:>8} {:>12} {:>8} {:>8} {:>8}",
        "round", "trajectories", "reward", "pass@1", "well-formed", "repairs", "passed", "infra"
    );
    for batch in batches.iter().filter(|b| b.set == TRAIN) {
        let samples = rollmill_evaluate::samples(&batch.trajectories, &batch.rewards);
        let graded: Vec<_> = samples.iter().filter(|s| s.solved.is_some()).collect();
        let mean = |f: &dyn Fn(&rollmill_evaluate::Sample) -> f64| {
            graded.iter().map(|s| f(s)).sum::<f64>() / graded.len().max(1) as f64
        };
        println!(
            "  {:<6} {:>12} {:>8.3} {:>8.3} {:>12.3} {:>8} {:>8} {:>8}",
            batch.round,
            samples.len(),
            mean(&|s| s.reward.unwrap_or(0.0)),
            mean(&|s| f64::from(u8::from(s.solved == Some(true)))),
            mean(&|s| f64::from(u8::from(s.well_formed))),
            samples.iter().filter(|s| s.repaired).count(),
            samples.iter().filter(|s| s.repair_passed).count(),
            samples.len() - graded.len(),
        );
    }
    print_rejections(run).await?;
    cost::print(run, &batches).await?;
    println!("\nEverything lies in {}", run.address());
    println!("  tables/        Parquet: candidates, tasks, task_secrets, rejections, trajectories, rewards, metrics");
    println!("  checkpoints/   safetensors: the policy of each round as a Hugging Face folder, `actor/`");
    Ok(())
}

async fn batches(run: &Run) -> Result<Vec<Batch>, JobError> {
    let version = run.score_version()?;
    let mut found = Vec::new();
    for state in inspect::stages(run).await? {
        let Some(rest) = state.stage.strip_prefix("rollout/") else { continue };
        let Some((set, round)) = rest.split_once("/round-").and_then(|(s, r)| Some((s, r.parse().ok()?))) else {
            continue;
        };
        let score = Stage::score(&version, set, round);
        let graded = match seal::read_sealed::<Reward>(run, &score).await {
            Ok((rewards, _)) => rewards,
            Err(JobError::InputAbsent { .. } | JobError::InputIncomplete { .. }) => continue,
            Err(e) => return Err(e),
        };
        let (trajectories, _) = seal::read_sealed::<Trajectory>(run, &Stage::rollout(set, round)).await?;
        found.push(Batch { set: set.into(), round, trajectories, rewards: graded });
    }
    found.sort_by(|a, b| (&a.set, a.round).cmp(&(&b.set, b.round)));
    Ok(found)
}

async fn print_rejections(run: &Run) -> Result<(), JobError> {
    let (rejections, _) = seal::read_sealed::<Rejection>(run, &Stage::verify()).await?;
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for r in &rejections {
        by_reason.entry(&r.reason).or_default().push(&r.source_id);
    }
    println!("\nRejected tasks: {}", rejections.len());
    for (reason, ids) in by_reason {
        let shown: Vec<&str> = ids.iter().copied().take(4).collect();
        let more = if ids.len() > shown.len() { ", ..." } else { "" };
        println!("  {reason:<26} {:>5}   {}{more}", ids.len(), shown.join(", "));
    }
    Ok(())
}
