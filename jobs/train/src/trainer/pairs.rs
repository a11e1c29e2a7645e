//! Pairs of trajectories of which one is better. In: a batch. Out: pairs within a task, best with worst, second with
//! second-worst and so on while their rewards differ; each trajectory is in one pair at most. Deterministic: equal rewards
//! keep the order of the batch. Preference data from elsewhere is a task with two trajectories of rewards 1 and 0.

use super::schedule::groups;
use crate::experience::Experience;

/// Indices of the chosen and of the rejected one.
pub(super) fn pairs(batch: &[Experience]) -> Vec<(usize, usize)> {
    groups(batch).into_iter().flat_map(|group| of_group(batch, group)).collect()
}

fn of_group(batch: &[Experience], mut group: Vec<usize>) -> Vec<(usize, usize)> {
    let reward = |index: usize| batch[index].reward.unwrap_or(f64::NEG_INFINITY);
    group.sort_by(|&a, &b| reward(b).total_cmp(&reward(a)));
    let half = group.len() / 2;
    let ends = group[..half].iter().zip(group.iter().rev());
    ends.map(|(&chosen, &rejected)| (chosen, rejected)).take_while(|&(c, r)| reward(c) > reward(r)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(rewards: &[(&str, Option<f64>)]) -> Vec<Experience> {
        let one = |(task, reward): &(&str, Option<f64>)| Experience {
            task_id: (*task).to_owned(),
            tokens: vec![1, 2],
            trainable: vec![false, true],
            log_probs: vec![0.0, -1.0],
            reward: *reward,
            truncated: false,
        };
        rewards.iter().map(one).collect()
    }

    #[test]
    fn best_with_worst_within_a_task_while_they_differ() {
        let some = |task, reward| (task, Some(reward));
        let batch = batch(&[
            some("a", 0.2),
            some("b", 1.0),
            some("a", 0.9),
            some("a", 0.2),
            some("a", 0.5),
            some("b", 1.0),
            ("b", None),
            some("c", 1.0),
        ]);
        assert_eq!(pairs(&batch), [(2, 3), (4, 0)]);
    }
}
