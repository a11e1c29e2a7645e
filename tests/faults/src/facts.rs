//! From what the world holds to plain facts.

use crate::World;
use crate::actors::{Lived, stage};
use crate::invariants::{ChangeFact, Facts, ManifestFact, PartFact, PlanFact, SealFact, violations};
use crate::world::Event;
use rollmill_job::checkpoint::Manifest;
use rollmill_job::seal::Seal;
use rollmill_job::{Outcome, Plan};
use rollmill_schema::{Metric, Row, decode};
use sha2::{Digest, Sha256};

fn hash(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// Reads the world. Objects that cannot be read become parts without rows, which no plan allows.
pub async fn facts(world: &World) -> Facts {
    // Memory answers.
    let contents = world.contents().await.unwrap_or_default();
    let mut facts = Facts::default();
    let name = stage().name().to_string();
    let mut manifests: Vec<(String, Manifest)> = Vec::new();
    for (entry, bytes) in &contents {
        let object = entry.key.to_string();
        facts.objects.insert(object.clone(), hash(bytes));
        let rows = || decode::<Metric>(bytes).ok();
        if object.ends_with("/plan.json") {
            if let Ok(plan) = serde_json::from_slice::<Plan>(bytes) {
                let nonce = plan.nonce.to_string();
                facts.plans.push(PlanFact { stage: plan.stage, nonce, shards: plan.shards });
            }
        } else if object.ends_with("/sealed.json") {
            if let Ok(seal) = serde_json::from_slice::<Seal>(bytes) {
                let parts = seal.parts.into_iter().map(|p| (p.key, p.shard as usize, p.sha256)).collect();
                facts.seals.push(SealFact { stage: seal.stage, plan: seal.plan.to_string(), parts });
            }
        } else if object.starts_with("control/checkpoints/") {
            manifests.extend(serde_json::from_slice::<Manifest>(bytes).map(|m| (object.clone(), m)));
        } else if object.starts_with("tables/metrics/") {
            let (rows, plan) = rows().map_or_else(Default::default, |(rows, footer)| (rows, footer.plan));
            let rows: Vec<String> = rows.iter().map(Row::key).collect();
            facts.saved.extend(rows.iter().map(|r| (name.clone(), r.clone())));
            let number = object.rsplit('-').next().and_then(|n| n.split('.').next()?.parse().ok());
            let shard = number.unwrap_or(usize::MAX);
            facts.parts.push(PartFact { object, stage: name.clone(), shard, plan, rows });
        } else if object.contains("/chunks/") {
            let rows = rows().map(|(rows, _)| rows).unwrap_or_default();
            facts.saved.extend(rows.iter().map(|r| (name.clone(), r.key())));
        }
    }
    for (object, manifest) in &manifests {
        let closed = manifests.iter().any(|(_, m)| m.round == manifest.round && m.last);
        let folder = format!("round-{:04}/step-{:06}", manifest.round, manifest.step);
        let retired = facts.objects.contains_key(&format!("control/retired/{folder}.json"));
        let file = |name: &str| format!("checkpoints/{folder}/{}/{name}", manifest.attempt);
        let files = manifest.files.iter().map(|f| (file(&f.name), f.sha256.clone())).collect();
        let (object, last) = (object.clone(), manifest.last);
        facts.manifests.push(ManifestFact { object, last, closed, retired, files });
    }
    facts.changes = changes(&world.events());
    facts
}

fn changes(events: &[Event]) -> Vec<ChangeFact> {
    let change = |event: &Event| match event {
        Event::Wrote { key, bytes, over } => ChangeFact {
            object: key.clone(),
            replaced_other: over.as_ref().is_some_and(|o| o != bytes),
            removed: false,
        },
        Event::Removed { key } => ChangeFact { object: key.clone(), replaced_other: false, removed: true },
    };
    events.iter().map(change).collect()
}

/// Notes what a worker's end promises.
pub fn promise(facts: &mut Facts, lived: &Lived) {
    let name = stage().name().to_string();
    match lived.outcome {
        Ok(Outcome::Complete) => drop(facts.complete.insert(name)),
        Ok(Outcome::Drained) => facts.promised.extend(lived.finished.iter().map(|i| (name.clone(), i.clone()))),
        _ => {}
    }
}

/// Violations, after the given lives and reads.
pub async fn judge(world: &World, lives: &[Lived], reads: Vec<Vec<String>>) -> Vec<String> {
    let mut facts = facts(world).await;
    facts.reads = reads;
    for lived in lives {
        promise(&mut facts, lived);
    }
    violations(&facts)
}
