//! Who acts on a store: a worker's whole life from the plan to the seal, a reader, a trainer's commit, `gc`.

use crate::Line;
use crate::drive::SimulatedClock;
use async_trait::async_trait;
use bytes::Bytes;
use rollmill_job::config::{Config, Operations};
use rollmill_job::gc::{self, GcOptions};
use rollmill_job::{
    AttemptId, ItemError, Job, JobError, Outcome, Plan, PlanDraft, Run, Stage, WorkerOptions, checkpoint, seal, work,
};
use rollmill_schema::{Metric, Row, encode};
use rollmill_store::Blobs;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The stage all workers here work on.
pub fn stage() -> Stage {
    Stage::evaluate("v1", "t", 0)
}

/// Its items.
pub fn draft(items: usize, shard_size: usize) -> PlanDraft {
    let keys = (0..items).map(|i| format!("m{i:05}|all|0")).collect();
    PlanDraft { keys, shard_size, inputs: vec![], settings: serde_json::json!({}) }
}

/// A job whose items cost nothing, and which projects its rows into a second table.
#[derive(Default)]
pub struct Toy {
    /// Items it finished.
    pub finished: Mutex<Vec<String>>,
    /// How long an item takes.
    pub item: Duration,
    /// Whether it has a projection.
    pub projects: bool,
}

#[async_trait]
impl Job for Toy {
    type Row = Metric;

    async fn process(&self, key: &str) -> Result<Metric, ItemError> {
        if !self.item.is_zero() {
            tokio::time::sleep(self.item).await;
        }
        self.finished.lock().unwrap_or_else(PoisonError::into_inner).push(key.to_string());
        Ok(row(key))
    }

    fn failed(&self, key: &str, _reason: &str) -> Option<Metric> {
        Some(row(key))
    }

    fn tables(&self) -> &[&'static str] {
        if self.projects { &["projected"] } else { &[] }
    }

    fn project(&self, rows: &[Metric], plan: &str, attempt: &str) -> Result<Vec<(&'static str, Bytes)>, JobError> {
        Ok(vec![("projected", encode(rows, plan, attempt)?)])
    }
}

/// The row of an item.
pub fn row(key: &str) -> Metric {
    let name = key.split('|').next().unwrap_or_default();
    Metric { name: name.into(), scope: "all".into(), value: Some(1.0), ..Metric::default() }
}

/// The configuration of every run here.
pub fn config() -> Config {
    // A literal that parses.
    Config::parse("[a]\nx = 1", "literal").expect("a configuration")
}

/// The run behind `store`, as a process of a given attempt sees it. Its wall clock is `off` seconds wrong.
pub async fn open(store: Arc<dyn Blobs>, attempt: u64, off: f64) -> Result<Run, JobError> {
    let operations = Operations { chunk_items: 1, lease_seconds: 30, ..Operations::default() };
    let mut run = Run::from_blobs(store, operations).await?;
    run.attempt = AttemptId::from_text(format!("{attempt:032x}"));
    run.clock = Arc::new(SimulatedClock::new(off));
    run.quiet = true;
    Ok(run)
}

/// What a worker is.
#[derive(Clone, Copy, Debug)]
pub struct Worker {
    /// Its attempt.
    pub attempt: u64,
    /// Items of the plan.
    pub items: usize,
    /// Items a shard.
    pub shard_size: usize,
    /// Items a chunk.
    pub chunk_items: usize,
    /// Its wall clock is so many seconds wrong.
    pub off: f64,
    /// How long it leaves others their shards.
    pub lease_seconds: u64,
}

impl Worker {
    /// Three items in one shard, or whatever the case is about.
    pub fn new(attempt: u64) -> Worker {
        Worker { attempt, items: 3, shard_size: 3, chunk_items: 1, off: 0.0, lease_seconds: 30 }
    }

    /// Its whole life: open the run, plan, claim, chunks, part, projection, seal, report. The outcome, and what it finished.
    pub async fn live(self, line: Arc<Line>) -> Lived {
        let drain = line.drain().clone();
        self.live_on(line, Some(drain)).await
    }

    /// The same over any store.
    pub async fn live_on(self, store: Arc<dyn Blobs>, drain: Option<rollmill_job::Drain>) -> Lived {
        let toy = Toy { projects: true, ..Toy::default() };
        let life = async {
            let mut run = open(store, self.attempt, self.off).await?;
            run.operations.chunk_items = self.chunk_items;
            run.operations.lease_seconds = self.lease_seconds;
            run.drain = drain.unwrap_or_default();
            let plan = Plan::ensure(&run, &stage(), draft(self.items, self.shard_size)).await?;
            work(&run, &stage(), &plan, &toy, WorkerOptions::default()).await
        };
        let outcome = life.await;
        Lived { outcome, finished: toy.finished.into_inner().unwrap_or_else(PoisonError::into_inner) }
    }
}

/// How a worker's life ended.
#[derive(Debug)]
pub struct Lived {
    /// Its outcome.
    pub outcome: Result<Outcome, JobError>,
    /// The items it finished.
    pub finished: Vec<String>,
}

/// Reads the stage, sealing it if nobody has: the planner of the next stage. Keys of all rows.
pub async fn read(store: Arc<dyn Blobs>, attempt: u64) -> Result<Vec<String>, JobError> {
    let run = open(store, attempt, 0.0).await?;
    let (rows, _) = seal::read_sealed::<Metric>(&run, &stage()).await?;
    Ok(rows.iter().map(Row::key).collect())
}

/// Seals the stage on behalf of a reader and reads nothing else: the number of its parts.
pub async fn seal_again(run: &Run) -> Result<usize, JobError> {
    Ok(seal::ensure::<Metric>(run, &stage()).await?.parts.len())
}

/// Commits a checkpoint of two files.
pub async fn train(
    store: Arc<dyn Blobs>,
    attempt: u64,
    round: u32,
    step: u32,
    last: bool,
) -> Result<checkpoint::Manifest, JobError> {
    let run = open(store, attempt, 0.0).await?;
    let disk = |e: std::io::Error| JobError::Config { place: "a folder for tests".into(), reason: e.to_string() };
    let folder = tempfile::tempdir().map_err(disk)?;
    std::fs::create_dir(folder.path().join("actor")).map_err(disk)?;
    for (name, text) in [("actor/model.safetensors", "weights"), ("optimizer.safetensors", "moments")] {
        std::fs::write(folder.path().join(name), format!("{text} of {attempt}")).map_err(disk)?;
    }
    let draft = checkpoint::Draft { round, step, last, inputs: vec![], metrics: vec![], seconds: 1.0 };
    checkpoint::commit(&run, folder.path(), draft).await
}

/// Removes what may go, keeping one round's checkpoint.
pub async fn collect(store: Arc<dyn Blobs>, attempt: u64) -> Result<usize, JobError> {
    let run = open(store, attempt, 0.0).await?;
    let options = GcOptions { keep_checkpoints: Some(1), older_than: Duration::ZERO, apply: true };
    Ok(gc::collect(&run, options).await?.len())
}
