//! What a worker was at when it was killed, by what existed in the store then.

use crate::history::{Content, History};
use rollmill_job::Stage;
use std::collections::BTreeSet;
use std::fmt;
use std::time::Instant;

/// A worker's place in its life, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// The stage has no plan yet.
    Start,
    /// There is a plan; the worker held no shard: it was starting, or waiting for others.
    Planned,
    /// It held a shard of which nothing is saved.
    Claimed,
    /// Some items of its shard are in chunks.
    Items,
    /// All items of its shard are in chunks, and there is no part.
    Part,
    /// The part is there, one of its projections is not.
    Projection,
    /// Its shard is done, others are not: between two shards.
    Between,
    /// All parts are there, and no seal.
    Seal,
    /// The stage is sealed: the worker was reporting and leaving.
    Sealed,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Phase::Start => "no plan yet",
            Phase::Planned => "planned, held nothing",
            Phase::Claimed => "claimed, nothing saved",
            Phase::Items => "some items in chunks",
            Phase::Part => "all in chunks, no part",
            Phase::Projection => "part, projection missing",
            Phase::Between => "between shards",
            Phase::Seal => "all parts, no seal",
            Phase::Sealed => "sealed, leaving",
        })
    }
}

/// What a worker held.
#[derive(Clone, Debug)]
pub struct Held {
    /// The shard.
    pub shard: u32,
    /// Its attempt.
    pub attempt: String,
    /// When its claim was first seen.
    pub since: Instant,
    /// Keys of the shard that are in a chunk or a part.
    pub saved: BTreeSet<String>,
    /// Keys of the shard.
    pub planned: usize,
    /// When the last thing it saved was first seen.
    pub last_saved: Instant,
}

/// The stage's plan, if it was seen.
pub fn plan<'a>(history: &'a History, stage: &Stage) -> Option<&'a Vec<Vec<String>>> {
    let key = stage.plan().ok()?;
    match &history.objects.get(key.as_str())?.content {
        Content::Plan(shards) => Some(shards),
        _ => None,
    }
}

/// Whether a part of the stage is there.
fn has_part(history: &History, stage: &Stage, shard: u32) -> bool {
    stage.part(shard).is_ok_and(|key| history.objects.contains_key(key.as_str()))
}

/// Pid of a term's worker.
fn pid_of(worker: &str) -> Option<u32> {
    worker.split(' ').next_back()?.parse().ok()
}

/// The shard that the worker `pid` claimed last and did not give back.
pub fn held(history: &History, stage: &Stage, pid: u32) -> Option<Held> {
    let prefix = format!("control/{}/leases/", stage.name());
    let mut last: Option<(u32, &str, Instant, bool)> = None;
    for (key, seen) in history.objects.iter().filter(|(k, _)| k.starts_with(&prefix)) {
        let Content::Term(term) = &seen.content else { continue };
        let shard = key.strip_prefix(&prefix)?.split('/').next()?.parse().ok()?;
        if pid_of(&term.worker) != Some(pid) {
            continue;
        }
        last = Some(match last {
            Some((old, attempt, since, _)) if old == shard => (old, attempt, since, term.released),
            Some(other) if other.2 > seen.when => other,
            _ => (shard, term.attempt.as_str(), seen.when, term.released),
        });
    }
    let (shard, attempt, since, released) = last?;
    if released {
        return None;
    }
    let (mut saved, mut last_saved) = (BTreeSet::new(), since);
    let (chunks, part) = (format!("{}/", stage.chunks(shard).ok()?), stage.part(shard).ok()?);
    for (key, seen) in history.objects.iter().filter(|(k, _)| k.starts_with(&chunks) || *k == part.as_str()) {
        if let Content::Rows(rows) = &seen.content {
            saved.extend(rows.keys.iter().cloned());
            if rows.footer.attempt == attempt && !key.starts_with("tables/") {
                last_saved = last_saved.max(seen.when);
            }
        }
    }
    let planned = plan(history, stage)?.get(shard as usize)?.len();
    Some(Held { shard, attempt: attempt.into(), since, saved, planned, last_saved })
}

/// What the worker was at. `projections` are tables that follow from the stage's parts.
pub fn phase(history: &History, stage: &Stage, held: Option<&Held>, projections: &[&str]) -> Phase {
    let there = |key: Result<rollmill_store::Key, _>| {
        key.is_ok_and(|k: rollmill_store::Key| history.objects.contains_key(k.as_str()))
    };
    let Some(plan) = plan(history, stage) else { return Phase::Start };
    if there(stage.sealed()) {
        return Phase::Sealed;
    }
    let shards = 0..plan.len() as u32;
    if let Some(held) = held {
        if !has_part(history, stage, held.shard) {
            return match held.saved.len() {
                0 => Phase::Claimed,
                n if n < held.planned => Phase::Items,
                _ => Phase::Part,
            };
        }
        if projections.iter().any(|t| !there(stage.projection(t, held.shard))) {
            return Phase::Projection;
        }
    }
    if shards.clone().all(|s| has_part(history, stage, s)) {
        return Phase::Seal;
    }
    if held.is_some() { Phase::Between } else { Phase::Planned }
}
