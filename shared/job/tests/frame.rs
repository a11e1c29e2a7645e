//! The frame with a toy job whose rows are metrics: resume, overlap, drain, poison, frozen plans.
#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

use async_trait::async_trait;
use rollmill_job::config::{Config, Operations};
use rollmill_job::{Exit, ItemError, Job, JobError, Outcome, Plan, PlanDraft, Run, Stage, WorkerOptions, seal, work};
use rollmill_schema::{Metric, Row};
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Default)]
struct Toy {
    calls: AtomicUsize,
    /// Errors to give, by key, before the row.
    faults: Mutex<HashMap<String, Vec<ItemError>>>,
    /// Drain the run after so many calls.
    drain_after: Option<(usize, rollmill_job::Drain)>,
    value: f64,
}

#[async_trait]
impl Job for Toy {
    type Row = Metric;

    async fn process(&self, key: &str) -> Result<Metric, ItemError> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        if let Some(e) = self.faults.lock().unwrap().get_mut(key).and_then(Vec::pop) {
            return Err(e);
        }
        if let Some((n, drain)) = &self.drain_after
            && call == *n
        {
            drain.raise();
        }
        let name = key.split('|').next().unwrap();
        Ok(Metric { name: name.into(), scope: "all".into(), value: Some(self.value), ..Metric::default() })
    }

    fn failed(&self, key: &str, _reason: &str) -> Option<Metric> {
        let name = key.split('|').next().unwrap();
        Some(Metric { name: name.into(), scope: "all".into(), value: None, ..Metric::default() })
    }
}

fn draft(n: usize) -> PlanDraft {
    let keys = (0..n).map(|i| format!("m{i}|all|0")).collect();
    PlanDraft { keys, shard_size: 5, inputs: vec![], settings: serde_json::json!({}) }
}

/// A run in a folder; `again` opens it as another process would.
async fn run_in(dir: &tempfile::TempDir) -> Run {
    let mut run = Run::init(dir.path().to_str().unwrap(), &Config::parse("[a]\nx = 1", "test").unwrap()).await.unwrap();
    run.operations = Operations { chunk_items: 1, lease_seconds: 3, ..Operations::default() };
    run.quiet = true;
    run
}

