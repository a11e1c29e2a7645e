//! What must hold of a run after anything happened to it. Plain facts in, violations out; this file uses nothing but the
//! standard library, so that no mistake of the store or the frame can hide in it.

use std::collections::{BTreeMap, BTreeSet};

/// A frozen plan.
#[derive(Clone, Debug, Default)]
pub struct PlanFact {
    /// The stage.
    pub stage: String,
    /// Its nonce.
    pub nonce: String,
    /// Keys of each shard's items, in order.
    pub shards: Vec<Vec<String>>,
}

/// A part of a table that a stage commits.
#[derive(Clone, Debug, Default)]
pub struct PartFact {
    /// Its object.
    pub object: String,
    /// The stage.
    pub stage: String,
    /// The shard.
    pub shard: usize,
    /// The plan's nonce in its footer.
    pub plan: String,
    /// Keys of its rows, in order.
    pub rows: Vec<String>,
}

/// A seal.
#[derive(Clone, Debug, Default)]
pub struct SealFact {
    /// The stage.
    pub stage: String,
    /// The plan's nonce in it.
    pub plan: String,
    /// Objects it names, with the shard and hash.
    pub parts: Vec<(String, usize, String)>,
}

/// A checkpoint's manifest.
#[derive(Clone, Debug, Default)]
pub struct ManifestFact {
    /// Its object.
    pub object: String,
    /// Whether it ends its round.
    pub last: bool,
    /// Whether its round has such a manifest.
    pub closed: bool,
    /// Whether it was retired.
    pub retired: bool,
    /// Objects it names, with hashes.
    pub files: Vec<(String, String)>,
}

/// One change of the store.
#[derive(Clone, Debug, Default)]
pub struct ChangeFact {
    /// The object.
    pub object: String,
    /// Whether it replaced other bytes.
    pub replaced_other: bool,
    /// Whether it was removed.
    pub removed: bool,
}

/// Everything that is known of a case.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Plans that are there.
    pub plans: Vec<PlanFact>,
    /// Parts that are there.
    pub parts: Vec<PartFact>,
    /// Seals that are there.
    pub seals: Vec<SealFact>,
    /// Manifests that are there.
    pub manifests: Vec<ManifestFact>,
    /// Hashes of all objects that are there.
    pub objects: BTreeMap<String, String>,
    /// All changes, in order.
    pub changes: Vec<ChangeFact>,
    /// Keys that readers were given, one list a read.
    pub reads: Vec<Vec<String>>,
    /// Items that are in a chunk or a part, by stage.
    pub saved: BTreeSet<(String, String)>,
    /// Items that a drained worker had finished, by stage.
    pub promised: BTreeSet<(String, String)>,
    /// Stages that a worker called complete.
    pub complete: BTreeSet<String>,
}

/// Every violation, in words; none is the answer to hope for.
pub fn violations(facts: &Facts) -> Vec<String> {
    let mut found = Vec::new();
    parts_hold_their_plan(facts, &mut found);
    seals_hold(facts, &mut found);
    complete_is_complete(facts, &mut found);
    checkpoints_hold(facts, &mut found);
    nothing_changes(facts, &mut found);
    readers_see_rows_once(facts, &mut found);
    for (stage, item) in facts.promised.difference(&facts.saved) {
        found.push(format!("{stage}: a drained worker had finished {item}, and it is saved nowhere"));
    }
    found
}

fn plan<'a>(facts: &'a Facts, stage: &str) -> Option<&'a PlanFact> {
    facts.plans.iter().find(|p| p.stage == stage)
}

fn parts_hold_their_plan(facts: &Facts, found: &mut Vec<String>) {
    for part in &facts.parts {
        let Some(plan) = plan(facts, &part.stage) else {
            found.push(format!("{}: a part without a plan", part.object));
            continue;
        };
        if part.plan != plan.nonce {
            found.push(format!("{}: a part of another plan", part.object));
        }
        if plan.shards.get(part.shard) != Some(&part.rows) {
            found.push(format!("{}: holds {:?}, not its plan's items", part.object, part.rows));
        }
    }
}

fn seals_hold(facts: &Facts, found: &mut Vec<String>) {
    for seal in &facts.seals {
        let Some(plan) = plan(facts, &seal.stage) else {
            found.push(format!("{}: sealed without a plan", seal.stage));
            continue;
        };
        if seal.plan != plan.nonce {
            found.push(format!("{}: sealed under another plan", seal.stage));
        }
        let shards: BTreeSet<usize> = seal.parts.iter().map(|(_, shard, _)| *shard).collect();
        if shards != (0..plan.shards.len()).collect() {
            found.push(format!("{}: the seal names shards {shards:?} of {}", seal.stage, plan.shards.len()));
        }
        for (object, _, hash) in &seal.parts {
            match facts.objects.get(object) {
                None => found.push(format!("{object}: sealed, and not there")),
                Some(there) if there != hash => found.push(format!("{object}: other bytes than were sealed")),
                Some(_) => {}
            }
        }
    }
}

fn complete_is_complete(facts: &Facts, found: &mut Vec<String>) {
    for stage in &facts.complete {
        let parts = facts.parts.iter().filter(|p| &p.stage == stage).count();
        let planned = plan(facts, stage).map_or(0, |p| p.shards.len());
        if parts != planned {
            found.push(format!("{stage}: called complete with {parts} of {planned} parts"));
        }
    }
}

fn checkpoints_hold(facts: &Facts, found: &mut Vec<String>) {
    for manifest in &facts.manifests {
        // In a closed round the checkpoints before the last are behind everybody.
        if manifest.retired || (manifest.closed && !manifest.last) {
            continue;
        }
        for (file, hash) in &manifest.files {
            if facts.objects.get(file) != Some(hash) {
                found.push(format!("{}: {file} is not there as committed", manifest.object));
            }
        }
    }
}

fn nothing_changes(facts: &Facts, found: &mut Vec<String>) {
    for change in &facts.changes {
        let may_go = change.object.contains("/chunks/")
            || change.object.contains("/leases/")
            || change.object.contains("/probe/")
            || change.object.starts_with("checkpoints/");
        if change.replaced_other {
            found.push(format!("{}: was overwritten with other bytes", change.object));
        }
        if change.removed && !may_go {
            found.push(format!("{}: was removed", change.object));
        }
    }
}

fn readers_see_rows_once(facts: &Facts, found: &mut Vec<String>) {
    for read in &facts.reads {
        let mut seen = BTreeSet::new();
        if let Some(twice) = read.iter().find(|row| !seen.insert(row.as_str())) {
            found.push(format!("a reader saw {twice} twice"));
        }
    }
    // Parts are only ever added, so what a glob sees now contains what any glob saw before.
    let mut seen = BTreeSet::new();
    for part in &facts.parts {
        for row in &part.rows {
            if !seen.insert((&part.stage, row)) {
                found.push(format!("{}: row {row} is in two parts", part.stage));
            }
        }
    }
}
