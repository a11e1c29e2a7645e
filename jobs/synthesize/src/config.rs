//! `[synthesize]`: which sources, in which form.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The section.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SynthesizeConfig {
    /// Where tasks come from, in this order.
    pub sources: Vec<Source>,
    /// Candidates per shard.
    pub shard_size: usize,
    /// Python interpreter that parses assert-style tests (never executing them).
    pub python: PathBuf,
}

impl Default for SynthesizeConfig {
    fn default() -> SynthesizeConfig {
        SynthesizeConfig { sources: Vec::new(), shard_size: 500, python: "python3".into() }
    }
}

/// The form of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Lines with `question` and `test_cases`.
    Jsonl,
    /// `HumanEval.jsonl` or `.jsonl.gz`; for evaluation only.
    Humaneval,
    /// `mbpp.jsonl`.
    Mbpp,
}

/// One source.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Its form.
    pub kind: Kind,
    /// A file, or a folder whose `*.jsonl` and `*.jsonl.gz` are read in order of name.
    pub path: PathBuf,
    /// Its name in the tables; the file's or folder's name if absent.
    pub name: Option<String>,
    /// Licence, where the lines do not say.
    pub licence: Option<String>,
    /// Only tasks of these difficulties; all if empty.
    #[serde(default)]
    pub difficulty: Vec<String>,
    /// At most so many tasks.
    pub limit: Option<usize>,
    /// Never train on it.
    #[serde(default)]
    pub eval_only: bool,
}

impl Source {
    /// Its name in the tables.
    pub fn name(&self) -> String {
        let stem = || self.path.file_name()?.to_str()?.split('.').next().map(str::to_lowercase);
        self.name.clone().or_else(stem).unwrap_or_else(|| "tasks".into())
    }
}
