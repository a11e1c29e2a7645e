//! Garbage: what nobody needs any more, found and, if asked, removed (invariant 8).
//!
//! In: a run. Out: what may go, each with the reason. Nothing is removed that a reader, a live worker or a worker that
//! stalled for days could need:
//! - chunks and lease terms of *sealed* stages only. A worker that wakes up there writes a chunk nobody reads and loses the
//!   create of its part, whatever is gone;
//! - files of checkpoints of *closed* rounds only (those with a last manifest): what a losing attempt uploaded and no
//!   manifest names; what a manifest within the round names, which is first marked retired; and, only when asked, last
//!   checkpoints of old rounds, once every stage planned on them is sealed and the round after is closed. Never the base model;
//! - unfinished writes older than an age.
//!
//! Never plans, seals, parts, manifests, markers or reports: a deleted create-only name could be won again.

use crate::checkpoint::{self, Manifest};
use crate::{JobError, Plan, Run};
use futures::future::try_join_all;
use rollmill_store::{Entry, Key, Nonce};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Why something may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// A chunk of a sealed stage.
    Chunk,
    /// A lease term of a sealed stage.
    Lease,
    /// A checkpoint's file that no manifest of its closed round names.
    LostCheckpoint,
    /// A checkpoint's file that was given up: its manifest stays and is marked.
    RetiredCheckpoint,
    /// An unfinished write of a process that is gone.
    Unfinished,
}

/// One thing that may go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Garbage {
    /// Its key, or the name of an unfinished write.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// Why it may go.
    pub why: Why,
}

/// What to look for.
#[derive(Clone, Copy, Debug)]
pub struct GcOptions {
    /// Keep the last checkpoints of that many newest closed rounds; none keeps all.
    pub keep_checkpoints: Option<u32>,
    /// Unfinished writes must be older than this.
    pub older_than: Duration,
    /// Remove what is found; otherwise only say it.
    pub apply: bool,
}

/// Removals at once.
const DELETES: usize = 16;

/// Finds garbage, and removes it if `options.apply`. May be killed and run again, and run beside anything.
pub async fn collect(run: &Run, options: GcOptions) -> Result<Vec<Garbage>, JobError> {
    let control = run.blobs.list(&Key::new("control")?).await?;
    let mut found = of_sealed_stages(&control);
    let (files, retired) = of_checkpoints(run, &control, options.keep_checkpoints).await?;
    found.extend(files);
    if options.apply {
        for (round, step) in retired {
            checkpoint::retire(run, round, step).await?;
        }
        for batch in found.chunks(DELETES) {
            let keys = batch.iter().map(|g| Key::new(&g.name)).collect::<Result<Vec<_>, _>>()?;
            try_join_all(keys.iter().map(|key| run.blobs.delete(key))).await?;
        }
    }
    let unfinished = run.blobs.unfinished(options.older_than, options.apply).await?;
    found.extend(unfinished.into_iter().map(|(name, bytes)| Garbage { name, bytes, why: Why::Unfinished }));
    Ok(found)
}

fn of_sealed_stages(control: &[Entry]) -> Vec<Garbage> {
    let inside = |e: &Entry| e.key.as_str().strip_prefix("control/").map(str::to_string);
    let sealed: BTreeSet<String> =
        control.iter().filter_map(|e| Some(inside(e)?.strip_suffix("/sealed.json")?.to_string())).collect();
    let garbage = |e: &Entry| {
        let name = inside(e)?;
        let why = |kind: &str, why: Why| Some((name.split_once(kind)?.0.to_string(), why));
        let (stage, why) = why("/chunks/", Why::Chunk).or_else(|| why("/leases/", Why::Lease))?;
        sealed.contains(&stage).then(|| Garbage { name: e.key.to_string(), bytes: e.size, why })
    };
    control.iter().filter_map(garbage).collect()
}

/// Files of checkpoints that may go, and the manifests to mark first.
async fn of_checkpoints(
    run: &Run,
    control: &[Entry],
    keep: Option<u32>,
) -> Result<(Vec<Garbage>, BTreeSet<(u32, u32)>), JobError> {
    let mut rounds: BTreeMap<u32, Vec<Manifest>> = BTreeMap::new();
    for round in checkpoint::rounds_in(control) {
        rounds.insert(round, checkpoint::list(run, round).await?);
    }
    // The step that a round ended with. Round 0 may be under way after the base model.
    let ends: BTreeMap<u32, u32> =
        rounds.iter().filter_map(|(round, all)| Some((*round, all.iter().rfind(|m| m.last)?.step))).collect();
    let closed: BTreeSet<u32> = ends.keys().copied().collect();
    let newest = closed.last().copied().unwrap_or(0);
    let needed = needed_checkpoints(run, control).await?;
    let old = |round: u32| {
        let beyond = keep.is_some_and(|keep| round.saturating_add(keep.max(1)) <= newest);
        round > 0 && beyond && closed.contains(&(round + 1)) && !needed.contains(&round)
    };
    let given_up: BTreeSet<(u32, u32)> = control.iter().filter_map(|e| checkpoint::retired_place(&e.key)).collect();
    let (mut found, mut retired) = (Vec::new(), BTreeSet::new());
    for entry in run.blobs.list(&Key::new("checkpoints")?).await? {
        let Some((round, step, attempt)) = checkpoint::place(&entry.key) else { continue };
        if ends.get(&round).is_none_or(|end| step > *end) {
            // A round under way: only what its trainer has given up itself.
            if given_up.contains(&(round, step)) {
                found.push(Garbage { name: entry.key.to_string(), bytes: entry.size, why: Why::RetiredCheckpoint });
            }
            continue;
        }
        let manifest = rounds[&round].iter().find(|m| m.step == step && m.attempt == attempt);
        let why = match manifest {
            None => Why::LostCheckpoint,
            Some(m) if !m.last || old(round) => Why::RetiredCheckpoint,
            Some(_) => continue,
        };
        if why == Why::RetiredCheckpoint {
            retired.insert((round, step));
        }
        found.push(Garbage { name: entry.key.to_string(), bytes: entry.size, why });
    }
    Ok((found, retired))
}

/// Rounds whose last checkpoint a stage was planned on that is not sealed yet.
async fn needed_checkpoints(run: &Run, control: &[Entry]) -> Result<BTreeSet<u32>, JobError> {
    let mut needed = BTreeSet::new();
    let sealed: BTreeSet<&str> = control.iter().filter_map(|e| e.key.as_str().strip_suffix("/sealed.json")).collect();
    for entry in control {
        let Some(stage) = entry.key.as_str().strip_suffix("/plan.json") else { continue };
        if !sealed.contains(stage)
            && let Some(plan) = run.read_record::<Plan>(&entry.key).await?
        {
            needed.extend(
                plan.inputs.iter().filter_map(|i| i.stage.strip_prefix("checkpoint/round-")?.parse::<u32>().ok()),
            );
        }
    }
    Ok(needed)
}

/// The marker of a checkpoint whose bytes were given up, as stored.
#[derive(Clone, Debug, Serialize, serde::Deserialize)]
pub(crate) struct Retired {
    pub nonce: Nonce,
}
