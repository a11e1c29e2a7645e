//! Seals: the frozen list of a finished stage's parts, with rows, attempt and hash (invariants 5 and 11). Readers of a sealed
//! stage get every row exactly once, and notice a part that is not what was sealed.

use crate::{InputRef, JobError, Plan, Run, Stage};
use bytes::Bytes;
use rollmill_schema::{Row, decode, read_footer};
use rollmill_store::{Key, Nonce};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// One sealed part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedPart {
    /// Its table.
    pub table: String,
    /// Its key.
    pub key: String,
    /// The shard it finishes.
    pub shard: u32,
    /// Size in bytes.
    pub bytes: u64,
    /// SHA-256 of the object.
    pub sha256: String,
    /// The attempt that wrote it.
    pub attempt: String,
}

/// A stage's seal, as stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seal {
    /// Format of this record.
    pub version: u32,
    /// The stage.
    pub stage: String,
    /// Nonce of the plan that was finished.
    pub plan: Nonce,
    /// Identity of this seal: what the next plan rests on.
    pub nonce: Nonce,
    /// Every part of every table of the stage.
    pub parts: Vec<SealedPart>,
}

impl Seal {
    /// What a plan that reads this stage records.
    pub fn input(&self) -> InputRef {
        InputRef { stage: self.stage.clone(), nonce: self.nonce.to_string() }
    }
}

/// The stage's seal, if it has one.
pub async fn read(run: &Run, stage: &Stage) -> Result<Option<Seal>, JobError> {
    run.read_record(&stage.sealed()?).await
}

/// Seals a stage whose parts are all there. `projections` are the tables that follow from its parts.
pub(crate) async fn seal<R: Row>(
    run: &Run,
    stage: &Stage,
    plan: &Plan,
    projections: &[&str],
) -> Result<Seal, JobError> {
    if let Some(seal) = read(run, stage).await? {
        return Ok(seal);
    }
    let mut parts = Vec::new();
    for shard in 0..plan.shards.len() as u32 {
        let key = stage.part(shard)?;
        let Some(bytes) = run.blobs.get(&key).await? else {
            let have = run.blobs.list(&stage.parts()?).await?.len();
            return Err(JobError::InputIncomplete { stage: stage.name().into(), have, want: plan.shards.len() });
        };
        let footer = read_footer::<R>(&bytes)?;
        if footer.plan != plan.nonce.as_str() {
            let reason = format!("it belongs to plan {}, not {}", footer.plan, plan.nonce);
            return Err(JobError::Corrupt { key: key.to_string(), reason });
        }
        parts.push(sealed_part(R::TABLE, &key, shard, &bytes, &footer.attempt));
        for table in projections {
            let key = stage.projection(table, shard)?;
            let Some(bytes) = run.blobs.get(&key).await? else {
                return Err(JobError::Corrupt { key: key.to_string(), reason: "the projection is missing".into() });
            };
            parts.push(sealed_part(table, &key, shard, &bytes, &footer.attempt));
        }
    }
    let (nonce, plan) = (Nonce::fresh(), plan.nonce.clone());
    let mine = Seal { version: 1, stage: stage.name().into(), plan, nonce, parts };
    Ok(run.record(&stage.sealed()?, mine).await?.0)
}

fn sealed_part(table: &str, key: &Key, shard: u32, bytes: &Bytes, attempt: &str) -> SealedPart {
    SealedPart {
        table: table.into(),
        key: key.to_string(),
        shard,
        bytes: bytes.len() as u64,
        sha256: hex::encode(Sha256::digest(bytes)),
        attempt: attempt.into(),
    }
}

/// All rows of table `R` of a finished stage, in plan order, and what a plan records of it. Seals the stage if nobody
/// has yet.
pub async fn read_sealed<R: Row>(run: &Run, stage: &Stage) -> Result<(Vec<R>, InputRef), JobError> {
    let seal = match read(run, stage).await? {
        Some(seal) => seal,
        None => {
            let absent = || JobError::InputAbsent { stage: stage.name().into() };
            let plan = Plan::read(run, stage).await?.ok_or_else(absent)?;
            let have = run.blobs.list(&stage.parts()?).await?.len();
            // A projection is sealed by the job that writes it: its reader may have no right to the parts behind it.
            if have < plan.shards.len() || !stage.commits(R::TABLE) {
                return Err(JobError::InputIncomplete { stage: stage.name().into(), have, want: plan.shards.len() });
            }
            seal::<R>(run, stage, &plan, &[]).await?
        }
    };
    let mut rows = Vec::new();
    for part in seal.parts.iter().filter(|p| p.table == R::TABLE) {
        let corrupt = |reason: &str| JobError::Corrupt { key: part.key.clone(), reason: reason.into() };
        let bytes = run.blobs.get(&Key::new(&part.key)?).await?.ok_or_else(|| corrupt("sealed, but not there"))?;
        if hex::encode(Sha256::digest(&bytes)) != part.sha256 {
            return Err(corrupt("its bytes are not the sealed ones"));
        }
        rows.extend(decode::<R>(&bytes)?.0);
    }
    Ok((rows, seal.input()))
}
