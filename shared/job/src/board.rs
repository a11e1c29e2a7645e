//! What one worker knows of a stage's shards: which are done, which blocks of a thousand are closed.
//!
//! In: listings of the table folder, one request for a thousand shards. Out: the shards that may still be open, from a
//! place of this attempt's own. A block whose parts were all seen is *closed* by a create-only marker; parts never go away,
//! so the marker stays true, and a late worker learns from one listing of markers what is left of a hundred thousand shards.
//! No worker lists the whole table.
//!
//! What it does not know: leases, items, rows.

use crate::{JobError, Plan, Run, Stage, layout};
use rollmill_store::{Nonce, PAGE};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// One worker's view.
pub(crate) struct Board<'a> {
    run: &'a Run,
    stage: &'a Stage,
    plan: &'a Plan,
    done: BTreeSet<u32>,
    closed: BTreeSet<u32>,
    /// Where a pass begins: this attempt's own, so that workers do not all try the same shard first.
    start: u32,
}

/// The marker of a closed block, as stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Closed {
    nonce: Nonce,
}

impl<'a> Board<'a> {
    pub fn new(run: &'a Run, stage: &'a Stage, plan: &'a Plan) -> Board<'a> {
        let start = u32::from_str_radix(run.attempt.as_str().get(..7).unwrap_or("0"), 16).unwrap_or(0);
        Board { run, stage, plan, done: BTreeSet::new(), closed: BTreeSet::new(), start }
    }

    fn shards(&self) -> u32 {
        self.plan.shards.len() as u32
    }

    fn blocks(&self) -> u32 {
        self.shards().div_ceil(PAGE as u32)
    }

    /// The block of a shard.
    pub fn block_of(shard: u32) -> u32 {
        shard / PAGE as u32
    }

    /// Begins another pass elsewhere: what was asked about in this one is not asked first again.
    pub fn turn(&mut self) {
        // A linear congruential step (Numerical Recipes): visits all 2^32 places.
        self.start = self.start.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    }

    /// Blocks not known to be closed, from the present place on.
    pub async fn open_blocks(&mut self) -> Result<Vec<u32>, JobError> {
        if self.blocks() > 1 && self.closed.len() < self.blocks() as usize {
            let markers = self.run.blobs.list(&self.stage.blocks()?).await?;
            self.closed.extend(markers.iter().filter_map(|e| layout::number(e.key.file_name())));
        }
        let start = Self::block_of(self.start % self.shards().max(1));
        let blocks = (0..self.blocks()).map(|i| (start + i) % self.blocks());
        Ok(blocks.filter(|b| !self.closed.contains(b)).collect())
    }

    /// Learns which shards of `block` are done, and closes it if all are.
    pub async fn look(&mut self, block: u32) -> Result<(), JobError> {
        let first = block * PAGE as u32;
        let after = first.checked_sub(1).map(|before| self.stage.part(before)).transpose()?;
        let page = self.run.blobs.list_page(&self.stage.parts()?, after.as_ref(), PAGE).await?;
        self.done.extend(page.iter().filter_map(|e| layout::shard_of_part(e.key.file_name())));
        let last = (first + PAGE as u32).min(self.shards());
        if self.done.range(first..last).count() == (last - first) as usize {
            self.close(block).await?;
        }
        Ok(())
    }

    async fn close(&mut self, block: u32) -> Result<(), JobError> {
        self.closed.insert(block);
        if self.blocks() > 1 {
            let key = self.stage.blocks()?.join(format!("{block:05}.json"))?;
            let nonce = Nonce::of(&self.run.attempt, &key);
            // Whoever was first said the same.
            self.run.record(&key, Closed { nonce }).await?;
        }
        Ok(())
    }

    /// Notes that a shard's part is there.
    pub fn finished(&mut self, shard: u32) {
        self.done.insert(shard);
    }

    /// Whether a shard's part was seen.
    pub fn is_done(&self, shard: u32) -> bool {
        self.done.contains(&shard)
    }

    /// Shards of `block` whose part was not seen, from the present place on.
    pub fn open_shards(&self, block: u32) -> Vec<u32> {
        let first = block * PAGE as u32;
        let size = PAGE.min((self.shards() - first) as usize) as u32;
        let start = self.start % size.max(1);
        (0..size).map(|i| first + (start + i) % size).filter(|s| !self.done.contains(s)).collect()
    }

    /// Items of the shards known to be done.
    pub fn items_done(&self) -> usize {
        self.done.iter().map(|&s| self.plan.shards.get(s as usize).map_or(0, Vec::len)).sum()
    }
}
