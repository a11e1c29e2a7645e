//! Where things lie in a run. Table folders hold finished parts and nothing else, so that any reader may glob them.

use rollmill_store::{Key, key::InvalidKey};

/// One stage of a run: its name below `control/`, and the folder below `tables/` its parts go to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    name: String,
    folder: String,
}

impl Stage {
    fn new(name: impl Into<String>, folder: impl Into<String>) -> Stage {
        Stage { name: name.into(), folder: folder.into() }
    }

    /// Candidates from the sources.
    pub fn synthesize() -> Stage {
        Stage::new("synthesize", "candidates")
    }

    /// Admissions, and their projections.
    pub fn verify() -> Stage {
        Stage::new("verify", "admissions")
    }

    /// Trajectories of a set in a round.
    pub fn rollout(set: &str, round: u32) -> Stage {
        Stage::new(format!("rollout/{set}/round-{round:04}"), format!("trajectories/{set}/round-{round:04}"))
    }

    /// Rewards of a set in a round under a version.
    pub fn score(version: &str, set: &str, round: u32) -> Stage {
        Stage::new(
            format!("score/{version}/{set}/round-{round:04}"),
            format!("rewards/{version}/{set}/round-{round:04}"),
        )
    }

    /// Metrics of an evaluated set in a round.
    pub fn evaluate(version: &str, set: &str, round: u32) -> Stage {
        Stage::new(
            format!("evaluate/{version}/{set}/round-{round:04}"),
            format!("metrics/evaluate/{version}/{set}/round-{round:04}"),
        )
    }

    /// The stage of that name; none if no job has one of it.
    pub fn of_name(name: &str) -> Option<Stage> {
        let parts: Vec<&str> = name.split('/').collect();
        let round = |text: &str| text.strip_prefix("round-")?.parse::<u32>().ok();
        match parts.as_slice() {
            ["synthesize"] => Some(Stage::synthesize()),
            ["verify"] => Some(Stage::verify()),
            ["rollout", set, r] => Some(Stage::rollout(set, round(r)?)),
            ["score", version, set, r] => Some(Stage::score(version, set, round(r)?)),
            ["evaluate", version, set, r] => Some(Stage::evaluate(version, set, round(r)?)),
            _ => None,
        }
    }

    /// The stage's name, such as `rollout/train/round-0001`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether other tables follow from its parts: then its own job seals it, for its readers may have no right to the parts.
    pub fn projects(&self) -> bool {
        *self == Stage::verify()
    }

    /// Whether its own parts are rows of `table`, rather than of a table that follows from them.
    pub fn commits(&self, table: &str) -> bool {
        self.folder.split('/').next() == Some(table)
    }

    /// Its frozen plan.
    pub fn plan(&self) -> Result<Key, InvalidKey> {
        Key::new(format!("control/{}/plan.json", self.name))
    }

    /// Its seal.
    pub fn sealed(&self) -> Result<Key, InvalidKey> {
        Key::new(format!("control/{}/sealed.json", self.name))
    }

    /// The folder of a shard's lease terms.
    pub fn lease(&self, shard: u32) -> Result<Key, InvalidKey> {
        Key::new(format!("control/{}/leases/{shard:05}", self.name))
    }

    /// The folder of a shard's chunks.
    pub fn chunks(&self, shard: u32) -> Result<Key, InvalidKey> {
        Key::new(format!("control/{}/chunks/{shard:05}", self.name))
    }

    /// The folder of the markers of closed blocks of shards.
    pub fn blocks(&self) -> Result<Key, InvalidKey> {
        Key::new(format!("control/{}/blocks", self.name))
    }

    /// The lease of the right to seal.
    pub fn sealer(&self) -> Result<Key, InvalidKey> {
        Key::new(format!("control/{}/leases/seal", self.name))
    }

    /// The folder of what workers report of themselves.
    pub fn reports(&self) -> Result<Key, InvalidKey> {
        Key::new(format!("control/{}/reports", self.name))
    }

    /// The folder of its parts.
    pub fn parts(&self) -> Result<Key, InvalidKey> {
        Key::new(format!("tables/{}", self.folder))
    }

    /// A shard's part.
    pub fn part(&self, shard: u32) -> Result<Key, InvalidKey> {
        Key::new(format!("tables/{}/part-{shard:05}.parquet", self.folder))
    }

    /// A shard's part of a projection table.
    pub fn projection(&self, table: &str, shard: u32) -> Result<Key, InvalidKey> {
        Key::new(format!("tables/{table}/part-{shard:05}.parquet"))
    }
}

/// The number in `000004.json` or `000004.parquet`.
pub fn number(file_name: &str) -> Option<u32> {
    file_name.split('.').next()?.parse().ok()
}

/// The number in `part-00017.parquet`.
pub fn shard_of_part(file_name: &str) -> Option<u32> {
    file_name.strip_prefix("part-")?.strip_suffix(".parquet")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_follows_from_its_name() {
        for stage in [
            Stage::synthesize(),
            Stage::verify(),
            Stage::rollout("train", 3),
            Stage::score("v2", "heldout", 12),
            Stage::evaluate("v1", "heldout", 0),
        ] {
            assert_eq!(Stage::of_name(stage.name()), Some(stage));
        }
        for wrong in
            ["", "train", "rollout/train", "rollout/train/3", "score/train/round-0001", "rollout/a/b/round-0001"]
        {
            assert_eq!(Stage::of_name(wrong), None, "{wrong}");
        }
    }
}
