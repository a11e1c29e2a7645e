//! Reading a run's state from the store alone, for `status`.

use crate::checkpoint::{self, Manifest};
use crate::plan::Plan;
use crate::report::{StageReport, reports};
use crate::{JobError, Run};
use rollmill_store::Key;
use serde::Serialize;
use std::collections::BTreeSet;

/// How far a stage is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageState {
    /// Its name.
    pub stage: String,
    /// Planned items.
    pub items: usize,
    /// Planned shards.
    pub shards: usize,
    /// Shards whose part is committed.
    pub shards_done: usize,
    /// Open shards that somebody has claimed.
    pub leased: usize,
    /// Whether it is sealed.
    pub sealed: bool,
    /// Seconds its workers reported, added up.
    pub seconds: f64,
    /// Largest peak memory its workers reported.
    pub peak_memory_bytes: u64,
}

/// All planned stages, by name.
pub async fn stages(run: &Run) -> Result<Vec<StageState>, JobError> {
    let control = run.blobs.list(&Key::new("control")?).await?;
    let parts = run.blobs.list(&Key::new("tables")?).await?;
    let mut found = Vec::new();
    let names: Vec<&str> =
        control.iter().filter_map(|e| e.key.as_str().strip_prefix("control/")?.strip_suffix("/plan.json")).collect();
    for name in names {
        let Some(plan) = run.read_record::<Plan>(&Key::new(format!("control/{name}/plan.json"))?).await? else {
            continue;
        };
        let folder = format!("tables/{}/part-", folder_of(name));
        let done: BTreeSet<&str> = parts.iter().map(|e| e.key.as_str()).filter(|k| k.starts_with(&folder)).collect();
        let under = |kind: &str| -> BTreeSet<String> {
            let prefix = format!("control/{name}/{kind}/");
            let keys = control.iter().filter_map(|e| e.key.as_str().strip_prefix(&prefix));
            keys.filter_map(|rest| rest.split('/').next()).map(str::to_string).collect()
        };
        let sealed = format!("control/{name}/sealed.json");
        let reports: Vec<StageReport> = reports(run, &Key::new(format!("control/{name}/reports"))?).await?;
        let open_leases =
            under("leases").iter().filter(|s| !done.iter().any(|d| d.ends_with(&format!("part-{s}.parquet")))).count();
        found.push(StageState {
            stage: name.to_string(),
            items: plan.items(),
            shards: plan.shards.len(),
            shards_done: done.len(),
            leased: open_leases,
            sealed: control.iter().any(|e| e.key.as_str() == sealed),
            seconds: reports.iter().map(|r| r.seconds).sum(),
            peak_memory_bytes: reports.iter().map(|r| r.peak_memory_bytes).max().unwrap_or(0),
        });
    }
    Ok(found)
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
    let mut rounds = BTreeSet::new();
    for entry in run.blobs.list(&Key::new("control/checkpoints")?).await? {
        let round = entry.key.as_str().split('/').nth(2).and_then(|r| r.strip_prefix("round-")?.parse::<u32>().ok());
        rounds.extend(round);
    }
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
