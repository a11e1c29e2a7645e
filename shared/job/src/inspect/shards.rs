//! What the holders of open shards last said of themselves.

use crate::{JobError, Note, Run, layout};
use futures::future::try_join_all;
use rollmill_store::{Entry, Key, lease};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// One open shard that somebody claimed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ShardState {
    /// The shard.
    pub shard: u32,
    /// Where its last holder ran.
    pub worker: String,
    /// Its last holder.
    pub attempt: String,
    /// Whether the holder still holds it, as far as the store knows.
    pub held: bool,
    /// Whether the holder has said nothing for longer than a lease's time-to-live, by its own clock and ours.
    pub silent: bool,
    /// Seconds since it last said something, by its own clock and ours.
    pub quiet_seconds: f64,
    /// Why it holds the stage up: it is silent, or three times slower than the median of the others.
    pub straggler: Option<String>,
    /// What it last said.
    pub note: Note,
}

impl ShardState {
    /// Items per second since it claimed the shard; none before its first item.
    pub fn rate(&self) -> Option<f64> {
        let (items, seconds) = (self.note.done - self.note.resumed.min(self.note.done), self.note.at - self.note.since);
        (items > 0 && seconds > 0.0).then(|| items as f64 / seconds)
    }
}

/// Terms read at once.
const READS: usize = 32;

/// A worker this many times slower than the median is a straggler.
const SLOW: f64 = 3.0;

/// The open shards of a stage, from the listing of its lease terms and the set of its committed shards.
pub(super) async fn open(run: &Run, leases: &[Entry], done: &BTreeSet<u32>) -> Result<Vec<ShardState>, JobError> {
    let mut last: BTreeMap<u32, &Key> = BTreeMap::new();
    for entry in leases {
        let shard = entry.key.as_str().rsplit('/').nth(1).and_then(layout::number);
        if let Some(shard) = shard.filter(|s| !done.contains(s)) {
            // A listing is sorted: the last term wins.
            last.insert(shard, &entry.key);
        }
    }
    let last: Vec<(u32, &Key)> = last.into_iter().collect();
    let mut found = Vec::new();
    for batch in last.chunks(READS) {
        found.extend(try_join_all(batch.iter().map(|(shard, key)| read(run, *shard, key))).await?);
    }
    let mut rates: Vec<f64> = found.iter().filter(|s| s.held && !s.silent).filter_map(ShardState::rate).collect();
    rates.sort_by(f64::total_cmp);
    let median = rates.get(rates.len() / 2).copied();
    for state in found.iter_mut().filter(|s| s.held) {
        state.straggler = straggles(state, median);
    }
    Ok(found)
}

async fn read(run: &Run, shard: u32, key: &Key) -> Result<ShardState, JobError> {
    let term = lease::read_term(run.blobs.as_ref(), key).await?;
    // A note of another version is no note.
    let note: Note = serde_json::from_value(term.note).unwrap_or_default();
    let quiet = (run.clock.wall().as_secs_f64() - note.at).max(0.0);
    Ok(ShardState {
        shard,
        worker: term.worker,
        attempt: term.attempt.to_string(),
        held: !term.released,
        silent: quiet > run.operations.lease_seconds as f64,
        quiet_seconds: quiet,
        straggler: None,
        note,
    })
}

fn straggles(state: &ShardState, median: Option<f64>) -> Option<String> {
    if state.silent {
        return Some(format!("silent for {:.0} s", state.quiet_seconds));
    }
    let (rate, median) = (state.rate()?, median?);
    (rate * SLOW < median).then(|| format!("{rate:.2} items/s, the median is {median:.2}"))
}
