//! From samples to metrics.

use crate::EvaluateConfig;
use crate::stats::{bootstrap, pass_at_k};
use rollmill_schema::{Metric, Reward, Task, Trajectory};
use std::collections::{BTreeMap, HashMap};

/// What of one graded trajectory is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The task.
    pub task_id: String,
    /// Every test passed; none if it could not be graded.
    pub solved: Option<bool>,
    /// The reward; none if it could not be graded.
    pub reward: Option<f64>,
    /// Every action was well-formed.
    pub well_formed: bool,
    /// A repair was tried.
    pub repaired: bool,
    /// The last repair passed the visible tests.
    pub repair_passed: bool,
    /// Tokens sampled.
    pub tokens: i64,
}

/// Joins trajectories with their rewards.
pub fn samples(trajectories: &[Trajectory], rewards: &[Reward]) -> Vec<Sample> {
    let by_id: HashMap<&str, &Reward> = rewards.iter().map(|r| (r.trajectory_id.as_str(), r)).collect();
    let join = |t: &Trajectory| {
        let reward = by_id.get(t.trajectory_id.as_str()).filter(|r| r.status == "graded");
        let last_repair = t.steps.iter().rfind(|s| s.phase == "repair");
        Sample {
            task_id: t.task_id.clone(),
            solved: reward.and_then(|r| r.solved),
            reward: reward.and_then(|r| r.total),
            well_formed: t.well_formed,
            repaired: last_repair.is_some(),
            repair_passed: last_repair.is_some_and(|s| s.ok),
            tokens: i64::from(t.sampled_tokens),
        }
    };
    trajectories.iter().map(join).collect()
}

/// Samples and the tasks they belong to.
pub struct Table<'a> {
    /// All samples of one set and round.
    pub samples: Vec<Sample>,
    /// Tasks, for their ability.
    pub tasks: &'a [Task],
}

impl Table<'_> {
    /// All metrics, in a fixed order.
    pub fn measure(&self, config: &EvaluateConfig) -> Vec<Metric> {
        let ability: HashMap<&str, &str> =
            self.tasks.iter().map(|t| (t.task_id.as_str(), t.ability.as_str())).collect();
        let mut scopes: BTreeMap<String, Vec<&Sample>> = BTreeMap::new();
        for sample in &self.samples {
            scopes.entry("all".into()).or_default().push(sample);
            let ability = ability.get(sample.task_id.as_str()).unwrap_or(&"unknown");
            scopes.entry(format!("ability:{ability}")).or_default().push(sample);
            scopes.entry(format!("task:{}", sample.task_id)).or_default().push(sample);
        }
        scopes.iter().flat_map(|(scope, samples)| measure_scope(scope, samples, config)).collect()
    }
}

fn measure_scope(scope: &str, samples: &[&Sample], config: &EvaluateConfig) -> Vec<Metric> {
    let graded: Vec<&&Sample> = samples.iter().filter(|s| s.solved.is_some()).collect();
    let mut by_task: BTreeMap<&str, Vec<&Sample>> = BTreeMap::new();
    for sample in &graded {
        by_task.entry(&sample.task_id).or_default().push(sample);
    }
    let over_tasks = |name: &str, per_task: &dyn Fn(&[&Sample]) -> Option<f64>| {
        let values: Vec<f64> = by_task.values().filter_map(|s| per_task(s)).collect();
        let interval = bootstrap(&values, config.resamples, config.seed);
        // Resampling one task says nothing about its spread.
        let ends = interval.filter(|_| values.len() > 1);
        Metric {
            name: name.into(),
            scope: scope.into(),
            value: interval.map(|i| i.mean),
            low: ends.map(|i| i.low),
            high: ends.map(|i| i.high),
            count: values.len() as i64,
            ..Metric::default()
        }
    };
    let solved = |s: &[&Sample]| s.iter().filter(|s| s.solved == Some(true)).count() as u32;
    let most = by_task.values().map(Vec::len).max().unwrap_or(0) as u32;
    let mut metrics = Vec::new();
    for &k in config.k.iter().filter(|&&k| k <= most) {
        metrics.push(over_tasks(&format!("pass@{k}"), &|s| pass_at_k(s.len() as u32, solved(s), k)));
    }
    let mean = |s: &[&Sample], f: &dyn Fn(&Sample) -> f64| Some(s.iter().map(|s| f(s)).sum::<f64>() / s.len() as f64);
    metrics.push(over_tasks("reward", &|s| mean(s, &|s| s.reward.unwrap_or(0.0))));
    metrics.push(over_tasks("well_formed", &|s| mean(s, &|s| f64::from(u8::from(s.well_formed)))));
    let total = |name: &str, value: f64| Metric {
        name: name.into(),
        scope: scope.into(),
        value: Some(value),
        count: samples.len() as i64,
        ..Metric::default()
    };
    let count = |f: &dyn Fn(&Sample) -> bool| samples.iter().filter(|s| f(s)).count() as f64;
    metrics.push(total("infrastructure", count(&|s| s.solved.is_none())));
    metrics.push(total("repairs_tried", count(&|s| s.repaired)));
    metrics.push(total("repairs_passed", count(&|s| s.repair_passed)));
    metrics.push(total("sampled_tokens", samples.iter().map(|s| s.tokens).sum::<i64>() as f64));
    metrics
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(task: &str, solved: Option<bool>) -> Sample {
        let reward = solved.map(|s| f64::from(u8::from(s)));
        let task_id = task.into();
        Sample { task_id, solved, reward, well_formed: true, repaired: false, repair_passed: false, tokens: 7 }
    }

    #[test]
    fn infrastructure_is_in_no_mean() {
        let samples =
            vec![sample("a", Some(true)), sample("a", None), sample("b", Some(false)), sample("b", Some(true))];
        let table = Table { samples, tasks: &[] };
        let metrics = table.measure(&EvaluateConfig::default());
        let get = |name: &str| metrics.iter().find(|m| m.name == name && m.scope == "all").unwrap();
        assert_eq!(get("pass@1").value, Some(0.75));
        assert_eq!(get("infrastructure").value, Some(1.0));
        assert_eq!(get("sampled_tokens").value, Some(28.0));
        assert_eq!(get("pass@1").count, 2);
    }
}
