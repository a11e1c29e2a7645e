//! Two to four workers at once with paused time, random latencies, faults, deaths and freezes, and with leases broken in every
//! way. A seed makes one history; a failing one is printed and `ROLLMILL_SEED=n` replays it.
#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

use async_trait::async_trait;
use bytes::Bytes;
use rollmill_faults::actors::{self, Worker};
use rollmill_faults::drive::settle;
use rollmill_faults::{Line, World, facts, simulate};
use rollmill_job::{Outcome, Run};
use rollmill_store::{Blobs, Created, Entry, Key, StoreError};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How leases are broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leases {
    /// They are not.
    Work,
    /// Whoever claims is told that it holds the shard.
    EverybodyHolds,
    /// All are expired, and stolen at once.
    Stolen,
    /// Every claim and renewal fails now and then.
    Fail,
}

/// SplitMix64: small, and the same everywhere.
struct Dice(AtomicU64);

impl Dice {
    fn roll(&self, below: u64) -> u64 {
        let state = self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::SeqCst);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    }
}

/// A store that is slow, that fails, and whose leases may be broken.
struct Weather {
    line: Arc<Line>,
    dice: Arc<Dice>,
    leases: Leases,
    calls: Mutex<Vec<String>>,
}

impl Weather {
    fn torn() -> StoreError {
        StoreError::Transient { store: "memory:".into(), what: "a call".into(), reason: "weather".into() }
    }

    /// One call: latency, perhaps a freeze, perhaps a failure before or after it happens.
    async fn call<T>(
        &self,
        what: &str,
        key: &Key,
        effect: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.calls.lock().unwrap().push(format!("{what} {key}"));
        tokio::time::sleep(Duration::from_millis(1 + self.dice.roll(200))).await;
        match self.dice.roll(100) {
            0..3 => return Err(Self::torn()),
            3..5 => tokio::time::sleep(Duration::from_secs(self.dice.roll(200))).await,
            _ => {}
        }
        let answer = effect.await;
        if self.dice.roll(100) < 3 { Err(Self::torn()) } else { answer }
    }

    fn lease(&self, key: &Key) -> bool {
        self.leases != Leases::Work && key.as_str().contains("/leases/")
    }
}

#[async_trait]
impl Blobs for Weather {
    fn address(&self) -> String {
        self.line.address()
    }
    async fn create(&self, key: &Key, bytes: Bytes) -> Result<Created, StoreError> {
        if self.lease(key) {
            match self.leases {
                Leases::EverybodyHolds => return Ok(Created::New),
                Leases::Fail if self.dice.roll(2) == 0 => return Err(Self::torn()),
                _ => {}
            }
        }
        self.call("create", key, self.line.create(key, bytes)).await
    }
    async fn get(&self, key: &Key) -> Result<Option<Bytes>, StoreError> {
        self.call("get", key, self.line.get(key)).await
    }
    async fn size(&self, key: &Key) -> Result<Option<u64>, StoreError> {
        self.call("size", key, self.line.size(key)).await
    }
    async fn list(&self, prefix: &Key) -> Result<Vec<Entry>, StoreError> {
        self.call("list", prefix, self.line.list(prefix)).await
    }
    async fn list_page(&self, prefix: &Key, after: Option<&Key>, most: usize) -> Result<Vec<Entry>, StoreError> {
        self.call("list", prefix, self.line.list_page(prefix, after, most)).await
    }
    async fn delete(&self, key: &Key) -> Result<(), StoreError> {
        self.call("delete", key, self.line.delete(key)).await
    }
    async fn upload(&self, key: &Key, file: &Path) -> Result<(), StoreError> {
        self.call("upload", key, self.line.upload(key, file)).await
    }
    async fn download(&self, key: &Key, file: &Path) -> Result<(), StoreError> {
        self.call("download", key, self.line.download(key, file)).await
    }
}

