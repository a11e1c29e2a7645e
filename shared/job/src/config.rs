//! A run's configuration: TOML, one section a job. What defines the experiment is fingerprinted and frozen with the run;
//! `[operations]` (endpoint, concurrency, number of rounds, time-outs) is not, and may change between two commands.

use crate::JobError;
pub use crate::sandbox_settings::{SandboxBackend, SandboxSettings};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::path::Path;
use toml::{Table, Value};

/// Settings of commands.
const OPERATIONS: &str = "operations";
/// Sections that are no part of the experiment.
const OPERATIONAL: [&str; 3] = [OPERATIONS, "cluster", "budget"];

/// Settings that may change at any time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Operations {
    /// Where `run` keeps the run when `--run` does not say: a folder or `s3://bucket/prefix`.
    pub run: Option<String>,
    /// Rounds of rollout, score, train, evaluate.
    pub rounds: u32,
    /// Address of a policy endpoint; none means that `run` starts `rollmill-serve` itself.
    pub endpoint: Option<String>,
    /// Name of the variable that holds the endpoint's key.
    pub endpoint_key_env: Option<String>,
    /// Items in flight per rollout worker; none means what suits the endpoint.
    pub concurrency: Option<u32>,
    /// Cores to use; none means all.
    pub threads: Option<u32>,
    /// Seconds a silent worker keeps its shard.
    pub lease_seconds: u64,
    /// Finished items per chunk, at most.
    pub chunk_items: usize,
    /// Seconds between chunks, at most.
    pub chunk_seconds: u64,
    /// Tries of an item before it becomes a failed row.
    pub item_tries: u32,
    /// Rounds whose last checkpoint `run` keeps, the newest; it removes the files of the others as rounds end. None keeps all.
    pub keep_checkpoints: Option<u32>,
    /// Where what is not trusted is executed.
    pub sandbox: SandboxSettings,
}

impl Default for Operations {
    fn default() -> Operations {
        Operations {
            run: None,
            rounds: 1,
            endpoint: None,
            endpoint_key_env: None,
            concurrency: None,
            threads: None,
            lease_seconds: 30,
            chunk_items: 16,
            chunk_seconds: 20,
            item_tries: 3,
            keep_checkpoints: None,
            sandbox: SandboxSettings::default(),
        }
    }
}

impl Operations {
    /// The flags by which a job of the frame is told of them.
    pub fn flags(&self) -> Vec<String> {
        let flag = |name: &str, value: String| [format!("--{name}"), value];
        [
            flag("lease-seconds", self.lease_seconds.to_string()),
            flag("chunk-items", self.chunk_items.to_string()),
            flag("chunk-seconds", self.chunk_seconds.to_string()),
            flag("item-tries", self.item_tries.to_string()),
            flag("sandbox", self.sandbox.to_string()),
        ]
        .concat()
    }
}

/// A parsed configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    table: Table,
    place: String,
}

