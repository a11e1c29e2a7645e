//! Checkpoints: large files under the attempt's own prefix, then a create-only manifest that is the commit (invariant 9).
//!
//! Losing the manifest's create means that another trainer is alive: stop, exit 11.

use crate::gc::Retired;
use crate::{InputRef, JobError, Plan, Run};
use rollmill_schema::Metric;
use rollmill_store::{Entry, Key, Nonce};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};

/// One file of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointFile {
    /// Path below the checkpoint's folder, such as `actor/model.safetensors`.
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
    /// SHA-256 of the content.
    pub sha256: String,
}

/// A checkpoint's manifest, as stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Format of this record.
    pub version: u32,
    /// The round; 0 is the base model.
    pub round: u32,
    /// Updates done in this round.
    pub step: u32,
    /// True on the round's last one: the policy of the next round.
    pub last: bool,
    /// Identity of this checkpoint, which an endpoint that serves it must name.
    pub nonce: Nonce,
    /// The attempt whose prefix holds the files.
    pub attempt: String,
    /// What it was trained on.
    pub inputs: Vec<InputRef>,
    /// Every file.
    pub files: Vec<CheckpointFile>,
    /// Metrics of the round so far.
    pub metrics: Vec<Metric>,
    /// Seconds of training this round took so far, over all attempts.
    pub seconds: f64,
    /// Peak memory of the attempt.
    pub peak_memory_bytes: u64,
    /// Cores the trainer had.
    #[serde(default)]
    pub cores: f64,
    /// GPUs it had.
    #[serde(default)]
    pub gpus: u32,
}

/// Folder of the policy inside a checkpoint: an HF model folder.
pub const ACTOR: &str = "actor";

impl Manifest {
    /// The id an endpoint names in `/health`.
    pub fn id(&self) -> String {
        format!("round-{:04}/step-{:06}/{}", self.round, self.step, self.nonce)
    }

    /// What a plan that rests on it records.
    pub fn input(&self) -> InputRef {
        InputRef { stage: format!("checkpoint/round-{:04}", self.round), nonce: self.nonce.to_string() }
    }

    pub(crate) fn file_key(&self, name: &str) -> Result<Key, JobError> {
        Ok(Key::new(format!("checkpoints/round-{:04}/step-{:06}/{}/{name}", self.round, self.step, self.attempt))?)
    }
}

/// The round whose checkpoint a plan rests on; none if it rests on none.
pub fn pinned(plan: &Plan) -> Option<u32> {
    plan.inputs.iter().find_map(|input| input.stage.strip_prefix("checkpoint/round-")?.parse().ok())
}

fn manifest_folder(round: u32) -> Result<Key, JobError> {
    Ok(Key::new(format!("control/checkpoints/round-{round:04}"))?)
}

/// Where the manifest of a checkpoint lies.
pub(crate) fn manifest_key(round: u32, step: u32) -> Result<Key, JobError> {
    Ok(manifest_folder(round)?.join(format!("step-{step:06}.json"))?)
}

/// What a trainer hands over to be committed.
pub struct Draft {
    /// The round.
    pub round: u32,
    /// Updates done in this round.
    pub step: u32,
    /// Whether it ends the round.
    pub last: bool,
    /// What it was trained on.
    pub inputs: Vec<InputRef>,
    /// Metrics of the round so far.
    pub metrics: Vec<Metric>,
    /// Seconds of training so far.
    pub seconds: f64,
}

/// Uploads every file below `folder` and commits the manifest.
pub async fn commit(run: &Run, folder: &Path, draft: Draft) -> Result<Manifest, JobError> {
    let key = manifest_key(draft.round, draft.step)?;
    let mut manifest = Manifest {
        version: 1,
        round: draft.round,
        step: draft.step,
        last: draft.last,
        nonce: Nonce::of(&run.attempt, &key),
        attempt: run.attempt.to_string(),
        inputs: draft.inputs,
        files: Vec::new(),
        metrics: draft.metrics,
        seconds: draft.seconds,
        peak_memory_bytes: crate::peak_memory_bytes(),
        cores: crate::budget::cores(),
        gpus: crate::budget::gpus(),
    };
    for (name, path) in files_below(folder)? {
        run.blobs.upload(&manifest.file_key(&name)?, &path).await?;
        let (bytes, sha256) = hash_file(&path)?;
        manifest.files.push(CheckpointFile { name, bytes, sha256 });
    }
    match run.record(&key, manifest).await? {
        (manifest, true) => Ok(manifest),
        (_, false) => Err(JobError::Fenced { what: format!("checkpoint {key}") }),
    }
}

