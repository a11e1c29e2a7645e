//! What each worker reports of itself: seconds and peak memory, for `status` and the final table.

use crate::{JobError, Run, Stage, budget};
use futures::future::try_join_all;
use rollmill_store::{AttemptId, Key};
use serde::{Deserialize, Serialize};

/// Reports read at once.
const READS: usize = 32;

/// One worker's report on a stage, as stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageReport {
    /// The worker.
    pub attempt: String,
    /// Items of the stage's plan.
    pub items: usize,
    /// Seconds this worker spent on it.
    pub seconds: f64,
    /// Its peak memory.
    pub peak_memory_bytes: u64,
    /// Cores it had.
    #[serde(default)]
    pub cores: f64,
    /// GPUs it had.
    #[serde(default)]
    pub gpus: u32,
    /// Tokens a policy sampled for it.
    #[serde(default)]
    pub tokens: u64,
}

impl StageReport {
    pub(crate) fn of(attempt: &AttemptId, items: usize, seconds: f64) -> StageReport {
        StageReport {
            attempt: attempt.to_string(),
            items,
            seconds,
            peak_memory_bytes: peak_memory_bytes(),
            cores: budget::cores(),
            gpus: budget::gpus(),
            tokens: 0,
        }
    }
}

/// This process's peak resident memory, 0 where the system does not say.
pub fn peak_memory_bytes() -> u64 {
    peak_memory_of(std::process::id())
}

/// A process's peak resident memory, 0 where the system does not say.
pub fn peak_memory_of(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// Reports on something that is no stage, such as an endpoint that ran beside the jobs.
pub async fn write_report(run: &Run, name: &str, seconds: f64, peak_memory_bytes: u64) -> Result<(), JobError> {
    let attempt = AttemptId::fresh();
    let key = Key::new(format!("control/{name}/reports/{attempt}.json"))?;
    let report = StageReport { peak_memory_bytes, ..StageReport::of(&attempt, 0, seconds) };
    run.record(&key, report).await.map(|_| ())
}

/// All reports on `name`.
pub async fn reports_on(run: &Run, name: &str) -> Result<Vec<StageReport>, JobError> {
    reports(run, &Key::new(format!("control/{name}/reports"))?).await
}

pub(crate) async fn write(run: &Run, stage: &Stage, report: &StageReport) -> Result<(), JobError> {
    let key = stage.reports()?.join(format!("{}.json", run.attempt))?;
    run.record(&key, report.clone()).await.map(|_| ())
}

/// All reports below `folder`, such as a stage's.
pub(crate) async fn reports(run: &Run, folder: &Key) -> Result<Vec<StageReport>, JobError> {
    let entries = run.blobs.list(folder).await?;
    let mut found = Vec::new();
    for batch in entries.chunks(READS) {
        let read = try_join_all(batch.iter().map(|entry| run.read_record(&entry.key))).await?;
        found.extend(read.into_iter().flatten());
    }
    Ok(found)
}
