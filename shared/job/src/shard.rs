//! One shard's life: earlier chunks, the items that are left, a part.

use crate::chunk::Chunks;
use crate::note::Notebook;
use crate::progress::Progress;
use crate::{Job, JobError, Plan, Run, Stage, items};
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use rollmill_schema::{Row, decode, read_footer};
use rollmill_store::lease::{Lease, Leases};
use rollmill_store::{Commit, create_once};
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// How work on a shard ended.
pub(crate) enum ShardEnd {
    /// Its part exists, by us or by another.
    Committed,
    /// Drained: what was done is in a chunk.
    Drained,
    /// Another attempt took the lease: what was done is in a chunk, items that were under way included.
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
    pub notebook: &'a Notebook,
}

impl<J: Job> ShardWork<'_, J> {
    /// Works on `shard` until its part is committed, or until something asks it to leave.
    pub async fn finish(&self, shard: u32, lease: &mut Lease) -> Result<ShardEnd, JobError> {
        loop {
            let mut chunks = Chunks::open(self.run, self.stage, self.plan, shard).await?;
            self.notebook.resumed(chunks.keys().len());
            self.progress.advance(chunks.keys().len());
            let mut fresh = HashMap::new();
            if let Some(end) = self.items(shard, lease, &mut chunks, &mut fresh).await {
                self.save(&mut fresh, &mut chunks).await?;
                return end;
            }
            if self.commit(shard, fresh, &chunks).await? {
                return Ok(ShardEnd::Committed);
            }
            // A chunk has gone though there is no part (invariant 4): what it held is done again.
        }
    }

    /// Does the items that no chunk holds. None: all are done; otherwise why it stopped before.
    ///
    /// Who loses the lease begins no other item but ends those under way: on a machine so busy that no lease lasts as long
    /// as an item, workers would otherwise take a shard from each other for ever, and none would get on.
    async fn items(
        &self,
        shard: u32,
        lease: &mut Lease,
        chunks: &mut Chunks<'_, J::Row>,
        fresh: &mut HashMap<String, J::Row>,
    ) -> Option<Result<ShardEnd, JobError>> {
        let operations = &self.run.operations;
        let left: Vec<&String> = self.plan.shards[shard as usize].iter().filter(|key| !chunks.holds(key)).collect();
        let (mut left, mut fenced) = (left.into_iter(), false);
        let mut rows = FuturesUnordered::new();
        let mut renew = tokio::time::interval(Duration::from_secs(operations.lease_seconds.max(1)) / 3);
        let mut save = tokio::time::interval(Duration::from_secs(operations.chunk_seconds.max(1)));
        renew.tick().await;
        save.tick().await;
        loop {
            while !fenced && rows.len() < self.job.concurrency().max(1) {
                let Some(key) = left.next() else { break };
                rows.push(items::attempt(self.job, key, operations.item_tries, self.notebook));
            }
            let saved = tokio::select! {
                biased;
                () = self.run.drain.raised() => return Some(Ok(ShardEnd::Drained)),
                _ = renew.tick(), if !fenced => self.renew(lease).await.map(|ours| fenced = !ours),
                _ = save.tick() => self.save(fresh, chunks).await,
                row = rows.next() => match row {
                    None => return (left.len() > 0).then_some(Ok(ShardEnd::Fenced)),
                    Some(Err(e)) => Err(e),
                    Some(Ok(row)) => {
                        self.progress.advance(1);
                        self.notebook.advance();
                        fresh.insert(row.key(), row);
                        if fresh.len() >= operations.chunk_items { self.save(fresh, chunks).await } else { Ok(()) }
                    }
                },
            };
            if let Err(e) = saved {
                return Some(Err(e));
            }
        }
    }

    /// Whether the lease is still ours. A store that does not answer only costs the lease, never the work.
    async fn renew(&self, lease: &mut Lease) -> Result<bool, JobError> {
        match self.leases.renew(self.run.blobs.as_ref(), lease, self.notebook.write(self.run)).await {
            Err(e) if e.is_transient() => Ok(true),
            renewed => Ok(renewed?),
        }
    }

    async fn save(&self, fresh: &mut HashMap<String, J::Row>, chunks: &mut Chunks<'_, J::Row>) -> Result<(), JobError> {
        if fresh.is_empty() {
            return Ok(());
        }
        // In the order of keys, so that equal rows make equal bytes. Kept until they are written: a failed write loses none.
        let mut rows: Vec<J::Row> = fresh.values().cloned().collect();
        rows.sort_by_key(Row::key);
        chunks.save(rows).await?;
        fresh.clear();
        Ok(())
    }

    /// Creates the part. False: a chunk it needs has gone, and no part is there.
    async fn commit(
        &self,
        shard: u32,
        fresh: HashMap<String, J::Row>,
        chunks: &Chunks<'_, J::Row>,
    ) -> Result<bool, JobError> {
        let keys = &self.plan.shards[shard as usize];
        let key = self.stage.part(shard)?;
        let planned: HashSet<&String> = keys.iter().collect();
        let have: HashSet<&String> = fresh.keys().chain(chunks.keys()).collect();
        if have != planned {
            let (lack, foreign) = (planned.difference(&have).count(), have.difference(&planned).count());
            let reason = format!("{lack} of {} planned items are not done, {foreign} are foreign", keys.len());
            return Err(JobError::Corrupt { key: key.to_string(), reason });
        }
        let won = match chunks.part(keys, &fresh).await? {
            Some(bytes) => match create_once(self.run.blobs.as_ref(), &key, bytes.clone()).await? {
                Commit::Mine => bytes,
                Commit::Lost(bytes) => bytes,
            },
            None => match self.run.blobs.get(&key).await? {
                Some(bytes) => bytes,
                None => return Ok(false),
            },
        };
        project(self.run, self.stage, self.job, shard, &won).await.map(|()| true)
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
    if job.tables().is_empty() {
        return Ok(());
    }
    let footer = read_footer::<J::Row>(part)?;
    let (rows, _) = decode::<J::Row>(part)?;
    for (table, bytes) in job.project(&rows, &footer.plan, &footer.attempt)? {
        let key = stage.projection(table, shard)?;
        if let Commit::Lost(other) = create_once(run.blobs.as_ref(), &key, bytes).await? {
            let reason = format!("another projection of the same part is there ({} bytes)", other.len());
            return Err(JobError::Corrupt { key: key.to_string(), reason });
        }
    }
    Ok(())
}
