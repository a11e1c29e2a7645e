//! `rollout`: a policy acts on tasks; its trajectories are the `trajectories` table, by set and round.
//!
//! In: sealed `tasks` (never `task_secrets`: this job needs no right to read them), a committed checkpoint's tokenizer, and an
//! endpoint that says it serves that checkpoint. Out: one trajectory for every task and sample of the set whose answer is one
//! file: a function, a program, a server.
//!
//! What must hold: seeds derive from run, round, set, task and sample alone; one failed trajectory ends nothing, and a failure
//! that is not the policy's becomes a row with an error class, never a bad trajectory.

pub mod act;
mod config;
mod discover;
mod endpoint;
mod job;
#[cfg(test)]
mod programs_test;
mod ready;
mod tester;

pub use config::{RolloutConfig, RolloutSet, TRAIN, When};

use job::Rollout;
use ready::of_one_file;
use rollmill_job::{Exit, JobError, Plan, PlanDraft, Run, RunArgs, Stage, WorkerOptions, checkpoint, env, seal, work};
use rollmill_schema::Task;

/// Flags of `rollmill rollout`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  rollmill rollout --run runs/demo --round 1 --endpoint http://127.0.0.1:8000\n  \
    rollmill rollout --run s3://bucket/exp7 --round 0 --split heldout --shard 3 --endpoint http://gpu-node:8000")]
pub struct Args {
    #[command(flatten)]
    run: RunArgs,
    /// The round. `train` of round N acts with the checkpoint of round N-1, evaluation sets with that of round N
    #[arg(long)]
    round: u32,
    /// `train`, or the name of a set in [[rollout.sets]]
    #[arg(long, default_value = TRAIN)]
    split: String,
    /// Act with the checkpoint of this round: up to `max_lag` rounds older than the newest there can be
    #[arg(long, value_name = "ROUND")]
    policy_round: Option<u32>,
    /// Address of the policy endpoint (default: one that `rollmill endpoint` published in the store)
    #[arg(long, env = env::ENDPOINT)]
    endpoint: Option<String>,
    /// Seconds to wait for a published endpoint
    #[arg(long, value_name = "SECONDS", default_value_t = 900)]
    endpoint_wait: u64,
    /// Name of the variable that holds the endpoint's key
    #[arg(long, value_name = "NAME")]
    endpoint_key_env: Option<String>,
    /// Trajectories in flight
    #[arg(long, default_value_t = 16)]
    concurrency: usize,
    /// Accept an endpoint that does not say which checkpoint it serves
    #[arg(long)]
    trust_endpoint: bool,
}

/// Runs the job.
pub async fn run(args: &Args) -> Result<Exit, JobError> {
    let run = Run::from_args(&args.run).await?;
    let config: RolloutConfig = run.config.section("rollout")?;
    let set = config.set(&args.split)?;
    if set.name == TRAIN && args.round == 0 {
        let reason = "rounds of training start at 1; round 0 is the base model, which evaluation sets can use".into();
        return Err(JobError::Config { place: "--round".into(), reason });
    }
    let policy_round = discover::policy_round(&run, &set, args, config.max_lag).await?;
    let manifest = checkpoint::of_round(&run, policy_round).await?;
    let (tasks, input) = seal::read_sealed::<Task>(&run, &Stage::verify()).await?;
    let (tasks, left_out) = of_one_file(tasks);
    for (kind, count) in left_out.iter().filter(|_| !run.quiet) {
        eprintln!(
            "rollout: {count} tasks of kind {kind} are left out: a policy answers with one file, and they need more"
        );
    }
    let tasks = set.pick(tasks, args.round);
    if tasks.is_empty() {
        let place = format!("set {}", set.name);
        return Err(JobError::Config { place, reason: format!("split {} has no tasks", set.split) });
    }
    let stage = Stage::rollout(&set.name, args.round);
    let draft = PlanDraft {
        keys: tasks.iter().flat_map(|t| (0..set.samples).map(|s| format!("{}.{s}", t.task_id))).collect(),
        shard_size: config.shard_tasks.max(1) * set.samples as usize,
        inputs: vec![input, manifest.input()],
        settings: serde_json::json!({ "temperature": set.temperature, "top_p": set.top_p }),
    };
    let plan = Plan::ensure(&run, &stage, draft).await?;
    let address = discover::address(&run, &manifest, args).await?;
    let job = Rollout::open(&run, config, set, tasks, policy_round, &manifest, &address, args).await?;
    Ok(Exit::from(&work(&run, &stage, &plan, &job, WorkerOptions::from(&args.run)).await?))
}
