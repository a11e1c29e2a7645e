//! One shard's life: earlier chunks, the items that are left, a part.

use crate::progress::Progress;
use crate::{Job, JobError, Plan, Run, Stage, chunk, items};
use bytes::Bytes;
use futures::StreamExt;
use rollmill_schema::{Row, decode, encode};
use rollmill_store::lease::{Lease, Leases};
use rollmill_store::{Commit, create_once};
use std::collections::HashMap;
use std::time::Duration;

/// How work on a shard ended.
pub(crate) enum ShardEnd {
    /// Its part exists, by us or by another.
    Committed,
    /// Drained: what was done is in a chunk.
    Drained,
    /// Another attempt took the lease: what was done is in a chunk.
    Fenced,
}

/// What a shard's work needs.
pub(crate) struct ShardWork<'a, J: Job> {
    pub run: &'a Run,
    pub stage: &'a Stage,
    pub plan: &'a Plan,
    pub job: &'a J,
    pub leases: &'a Leases,
    pub progress: &'a Progress,
}

impl<J: Job> ShardWork<'_, J> {
    /// Works on `shard` until its part is committed, or until something asks it to leave.
    pub async fn finish(&self, shard: u32, lease: &mut Lease) -> Result<ShardEnd, JobError> {
        let keys = &self.plan.shards[shard as usize];
        let mut done = chunk::read::<J::Row>(self.run, self.stage, self.plan, shard).await?;
        self.progress.advance(done.len());
        let mut fresh: Vec<J::Row> = Vec::new();
        let tries = self.run.operations.item_tries;
        // Collected, because a stream over a mapping closure is not `Send` in general; a future not polled costs little.
        let left: Vec<_> =
            keys.iter().filter(|k| !done.contains_key(*k)).map(|key| items::attempt(self.job, key, tries)).collect();
        let mut rows = futures::stream::iter(left).buffer_unordered(self.job.concurrency().max(1));
        let operations = &self.run.operations;
        let mut renew = tokio::time::interval(Duration::from_secs(operations.lease_seconds.max(3)) / 3);
        let mut save = tokio::time::interval(Duration::from_secs(operations.chunk_seconds.max(1)));
        renew.tick().await;
        save.tick().await;
        let end = loop {
            tokio::select! {
                biased;
                () = self.run.drain.raised() => break Some(Ok(ShardEnd::Drained)),
                _ = renew.tick() => if !self.leases.renew(self.run.blobs.as_ref(), lease).await? {
                    break Some(Ok(ShardEnd::Fenced));
                },
                _ = save.tick() => self.save(shard, &mut fresh, &mut done).await?,
                row = rows.next() => match row {
                    None => break None,
                    Some(Err(e)) => break Some(Err(e)),
                    Some(Ok(row)) => {
                        self.progress.advance(1);
                        fresh.push(row);
                        if fresh.len() >= operations.chunk_items {
                            self.save(shard, &mut fresh, &mut done).await?;
                        }
                    }
                },
            }
        };
        drop(rows);
        match end {
            None => self.commit(shard, fresh, done).await.map(|()| ShardEnd::Committed),
            Some(end) => {
                self.save(shard, &mut fresh, &mut done).await?;
                end
            }
        }
    }

    async fn save(
        &self,
        shard: u32,
        fresh: &mut Vec<J::Row>,
        done: &mut HashMap<String, J::Row>,
    ) -> Result<(), JobError> {
        if !fresh.is_empty() {
            chunk::write(self.run, self.stage, self.plan, shard, fresh).await?;
            done.extend(fresh.drain(..).map(|row| (row.key(), row)));
        }
        Ok(())
    }

    async fn commit(&self, shard: u32, fresh: Vec<J::Row>, mut done: HashMap<String, J::Row>) -> Result<(), JobError> {
        for row in fresh {
            done.entry(row.key()).or_insert(row);
        }
        let keys = &self.plan.shards[shard as usize];
        let rows: Vec<J::Row> = keys.iter().filter_map(|k| done.remove(k)).collect();
        let key = self.stage.part(shard)?;
        // A part holds exactly its plan's keys, once each; otherwise it is not written (invariant 2).
        if rows.len() != keys.len() || !done.is_empty() {
            let reason = format!("{} of {} planned items are done, {} are foreign", rows.len(), keys.len(), done.len());
            return Err(JobError::Corrupt { key: key.to_string(), reason });
        }
        let bytes = encode(&rows, self.plan.nonce.as_str(), self.run.attempt.as_str())?;
        let won = match create_once(self.run.blobs.as_ref(), &key, bytes.clone()).await? {
            Commit::Mine => bytes,
            Commit::Lost(bytes) => bytes,
        };
        project(self.run, self.stage, self.job, shard, &won).await
    }
}

/// Writes the projections of a committed part. Any worker may: the bytes follow from the part alone.
pub(crate) async fn project<J: Job>(
    run: &Run,
    stage: &Stage,
    job: &J,
    shard: u32,
    part: &Bytes,
) -> Result<(), JobError> {
    let (rows, footer) = decode::<J::Row>(part)?;
    for (table, bytes) in job.project(&rows, &footer.plan, &footer.attempt)? {
        let key = stage.projection(table, shard)?;
        if let Commit::Lost(other) = create_once(run.blobs.as_ref(), &key, bytes).await? {
            let reason = format!("another projection of the same part is there ({} bytes)", other.len());
            return Err(JobError::Corrupt { key: key.to_string(), reason });
        }
    }
    Ok(())
}
