//! The frame alone: a job whose items cost nothing, so that all the time is plan, lease, chunks, part and seal.

use super::counting::{Calls, Counting};
use async_trait::async_trait;
use rollmill_job::config::{Config, Operations};
use rollmill_job::{ItemError, Job, Outcome, Plan, PlanDraft, Run, Stage, WorkerOptions, work};
use rollmill_schema::{Metric, Row};
use rollmill_store::Blobs;
use std::sync::Arc;
use std::time::Instant;

/// The table's head.
pub const HEAD: &str = "| store | shards | items a shard | items a chunk | ms a shard: median (least) | ms an item | creates, reads, lists a shard |\n\
    |---|---|---|---|---|---|---|";

/// Shards, items a shard, items a chunk.
const CASES: [(usize, usize, usize); 7] =
    [(20, 1, 1), (10, 10, 1), (10, 10, 16), (2, 100, 1), (4, 100, 16), (2, 1000, 100), (1, 1000, 1000)];

/// Each case is measured so often.
const ROUNDS: u32 = 3;

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
    for (n, case) in CASES.into_iter().enumerate() {
        let mut rounds = Vec::new();
        for round in 0..ROUNDS {
            let stage = Stage::evaluate("v1", &format!("case-{n}"), round);
            rounds.push(measure(&inner, &stage, case).await?);
        }
        rounds.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (shards, items, chunk) = case;
        let (ms, calls) = rounds[rounds.len() / 2];
        let [creates, reads, lists, _] = calls.map(|n| n as f64 / shards as f64);
        println!(
            "| {store} | {shards} | {items} | {chunk} | {:.2} ({:.2}) | {:.3} | {creates:.1}, {reads:.1}, {lists:.1} |",
            ms / shards as f64,
            rounds[0].0 / shards as f64,
            ms / (shards * items) as f64,
        );
    }
    Ok(())
}

/// Milliseconds and calls of one stage.
async fn measure(
    inner: &Arc<dyn Blobs>,
    stage: &Stage,
    (shards, items, chunk): (usize, usize, usize),
) -> anyhow::Result<(f64, [usize; 4])> {
    let calls = Arc::new(Calls::default());
    let blobs = Arc::new(Counting { inner: inner.clone(), calls: calls.clone() });
    let operations = Operations { chunk_items: chunk, chunk_seconds: 3600, ..Operations::default() };
    let mut run = Run::from_blobs(blobs, operations).await?;
    run.quiet = true;
    let key = |i| Metric { name: format!("m{i}"), scope: "all".into(), ..Metric::default() }.key();
    let keys = (0..shards * items).map(key).collect();
    let draft = PlanDraft { keys, shard_size: items, inputs: vec![], settings: serde_json::json!({}) };
    let before = calls.now();
    let started = Instant::now();
    let plan = Plan::ensure(&run, stage, draft).await?;
    let outcome = work(&run, stage, &plan, &Nothing, WorkerOptions::default()).await?;
    let ms = started.elapsed().as_secs_f64() * 1e3;
    anyhow::ensure!(outcome == Outcome::Complete, "the frame ended with {outcome:?}");
    let after = calls.now();
    Ok((ms, std::array::from_fn(|i| after[i] - before[i])))
}
