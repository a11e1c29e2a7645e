//! Reading a run's state from the store alone, for `status`.

mod shards;

use crate::checkpoint::{self, Manifest};
use crate::plan::Plan;
use crate::report::{StageReport, reports};
use crate::{JobError, Run, Stage, layout, seal};
use rollmill_store::{Entry, Key};
use serde::Serialize;
pub use shards::ShardState;
use std::collections::BTreeSet;

/// How far a stage is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageState {
    /// Its name.
    pub stage: String,
    /// Planned items.
    pub items: usize,
    /// Items in committed parts, and those that live workers say they have done.
    pub items_done: usize,
    /// Planned shards.
    pub shards: usize,
    /// Shards whose part is committed.
    pub shards_done: usize,
    /// Open shards that somebody holds.
    pub leased: usize,
    /// Open shards that were given back with an error.
    pub failed: usize,
    /// Whether it is sealed.
    pub sealed: bool,
    /// Items per second of all workers that hold a shard; none before the first item.
    pub rate: Option<f64>,
    /// Seconds left at that rate.
    pub seconds_left: Option<f64>,
    /// The workers' last words on shards that are open.
    pub open: Vec<ShardState>,
    /// Seconds its workers reported, added up.
    pub seconds: f64,
    /// Largest peak memory its workers reported.
    pub peak_memory_bytes: u64,
}

/// What is left of a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Left {
    /// Nobody has planned it.
    Unplanned,
    /// These shards have no part yet; of so many.
    Open(Vec<u32>, u32),
    /// All parts are there, of so many, and only its own job may seal it.
    Unsealed(u32),
    /// Nothing that readers wait for: sealed, or whoever reads it next seals it.
    Done,
}

/// What is left of one stage: three requests and a listing of its parts.
pub async fn left(run: &Run, stage: &Stage) -> Result<Left, JobError> {
    if seal::read(run, stage).await?.is_some() {
        return Ok(Left::Done);
    }
    let Some(plan) = Plan::read(run, stage).await? else { return Ok(Left::Unplanned) };
    let parts = run.blobs.list(&stage.parts()?).await?;
    let there: BTreeSet<u32> = parts.iter().filter_map(|e| layout::shard_of_part(e.key.file_name())).collect();
    let shards = plan.shards.len() as u32;
    let open: Vec<u32> = (0..shards).filter(|shard| !there.contains(shard)).collect();
    Ok(match open.is_empty() {
        false => Left::Open(open, shards),
        true if stage.projects() => Left::Unsealed(shards),
        true => Left::Done,
    })
}

/// All planned stages, by name.
pub async fn stages(run: &Run) -> Result<Vec<StageState>, JobError> {
    let control = run.blobs.list(&Key::new("control")?).await?;
    let tables = run.blobs.list(&Key::new("tables")?).await?;
    let name = |e: &Entry| Some(e.key.as_str().strip_prefix("control/")?.strip_suffix("/plan.json")?.to_string());
    let mut found = Vec::new();
    for name in control.iter().filter_map(name) {
        if let Some(plan) = run.read_record::<Plan>(&Key::new(format!("control/{name}/plan.json"))?).await? {
            found.push(stage(run, &name, &plan, below(&control, &format!("control/{name}/")), &tables).await?);
        }
    }
    Ok(found)
}

/// The entries of a sorted listing that begin with `prefix`.
fn below<'a>(listing: &'a [Entry], prefix: &str) -> &'a [Entry] {
    let first = listing.partition_point(|e| e.key.as_str() < prefix);
    let count = listing[first..].iter().take_while(|e| e.key.as_str().starts_with(prefix)).count();
    &listing[first..first + count]
}

async fn stage(
    run: &Run,
    name: &str,
    plan: &Plan,
    control: &[Entry],
    tables: &[Entry],
) -> Result<StageState, JobError> {
    let parts = below(tables, &format!("tables/{}/part-", folder_of(name)));
    let done: BTreeSet<u32> = parts.iter().filter_map(|e| layout::shard_of_part(e.key.file_name())).collect();
    let sealed = control.iter().any(|e| e.key.as_str() == format!("control/{name}/sealed.json"));
    let leases = below(control, &format!("control/{name}/leases/"));
    let open = if sealed { Vec::new() } else { shards::open(run, leases, &done).await? };
    let reports: Vec<StageReport> = reports(run, &Key::new(format!("control/{name}/reports"))?).await?;
    let committed: usize = done.iter().filter_map(|&s| plan.shards.get(s as usize)).map(Vec::len).sum();
    let live = || open.iter().filter(|s| s.held && !s.silent);
    let items_done = committed + open.iter().map(|s| s.note.done).sum::<usize>();
    let rate = live().filter_map(ShardState::rate).reduce(|a, b| a + b);
    let left = plan.items().saturating_sub(items_done) as f64;
    Ok(StageState {
        stage: name.to_string(),
        items: plan.items(),
        items_done,
        shards: plan.shards.len(),
        shards_done: done.len(),
        leased: open.iter().filter(|s| s.held).count(),
        failed: open.iter().filter(|s| !s.held && s.note.error.is_some()).count(),
        sealed,
        rate,
        seconds_left: rate.filter(|r| *r > 0.0).map(|r| left / r),
        open,
        // Nothing adds up to minus zero.
        seconds: reports.iter().map(|r| r.seconds).sum::<f64>() + 0.0,
        peak_memory_bytes: reports.iter().map(|r| r.peak_memory_bytes).max().unwrap_or(0),
    })
}

/// The folder below `tables/` of a stage's name: the inverse of the constructors in `layout`.
fn folder_of(stage: &str) -> String {
    match stage.split_once('/') {
        None if stage == "synthesize" => "candidates".into(),
        None => "admissions".into(),
        Some(("rollout", rest)) => format!("trajectories/{rest}"),
        Some(("score", rest)) => format!("rewards/{rest}"),
        Some((job, rest)) => format!("metrics/{job}/{rest}"),
    }
}

/// One committed checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckpointState {
    /// Its id.
    pub id: String,
    /// The round.
    pub round: u32,
    /// Updates in the round.
    pub step: u32,
    /// Whether it ends the round.
    pub last: bool,
}

/// All committed checkpoints, by round and step.
pub async fn checkpoints(run: &Run) -> Result<Vec<CheckpointState>, JobError> {
    let rounds = checkpoint::rounds_in(&run.blobs.list(&Key::new("control/checkpoints")?).await?);
    let mut found = Vec::new();
    for round in rounds {
        let state = |m: &Manifest| CheckpointState { id: m.id(), round: m.round, step: m.step, last: m.last };
        found.extend(checkpoint::list(run, round).await?.iter().map(state));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stage;

    #[test]
    fn folders_follow_from_names() {
        for stage in [
            Stage::synthesize(),
            Stage::verify(),
            Stage::rollout("train", 3),
            Stage::score("v1", "heldout", 0),
            Stage::evaluate("v1", "heldout", 2),
        ] {
            assert_eq!(stage.parts().unwrap().as_str(), format!("tables/{}", folder_of(stage.name())));
        }
    }
}
