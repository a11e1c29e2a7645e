//! How far the trajectories of a task are apart, which decides whether comparing them says anything. In: a batch. Out:
//! metrics of the round.
//! Must hold: where one trajectory of a group takes 3 steps and the next 200, or all are paid the same, a group-relative
//! advantage is noise; the numbers here are what the alert about that rests on.

use super::round::Metrics;
use super::schedule::groups;
use super::stats::mean;
use crate::experience::Experience;
use crate::numerics::whiten::mean_std;

/// Means over groups of at least two trajectories; without one there is nothing.
pub(super) fn spread(batch: &[Experience]) -> Metrics {
    let groups: Vec<Vec<usize>> = groups(batch).into_iter().filter(|group| group.len() > 1).collect();
    if groups.is_empty() {
        return Metrics::new();
    }
    let rewards = |group: &[usize]| mean_std(&group.iter().filter_map(|&i| batch[i].reward).collect::<Vec<_>>()).1;
    let lengths = |group: &[usize]| group.iter().map(|&i| batch[i].trainable_len() as f64).collect::<Vec<f64>>();
    let ratio = |group: &[usize]| {
        let lengths = lengths(group);
        lengths.iter().fold(0.0, |max: f64, &l| max.max(l)) / lengths.iter().fold(f64::INFINITY, |min, &l| min.min(l))
    };
    let variation = |group: &[usize]| {
        let (mean, std) = mean_std(&lengths(group));
        std / mean
    };
    let over = |of: &dyn Fn(&[usize]) -> f64| mean(groups.iter().map(|group| of(group)));
    [
        ("group_reward_std", over(&rewards)),
        ("informative_groups", over(&|group| f64::from(u8::from(rewards(group) > 0.0)))),
        ("group_length_ratio", over(&ratio)),
        ("group_length_variation", over(&variation)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(task: &str, length: usize, reward: f64) -> Experience {
        Experience {
            task_id: task.to_owned(),
            tokens: vec![1; length + 1],
            trainable: (0..=length).map(|at| at > 0).collect(),
            log_probs: vec![-1.0; length + 1],
            reward: Some(reward),
            truncated: false,
        }
    }

    #[test] // lengths 3 and 200: ratio 66.67, variation 139.3 / 101.5; rewards 1 and 0: deviation .7071
    fn by_hand() {
        let got = spread(&[row("a", 3, 1.0), row("a", 200, 0.0), row("b", 4, 1.0), row("b", 4, 1.0), row("c", 9, 1.0)]);
        let near = |name: &str, want: f64| assert!((got[name] - want).abs() < 1e-4, "{name}: {}", got[name]);
        near("group_reward_std", 0.5f64.sqrt() / 2.0);
        near("informative_groups", 0.5);
        near("group_length_ratio", (200.0 / 3.0 + 1.0) / 2.0);
        near("group_length_variation", 197.0 / 2f64.sqrt() / 101.5 / 2.0);
        assert!(spread(&[row("a", 3, 1.0)]).is_empty(), "a group of one compares with nothing");
    }
}
