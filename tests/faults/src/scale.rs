//! Plan, claim, seal and status beside many others: what each costs in requests and in simulated seconds.

use crate::actors::{self, Toy};
use crate::cloud::Cloud;
use crate::drive::SimulatedClock;
use rollmill_job::config::Operations;
use rollmill_job::{AttemptId, JobError, Outcome, Plan, Run, WorkerOptions, inspect, work};
use rollmill_store::Blobs;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// What one size cost.
#[derive(Clone, Debug)]
pub struct Cost {
    /// Shards of the plan.
    pub shards: usize,
    /// Workers at once.
    pub workers: usize,
    /// Simulated seconds of planning, of all shards, of the seal and of one status.
    pub seconds: [f64; 4],
    /// Requests of planning, of all shards, of the seal and of one status.
    pub requests: [u64; 4],
    /// Requests of the workers, by kind.
    pub kinds: BTreeMap<&'static str, u64>,
    /// Bytes of the plan, which each worker reads.
    pub plan_bytes: u64,
}

/// How long one item takes: a shard ends before its first chunk and renewal, which come by time and not by size.
const ITEM: Duration = Duration::from_secs(6);
const ITEMS: usize = 3;

/// Runs a whole stage. Rows are tiny: it is the protocol that is measured.
pub async fn measure(shards: usize, workers: usize) -> Result<Cost, JobError> {
    let cloud = Arc::new(Cloud::default());
    let store: Arc<dyn Blobs> = cloud.clone();
    let begin = Instant::now();
    let run = Run::create(store, &actors::config(), None).await?;
    let mut planner = process(&run, 0);
    planner.operations.lease_seconds = 60;
    let plan = Arc::new(Plan::ensure(&planner, &actors::stage(), actors::draft(shards * ITEMS, ITEMS)).await?);
    let planned = (begin.elapsed(), cloud.total());

    let mut tasks = Vec::new();
    for worker in 1..=workers as u64 {
        let (run, plan, cloud) = (process(&run, worker), plan.clone(), cloud.clone());
        tasks.push(tokio::spawn(async move {
            let toy = Toy { item: ITEM, ..Toy::default() };
            // A scheduler does not start ten thousand processes in one instant: they come within a minute.
            tokio::time::sleep(Duration::from_millis(worker * 7919 % 60_000)).await;
            // As jobs do: each worker reads the frozen plan. Decoding it ten thousand times would only heat this machine.
            let _ = cloud.get(&actors::stage().plan()?).await?;
            work(&run, &actors::stage(), &plan, &toy, WorkerOptions::default()).await
        }));
    }
    for task in tasks {
        let outcome = task.await.map_err(|e| JobError::Unavailable { reason: e.to_string() })??;
        assert_eq!(outcome, Outcome::Complete, "a worker was not to leave before the end");
    }
    let worked = (begin.elapsed(), cloud.total());
    let kinds = cloud.requests();
    let states = inspect::stages(&run).await?;
    let looked = (begin.elapsed(), cloud.total());
    assert!(states.iter().all(|s| s.sealed && s.shards_done == shards), "{states:?}");
    // The seal once more, by itself: its record is set aside.
    let sealed = actors::stage().sealed()?;
    cloud.delete(&sealed).await?;
    let before = (begin.elapsed(), cloud.total());
    actors::seal_again(&process(&run, 1_000_000)).await?;
    let after = (begin.elapsed(), cloud.total());
    let plan_bytes = cloud.size(&actors::stage().plan()?).await?.unwrap_or(0);
    let seconds = |a: Duration, b: Duration| (b - a).as_secs_f64();
    Ok(Cost {
        shards,
        workers,
        seconds: [
            planned.0.as_secs_f64(),
            seconds(planned.0, worked.0),
            seconds(before.0, after.0),
            seconds(worked.0, looked.0),
        ],
        requests: [planned.1, worked.1 - planned.1, after.1 - before.1, looked.1 - worked.1],
        kinds,
        plan_bytes,
    })
}

/// Another process of the same run.
fn process(run: &Run, number: u64) -> Run {
    let mut run = run.clone();
    // Spread over the whole space, as random attempts are.
    let attempt = (number.wrapping_add(1)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    run.attempt = AttemptId::from_text(format!("{attempt:016x}{number:016x}"));
    run.clock = Arc::new(SimulatedClock::new(0.0));
    run.operations = Operations { lease_seconds: 60, ..Operations::default() };
    run.drain = rollmill_job::Drain::default();
    run.quiet = true;
    run
}
