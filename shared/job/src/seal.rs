//! Seals: the frozen list of a finished stage's parts, with rows, attempt and hash (invariants 5 and 11). Readers of a sealed
//! stage get every row exactly once, and notice a part that is not what was sealed.

use crate::shard::project;
use crate::turn::Turn;
use crate::{InputRef, Job, JobError, Plan, Run, Stage};
use bytes::Bytes;
use futures::future::try_join_all;
use rollmill_schema::{Row, decode, read_footer};
use rollmill_store::{Key, Nonce};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Parts read at once.
const READS: usize = 64;

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

/// Writes the projections that are missing, and the seal, of a stage whose parts are all there. One worker does it, and the
/// others wait for it: who ends with 0 leaves a sealed stage.
pub(crate) async fn complete<J: Job>(run: &Run, stage: &Stage, plan: &Plan, job: &J) -> Result<(), JobError> {
    let tables = job.tables();
    let Some(mut turn) = Turn::take(run, stage).await? else { return Ok(()) };
    let shards: Vec<u32> = if tables.is_empty() { Vec::new() } else { (0..plan.shards.len() as u32).collect() };
    for batch in shards.chunks(READS) {
        try_join_all(batch.iter().map(|&shard| mend(run, stage, job, shard))).await?;
        turn.keep().await?;
    }
    seal::<J::Row>(run, stage, plan, tables, &mut turn).await?;
    turn.leave().await
}

/// Writes the projections of one part that a killed worker left out.
async fn mend<J: Job>(run: &Run, stage: &Stage, job: &J, shard: u32) -> Result<(), JobError> {
    let mut missing = false;
    for table in job.tables() {
        missing |= run.blobs.size(&stage.projection(table, shard)?).await?.is_none();
    }
    if missing && let Some(part) = run.blobs.get(&stage.part(shard)?).await? {
        project(run, stage, job, shard, &part).await?;
    }
    Ok(())
}

/// Seals a stage whose parts are all there. `projections` are the tables that follow from its parts.
async fn seal<R: Row>(
    run: &Run,
    stage: &Stage,
    plan: &Plan,
    projections: &[&str],
    turn: &mut Turn<'_>,
) -> Result<Seal, JobError> {
    let mut parts = Vec::new();
    let shards: Vec<u32> = (0..plan.shards.len() as u32).collect();
    for batch in shards.chunks(READS) {
        let sealed = batch.iter().map(|&shard| shard_parts::<R>(run, stage, plan, projections, shard));
        parts.extend(try_join_all(sealed).await?.into_iter().flatten());
        turn.keep().await?;
    }
    let key = stage.sealed()?;
    let (nonce, plan) = (Nonce::of(&run.attempt, &key), plan.nonce.clone());
    let mine = Seal { version: 1, stage: stage.name().into(), plan, nonce, parts };
    Ok(run.record(&key, mine).await?.0)
}

/// What the seal says of one shard.
async fn shard_parts<R: Row>(
    run: &Run,
    stage: &Stage,
    plan: &Plan,
    projections: &[&str],
    shard: u32,
) -> Result<Vec<SealedPart>, JobError> {
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
    let mut parts = vec![sealed_part(R::TABLE, &key, shard, &bytes, &footer.attempt)];
    for table in projections {
        let key = stage.projection(table, shard)?;
        let Some(bytes) = run.blobs.get(&key).await? else {
            return Err(JobError::Corrupt { key: key.to_string(), reason: "the projection is missing".into() });
        };
        parts.push(sealed_part(table, &key, shard, &bytes, &footer.attempt));
    }
    Ok(parts)
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
    let seal = ensure::<R>(run, stage).await?;
    let mut rows = Vec::new();
    let parts: Vec<&SealedPart> = seal.parts.iter().filter(|p| p.table == R::TABLE).collect();
    for batch in parts.chunks(READS) {
        for more in try_join_all(batch.iter().map(|part| sealed_rows::<R>(run, part))).await? {
            rows.extend(more);
        }
    }
    Ok((rows, seal.input()))
}

/// The seal of a finished stage whose parts are rows of `R`, made now if nobody has yet.
pub async fn ensure<R: Row>(run: &Run, stage: &Stage) -> Result<Seal, JobError> {
    match read(run, stage).await? {
        Some(seal) => Ok(seal),
        None => seal_now::<R>(run, stage).await,
    }
}

/// Seals a stage on behalf of its reader.
async fn seal_now<R: Row>(run: &Run, stage: &Stage) -> Result<Seal, JobError> {
    let absent = || JobError::InputAbsent { stage: stage.name().into() };
    let plan = Plan::read(run, stage).await?.ok_or_else(absent)?;
    let have = run.blobs.list(&stage.parts()?).await?.len();
    let incomplete = || JobError::InputIncomplete { stage: stage.name().into(), have, want: plan.shards.len() };
    // A projection is sealed by the job that writes it: its reader may have no right to the parts behind it.
    if have < plan.shards.len() || !stage.commits(R::TABLE) {
        return Err(incomplete());
    }
    match Turn::take(run, stage).await? {
        Some(mut turn) => {
            let sealed = seal::<R>(run, stage, &plan, &[], &mut turn).await?;
            turn.leave().await.map(|()| sealed)
        }
        None => read(run, stage).await?.ok_or_else(incomplete),
    }
}

async fn sealed_rows<R: Row>(run: &Run, part: &SealedPart) -> Result<Vec<R>, JobError> {
    let corrupt = |reason: &str| JobError::Corrupt { key: part.key.clone(), reason: reason.into() };
    let bytes = run.blobs.get(&Key::new(&part.key)?).await?.ok_or_else(|| corrupt("sealed, but not there"))?;
    if hex::encode(Sha256::digest(&bytes)) != part.sha256 {
        return Err(corrupt("its bytes are not the sealed ones"));
    }
    Ok(decode::<R>(&bytes)?.0)
}