/// One worker of a history: it dies at a random moment, and another process follows, until one finishes.
async fn work_until_done(world: Arc<World>, dice: Arc<Dice>, leases: Leases, worker: u64) -> (Vec<String>, usize) {
    let (mut diary, mut deaths) = (Vec::new(), 0);
    for life in 0.. {
        let line = Line::new(&world, None);
        let store = Arc::new(Weather { line, dice: dice.clone(), leases, calls: Mutex::default() });
        // Wall clocks are an hour off, either way.
        let off = [0.0, 3600.0, -3600.0][dice.roll(3) as usize];
        let attempt = worker * 1000 + life;
        let lease_seconds = if leases == Leases::Stolen { 0 } else { 30 };
        let chunk_items = 1 + dice.roll(3) as usize;
        let actor = Worker { attempt, items: 10, shard_size: 4, chunk_items, off, lease_seconds };
        // Dying is sometimes far away, so that histories end.
        let dies = Duration::from_millis(500 + dice.roll(if life > 6 { 10_000_000 } else { 8_000 }));
        let lived = tokio::time::timeout(dies, actor.live_on(store.clone(), None)).await;
        diary.append(&mut store.calls.lock().unwrap());
        match lived.map(|l| l.outcome) {
            Ok(Ok(Outcome::Complete)) => return (diary, deaths),
            Ok(Ok(other)) => panic!("worker {worker}: nobody asked it to end with {other:?}"),
            Ok(Err(e)) => assert_eq!(rollmill_job::Exit::from(&e).code(), 75, "worker {worker}: {e}"),
            Err(_) => deaths += 1,
        }
    }
    unreachable!("a life follows until one finishes")
}

/// Runs the history of a seed; its diary.
fn history(seed: u64, leases: Leases) -> (Vec<String>, usize) {
    simulate(async {
        let world = Arc::new(World::default());
        Run::create(Line::new(&world, None), &actors::config(), None).await.unwrap();
        let dice = Arc::new(Dice(AtomicU64::new(seed)));
        let workers = 2 + dice.roll(3);
        let tasks: Vec<_> =
            (1..=workers).map(|w| tokio::spawn(work_until_done(world.clone(), dice.clone(), leases, w))).collect();
        let (mut diary, mut deaths) = (Vec::new(), 0);
        for task in tasks {
            let (calls, died) = task.await.unwrap_or_else(|e| panic!("seed {seed}, leases {leases:?}: {e}"));
            diary.extend(calls);
            deaths += died;
        }
        settle().await;
        let read = actors::read(Line::new(&world, None), 9).await.unwrap();
        assert_eq!(read, actors::draft(10, 4).keys, "seed {seed}, leases {leases:?}");
        let found = facts::judge(&world, &[], vec![read]).await;
        assert!(found.is_empty(), "ROLLMILL_SEED={seed}, leases {leases:?}: {found:#?}");
        (diary, deaths)
    })
}

fn seeds(count: u64) -> Vec<u64> {
    match std::env::var("ROLLMILL_SEED") {
        Ok(seed) => vec![seed.parse().expect("ROLLMILL_SEED is a number")],
        Err(_) => (0..count).collect(),
    }
}

#[test]
fn a_seed_replays() {
    let (one, two) = (history(5, Leases::Work), history(5, Leases::Work));
    assert!(one == two, "two histories of one seed differ");
    assert!(history(6, Leases::Work) != one, "another seed is another history");
}

#[test]
fn workers_at_once_in_bad_weather() {
    let (mut calls, mut deaths) = (0, 0);
    for seed in seeds(150) {
        let (diary, died) = history(seed, Leases::Work);
        (calls, deaths) = (calls + diary.len(), deaths + died);
    }
    println!("seeded histories: 150, {calls} store calls, {deaths} deaths");
}

#[test]
fn leases_broken_in_every_way_only_cost_work() {
    for leases in [Leases::EverybodyHolds, Leases::Stolen, Leases::Fail] {
        let (mut calls, mut deaths) = (0, 0);
        for seed in seeds(40) {
            let (diary, died) = history(seed, leases);
            (calls, deaths) = (calls + diary.len(), deaths + died);
        }
        println!("leases {leases:?}: 40 histories, {calls} store calls, {deaths} deaths");
    }
}
