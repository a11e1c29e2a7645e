//! Endpoints that serve a checkpoint, as published in the store: how a rollout on one machine finds the policy on another.
//!
//! In: an address that answers. Out: a record below `control/endpoints/round-NNNN/`, one for each process that serves, and a
//! second one when it has closed. What must hold: a record says where a server was, never that it is there now; whoever
//! reads one asks the server itself which checkpoint it serves.

use crate::{JobError, Run, checkpoint};
use rollmill_store::{Key, Nonce};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Where a checkpoint is, or was, served; as stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    /// Format of this record.
    pub version: u32,
    /// The process that serves.
    pub attempt: String,
    /// Makes this record unlike all others.
    pub nonce: Nonce,
    /// Round whose last checkpoint it serves.
    pub round: u32,
    /// The checkpoint's id.
    pub checkpoint: String,
    /// Base address.
    pub url: String,
}

/// A server that has closed.
#[derive(Debug, Serialize, Deserialize)]
struct Closed {
    nonce: Nonce,
}

fn folder(round: u32) -> Result<Key, JobError> {
    Ok(Key::new(format!("control/endpoints/round-{round:04}"))?)
}

fn closed_key(round: u32, attempt: &str) -> Result<Key, JobError> {
    Ok(folder(round)?.join(format!("{attempt}.closed.json"))?)
}

/// Says that this process serves `manifest` at `url`.
pub async fn publish(run: &Run, manifest: &checkpoint::Manifest, url: &str) -> Result<Service, JobError> {
    let key = folder(manifest.round)?.join(format!("{}.json", run.attempt))?;
    let service = Service {
        version: 1,
        attempt: run.attempt.to_string(),
        nonce: Nonce::of(&run.attempt, &key),
        round: manifest.round,
        checkpoint: manifest.id(),
        url: url.into(),
    };
    Ok(run.record(&key, service).await?.0)
}

/// Says that it serves no longer.
pub async fn close(run: &Run, service: &Service) -> Result<(), JobError> {
    let key = closed_key(service.round, &service.attempt)?;
    run.record(&key, Closed { nonce: Nonce::of(&run.attempt, &key) }).await.map(|_| ())
}

/// Servers of a round that have not said that they closed. Some may have been killed.
pub async fn open(run: &Run, round: u32) -> Result<Vec<Service>, JobError> {
    let entries = run.blobs.list(&folder(round)?).await?;
    let names: BTreeSet<&str> = entries.iter().filter_map(|e| e.key.file_name().strip_suffix(".json")).collect();
    let mut found = Vec::new();
    for entry in &entries {
        let Some(attempt) = entry.key.file_name().strip_suffix(".json") else { continue };
        if !attempt.ends_with(".closed") && !names.contains(format!("{attempt}.closed").as_str()) {
            found.extend(run.read_record::<Service>(&entry.key).await?);
        }
    }
    Ok(found)
}
