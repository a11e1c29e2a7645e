//! The base model: found on disk, and imported into the run as the checkpoint of round 0.

use rollmill_job::checkpoint::{self, ACTOR, Draft, Manifest};
use rollmill_job::{JobError, Run};
use rollmill_sandbox::NamespacesOptions;
use std::path::{Path, PathBuf};

/// Where downloads and caches of this machine lie.
pub fn cache() -> PathBuf {
    NamespacesOptions::default().cache_dir
}

/// The folder of a model given as a path or as a name below the cache.
pub fn find(model: &str) -> Result<PathBuf, JobError> {
    let missing = |reason: String| JobError::Config { place: format!("[policy] model = {model:?}"), reason };
    if model.is_empty() {
        return Err(missing("no model is named; give an HF folder with config.json and safetensors".into()));
    }
    let named = cache().join("models").join(model);
    let folder = if Path::new(model).is_dir() { PathBuf::from(model) } else { named };
    for file in ["config.json", "tokenizer.json"] {
        if !folder.join(file).is_file() {
            let place = folder.display();
            return Err(missing(format!("there is no {place}/{file}; run `make setup`, or give an HF model folder")));
        }
    }
    let weights = std::fs::read_dir(&folder).into_iter().flatten().flatten();
    if !weights.map(|e| e.path()).any(|p| p.extension().is_some_and(|e| e == "safetensors")) {
        return Err(missing(format!("{} holds no safetensors; convert the weights first", folder.display())));
    }
    Ok(folder)
}

/// Files of an HF folder that make up a policy.
fn belongs(name: &str) -> bool {
    name.ends_with(".safetensors") || name.ends_with(".json") || name.ends_with(".jinja") || name == "merges.txt"
}

/// Imports the base model, once.
pub async fn import(run: &Run, model: &str) -> Result<Manifest, JobError> {
    if let Some(manifest) = checkpoint::last_of_round(run, 0).await? {
        return Ok(manifest);
    }
    let folder = find(model)?;
    let bad = |e: std::io::Error| JobError::Config { place: folder.display().to_string(), reason: e.to_string() };
    let staged = tempfile::tempdir().map_err(bad)?;
    let actor = staged.path().join(ACTOR);
    std::fs::create_dir(&actor).map_err(bad)?;
    for entry in std::fs::read_dir(&folder).map_err(bad)? {
        let entry = entry.map_err(bad)?;
        if entry.file_name().to_str().is_some_and(belongs) {
            let source = entry.path().canonicalize().map_err(bad)?;
            std::os::unix::fs::symlink(source, actor.join(entry.file_name())).map_err(bad)?;
        }
    }
    let draft = Draft { round: 0, step: 0, last: true, inputs: vec![], metrics: vec![], seconds: 0.0 };
    checkpoint::commit(run, staged.path(), draft).await
}
