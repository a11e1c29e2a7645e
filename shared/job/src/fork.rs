//! Forks: a new run that begins as another one was before a round. Names are never reused and rounds never redone
//! (invariant 7), so another learning rate from round 3 on is a fork at round 3.
//!
//! In: a run, a round, a configuration that may differ from the run's in what comes after. Out: a run of its own, with
//! copies of every *sealed* stage of earlier rounds and of their last checkpoints. Copies are the same bytes, so a fork that
//! was killed is finished by the same command; `run.toml` comes last and is the commit.
//!
//! Rows keep the provenance of the run that made them.

use crate::checkpoint::{self, Manifest};
use crate::config::Config;
use crate::{JobError, Run, seal};
use bytes::Bytes;
use rollmill_store::{Blobs, Commit, Entry, Key, StoreError, create_once};
use serde::{Deserialize, Serialize};

/// Where a fork comes from, as stored in its `run.toml`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkedFrom {
    /// Id of the run.
    pub run_id: String,
    /// Where it lay.
    pub address: String,
    /// The first round that the fork does itself.
    pub round: u32,
}

/// Sections that the copied stages rest on whatever the round.
const SHARED: [&str; 3] = ["policy", "synthesize", "verify"];

/// Refuses a fork whose copied stages would not be those its configuration asks for.
pub(crate) async fn check(parent: &Run, config: &Config, round: u32) -> Result<(), JobError> {
    let refuse = |reason: String| JobError::Config { place: "--from".into(), reason };
    if round == 0 {
        return Err(refuse("round 0 is the base model: fork at round 1 or later".into()));
    }
    if checkpoint::last_of_round(parent, round - 1).await?.is_none() {
        let (address, before) = (parent.address(), round - 1);
        return Err(refuse(format!("{address}: round {before} has no finished checkpoint: fork at an earlier round")));
    }
    let difference = parent.config.difference_in(config, &SHARED);
    if !difference.is_empty() {
        let reason = format!("what every round rests on differs ({difference}): that is a new run, not a fork");
        return Err(refuse(reason));
    }
    Ok(())
}

/// Copies what `to` needs of `parent` to begin at `round`.
pub(crate) async fn copy(parent: &Run, to: &dyn Blobs, round: u32) -> Result<(), JobError> {
    let control = parent.blobs.list(&Key::new("control")?).await?;
    for entry in &control {
        let name = entry.key.as_str();
        let Some(stage) = name.strip_prefix("control/").and_then(|n| n.strip_suffix("/sealed.json")) else { continue };
        if round_of(stage).is_none_or(|r| r < round) {
            copy_stage(parent, to, stage, &control).await?;
        }
    }
    for round in 0..round {
        if let Some(manifest) = checkpoint::last_of_round(parent, round).await? {
            copy_checkpoint(parent, to, &manifest).await?;
        }
    }
    Ok(())
}

async fn copy_stage(parent: &Run, to: &dyn Blobs, stage: &str, control: &[Entry]) -> Result<(), JobError> {
    let sealed = Key::new(format!("control/{stage}/sealed.json"))?;
    let seal: seal::Seal =
        parent.read_record(&sealed).await?.ok_or_else(|| JobError::InputAbsent { stage: stage.into() })?;
    let mut keys = vec![Key::new(format!("control/{stage}/plan.json"))?];
    for part in &seal.parts {
        keys.push(Key::new(&part.key)?);
    }
    let reports = format!("control/{stage}/reports/");
    keys.extend(control.iter().filter(|e| e.key.as_str().starts_with(&reports)).map(|e| e.key.clone()));
    // The seal last: it says that all the others are there.
    keys.push(sealed);
    for key in keys {
        copy_object(parent, to, &key).await?;
    }
    Ok(())
}

async fn copy_checkpoint(parent: &Run, to: &dyn Blobs, manifest: &Manifest) -> Result<(), JobError> {
    let retired = checkpoint::retired_key(manifest.round, manifest.step)?;
    if parent.blobs.size(&retired).await?.is_some() {
        copy_object(parent, to, &retired).await?;
    } else {
        let folder = tempfile::tempdir().map_err(|e| checkpoint::disk(&std::env::temp_dir(), e))?;
        for file in &manifest.files {
            let (key, local) = (manifest.file_key(&file.name)?, folder.path().join("file"));
            if to.size(&key).await? != Some(file.bytes) {
                parent.blobs.download(&key, &local).await?;
                to.upload(&key, &local).await?;
            }
        }
    }
    copy_object(parent, to, &checkpoint::manifest_key(manifest.round, manifest.step)?).await?;
    let metrics = Key::new(format!("tables/metrics/train/round-{:04}", manifest.round))?;
    for entry in parent.blobs.list(&metrics).await? {
        copy_object(parent, to, &entry.key).await?;
    }
    Ok(())
}

async fn copy_object(parent: &Run, to: &dyn Blobs, key: &Key) -> Result<(), JobError> {
    let gone = || JobError::Corrupt { key: key.to_string(), reason: "it is named by a record, but not there".into() };
    let bytes: Bytes = parent.blobs.get(key).await?.ok_or_else(gone)?;
    match create_once(to, key, bytes).await? {
        Commit::Mine => Ok(()),
        Commit::Lost(_) => Err(JobError::Store(StoreError::BadAddress {
            address: to.address(),
            reason: format!("it holds another {key}: give the fork an address of its own"),
        })),
    }
}

/// The round in a stage's name; none for a stage of the whole run.
fn round_of(stage: &str) -> Option<u32> {
    stage.rsplit_once("/round-")?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_follow_from_names() {
        assert_eq!(round_of("rollout/train/round-0003"), Some(3));
        assert_eq!(round_of("verify"), None);
    }
}
