//! Chunks: checkpoints inside a shard (invariant 4). They may overlap; per key the row of the lowest chunk counts.

use crate::{JobError, Plan, Run, Stage};
use rollmill_schema::{Row, decode, encode};
use rollmill_store::{Commit, Key, create_once};
use std::collections::HashMap;

/// Rows that earlier attempts finished, by key.
pub(crate) async fn read<R: Row>(
    run: &Run,
    stage: &Stage,
    plan: &Plan,
    shard: u32,
) -> Result<HashMap<String, R>, JobError> {
    let mut done = HashMap::new();
    for entry in run.blobs.list(&stage.chunks(shard)?).await? {
        // A chunk that has gone was removed after its part was committed: the caller will meet the part.
        let Some(bytes) = run.blobs.get(&entry.key).await? else { continue };
        let (rows, footer) = decode::<R>(&bytes)?;
        if footer.plan != plan.nonce.as_str() {
            let reason = format!("it belongs to plan {}, not {}", footer.plan, plan.nonce);
            return Err(JobError::Corrupt { key: entry.key.to_string(), reason });
        }
        for row in rows {
            done.entry(row.key()).or_insert(row);
        }
    }
    Ok(done)
}

/// Writes `rows` as the shard's next chunk. A number lost to another attempt means: list again, take the next.
pub(crate) async fn write<R: Row>(
    run: &Run,
    stage: &Stage,
    plan: &Plan,
    shard: u32,
    rows: &[R],
) -> Result<(), JobError> {
    let folder = stage.chunks(shard)?;
    let bytes = encode(rows, plan.nonce.as_str(), run.attempt.as_str())?;
    loop {
        let next = run.blobs.list(&folder).await?.last().map_or(0, |e| number(&e.key) + 1);
        let key = folder.join(format!("{next:06}.parquet"))?;
        if create_once(run.blobs.as_ref(), &key, bytes.clone()).await? == Commit::Mine {
            return Ok(());
        }
    }
}

fn number(key: &Key) -> u32 {
    key.file_name().trim_end_matches(".parquet").parse().unwrap_or(0)
}
