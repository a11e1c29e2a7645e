//! The frame alone: a job whose items cost nothing, so that all the time is plan, lease, chunks, part and seal.

use super::counting::{Calls, Counting};
use async_trait::async_trait;
use rollmill_job::config::{Config, Operations};
use rollmill_job::{ItemError, Job, Outcome, Plan, PlanDraft, Run, Stage, WorkerOptions, work};
use rollmill_schema::{Metric, Row};
use std::sync::Arc;
use std::time::Instant;

/// The table's head.
pub const HEAD: &str = "| store | shards | items a shard | items a chunk | ms a shard | ms an item | creates, reads, lists a shard |\n\
    |---|---|---|---|---|---|---|";

/// Shards, items a shard, items a chunk.
const CASES: [(usize, usize, usize); 9] = [
    (40, 1, 1),
    (20, 10, 1),
    (20, 10, 4),
    (20, 10, 16),
    (5, 100, 1),
    (5, 100, 16),
    (5, 100, 100),
    (2, 1000, 16),
    (2, 1000, 100),
];

struct Nothing;

#[async_trait]
impl Job for Nothing {
    type Row = Metric;

    async fn process(&self, key: &str) -> Result<Metric, ItemError> {
        let name = key.split('|').next().unwrap_or_default().to_string();
        Ok(Metric { name, scope: "all".into(), ..Metric::default() })
    }

    fn failed(&self, _key: &str, _reason: &str) -> Option<Metric> {
        None
    }
}

/// Measures all cases on the store at `address`.
pub async fn run(address: &str) -> anyhow::Result<()> {
    let config = Config::parse("[evaluate]\nseed = 1", "bench")?;
    Run::init(address, &config).await?;
    let inner = rollmill_store::open(address, &rollmill_job::env::s3_settings())?;
    let store = if address.starts_with("s3://") { "SeaweedFS" } else { "folder" };
    for (n, (shards, items, chunk)) in CASES.into_iter().enumerate() {
        let calls = Arc::new(Calls::default());
        let blobs = Arc::new(Counting { inner: inner.clone(), calls: calls.clone() });
        let operations = Operations { chunk_items: chunk, chunk_seconds: 3600, ..Operations::default() };
        let mut run = Run::from_blobs(blobs, operations).await?;
        run.quiet = true;
        let key = |i| Metric { name: format!("m{i}"), scope: "all".into(), ..Metric::default() }.key();
        let keys = (0..shards * items).map(key).collect();
        let draft = PlanDraft { keys, shard_size: items, inputs: vec![], settings: serde_json::json!({}) };
        let stage = Stage::evaluate("v1", &format!("case-{n}"), 0);
        let before = calls.now();
        let started = Instant::now();
        let plan = Plan::ensure(&run, &stage, draft).await?;
        let outcome = work(&run, &stage, &plan, &Nothing, WorkerOptions::default()).await?;
        let ms = started.elapsed().as_secs_f64() * 1e3;
        anyhow::ensure!(outcome == Outcome::Complete, "the frame ended with {outcome:?}");
        let after = calls.now();
        let per_shard = |i: usize| (after[i] - before[i]) as f64 / shards as f64;
        println!(
            "| {store} | {shards} | {items} | {chunk} | {:.2} | {:.3} | {:.1}, {:.1}, {:.1} |",
            ms / shards as f64,
            ms / (shards * items) as f64,
            per_shard(0),
            per_shard(1),
            per_shard(2)
        );
    }
    Ok(())
}
