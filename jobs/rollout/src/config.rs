//! `[rollout]`: how a policy acts, and on which sets of tasks.

use crate::act::ActConfig;
use rollmill_job::JobError;
use rollmill_sandbox::Level;
use rollmill_schema::{Task, content_id};
use serde::{Deserialize, Serialize};

/// Name of the set that is trained on.
pub const TRAIN: &str = "train";

/// The section.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RolloutConfig {
    /// Trajectories per task of a round of training.
    pub samples: u32,
    /// Tasks per round of training; none means all.
    pub tasks: Option<usize>,
    /// Whether each round takes the next tasks, or all rounds the same.
    pub rotate: bool,
    /// Tasks per shard.
    pub shard_tasks: usize,
    /// How many rounds older than the newest the policy of a round of training may be, so that a cluster can sample the next
    /// round while this one trains. 0 is strict.
    pub max_lag: u32,
    /// How the policy acts.
    pub act: ActConfig,
    /// Sets to evaluate on.
    pub sets: Vec<RolloutSet>,
    /// Seconds one call of a visible test may take.
    pub call_seconds: f64,
    /// The weakest isolation a sandbox may have.
    pub floor: Level,
}

impl Default for RolloutConfig {
    fn default() -> RolloutConfig {
        RolloutConfig {
            samples: 4,
            tasks: None,
            rotate: true,
            shard_tasks: 16,
            max_lag: 0,
            act: ActConfig::default(),
            sets: vec![RolloutSet::default()],
            call_seconds: 2.0,
            floor: Level::Watched,
        }
    }
}

/// When an evaluation set is rolled out by `rollmill run`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum When {
    /// Before the first round and after each.
    #[default]
    Every,
    /// Before the first round and after the last.
    Ends,
    /// After the last round.
    Last,
}

impl When {
    /// Whether a set is due after `round` of so many.
    pub fn is_due(self, round: u32, rounds: u32) -> bool {
        match self {
            When::Every => true,
            When::Ends => round == 0 || round == rounds,
            When::Last => round == rounds,
        }
    }
}

/// One set of tasks and how it is sampled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RolloutSet {
    /// Name in tables and folders.
    pub name: String,
    /// Split its tasks come from.
    pub split: String,
    /// Trajectories per task.
    pub samples: u32,
    /// Tasks; none means all.
    pub tasks: Option<usize>,
    /// Sampling temperature; 0 is greedy.
    pub temperature: f64,
    /// Nucleus.
    pub top_p: f64,
    /// When `rollmill run` samples it.
    pub when: When,
    /// Whether each round takes the next tasks.
    #[serde(skip)]
    pub rotate: bool,
}

impl Default for RolloutSet {
    fn default() -> RolloutSet {
        RolloutSet {
            name: "heldout".into(),
            split: "heldout".into(),
            samples: 4,
            tasks: None,
            temperature: 0.8,
            top_p: 1.0,
            when: When::Every,
            rotate: false,
        }
    }
}

impl RolloutConfig {
    /// The set of that name.
    pub fn set(&self, name: &str) -> Result<RolloutSet, JobError> {
        if name == TRAIN {
            return Ok(RolloutSet {
                name: TRAIN.into(),
                split: TRAIN.into(),
                samples: self.samples,
                tasks: self.tasks,
                temperature: self.act.temperature,
                top_p: self.act.top_p,
                when: When::Every,
                rotate: self.rotate,
            });
        }
        self.sets.iter().find(|s| s.name == name).cloned().ok_or_else(|| {
            let names: Vec<&str> = self.sets.iter().map(|s| s.name.as_str()).collect();
            JobError::Config {
                place: format!("--split {name}"),
                reason: format!("no such set; there are train and [[rollout.sets]] {}", names.join(", ")),
            }
        })
    }

    /// Refuses settings that cannot work.
    pub fn check(&self) -> Result<(), JobError> {
        let bad = |reason: String| Err(JobError::Config { place: "[rollout]".into(), reason });
        if self.act.top_p < 1.0 {
            return bad("act.top_p must be 1: rows to train on are sampled from the whole distribution".into());
        }
        if self.samples == 0 || !(self.call_seconds > 0.0 && self.call_seconds <= 3600.0) {
            return bad("samples and call_seconds must be above 0".into());
        }
        let mut names = std::collections::HashSet::from([TRAIN]);
        for set in &self.sets {
            let named = !set.name.is_empty()
                && set.name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
                && !set.name.starts_with('.');
            let sampled = set.samples > 0 && set.temperature >= 0.0 && set.top_p > 0.0 && set.top_p <= 1.0;
            if !named || !sampled || !names.insert(&set.name) {
                let need =
                    "a name of its own (letters, digits, - _ .), samples above 0, temperature from 0, top_p in (0, 1]";
                return bad(format!("set {:?} needs {need}", set.name));
            }
        }
        self.act.check().map_err(|e| JobError::Config { place: "[rollout.act]".into(), reason: e.to_string() })
    }
}

impl RolloutSet {
    /// The tasks of `round`, in an order that says nothing about their source.
    pub fn pick(&self, mut tasks: Vec<Task>, round: u32) -> Vec<Task> {
        tasks.retain(|t| t.split == self.split);
        tasks.sort_by_cached_key(|t| content_id(&[&t.task_id]));
        let count = self.tasks.unwrap_or(tasks.len()).min(tasks.len());
        if self.rotate && !tasks.is_empty() {
            let start = (round.saturating_sub(1) as usize * count) % tasks.len();
            tasks.rotate_left(start);
        }
        tasks.truncate(count);
        tasks
    }
}
