//! Before against after, set by set.

use super::Batch;
use rollmill_evaluate::stats::{Interval, bootstrap, paired_bootstrap};
use rollmill_evaluate::{EvaluateConfig, Sample, samples};
use rollmill_rollout::{RolloutConfig, RolloutSet, TRAIN};
use std::collections::BTreeMap;

/// Mean of a measure by task.
fn by_task(batch: &Batch, measure: &dyn Fn(&Sample) -> f64) -> BTreeMap<String, f64> {
    let mut sums: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for sample in samples(&batch.trajectories, &batch.rewards).iter().filter(|s| s.solved.is_some()) {
        let entry = sums.entry(sample.task_id.clone()).or_default();
        *entry = (entry.0 + measure(sample), entry.1 + 1.0);
    }
    sums.into_iter().map(|(task, (sum, n))| (task, sum / n)).collect()
}

fn show(interval: Option<Interval>) -> String {
    interval.map_or("-".into(), |i| format!("{:.3} [{:.3}, {:.3}]", i.mean, i.low, i.high))
}

/// Below so many tasks a bootstrap by task says nothing: its interval shrinks to a point.
const FEWEST_TASKS: usize = 5;

/// What a change over `tasks` tasks is called. Only an interval without 0 is called a change.
fn word(change: Interval, tasks: usize) -> &'static str {
    if tasks < FEWEST_TASKS {
        "too few tasks to say"
    } else if change.low > 0.0 {
        "better"
    } else if change.high < 0.0 {
        "worse"
    } else {
        "no measurable change"
    }
}

/// The batches a set is compared between. A set of the training split that is only sampled at the end is held against
/// the first round of training, which the untrained policy acted in.
fn ends<'a>(batches: &'a [Batch], set: &RolloutSet) -> Option<(&'a Batch, &'a Batch)> {
    let of = |name: &str| batches.iter().filter(|b| b.set == name).collect::<Vec<_>>();
    let own = of(&set.name);
    let last = *own.last()?;
    let first = match own[0].round {
        0 => own[0],
        _ => *of(TRAIN).first().filter(|b| set.split == TRAIN && b.temperature() == Some(set.temperature))?,
    };
    (last.round > 0).then_some((first, last))
}

/// Prints one line a set, and format compliance apart.
pub fn print(batches: &[Batch], rollout: &RolloutConfig, evaluate: &EvaluateConfig) {
    println!("  {:<18} {:>4} {:>5} {:>6} {:>24} {:>24}  {:>26}", "set", "T", "tasks", "x", "before", "after", "change");
    let solved = |s: &Sample| f64::from(u8::from(s.solved == Some(true)));
    let formed = |s: &Sample| f64::from(u8::from(s.well_formed));
    for (measure, label) in
        [(&solved as &dyn Fn(&Sample) -> f64, ""), (&formed, "well-formed answers, apart from whether they are right")]
    {
        if !label.is_empty() {
            println!("  {label}:");
        }
        for set in &rollout.sets {
            let Some((first, last)) = ends(batches, set) else {
                println!("  {:<18} not measured before and after", set.name);
                continue;
            };
            let (before, after) = (by_task(first, measure), by_task(last, measure));
            let pairs: Vec<(f64, f64)> =
                before.iter().filter_map(|(task, b)| after.get(task).map(|a| (*b, *a))).collect();
            let of = |values: Vec<f64>| bootstrap(&values, evaluate.resamples, evaluate.seed);
            let (b, a) = (of(pairs.iter().map(|p| p.0).collect()), of(pairs.iter().map(|p| p.1).collect()));
            let change = paired_bootstrap(&pairs, evaluate.resamples, evaluate.seed);
            let change = change.map_or("-".into(), |c| {
                format!("{:+.3} [{:+.3}, {:+.3}] {}", c.mean, c.low, c.high, word(c, pairs.len()))
            });
            println!(
                "  {:<18} {:>4} {:>5} {:>6} {:>24} {:>24}  {change}",
                set.name,
                set.temperature,
                pairs.len(),
                set.samples,
                show(b),
                show(a)
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_change_is_called_one() {
        let interval = |low, high| Interval { mean: 0.0, low, high };
        assert_eq!(word(interval(-0.1, 0.2), 40), "no measurable change");
        assert_eq!(word(interval(0.01, 0.2), 40), "better");
        assert_eq!(word(interval(-0.2, -0.01), 40), "worse");
        assert_eq!(word(interval(-0.5, -0.5), 1), "too few tasks to say");
    }
}
