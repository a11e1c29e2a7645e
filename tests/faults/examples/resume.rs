//! How long a shard with ten thousand finished items takes to resume and to become a part, and how much memory:
//! `cargo run --release -p rollmill-faults --example resume -- [ITEMS [BYTES]]`

use async_trait::async_trait;
use rollmill_faults::actors;
use rollmill_job::{
    Drain, ItemError, Job, Outcome, Plan, PlanDraft, Run, Stage, WorkerOptions, peak_memory_bytes, work,
};
use rollmill_schema::Trajectory;
use rollmill_store::Folder;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Rows of a given size; stops the process that works on it after some items.
struct Long {
    bytes: usize,
    drain: Option<(usize, Drain)>,
    done: AtomicUsize,
    first: std::sync::Mutex<Option<Instant>>,
}

#[async_trait]
impl Job for Long {
    type Row = Trajectory;

    async fn process(&self, key: &str) -> Result<Trajectory, ItemError> {
        let n = self.done.fetch_add(1, Ordering::SeqCst) + 1;
        if let Some((after, drain)) = &self.drain
            && n >= *after
        {
            drain.raise();
        }
        self.first.lock().map_err(|e| ItemError::Stop(e.to_string()))?.get_or_insert_with(Instant::now);
        // Text that compresses about as transcripts do: words with a changing number.
        let mut text = String::new();
        while text.len() < self.bytes {
            text += &format!("step {} of {key}: the test of list_{} failed; ", text.len() * 7919 % 10_007, n % 97);
        }
        Ok(Trajectory { trajectory_id: key.into(), messages: text, ..Trajectory::default() })
    }

    fn failed(&self, _key: &str, _reason: &str) -> Option<Trajectory> {
        None
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1).filter_map(|a| a.parse().ok());
    let (items, bytes) = (args.next().unwrap_or(10_000usize), args.next().unwrap_or(20_000usize));
    let dir = tempfile::tempdir()?;
    let store = Arc::new(Folder::open(&dir.path().join("run"))?);
    let mut run = Run::create(store.clone(), &actors::config(), None).await?;
    run.quiet = true;
    let stage = Stage::rollout("train", 1);
    let keys = (0..=items).map(|i| format!("t{i:06}")).collect();
    let draft = PlanDraft { keys, shard_size: items + 1, inputs: vec![], settings: serde_json::json!({}) };
    let plan = Plan::ensure(&run, &stage, draft).await?;

    let job = |drain| Long { bytes, drain, done: AtomicUsize::new(0), first: std::sync::Mutex::new(None) };
    let begin = Instant::now();
    let first = job(Some((items, run.drain.clone())));
    assert_eq!(work(&run, &stage, &plan, &first, WorkerOptions::default()).await?, Outcome::Drained);
    println!("{items} items of {bytes} bytes into chunks of 16: {:.1} s", begin.elapsed().as_secs_f64());

    let mut run = Run::from_blobs(store, rollmill_job::config::Operations::default()).await?;
    run.quiet = true;
    let second = job(None);
    let (before, begin) = (peak_memory_bytes(), Instant::now());
    assert_eq!(work(&run, &stage, &plan, &second, WorkerOptions::default()).await?, Outcome::Complete);
    let resumed = second.first.lock().map_err(|e| e.to_string())?.ok_or("no item was left")? - begin;
    let part = std::fs::metadata(dir.path().join("run/tables/trajectories/train/round-0001/part-00000.parquet"))?.len();
    println!("resumed: the first item that was left began after {:.2} s", resumed.as_secs_f64());
    println!(
        "part of {:.1} MB for {:.1} MB of rows: {:.1} s; peak memory {:.0} MB, before {:.0} MB",
        part as f64 / 1e6,
        (items * bytes) as f64 / 1e6,
        begin.elapsed().as_secs_f64(),
        peak_memory_bytes() as f64 / 1e6,
        before as f64 / 1e6
    );
    println!(
        "items done again: {}",
        first.done.load(Ordering::SeqCst) + second.done.load(Ordering::SeqCst) - items - 1
    );
    Ok(())
}