/// All manifests of a round, by step.
pub async fn list(run: &Run, round: u32) -> Result<Vec<Manifest>, JobError> {
    let mut manifests = Vec::new();
    for entry in run.blobs.list(&manifest_folder(round)?).await? {
        if entry.key.file_name().starts_with("step-") {
            manifests.extend(run.read_record::<Manifest>(&entry.key).await?);
        }
    }
    Ok(manifests)
}

/// The finished checkpoint of a round, if there is one. Round 0 has two where the base model was trained before the first
/// round; the later one counts.
pub async fn last_of_round(run: &Run, round: u32) -> Result<Option<Manifest>, JobError> {
    Ok(list(run, round).await?.into_iter().rfind(|m| m.last))
}

/// The checkpoint that `round` ended with, which must be there.
pub async fn of_round(run: &Run, round: u32) -> Result<Manifest, JobError> {
    let absent = || JobError::InputAbsent { stage: format!("checkpoint of round {round}") };
    last_of_round(run, round).await?.ok_or_else(absent)
}

/// The checkpoint that training `round` ended with, if it was trained. The base model is in round 0 without training.
pub async fn trained(run: &Run, round: u32) -> Result<Option<Manifest>, JobError> {
    Ok(last_of_round(run, round).await?.filter(|manifest| round > 0 || manifest.step > 0))
}

/// The marker of a checkpoint whose bytes were given up on purpose.
pub(crate) fn retired_key(round: u32, step: u32) -> Result<Key, JobError> {
    Ok(Key::new(format!("control/retired/round-{round:04}/step-{step:06}.json"))?)
}

/// Marks a checkpoint's bytes as given up; its manifest stays.
pub(crate) async fn retire(run: &Run, round: u32, step: u32) -> Result<(), JobError> {
    let key = retired_key(round, step)?;
    // Whoever was first said the same.
    run.record(&key, Retired { nonce: Nonce::of(&run.attempt, &key) }).await.map(|_| ())
}

/// Retires checkpoints of a round under way but its newest `keep` (0 keeps all); `gc` removes their files.
pub async fn keep_newest(run: &Run, round: u32, keep: usize) -> Result<(), JobError> {
    if keep == 0 {
        return Ok(());
    }
    // From the names alone: a manifest holds all metrics so far. Step 0 is the base model of round 0.
    let manifests = run.blobs.list(&manifest_folder(round)?).await?;
    let step = |e: &Entry| e.key.file_name().strip_prefix("step-")?.strip_suffix(".json")?.parse::<u32>().ok();
    let steps: BTreeSet<u32> = manifests.iter().filter_map(step).filter(|step| *step > 0).collect();
    let given_up = run.blobs.list(&Key::new(format!("control/retired/round-{round:04}"))?).await?;
    let given_up: BTreeSet<u32> = given_up.iter().filter_map(|e| Some(retired_place(&e.key)?.1)).collect();
    let old = steps.iter().rev().skip(keep);
    for &step in old.filter(|step| !given_up.contains(step)) {
        retire(run, round, step).await?;
    }
    Ok(())
}

/// Rounds that have manifests, from a listing of `control`.
pub(crate) fn rounds_in(control: &[Entry]) -> BTreeSet<u32> {
    let round = |e: &Entry| {
        let rest = e.key.as_str().strip_prefix("control/checkpoints/round-")?;
        rest.split('/').next()?.parse::<u32>().ok()
    };
    control.iter().filter_map(round).collect()
}

/// Round and step of a marker of [`retire`].
pub(crate) fn retired_place(marker: &Key) -> Option<(u32, u32)> {
    let (round, step) = marker.as_str().strip_prefix("control/retired/round-")?.split_once("/step-")?;
    Some((round.parse().ok()?, step.strip_suffix(".json")?.parse().ok()?))
}

