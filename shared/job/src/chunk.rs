//! Chunks: checkpoints inside a shard (invariant 4). They may overlap; per key the row of the lowest chunk counts.
//!
//! In: finished rows. Out: after a kill, the keys that are done, read from footers alone; at the end, the part's bytes,
//! group by group: beside the encoded part, only one group of rows and the chunks it needs are decoded at a time.

use crate::{JobError, Plan, Run, Stage};
use bytes::Bytes;
use futures::future::try_join_all;
use rollmill_schema::{PartWriter, ROW_GROUP, Row, decode, encode_with_keys, read_keys};
use rollmill_store::{Commit, Key, create_once};
use std::collections::{BTreeMap, HashMap};

/// Chunks read at once.
const READS: usize = 16;

/// Rows kept in memory beside their chunks, as long as the chunks are smaller than this: small shards are compacted
/// without reading anything back.
const HELD_BYTES: usize = 32 << 20;

/// Where the finished rows of one shard are.
pub(crate) struct Chunks<'a, R: Row> {
    run: &'a Run,
    plan: &'a Plan,
    folder: Key,
    /// The lowest chunk that holds a key.
    place: HashMap<String, u32>,
    next: u32,
    held: HashMap<String, R>,
    held_bytes: usize,
}

impl<'a, R: Row> Chunks<'a, R> {
    /// Reads which items of `shard` earlier attempts finished.
    pub async fn open(run: &'a Run, stage: &Stage, plan: &'a Plan, shard: u32) -> Result<Chunks<'a, R>, JobError> {
        let folder = stage.chunks(shard)?;
        let mut chunks =
            Chunks { run, plan, folder, place: HashMap::new(), next: 0, held: HashMap::new(), held_bytes: 0 };
        let numbers: Vec<u32> = run.blobs.list(&chunks.folder).await?.iter().map(|e| number(&e.key)).collect();
        chunks.next = numbers.last().map_or(0, |last| last + 1);
        for batch in numbers.chunks(READS) {
            let read = try_join_all(batch.iter().map(|&n| chunks.fetch(n))).await?;
            for (&n, bytes) in batch.iter().zip(read) {
                // A chunk that has gone was removed after its part was committed: the caller will meet the part.
                let Some(bytes) = bytes else { continue };
                let (keys, footer) = read_keys::<R>(&bytes)?;
                if footer.plan != plan.nonce.as_str() {
                    let reason = format!("it belongs to plan {}, not {}", footer.plan, plan.nonce);
                    return Err(JobError::Corrupt { key: chunks.key(n)?.to_string(), reason });
                }
                for key in keys {
                    chunks.place.entry(key).or_insert(n);
                }
            }
        }
        Ok(chunks)
    }

    /// Whether the item is in a chunk.
    pub fn holds(&self, key: &str) -> bool {
        self.place.contains_key(key)
    }

    /// The items in chunks.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &String> {
        self.place.keys()
    }

    /// Writes `rows` as the next chunk. A number lost to another attempt means: list again, take the next.
    pub async fn save(&mut self, rows: Vec<R>) -> Result<(), JobError> {
        let bytes = encode_with_keys(&rows, self.plan.nonce.as_str(), self.run.attempt.as_str())?;
        while create_once(self.run.blobs.as_ref(), &self.key(self.next)?, bytes.clone()).await? != Commit::Mine {
            let listed = self.run.blobs.list(&self.folder).await?;
            // Past the lost number in any case, so that a late listing cannot hold this loop.
            self.next = listed.last().map_or(0, |e| number(&e.key) + 1).max(self.next + 1);
        }
        self.held_bytes += bytes.len();
        for row in rows {
            let key = row.key();
            self.place.entry(key.clone()).or_insert(self.next);
            self.held.insert(key, row);
        }
        if self.held_bytes > HELD_BYTES {
            self.held = HashMap::new();
        }
        self.next += 1;
        Ok(())
    }

    /// The part with exactly the rows `keys` in their order, `fresh` being those in no chunk yet; none if a chunk has gone.
    pub async fn part(&self, keys: &[String], fresh: &HashMap<String, R>) -> Result<Option<Bytes>, JobError> {
        let mut writer = PartWriter::<R>::new(self.plan.nonce.as_str(), self.run.attempt.as_str())?;
        for group in keys.chunks(ROW_GROUP) {
            let at_hand = |key: &String| fresh.get(key).or_else(|| self.held.get(key));
            let mut read: HashMap<String, R> = HashMap::new();
            let mut wanted: BTreeMap<u32, Vec<&String>> = BTreeMap::new();
            for key in group.iter().filter(|key| at_hand(key).is_none()) {
                wanted.entry(self.place.get(key).copied().unwrap_or(u32::MAX)).or_default().push(key);
            }
            let wanted: Vec<(u32, Vec<&String>)> = wanted.into_iter().collect();
            for batch in wanted.chunks(READS) {
                for (bytes, (_, keys)) in
                    try_join_all(batch.iter().map(|(n, _)| self.fetch(*n))).await?.iter().zip(batch)
                {
                    let Some(bytes) = bytes else { return Ok(None) };
                    let rows = decode::<R>(bytes)?.0.into_iter().map(|row| (row.key(), row));
                    read.extend(rows.filter(|(key, _)| keys.contains(&key)));
                }
            }
            let rows: Vec<R> =
                group.iter().filter_map(|key| at_hand(key).cloned().or_else(|| read.remove(key))).collect();
            // A part holds exactly its plan's keys, once each; otherwise it is not written (invariant 2).
            if rows.len() != group.len() {
                let reason =
                    format!("{} of {} rows are not where the footers say", group.len() - rows.len(), group.len());
                return Err(JobError::Corrupt { key: self.folder.to_string(), reason });
            }
            writer.write(&rows)?;
        }
        Ok(Some(writer.finish()?))
    }

    fn key(&self, number: u32) -> Result<Key, JobError> {
        Ok(self.folder.join(format!("{number:06}.parquet"))?)
    }

    async fn fetch(&self, number: u32) -> Result<Option<Bytes>, JobError> {
        Ok(self.run.blobs.get(&self.key(number)?).await?)
    }
}

fn number(key: &Key) -> u32 {
    crate::layout::number(key.file_name()).unwrap_or(0)
}
