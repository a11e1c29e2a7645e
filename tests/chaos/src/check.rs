//! The checker: what a finished stage must look like to a reader who trusts nobody.
//!
//! In: a store and a stage that some worker called complete. Out: counts and findings. Reads the plan's JSON and every
//! object of the stage's tables; a part must hold exactly its plan's keys, once each; the seal must name every part and
//! every projection with the hash of its bytes; projections must be the bytes that follow from their part.

use crate::rows;
use bytes::Bytes;
use rollmill_job::seal::Seal;
use rollmill_job::{Plan, Stage};
use rollmill_schema::{Admission, Rejection, Row, Task, TaskSecret, decode, encode};
use rollmill_store::{Blobs, Key, StoreError};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// One thing that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the fields say it by their names
pub enum Finding {
    /// A planned item is in no part.
    Lost { key: String },
    /// An item is in the table more than once.
    Doubled { key: String, times: usize },
    /// A part is not there, though a worker called the stage complete.
    Missing { object: String },
    /// A part does not hold exactly its plan's keys in the plan's order.
    Uneven { object: String, reason: String },
    /// An object cannot be read, or its footer lies.
    Unreadable { object: String, reason: String },
    /// A table folder holds an object that no plan names.
    Stray { object: String },
    /// The seal is absent, names what is not there, leaves something out, or has another hash.
    Seal { object: String, reason: String },
    /// A projection is not what follows from its part.
    Projection { object: String, reason: String },
    /// An object that was there has other bytes now.
    Changed { object: String },
    /// An object that was there is gone.
    Vanished { object: String },
    /// A worker ended as it should not, or did not end.
    Worker { what: String },
    /// Something outlived the run.
    Left { what: String },
    /// A task was judged otherwise than it deserves.
    Unjust { what: String },
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Finding::Lost { key } => write!(f, "lost row: {key}"),
            Finding::Doubled { key, times } => write!(f, "doubled row: {key} is there {times} times"),
            Finding::Missing { object } => write!(f, "missing part: {object}"),
            Finding::Uneven { object, reason } => write!(f, "part and plan differ: {object}: {reason}"),
            Finding::Unreadable { object, reason } => write!(f, "unreadable: {object}: {reason}"),
            Finding::Stray { object } => write!(f, "stray object: {object}"),
            Finding::Seal { object, reason } => write!(f, "seal: {object}: {reason}"),
            Finding::Projection { object, reason } => write!(f, "projection: {object}: {reason}"),
            Finding::Changed { object } => write!(f, "changed after it was there: {object}"),
            Finding::Vanished { object } => write!(f, "vanished after it was there: {object}"),
            Finding::Worker { what } => write!(f, "worker: {what}"),
            Finding::Left { what } => write!(f, "left behind: {what}"),
            Finding::Unjust { what } => write!(f, "judged wrongly: {what}"),
        }
    }
}

/// What was counted.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// Planned items.
    pub items: usize,
    /// Parts read, projections included.
    pub parts: usize,
    /// Rows of the stage's own table.
    pub rows: usize,
    /// The attempt that made each row of the stage's own table.
    pub attempts: Vec<String>,
    /// What is wrong.
    pub findings: Vec<Finding>,
}

/// SHA-256 in hex.
pub fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// Checks a stage that is said to be complete and commits `table`.
pub async fn stage(blobs: &dyn Blobs, stage: &Stage, table: &str) -> Result<Checked, StoreError> {
    let mut out = Checked::default();
    let Some(plan) = record::<Plan>(blobs, &stage.plan()?, &mut out.findings).await? else { return Ok(out) };
    out.items = plan.items();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut hashes: BTreeMap<String, String> = BTreeMap::new();
    for (shard, keys) in (0u32..).zip(&plan.shards) {
        let object = stage.part(shard)?;
        let Some(bytes) = blobs.get(&object).await? else {
            out.findings.push(Finding::Missing { object: object.to_string() });
            continue;
        };
        hashes.insert(object.to_string(), sha256(&bytes));
        part(&mut out, &mut seen, &plan, &object, keys, rows::read(table, &bytes));
        if table == Admission::TABLE {
            projections(blobs, stage, shard, &bytes, &mut hashes, &mut out.findings).await?;
        }
    }
    let planned: BTreeSet<&String> = plan.shards.iter().flatten().collect();
    let lost = planned.iter().filter(|k| !seen.contains_key(**k));
    out.findings.extend(lost.map(|k| Finding::Lost { key: (*k).clone() }));
    let doubled = seen.iter().filter(|(_, n)| **n > 1);
    out.findings.extend(doubled.map(|(k, n)| Finding::Doubled { key: k.clone(), times: *n }));
    strays(blobs, stage, table, &hashes, &mut out.findings).await?;
    seal(blobs, stage, &plan, &hashes, &mut out.findings).await?;
    out.parts = hashes.len();
    Ok(out)
}

async fn record<T: for<'a> serde::Deserialize<'a>>(
    blobs: &dyn Blobs,
    key: &Key,
    findings: &mut Vec<Finding>,
) -> Result<Option<T>, StoreError> {
    let Some(bytes) = blobs.get(key).await? else {
        findings.push(Finding::Missing { object: key.to_string() });
        return Ok(None);
    };
    match serde_json::from_slice(&bytes) {
        Ok(value) => Ok(Some(value)),
        Err(e) => {
            findings.push(Finding::Unreadable { object: key.to_string(), reason: e.to_string() });
            Ok(None)
        }
    }
}