async fn rows(run: &Run, stage: &Stage) -> Vec<String> {
    let (rows, _) = seal::read_sealed::<Metric>(run, stage).await.unwrap();
    rows.iter().map(Row::key).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drained_worker_loses_nothing_and_another_repeats_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let stage = Stage::evaluate("v1", "t", 0);
    let run = run_in(&dir).await;
    let plan = Plan::ensure(&run, &stage, draft(12)).await.unwrap();
    let first = Toy { drain_after: Some((4, run.drain.clone())), value: 1.0, ..Toy::default() };
    assert_eq!(work(&run, &stage, &plan, &first, WorkerOptions::default()).await.unwrap(), Outcome::Drained);
    let early = seal::read_sealed::<Metric>(&run, &stage).await.unwrap_err();
    assert!(matches!(early, JobError::InputIncomplete { .. }), "{early}");

    let run = run_in(&dir).await;
    let plan = Plan::ensure(&run, &stage, draft(12)).await.unwrap();
    let second = Toy { value: 2.0, ..Toy::default() };
    assert_eq!(work(&run, &stage, &plan, &second, WorkerOptions::default()).await.unwrap(), Outcome::Complete);
    assert_eq!(rows(&run, &stage).await, draft(12).keys);
    let calls = first.calls.load(Ordering::SeqCst) + second.calls.load(Ordering::SeqCst);
    assert!((12..=13).contains(&calls), "at most the item in flight is done twice: {calls}");
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_side_by_side_share_the_work() {
    let dir = tempfile::tempdir().unwrap();
    let stage = Stage::evaluate("v1", "t", 0);
    let mut tasks = Vec::new();
    let run = run_in(&dir).await;
    Plan::ensure(&run, &stage, draft(23)).await.unwrap();
    for _ in 0..4 {
        let run = run_in(&dir).await;
        let stage = stage.clone();
        tasks.push(tokio::spawn(async move {
            let plan = Plan::ensure(&run, &stage, draft(23)).await.unwrap();
            work(&run, &stage, &plan, &Toy::default(), WorkerOptions::default()).await.unwrap()
        }));
    }
    for task in tasks {
        assert_eq!(task.await.unwrap(), Outcome::Complete);
    }
    assert_eq!(rows(&run, &stage).await, draft(23).keys);
}

#[tokio::test(flavor = "multi_thread")]
async fn single_shard_workers_leave_the_seal_to_the_next_planner() {
    let dir = tempfile::tempdir().unwrap();
    let stage = Stage::evaluate("v1", "t", 0);
    let run = run_in(&dir).await;
    let plan = Plan::ensure(&run, &stage, draft(10)).await.unwrap();
    for shard in [1, 0, 7] {
        let only = WorkerOptions { shard: Some(shard), no_wait: true, ..WorkerOptions::default() };
        assert_eq!(work(&run, &stage, &plan, &Toy::default(), only).await.unwrap(), Outcome::Complete);
    }
    assert!(seal::read(&run, &stage).await.unwrap().is_none());
    assert_eq!(rows(&run, &stage).await.len(), 10);
    assert!(seal::read(&run, &stage).await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn folded_arrays_do_every_shard_once_whatever_their_length() {
    for elements in [1, 2, 3, 9] {
        let dir = tempfile::tempdir().unwrap();
        let stage = Stage::evaluate("v1", "t", 0);
        let run = run_in(&dir).await;
        let plan = Plan::ensure(&run, &stage, draft(23)).await.unwrap();
        for element in 0..elements {
            let toy = Toy::default();
            let options = WorkerOptions { shard: Some(element), fold: elements, no_wait: true };
            assert_eq!(work(&run, &stage, &plan, &toy, options).await.unwrap(), Outcome::Complete);
            let parts = run_parts(&dir);
            let mine = (0..plan.shards.len() as u32).filter(|shard| shard % elements <= element);
            assert_eq!(parts, mine.collect::<Vec<_>>(), "element {element} of {elements}");
        }
        assert_eq!(rows(&run, &stage).await, draft(23).keys);
    }
}

/// Shards that have a part.
fn run_parts(dir: &tempfile::TempDir) -> Vec<u32> {
    let folder = dir.path().join("tables/metrics/evaluate/v1/t/round-0000");
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut shards: Vec<u32> = names.filter_map(|n| rollmill_job::layout::shard_of_part(n.to_str().unwrap())).collect();
    shards.sort_unstable();
    shards
}

#[tokio::test(flavor = "multi_thread")]
async fn poison_becomes_a_row_and_outages_do_not() {
    let dir = tempfile::tempdir().unwrap();
    let stage = Stage::evaluate("v1", "t", 0);
    let run = run_in(&dir).await;
    let plan = Plan::ensure(&run, &stage, draft(4)).await.unwrap();
    let retry = || ItemError::Retry("flaky".into());
    let faults = HashMap::from([
        ("m0|all|0".into(), vec![retry(), retry(), retry()]),
        ("m1|all|0".into(), vec![retry()]),
        ("m3|all|0".into(), vec![ItemError::Unavailable("endpoint is away".into())]),
    ]);
    let toy = Toy { faults: Mutex::new(faults), value: 1.0, ..Toy::default() };
    let away = work(&run, &stage, &plan, &toy, WorkerOptions::default()).await.unwrap_err();
    assert_eq!((Exit::from(&away), Exit::from(&away).code()), (Exit::Again, 75));
    assert_eq!(work(&run, &stage, &plan, &toy, WorkerOptions::default()).await.unwrap(), Outcome::Complete);
    let (rows, _) = seal::read_sealed::<Metric>(&run, &stage).await.unwrap();
    assert_eq!(rows.iter().map(|r| r.value).collect::<Vec<_>>(), [None, Some(1.0), Some(1.0), Some(1.0)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_and_configurations_are_frozen() {
    let dir = tempfile::tempdir().unwrap();
    let stage = Stage::evaluate("v1", "t", 0);
    let run = run_in(&dir).await;
    Plan::ensure(&run, &stage, draft(10)).await.unwrap();
    let more = Plan::ensure(&run, &stage, draft(11)).await.unwrap_err();
    assert!(more.to_string().contains("it has 2 shards, now 3"), "{more}");
    assert_eq!(Exit::from(&more), Exit::Usage);
    let mut other = draft(10);
    other.settings = serde_json::json!({"samples": 4});
    assert!(Plan::ensure(&run, &stage, other).await.unwrap_err().to_string().contains("settings were {}, now"));
    let changed = Config::parse("[a]\nx = 2", "new.toml").unwrap();
    let e = Run::init(dir.path().to_str().unwrap(), &changed).await.err().unwrap();
    assert!(e.to_string().contains("a.x: 1 -> 2"), "{e}");
    let absent = seal::read_sealed::<Metric>(&run, &Stage::verify()).await.unwrap_err();
    assert!(matches!(absent, JobError::InputAbsent { .. }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_part_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let stage = Stage::evaluate("v1", "t", 0);
    let run = run_in(&dir).await;
    let plan = Plan::ensure(&run, &stage, draft(3)).await.unwrap();
    work(&run, &stage, &plan, &Toy::default(), WorkerOptions::default()).await.unwrap();
    let part = dir.path().join("tables/metrics/evaluate/v1/t/round-0000/part-00000.parquet");
    let mut bytes = std::fs::read(&part).unwrap();
    bytes[10] ^= 1;
    std::fs::write(&part, bytes).unwrap();
    let e = seal::read_sealed::<Metric>(&run, &stage).await.unwrap_err();
    assert!(matches!(e, JobError::Corrupt { .. }), "{e}");
}
