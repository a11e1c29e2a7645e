//! The checker's controls: each kind of damage to a good run must be reported, and a good run must not.

use super::*;
use rollmill_job::seal::SealedPart;
use rollmill_schema::Candidate;
use rollmill_store::{Nonce, Objects};

const SHARDS: [[&str; 3]; 2] = [["a", "b", "c"], ["d", "e", "f"]];

fn admission(key: &str) -> Admission {
    let candidate = Candidate { task_id: key.into(), tests_a: "[]".into(), ..Candidate::default() };
    let admitted = key != "c";
    Admission {
        task_id: key.into(),
        admitted,
        reason: (!admitted).then(|| "reference_fails".into()),
        candidate: serde_json::to_string(&candidate).unwrap(),
        ..Admission::default()
    }
}

/// A run in memory, before and after damage.
struct Good {
    store: Objects,
    plan: Plan,
}

fn key(name: &str) -> Key {
    Key::new(name).unwrap()
}

impl Good {
    /// Writes plan, parts, projections and seal, as the frame would.
    async fn make() -> Good {
        let shards = SHARDS.iter().map(|s| s.map(String::from).to_vec()).collect();
        let plan = Plan {
            version: 1,
            stage: "verify".into(),
            nonce: Nonce::from_text("n"),
            inputs: vec![],
            settings: serde_json::json!({}),
            shards,
        };
        let good = Good { store: Objects::memory(), plan };
        good.put("control/verify/plan.json", serde_json::to_vec(&good.plan).unwrap().into()).await;
        for (shard, keys) in SHARDS.iter().enumerate() {
            good.part(shard, keys).await;
        }
        good.seal().await;
        good
    }

    /// Writes over whatever is there: what the store itself never does.
    async fn put(&self, name: &str, bytes: Bytes) {
        self.store.delete(&key(name)).await.unwrap();
        self.store.create(&key(name), bytes).await.unwrap();
    }

    /// A part of `keys` with its projections.
    async fn part(&self, shard: usize, keys: &[&str]) {
        let rows: Vec<Admission> = keys.iter().map(|k| admission(k)).collect();
        let part = encode(&rows, "n", "attempt").unwrap();
        for (table, bytes) in expected_projections(&part).unwrap() {
            self.put(&format!("tables/{table}/part-{shard:05}.parquet"), bytes).await;
        }
        self.put(&format!("tables/admissions/part-{shard:05}.parquet"), part).await;
    }

    /// Seals what is there.
    async fn seal(&self) {
        let mut parts = Vec::new();
        for entry in self.store.list(&key("tables")).await.unwrap() {
            let bytes = self.store.get(&entry.key).await.unwrap().unwrap();
            let table = entry.key.as_str().split('/').nth(1).unwrap().to_string();
            let (key, attempt) = (entry.key.to_string(), "attempt".into());
            parts.push(SealedPart { table, key, shard: 0, bytes: entry.size, sha256: sha256(&bytes), attempt });
        }
        let (plan, nonce) = (self.plan.nonce.clone(), Nonce::fresh());
        let seal = Seal { version: 1, stage: "verify".into(), plan, nonce, parts };
        self.put("control/verify/sealed.json", serde_json::to_vec(&seal).unwrap().into()).await;
    }

    async fn findings(&self) -> Vec<String> {
        let checked = stage(&self.store, &Stage::verify(), Admission::TABLE).await.unwrap();
        checked.findings.iter().map(ToString::to_string).collect()
    }
}

fn has(findings: &[String], start: &str) -> bool {
    findings.iter().any(|f| f.starts_with(start))
}

#[tokio::test]
async fn a_good_run_has_no_findings() {
    let good = Good::make().await;
    assert_eq!(good.findings().await, Vec::<String>::new());
    let checked = stage(&good.store, &Stage::verify(), Admission::TABLE).await.unwrap();
    assert_eq!((checked.items, checked.rows, checked.parts), (6, 6, 8));
}

#[tokio::test]
async fn a_doubled_row_is_reported_within_a_part_and_across_parts() {
    let within = Good::make().await;
    within.part(0, &["a", "a", "b", "c"]).await;
    let found = within.findings().await;
    assert!(has(&found, "doubled row: a is there 2 times") && has(&found, "part and plan differ"), "{found:?}");
    let across = Good::make().await;
    across.part(1, &["d", "e", "f", "b"]).await;
    assert!(has(&across.findings().await, "doubled row: b is there 2 times"));
    // Sealing the damage hides nothing.
    across.seal().await;
    assert!(has(&across.findings().await, "doubled row: b"));
}

