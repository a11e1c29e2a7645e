//! What kills cost, read from a run's history.

use crate::history::{Content, History};
use crate::phase::Held;
use rollmill_job::Stage;
use rollmill_schema::{Admission, Rejection, Row, Task, TaskSecret};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// Tables that follow from a stage's parts.
pub fn projections(table: &str) -> &'static [&'static str] {
    if table == Admission::TABLE { &[Task::TABLE, TaskSecret::TABLE, Rejection::TABLE] } else { &[] }
}

/// Whether another worker claimed or finished the shard since.
pub fn robbed(history: &History, stage: &Stage, held: &Held) -> bool {
    let (Ok(leases), Ok(part)) = (stage.lease(held.shard), stage.part(held.shard)) else { return false };
    let prefix = format!("{leases}/");
    let others = history.objects.iter().filter(|(k, seen)| k.starts_with(&prefix) && seen.when > held.since);
    let mut others = others.filter_map(|(_, seen)| match &seen.content {
        Content::Term(term) => Some(term.attempt.as_str()),
        _ => None,
    });
    others.any(|a| a != held.attempt) || history.objects.contains_key(part.as_str())
}

/// All keys in chunks and parts of a stage.
pub fn saved_keys(history: &History, stage: &Stage) -> BTreeSet<String> {
    let chunks = format!("control/{}/chunks/", stage.name());
    let parts = stage.parts().map(|p| format!("{p}/")).unwrap_or_default();
    let objects = history.objects.iter().filter(|(k, _)| k.starts_with(&chunks) || k.starts_with(&parts));
    let rows = objects.filter_map(|(_, seen)| match &seen.content {
        Content::Rows(rows) => Some(rows.keys.iter().cloned()),
        _ => None,
    });
    rows.flatten().collect()
}

/// Rows in chunks beyond once each, and all rows in chunks.
pub fn overlap(history: &History, stage: &Stage) -> (usize, usize) {
    let prefix = format!("control/{}/chunks/", stage.name());
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, seen) in history.objects.iter().filter(|(k, _)| k.starts_with(&prefix)) {
        if let Content::Rows(rows) = &seen.content {
            rows.keys.iter().for_each(|k| *times.entry(k).or_default() += 1);
        }
    }
    (times.values().map(|n| n - 1).sum(), times.values().sum())
}

/// Keys of a shard that were saved when a worker was killed and are in a chunk of another attempt that came later.
pub fn saved_and_redone(history: &History, stage: &Stage, held: &Held, killed: Instant) -> usize {
    let Ok(chunks) = stage.chunks(held.shard) else { return 0 };
    let prefix = format!("{chunks}/");
    let later = history.objects.iter().filter(|(k, seen)| k.starts_with(&prefix) && seen.when > killed);
    let mut again = BTreeSet::new();
    for (_, seen) in later {
        if let Content::Rows(rows) = &seen.content
            && rows.footer.attempt != held.attempt
        {
            again.extend(rows.keys.iter().filter(|k| held.saved.contains(*k)));
        }
    }
    again.len()
}