/// Round, step and attempt of a checkpoint's file.
pub(crate) fn place(file: &Key) -> Option<(u32, u32, &str)> {
    let mut parts = file.as_str().strip_prefix("checkpoints/round-")?.split('/');
    let round = parts.next()?.parse().ok()?;
    let step = parts.next()?.strip_prefix("step-")?.parse().ok()?;
    Some((round, step, parts.next()?))
}

/// Downloads the `wanted` files of a checkpoint into `folder`, and checks their hashes. What is there already is kept.
pub async fn fetch(
    run: &Run,
    manifest: &Manifest,
    wanted: impl Fn(&str) -> bool,
    folder: &Path,
) -> Result<(), JobError> {
    if run.blobs.size(&retired_key(manifest.round, manifest.step)?).await?.is_some() {
        return Err(JobError::Retired { checkpoint: manifest.id() });
    }
    for file in manifest.files.iter().filter(|f| wanted(&f.name)) {
        let target = folder.join(&file.name);
        if target.is_file() && hash_file(&target)?.1 == file.sha256 {
            continue;
        }
        std::fs::create_dir_all(target.parent().unwrap_or(folder)).map_err(|e| disk(&target, e))?;
        let key = manifest.file_key(&file.name)?;
        run.blobs.download(&key, &target).await?;
        if hash_file(&target)? != (file.bytes, file.sha256.clone()) {
            return Err(JobError::Corrupt {
                key: key.to_string(),
                reason: "its bytes are not the committed ones".into(),
            });
        }
    }
    Ok(())
}

pub(crate) fn disk(path: &Path, source: std::io::Error) -> JobError {
    JobError::Store(rollmill_store::StoreError::Disk { path: path.display().to_string(), source })
}

fn files_below(folder: &Path) -> Result<Vec<(String, PathBuf)>, JobError> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir).map_err(|e| disk(&dir, e))? {
            let path = entry.map_err(|e| disk(&dir, e))?.path();
            if path.is_dir() {
                open.push(path);
            } else if let Some(name) = path.strip_prefix(folder).ok().and_then(Path::to_str) {
                found.push((name.to_string(), path.clone()));
            }
        }
    }
    found.sort();
    Ok(found)
}

fn hash_file(path: &Path) -> Result<(u64, String), JobError> {
    let mut file = std::fs::File::open(path).map_err(|e| disk(path, e))?;
    let (mut hash, mut size, mut buffer) = (Sha256::new(), 0, vec![0; 1 << 20]);
    loop {
        let n = file.read(&mut buffer).map_err(|e| disk(path, e))?;
        if n == 0 {
            return Ok((size, hex::encode(hash.finalize())));
        }
        hash.update(&buffer[..n]);
        size += n as u64;
    }
}

/// Writes the round's metrics as a part of the `metrics` table: a projection of its last manifest, which any process may
/// write, since the bytes follow from the manifest alone.
pub async fn project_metrics(run: &Run, manifest: &Manifest) -> Result<(), JobError> {
    let key = Key::new(format!("tables/metrics/train/round-{:04}/part-00000.parquet", manifest.round))?;
    let bytes = rollmill_schema::encode(&manifest.metrics, manifest.nonce.as_str(), &manifest.attempt)?;
    project(run, &key, bytes).await
}

/// Writes a TensorBoard event file of the steps that end with a checkpoint: a projection like [`project_metrics`].
pub async fn project_events(run: &Run, manifest: &Manifest, bytes: Vec<u8>) -> Result<(), JobError> {
    let name = format!("events.out.tfevents.round-{:04}.step-{:06}", manifest.round, manifest.step);
    let key = Key::new(format!("tensorboard/train/{name}"))?;
    project(run, &key, bytes.into()).await
}

/// Writes what follows from a manifest; whoever was there before wrote the same.
async fn project(run: &Run, key: &Key, bytes: bytes::Bytes) -> Result<(), JobError> {
    match rollmill_store::create_once(run.blobs.as_ref(), key, bytes).await? {
        rollmill_store::Commit::Mine => Ok(()),
        rollmill_store::Commit::Lost(_) => {
            Err(JobError::Corrupt { key: key.to_string(), reason: "what another manifest says is there".into() })
        }
    }
}
