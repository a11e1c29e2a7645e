//! Everything that was ever seen in a run, with the hash it had first: nothing that was there may change or go.

use crate::check::{Finding, sha256};
use crate::rows::{self, PartRows};
use rollmill_store::lease::Term;
use rollmill_store::{Blobs, Key, StoreError};
use std::collections::BTreeMap;
use std::time::Instant;

/// One object, as it was when it was first seen.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Its hash.
    pub sha256: String,
    /// When this process first saw it.
    pub when: Instant,
    /// What it says.
    pub content: Content,
}

/// What an object says, where the harness reads it.
#[derive(Clone, Debug)]
pub enum Content {
    /// Rows of a part or chunk.
    Rows(PartRows),
    /// A term of a lease.
    Term(Term),
    /// Keys of a plan's shards.
    Plan(Vec<Vec<String>>),
    /// Something else.
    Other,
}

/// All objects of a run.
#[derive(Default)]
pub struct History {
    /// By key.
    pub objects: BTreeMap<String, Seen>,
    /// What was wrong on the way.
    pub findings: Vec<Finding>,
}

/// Prefixes that hold create-only objects. The probe's object is removed by whoever made it.
const PREFIXES: [&str; 2] = ["control", "tables"];
const RUN: &str = "run.toml";
const PROBE: &str = "control/probe/";

impl History {
    /// Looks at what is new; returns the new keys. A part must be readable the moment it shows.
    pub async fn observe(&mut self, blobs: &dyn Blobs) -> Result<Vec<String>, StoreError> {
        let mut fresh = Vec::new();
        for prefix in PREFIXES {
            for entry in blobs.list(&Key::new(prefix)?).await? {
                let key = entry.key.to_string();
                if self.objects.contains_key(&key) || key.starts_with(PROBE) {
                    continue;
                }
                let Some(bytes) = blobs.get(&entry.key).await? else {
                    self.findings.push(Finding::Vanished { object: key });
                    continue;
                };
                self.note(&key, &bytes);
                fresh.push(key);
            }
        }
        if !self.objects.contains_key(RUN)
            && let Some(bytes) = blobs.get(&Key::new(RUN)?).await?
        {
            self.note(RUN, &bytes);
            fresh.push(RUN.into());
        }
        Ok(fresh)
    }

    fn note(&mut self, key: &str, bytes: &bytes::Bytes) {
        let content = self.content(key, bytes);
        self.objects.insert(key.into(), Seen { sha256: sha256(bytes), when: Instant::now(), content });
    }

    /// Reads everything again. Each change is reported once.
    pub async fn recheck(&mut self, blobs: &dyn Blobs, below: &str) -> Result<(), StoreError> {
        for (object, seen) in self.objects.iter_mut().filter(|(k, _)| k.starts_with(below)) {
            // An object that is not there has no hash.
            let now = blobs.get(&Key::new(object)?).await?.map(|b| sha256(&b)).unwrap_or_default();
            if now != seen.sha256 {
                let object = object.clone();
                let vanished = now.is_empty();
                self.findings.push(if vanished { Finding::Vanished { object } } else { Finding::Changed { object } });
                seen.sha256 = now;
            }
        }
        Ok(())
    }

    fn content(&mut self, key: &str, bytes: &bytes::Bytes) -> Content {
        let read = if let Some(table) = table_of(key) {
            rows::read(table, bytes).map(Content::Rows)
        } else if key.contains("/leases/") {
            serde_json::from_slice(bytes).map(Content::Term).map_err(|e| e.to_string())
        } else if key.ends_with("/plan.json") {
            let plan = serde_json::from_slice::<rollmill_job::Plan>(bytes);
            plan.map(|p| Content::Plan(p.shards)).map_err(|e| e.to_string())
        } else {
            Ok(Content::Other)
        };
        read.unwrap_or_else(|reason| {
            self.findings.push(Finding::Unreadable { object: key.into(), reason });
            Content::Other
        })
    }
}

/// The table whose rows an object holds, if it holds rows.
fn table_of(key: &str) -> Option<&str> {
    if !key.ends_with(".parquet") {
        return None;
    }
    match key.strip_prefix("tables/") {
        Some(rest) => rest.split('/').next(),
        None => match key.split('/').nth(1)? {
            "synthesize" => Some("candidates"),
            "verify" => Some("admissions"),
            "rollout" => Some("trajectories"),
            "score" => Some("rewards"),
            _ => Some("metrics"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use rollmill_store::Objects;

    #[tokio::test]
    async fn what_changes_or_goes_is_reported_once() {
        let store = Objects::memory();
        let (a, b) = (Key::new("control/s/reports/a.json").unwrap(), Key::new("control/s/reports/b.json").unwrap());
        for key in [&a, &b] {
            store.create(key, Bytes::from_static(b"{}")).await.unwrap();
        }
        let mut history = History::default();
        assert_eq!(history.observe(&store).await.unwrap().len(), 2);
        history.recheck(&store, "").await.unwrap();
        assert_eq!(history.findings, []);
        store.delete(&a).await.unwrap();
        store.delete(&b).await.unwrap();
        store.create(&b, Bytes::from_static(b"[]")).await.unwrap();
        for _ in 0..2 {
            assert_eq!(history.observe(&store).await.unwrap().len(), 0);
            history.recheck(&store, "").await.unwrap();
        }
        let gone = Finding::Vanished { object: a.to_string() };
        assert_eq!(history.findings, [gone, Finding::Changed { object: b.to_string() }]);
    }

    #[tokio::test]
    async fn a_half_written_part_is_reported() {
        let store = Objects::memory();
        store.create(&Key::new("tables/tasks/part-00000.parquet").unwrap(), Bytes::from_static(b"PAR1")).await.unwrap();
        let mut history = History::default();
        history.observe(&store).await.unwrap();
        assert!(matches!(history.findings[..], [Finding::Unreadable { .. }]), "{:?}", history.findings);
    }
}
