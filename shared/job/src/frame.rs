//! The worker's loop: find a shard that is not done, claim it, finish it, until nothing is left.

use crate::progress::Progress;
use crate::shard::{ShardEnd, ShardWork, project};
use crate::{Job, JobError, Plan, Run, RunArgs, Stage, StageReport, env, layout, report, seal};
use rollmill_store::lease::{Claim, Leases};
use std::collections::BTreeSet;
use std::time::Duration;

/// How a worker's work ended, short of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All shards it was asked for are committed.
    Complete,
    /// Others still hold shards, and it was not to wait; or it was fenced.
    Elsewhere,
    /// It was asked to leave; what it had done is saved.
    Drained,
}

/// Which shards, and whether to wait for others.
#[derive(Clone, Copy, Debug, Default)]
pub struct WorkerOptions {
    /// Only this shard.
    pub shard: Option<u32>,
    /// Leave instead of waiting for shards that others hold.
    pub no_wait: bool,
}

impl From<&RunArgs> for WorkerOptions {
    fn from(args: &RunArgs) -> WorkerOptions {
        WorkerOptions { shard: args.shard.or_else(env::scheduled_shard), no_wait: args.no_wait }
    }
}

/// How long to pause when every open shard is held by others.
const PATIENCE: Duration = Duration::from_millis(500);

/// Works on `stage` under `plan` until it is complete, or until something asks this worker to leave.
pub async fn work<J: Job>(
    run: &Run,
    stage: &Stage,
    plan: &Plan,
    job: &J,
    options: WorkerOptions,
) -> Result<Outcome, JobError> {
    let started = run.clock.monotonic();
    let progress = Progress::new(stage.name(), plan.items(), run.quiet);
    let worker = format!("pid {}", std::process::id());
    let mut leases = Leases::new(run.attempt.clone(), worker, Duration::from_secs(run.operations.lease_seconds));
    let mut worked = false;
    let outcome = loop {
        let done = done_shards(run, stage).await?;
        let open = open_shards(run, plan, &done, options.shard);
        if open.is_empty() {
            break Outcome::Complete;
        }
        progress.set(done.iter().map(|&s| plan.shards.get(s as usize).map_or(0, Vec::len)).sum());
        let mut advanced = false;
        for shard in open {
            if run.drain.is_raised() {
                break;
            }
            let now = run.clock.monotonic();
            let Claim::Held(mut lease) = leases.claim(run.blobs.as_ref(), &stage.lease(shard)?, now).await? else {
                continue;
            };
            (advanced, worked) = (true, true);
            let work = ShardWork { run, stage, plan, job, leases: &leases, progress: &progress };
            let end = work.finish(shard, &mut lease).await;
            if !matches!(end, Ok(ShardEnd::Committed | ShardEnd::Fenced)) {
                leases.release(run.blobs.as_ref(), &lease).await?;
            }
            end?;
        }
        if run.drain.is_raised() {
            break Outcome::Drained;
        }
        if !advanced {
            if options.no_wait {
                break Outcome::Elsewhere;
            }
            tokio::select! { () = run.drain.raised() => (), () = tokio::time::sleep(PATIENCE) => () }
        }
    };
    if outcome == Outcome::Complete {
        complete(run, stage, plan, job, options).await?;
        progress.finish();
    }
    if worked {
        let seconds = (run.clock.monotonic() - started).as_secs_f64();
        report::write(run, stage, &StageReport::of(run, plan.items(), seconds)).await?;
    }
    Ok(outcome)
}

/// A worker that has seen every part writes missing projections and the seal; one with a single shard leaves both to
/// the last, unless the stage projects: then nobody after it has the right to.
async fn complete<J: Job>(
    run: &Run,
    stage: &Stage,
    plan: &Plan,
    job: &J,
    options: WorkerOptions,
) -> Result<(), JobError> {
    if done_shards(run, stage).await?.len() < plan.shards.len() {
        return Ok(());
    }
    let tables: Vec<&str> = job.project(&[], plan.nonce.as_str(), "")?.into_iter().map(|(t, _)| t).collect();
    if options.shard.is_some() && tables.is_empty() {
        return Ok(());
    }
    if seal::read(run, stage).await?.is_some() {
        return Ok(());
    }
    for shard in 0..plan.shards.len() as u32 {
        let key = stage.part(shard)?;
        let mut missing = false;
        for table in &tables {
            missing |= run.blobs.size(&stage.projection(table, shard)?).await?.is_none();
        }
        if missing && let Some(bytes) = run.blobs.get(&key).await? {
            project(run, stage, job, shard, &bytes).await?;
        }
    }
    seal::seal::<J::Row>(run, stage, plan, &tables).await.map(|_| ())
}

async fn done_shards(run: &Run, stage: &Stage) -> Result<BTreeSet<u32>, JobError> {
    let parts = run.blobs.list(&stage.parts()?).await?;
    Ok(parts.iter().filter_map(|e| layout::shard_of_part(e.key.file_name())).collect())
}

/// Shards without a part, from a place of this attempt's own, so that workers do not all try the same one first.
fn open_shards(run: &Run, plan: &Plan, done: &BTreeSet<u32>, only: Option<u32>) -> Vec<u32> {
    let count = plan.shards.len() as u32;
    if let Some(shard) = only {
        return if shard < count && !done.contains(&shard) { vec![shard] } else { Vec::new() };
    }
    let start = u32::from_str_radix(&run.attempt.as_str()[..7], 16).unwrap_or(0) % count.max(1);
    (0..count).map(|i| (start + i) % count).filter(|s| !done.contains(s)).collect()
}