impl Config {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Config, JobError> {
        let place = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|e| JobError::Config { place: place.clone(), reason: format!("cannot be read ({e})") })?;
        Config::parse(&text, &place)
    }

    /// Parses TOML text; `place` names it in errors.
    pub fn parse(text: &str, place: &str) -> Result<Config, JobError> {
        let table = text.parse::<Table>().map_err(|e| {
            let line = e.span().map_or(1, |s| text[..s.start.min(text.len())].lines().count().max(1));
            JobError::Config { place: format!("{place}:{line}"), reason: e.message().to_string() }
        })?;
        Ok(Config { table, place: place.to_string() })
    }

    /// A section as its job's own type, which refuses unknown keys. An absent section is an empty one.
    pub fn section<T: DeserializeOwned>(&self, name: &str) -> Result<T, JobError> {
        let value = self.table.get(name).cloned().unwrap_or_else(|| Value::Table(Table::new()));
        let place = format!("{} [{name}]", self.place);
        T::deserialize(value).map_err(|e| JobError::Config { place, reason: e.message().replace('\n', " ") })
    }

    /// Whether the configuration has a section of this name.
    pub fn has_section(&self, name: &str) -> bool {
        self.table.contains_key(name)
    }

    /// The operational settings.
    pub fn operations(&self) -> Result<Operations, JobError> {
        self.section(OPERATIONS)
    }

    /// Refuses sections that no job has.
    pub fn check_sections(&self, known: &[&str]) -> Result<(), JobError> {
        let known = [known, &OPERATIONAL].concat();
        match self.table.keys().find(|k| !known.contains(&k.as_str())) {
            None => Ok(()),
            Some(k) => Err(JobError::Config {
                place: self.place.clone(),
                reason: format!("unknown section [{k}]; known are {}", known.join(", ")),
            }),
        }
    }

    /// What defines the experiment, as TOML text.
    pub fn experiment(&self) -> String {
        let mut table = self.table.clone();
        table.retain(|name, _| !OPERATIONAL.contains(&name));
        table.to_string()
    }

    /// SHA-256 of the experiment, whatever the order, spacing and comments of the file.
    pub fn fingerprint(&self) -> String {
        let mut flat: Vec<String> = Vec::new();
        flatten("", &Value::Table(self.table.clone()), &mut |k, v| flat.push(format!("{k}={v}")));
        flat.sort();
        hex::encode(Sha256::digest(flat.join("\n")))
    }

    /// Which keys of the given sections differ.
    pub fn difference_in(&self, new: &Config, sections: &[&str]) -> String {
        let only = |config: &Config| {
            let mut config = config.clone();
            config.table.retain(|name, _| sections.contains(&name));
            config
        };
        only(self).difference(&only(new))
    }

    /// Which keys of the experiment differ, as `key: old -> new`.
    pub fn difference(&self, new: &Config) -> String {
        let (mut old_keys, mut new_keys) = (std::collections::BTreeMap::new(), std::collections::BTreeMap::new());
        flatten("", &Value::Table(self.table.clone()), &mut |k, v| drop(old_keys.insert(k, v)));
        flatten("", &Value::Table(new.table.clone()), &mut |k, v| drop(new_keys.insert(k, v)));
        let keys: std::collections::BTreeSet<_> = old_keys.keys().chain(new_keys.keys()).collect();
        let show = |v: Option<&String>| v.cloned().unwrap_or_else(|| "(absent)".into());
        let changed = keys.into_iter().filter(|k| old_keys.get(*k) != new_keys.get(*k));
        changed
            .map(|k| format!("{k}: {} -> {}", show(old_keys.get(k)), show(new_keys.get(k))))
            .collect::<Vec<_>>()
            .join(", ")
    }
}

/// Visits every leaf of the experiment with its dotted name.
fn flatten(prefix: &str, value: &Value, visit: &mut impl FnMut(String, String)) {
    match value {
        Value::Table(table) => {
            for (k, v) in table {
                let name = if prefix.is_empty() { k.clone() } else { format!("{prefix}.{k}") };
                if !OPERATIONAL.contains(&name.as_str()) {
                    flatten(&name, v, visit);
                }
            }
        }
        leaf => visit(prefix.to_string(), leaf.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fingerprint_is_of_the_experiment_alone() {
        let a = Config::parse("[rollout]\nsamples = 4\ntemperature = 0.8\n[operations]\nrounds = 2", "a").unwrap();
        let b = Config::parse("# same\n[operations]\nrounds = 9\n[rollout]\ntemperature=0.8\nsamples=4", "b").unwrap();
        assert_eq!(a.fingerprint(), b.fingerprint());
        assert_eq!(a.difference(&b), "");
        let c = Config::parse("[rollout]\nsamples = 8", "c").unwrap();
        assert_ne!(a.fingerprint(), c.fingerprint());
        assert_eq!(a.difference(&c), "rollout.samples: 4 -> 8, rollout.temperature: 0.8 -> (absent)");
    }

    #[test]
    fn errors_name_the_place() {
        let e = Config::parse("[a]\nx = 1\ny = = 2", "run.toml").unwrap_err().to_string();
        assert!(e.starts_with("run.toml:3: "), "{e}");
        let c = Config::parse("[operations]\nround = 2", "run.toml").unwrap();
        let e = c.operations().unwrap_err().to_string();
        assert!(e.contains("run.toml [operations]: unknown field `round`"), "{e}");
    }
}