fn part(
    out: &mut Checked,
    seen: &mut BTreeMap<String, usize>,
    plan: &Plan,
    object: &Key,
    keys: &[String],
    rows: Result<rows::PartRows, String>,
) {
    let object = object.to_string();
    let rows = match rows {
        Ok(rows) => rows,
        Err(reason) => return out.findings.push(Finding::Unreadable { object, reason }),
    };
    for key in &rows.keys {
        *seen.entry(key.clone()).or_default() += 1;
    }
    out.rows += rows.keys.len();
    if rows.keys != keys {
        let reason = format!("{} rows for {} planned items, or in another order", rows.keys.len(), keys.len());
        out.findings.push(Finding::Uneven { object: object.clone(), reason });
    }
    if !rows.hash_fits {
        let reason = "the footer's hash is not that of the rows".into();
        out.findings.push(Finding::Unreadable { object: object.clone(), reason });
    }
    if rows.footer.plan != plan.nonce.as_str() {
        let reason = format!("it belongs to plan {}", rows.footer.plan);
        out.findings.push(Finding::Uneven { object, reason });
    }
    out.attempts.extend(rows.attempts);
}

/// The tables that follow from admissions, worked out again from the part.
fn expected_projections(part: &Bytes) -> Result<[(&'static str, Bytes); 3], String> {
    let (rows, footer) = decode::<Admission>(part).map_err(|e| e.to_string())?;
    let (mut tasks, mut secrets, mut rejections) = (Vec::new(), Vec::new(), Vec::new());
    for row in &rows {
        let candidate = row.parse_candidate().map_err(|e| e.to_string())?;
        tasks.extend(row.to_task(&candidate));
        secrets.extend(row.to_secret(&candidate));
        rejections.extend(row.to_rejection(&candidate));
    }
    if tasks.len() + rejections.len() != rows.len() || tasks.len() != secrets.len() {
        return Err("an admission is neither a task with its secret nor a rejection".into());
    }
    let (plan, attempt) = (footer.plan.as_str(), footer.attempt.as_str());
    let fail = |e: rollmill_schema::PartError| e.to_string();
    Ok([
        (Task::TABLE, encode(&tasks, plan, attempt).map_err(fail)?),
        (TaskSecret::TABLE, encode(&secrets, plan, attempt).map_err(fail)?),
        (Rejection::TABLE, encode(&rejections, plan, attempt).map_err(fail)?),
    ])
}

async fn projections(
    blobs: &dyn Blobs,
    stage: &Stage,
    shard: u32,
    part: &Bytes,
    hashes: &mut BTreeMap<String, String>,
    findings: &mut Vec<Finding>,
) -> Result<(), StoreError> {
    let expected = match expected_projections(part) {
        Ok(expected) => expected,
        Err(reason) => {
            findings.push(Finding::Projection { object: stage.part(shard)?.to_string(), reason });
            return Ok(());
        }
    };
    for (table, bytes) in expected {
        let key = stage.projection(table, shard)?;
        match blobs.get(&key).await? {
            None => findings.push(Finding::Missing { object: key.to_string() }),
            Some(found) => {
                hashes.insert(key.to_string(), sha256(&found));
                if found != bytes {
                    let reason = "its bytes do not follow from its part".into();
                    findings.push(Finding::Projection { object: key.to_string(), reason });
                }
            }
        }
    }
    Ok(())
}

async fn strays(
    blobs: &dyn Blobs,
    stage: &Stage,
    table: &str,
    expected: &BTreeMap<String, String>,
    findings: &mut Vec<Finding>,
) -> Result<(), StoreError> {
    let mut folders = vec![stage.parts()?];
    if table == Admission::TABLE {
        for table in [Task::TABLE, TaskSecret::TABLE, Rejection::TABLE] {
            folders.push(Key::new(format!("tables/{table}"))?);
        }
    }
    for folder in folders {
        let found = blobs.list(&folder).await?;
        let strays = found.into_iter().map(|e| e.key.to_string()).filter(|k| !expected.contains_key(k));
        findings.extend(strays.map(|object| Finding::Stray { object }));
    }
    Ok(())
}

async fn seal(
    blobs: &dyn Blobs,
    stage: &Stage,
    plan: &Plan,
    hashes: &BTreeMap<String, String>,
    findings: &mut Vec<Finding>,
) -> Result<(), StoreError> {
    let key = stage.sealed()?;
    let Some(seal) = record::<Seal>(blobs, &key, findings).await? else { return Ok(()) };
    let mut say = |object: &str, reason: &str| {
        findings.push(Finding::Seal { object: object.into(), reason: reason.into() });
    };
    if seal.plan != plan.nonce {
        say(key.as_str(), "it belongs to another plan");
    }
    let mut named = BTreeSet::new();
    for part in &seal.parts {
        if !named.insert(part.key.as_str()) {
            say(&part.key, "named twice");
        }
        match hashes.get(&part.key) {
            None => say(&part.key, "named, but not there or not planned"),
            Some(hash) if *hash != part.sha256 => say(&part.key, "its hash is not that of the object"),
            Some(_) => (),
        }
    }
    for object in hashes.keys().filter(|k| !named.contains(k.as_str())) {
        say(object, "there, but not named");
    }
    Ok(())
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
