//! What a run measured round by round, for pictures.
//!
//! In: sealed evaluations and checkpoint manifests of one run. Out: one panel a measure, with a line of (round, value) and, where
//! the measure has one, its 95 % interval. What is not measured has no panel.

use rollmill_job::{JobError, Run, Stage, checkpoint, seal};
use rollmill_rollout::RolloutConfig;
use rollmill_schema::Metric;
use std::collections::BTreeMap;

/// A value of a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The round; 0 is the model before training.
    pub round: u32,
    /// The mean.
    pub value: f64,
    /// Ends of its interval.
    pub interval: Option<(f64, f64)>,
}

/// Lines by the title of their panel, in the order in which panels are shown.
pub type Curves = Vec<(String, Vec<Point>)>;

/// Measures of training that are shown, and the titles of their panels. All are means over a round's updates.
const TRAINING: [(&str, &str); 6] = [
    ("train/score", "reward while training"),
    ("train/passing_share", "share that passes while training"),
    ("train/explained_variance", "explained variance of the critic"),
    ("train/kl_reference", "KL to the reference"),
    ("train/entropy", "entropy (nats)"),
    ("train/trainable_length_mean", "sampled tokens of a trajectory"),
];

/// Reads the curves of a run.
pub async fn read(run: &Run) -> Result<Curves, JobError> {
    let rollout: RolloutConfig = run.config.section("rollout")?;
    let rounds = rounds(run).await?;
    let mut curves = Curves::new();
    let mut formed = Curves::new();
    for set in &rollout.sets {
        let (mut solved, mut well_formed) = (Vec::new(), Vec::new());
        for &round in &rounds {
            let metrics = evaluated(run, &set.name, round).await?;
            solved.extend(point(&metrics, round, "pass@1"));
            well_formed.extend(point(&metrics, round, "well_formed"));
        }
        curves.push((format!("pass@1 on {}, T = {}", set.name, set.temperature), solved));
        formed.push((format!("well-formed answers on {}", set.name), well_formed));
    }
    curves.extend(formed);
    let mut training: BTreeMap<&str, Vec<Point>> = BTreeMap::new();
    for &round in rounds.iter().filter(|&&round| round > 0) {
        let Some(manifest) = checkpoint::last_of_round(run, round).await? else { continue };
        for (name, _) in TRAINING {
            let value = mean(&manifest.metrics, name);
            training.entry(name).or_default().extend(value.map(|value| Point { round, value, interval: None }));
        }
    }
    curves.extend(TRAINING.iter().map(|(name, title)| (title.to_string(), training.remove(name).unwrap_or_default())));
    curves.retain(|(_, line)| !line.is_empty());
    Ok(curves)
}

/// Rounds that have a finished checkpoint.
async fn rounds(run: &Run) -> Result<Vec<u32>, JobError> {
    let checkpoints = rollmill_job::inspect::checkpoints(run).await?;
    let mut rounds: Vec<u32> = checkpoints.iter().filter(|c| c.last).map(|c| c.round).collect();
    rounds.sort_unstable();
    rounds.dedup();
    Ok(rounds)
}

/// What was measured of a set in a round; nothing if it was not.
async fn evaluated(run: &Run, set: &str, round: u32) -> Result<Vec<Metric>, JobError> {
    let stage = Stage::evaluate(&run.score_version()?, set, round);
    match seal::read_sealed::<Metric>(run, &stage).await {
        Ok((metrics, _)) => Ok(metrics),
        Err(JobError::InputAbsent { .. } | JobError::InputIncomplete { .. }) => Ok(Vec::new()),
        Err(e) => Err(e),
    }
}

fn point(metrics: &[Metric], round: u32, measure: &str) -> Option<Point> {
    let found = metrics.iter().find(|m| m.scope == "all" && m.name == measure)?;
    Some(Point { round, value: found.value?, interval: found.low.zip(found.high) })
}

fn mean(metrics: &[Metric], name: &str) -> Option<f64> {
    let values: Vec<f64> = metrics.iter().filter(|m| m.name == name).filter_map(|m| m.value).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_is_over_the_updates_that_have_a_value() {
        let metric = |name: &str, value| Metric { name: name.into(), value, ..Metric::default() };
        let metrics = [metric("a", Some(1.0)), metric("a", None), metric("a", Some(2.0)), metric("b", Some(9.0))];
        assert_eq!(mean(&metrics, "a"), Some(1.5));
        assert_eq!(mean(&metrics, "c"), None);
    }
}
