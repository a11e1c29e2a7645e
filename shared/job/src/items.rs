//! What a job's author writes, and how one item is tried.

use crate::note::Notebook;
use crate::{ItemError, JobError};
use async_trait::async_trait;
use rollmill_schema::Row;
use std::time::Duration;

/// A job: one key, one row. Planning is done before, from sealed inputs the job has already read.
#[async_trait]
pub trait Job: Send + Sync {
    /// The table it commits.
    type Row: Row;

    /// Turns the item `key` into its row. Called again after a kill or a failure: it must not depend on earlier calls.
    async fn process(&self, key: &str) -> Result<Self::Row, ItemError>;

    /// The row of an item that failed for good for a reason that was not its own, or none if that must stop the shard.
    fn failed(&self, key: &str, reason: &str) -> Option<Self::Row>;

    /// Items in flight at once.
    fn concurrency(&self) -> usize {
        1
    }

    /// Tokens that a policy has sampled for it so far, for the budget.
    fn tokens(&self) -> u64 {
        0
    }

    /// Names of other tables that follow from a committed part: what [`Job::project`] writes, in its order.
    fn tables(&self) -> &[&'static str] {
        &[]
    }

    /// The bytes of the other tables' parts, by name; deterministic, so that any worker may write them.
    fn project(
        &self,
        _rows: &[Self::Row],
        _plan: &str,
        _attempt: &str,
    ) -> Result<Vec<(&'static str, bytes::Bytes)>, JobError> {
        Ok(Vec::new())
    }
}

/// Tries one item up to `tries` times.
pub(crate) async fn attempt<J: Job>(job: &J, key: &str, tries: u32, notebook: &Notebook) -> Result<J::Row, JobError> {
    let mut reason = String::new();
    for n in 0..tries.max(1) {
        if n > 0 {
            tokio::time::sleep(Duration::from_millis(200 << n.min(6))).await;
        }
        match job.process(key).await {
            Ok(row) => return Ok(row),
            Err(ItemError::Retry(why)) => {
                notebook.error(&format!("{key}: {why}"));
                reason = why;
            }
            Err(ItemError::Unavailable(reason)) => return Err(JobError::Unavailable { reason }),
            Err(ItemError::Stop(reason)) => return Err(JobError::Stopped { key: key.into(), reason }),
        }
    }
    job.failed(key, &reason).ok_or_else(|| JobError::Stopped { key: key.into(), reason })
}