#[tokio::test]
async fn a_missing_row_is_reported() {
    let good = Good::make().await;
    good.part(1, &["d", "f"]).await;
    good.seal().await;
    let found = good.findings().await;
    assert!(has(&found, "lost row: e") && has(&found, "part and plan differ"), "{found:?}");
}

#[tokio::test]
async fn a_foreign_row_in_place_of_a_planned_one_is_reported() {
    let good = Good::make().await;
    good.part(1, &["d", "x", "f"]).await;
    good.seal().await;
    let found = good.findings().await;
    assert!(has(&found, "lost row: e") && has(&found, "part and plan differ"), "{found:?}");
}

#[tokio::test]
async fn a_missing_part_is_reported() {
    let good = Good::make().await;
    good.store.delete(&key("tables/admissions/part-00001.parquet")).await.unwrap();
    let found = good.findings().await;
    assert!(
        has(&found, "missing part") && has(&found, "lost row: d") && has(&found, "seal: tables/admis"),
        "{found:?}"
    );
}

#[tokio::test]
async fn an_overwritten_part_is_reported() {
    let good = Good::make().await;
    let mut history = crate::history::History::default();
    history.observe(&good.store).await.unwrap();
    // The same rows by another attempt: right to a reader, but not what was committed and sealed.
    let rows: Vec<Admission> = SHARDS[0].iter().map(|k| admission(k)).collect();
    good.put("tables/admissions/part-00000.parquet", encode(&rows, "n", "another").unwrap()).await;
    history.recheck(&good.store, "").await.unwrap();
    assert_eq!(history.findings, [Finding::Changed { object: "tables/admissions/part-00000.parquet".into() }]);
    let found = good.findings().await;
    assert!(has(&found, "seal: tables/admissions/part-00000.parquet: its hash"), "{found:?}");
    assert!(has(&found, "projection: tables/tasks/part-00000.parquet"), "{found:?}");
}

#[tokio::test]
async fn damaged_projections_and_seals_are_reported() {
    let good = Good::make().await;
    good.store.delete(&key("tables/task_secrets/part-00000.parquet")).await.unwrap();
    assert!(has(&good.findings().await, "missing part: tables/task_secrets/part-00000.parquet"));
    let good = Good::make().await;
    let (none, one): (Vec<Task>, Task) = (Vec::new(), Task::default());
    good.put("tables/tasks/part-00000.parquet", encode(&none, "n", "attempt").unwrap()).await;
    assert!(has(&good.findings().await, "projection: tables/tasks/part-00000.parquet"));
    let good = Good::make().await;
    good.put("tables/tasks/part-00007.parquet", encode(&[one], "n", "attempt").unwrap()).await;
    assert!(has(&good.findings().await, "stray object: tables/tasks/part-00007.parquet"));
    let good = Good::make().await;
    good.store.delete(&key("control/verify/sealed.json")).await.unwrap();
    assert!(has(&good.findings().await, "missing part: control/verify/sealed.json"));
    // A seal that leaves out the projections.
    good.seal().await;
    let bytes = good.store.get(&key("control/verify/sealed.json")).await.unwrap().unwrap();
    let mut seal: Seal = serde_json::from_slice(&bytes).unwrap();
    seal.parts.retain(|p| p.table == Admission::TABLE);
    good.put("control/verify/sealed.json", serde_json::to_vec(&seal).unwrap().into()).await;
    assert!(has(&good.findings().await, "seal: tables/tasks/part-00000.parquet: there, but not named"));
}

#[tokio::test]
async fn a_part_of_another_plan_and_torn_bytes_are_reported() {
    let good = Good::make().await;
    let rows: Vec<Admission> = SHARDS[0].iter().map(|k| admission(k)).collect();
    good.put("tables/admissions/part-00000.parquet", encode(&rows, "other", "attempt").unwrap()).await;
    assert!(has(&good.findings().await, "part and plan differ: tables/admissions/part-00000.parquet: it belongs"));
    let whole = encode(&rows, "n", "attempt").unwrap();
    good.put("tables/admissions/part-00000.parquet", whole.slice(..whole.len() - 9)).await;
    assert!(has(&good.findings().await, "unreadable: tables/admissions/part-00000.parquet"));
}
