//! A bucket as ten thousand workers meet it: memory behind latencies and request limits, in simulated time.
//!
//! Latencies are those AWS states for S3 Standard ("consistently 100–200 ms for small objects", first byte out in tens of
//! ms), limits those per partitioned prefix (3,500 writes and 5,500 reads a second); a request over the limit is answered
//! with 503 SlowDown, as S3 does, and the caller's own retries have to cope.
//! Source: "Best practices design patterns: optimizing Amazon S3 performance", S3 user guide.

use async_trait::async_trait;
use bytes::Bytes;
use rollmill_store::{Blobs, Created, Entry, Key, PAGE, StoreError};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Writes a second, and reads a second (gets, heads and listings), of one prefix.
const WRITES: u32 = 3_500;
const READS: u32 = 5_500;

/// How often a read that was refused is tried again; the store over a real bucket does the same.
const TRIES: u32 = 8;

/// The bucket.
pub struct Cloud {
    objects: Mutex<BTreeMap<Key, Bytes>>,
    seconds: Mutex<Second>,
    /// Requests by kind, in the order of [`KINDS`].
    counts: [AtomicU64; KINDS.len()],
    rolls: AtomicU64,
}

/// Kinds of requests that are counted.
pub const KINDS: [&str; 6] = ["create", "get", "head", "list", "delete", "refused"];

#[derive(Default)]
struct Second {
    number: u64,
    used: BTreeMap<(String, bool), u32>,
}

impl Default for Cloud {
    fn default() -> Cloud {
        Cloud {
            objects: Mutex::default(),
            seconds: Mutex::default(),
            counts: Default::default(),
            rolls: AtomicU64::new(1),
        }
    }
}

impl Cloud {
    // Counters and maps stay whole whatever panicked beside them.
    fn objects(&self) -> MutexGuard<'_, BTreeMap<Key, Bytes>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests so far, by kind.
    pub fn requests(&self) -> BTreeMap<&'static str, u64> {
        KINDS.iter().zip(&self.counts).map(|(kind, n)| (*kind, n.load(Ordering::Relaxed))).collect()
    }

    /// Requests so far, all kinds but the refused.
    pub fn total(&self) -> u64 {
        self.requests().iter().filter(|(kind, _)| **kind != "refused").map(|(_, n)| n).sum()
    }

    fn count(&self, kind: &str) {
        if let Some(at) = KINDS.iter().position(|k| *k == kind) {
            self.counts[at].fetch_add(1, Ordering::Relaxed);
        }
    }

    fn roll(&self) -> u64 {
        // A Weyl sequence is spread well enough for latencies.
        self.rolls.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed) >> 32
    }

    /// Whether the prefix has room for one more request in this second.
    fn admits(&self, key: &Key, write: bool, start: Instant) -> bool {
        // S3 splits hot prefixes further and further; here the parts, leases, chunks and markers of a stage are one prefix each.
        let prefix: Vec<&str> = key.as_str().split('/').take(6).collect();
        let mut second = self.seconds.lock().unwrap_or_else(PoisonError::into_inner);
        let now = start.elapsed().as_secs();
        if second.number != now {
            *second = Second { number: now, used: BTreeMap::new() };
        }
        let used = second.used.entry((prefix.join("/"), write)).or_default();
        *used += 1;
        *used <= if write { WRITES } else { READS }
    }

    /// One request with its latency; refused ones are tried again with full jitter.
    async fn request<T>(&self, kind: &'static str, key: &Key, effect: impl Fn() -> T) -> Result<T, StoreError> {
        let write = matches!(kind, "create" | "delete");
        let mut bound = 50;
        for _ in 0..TRIES {
            let latency = if write { 40 + self.roll() % 120 } else { 15 + self.roll() % 45 };
            tokio::time::sleep(Duration::from_millis(latency)).await;
            if self.admits(key, write, start()) {
                self.count(kind);
                return Ok(effect());
            }
            self.count("refused");
            tokio::time::sleep(Duration::from_millis(self.roll() % bound)).await;
            bound = (bound * 2).min(5_000);
        }
        Err(StoreError::Transient { store: "cloud".into(), what: format!("{kind} {key}"), reason: "slow down".into() })
    }
}

/// When simulated time began.
fn start() -> Instant {
    thread_local!(static START: Instant = Instant::now());
    START.with(|s| *s)
}

#[async_trait]
impl Blobs for Cloud {
    fn address(&self) -> String {
        "cloud".into()
    }

    async fn create(&self, key: &Key, bytes: Bytes) -> Result<Created, StoreError> {
        self.request("create", key, || {
            let mut objects = self.objects();
            if objects.contains_key(key) {
                return Created::Exists;
            }
            objects.insert(key.clone(), bytes.clone());
            Created::New
        })
        .await
    }

    async fn get(&self, key: &Key) -> Result<Option<Bytes>, StoreError> {
        self.request("get", key, || self.objects().get(key).cloned()).await
    }

    async fn size(&self, key: &Key) -> Result<Option<u64>, StoreError> {
        self.request("head", key, || self.objects().get(key).map(|b| b.len() as u64)).await
    }

    async fn list(&self, prefix: &Key) -> Result<Vec<Entry>, StoreError> {
        let mut found: Vec<Entry> = Vec::new();
        loop {
            let after = found.last().map(|e| e.key.clone());
            let page = self.list_page(prefix, after.as_ref(), PAGE).await?;
            let full = page.len() == PAGE;
            found.extend(page);
            if !full {
                return Ok(found);
            }
        }
    }

    async fn list_page(&self, prefix: &Key, after: Option<&Key>, most: usize) -> Result<Vec<Entry>, StoreError> {
        let folder = format!("{prefix}/");
        self.request("list", prefix, || {
            let objects = self.objects();
            let from = after.filter(|a| a.as_str() > folder.as_str()).map_or(Bound::Included(prefix), Bound::Excluded);
            objects
                .range((from, Bound::Unbounded))
                .skip_while(|(key, _)| key.as_str() < folder.as_str())
                .take_while(|(key, _)| key.as_str().starts_with(&folder))
                .take(most)
                .map(|(key, bytes)| Entry { key: key.clone(), size: bytes.len() as u64 })
                .collect()
        })
        .await
    }

    async fn delete(&self, key: &Key) -> Result<(), StoreError> {
        self.request("delete", key, || drop(self.objects().remove(key))).await
    }

    async fn upload(&self, key: &Key, file: &Path) -> Result<(), StoreError> {
        let bytes = Bytes::from(std::fs::read(file).unwrap_or_default());
        self.request("create", key, || drop(self.objects().insert(key.clone(), bytes.clone()))).await
    }

    async fn download(&self, key: &Key, file: &Path) -> Result<(), StoreError> {
        let bytes = self.get(key).await?.unwrap_or_default();
        std::fs::write(file, bytes).map_err(|source| StoreError::Disk { path: file.display().to_string(), source })
    }
}
