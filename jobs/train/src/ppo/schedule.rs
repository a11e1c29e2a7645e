//! Which trajectories each update sees. In: the batch, the config and the round's number. Out: minibatches, all known
//! before the first step, so that a resumed round continues in the same order.

use crate::config::TrainConfig;
use crate::experience::Experience;
use crate::shuffle::permutation;

/// Minibatches of a round as indices into the batch.
pub(super) struct Schedule {
    /// One per step.
    pub(super) actor: Vec<Vec<usize>>,
    /// `critic_updates` per step, from shuffles of their own.
    pub(super) critic: Vec<Vec<usize>>,
    /// Steps in a pass.
    pub(super) per_pass: usize,
}

impl Schedule {
    pub(super) fn new(batch: &[Experience], config: &TrainConfig, round: u64) -> Schedule {
        let groups = groups(batch);
        let count: usize = groups.iter().map(Vec::len).sum();
        let per_pass = count.div_ceil(config.minibatch_trajectories);
        let sweep = |network: u64, pass: usize| sweep(&groups, per_pass, &[config.seed, network, round, pass as u64]);
        Schedule {
            actor: (0..config.passes).flat_map(|pass| sweep(0, pass)).collect(),
            critic: (0..config.passes * config.critic_updates).flat_map(|pass| sweep(1, pass)).collect(),
            per_pass,
        }
    }

    pub(super) fn steps(&self) -> usize {
        self.actor.len()
    }
}

/// Trajectories with something to train on, by task, in the order of the batch.
fn groups(batch: &[Experience]) -> Vec<Vec<usize>> {
    let (mut groups, mut at): (Vec<Vec<usize>>, std::collections::HashMap<&str, usize>) = Default::default();
    for (index, experience) in batch.iter().enumerate().filter(|(_, e)| e.trainable_len() > 0) {
        let place = *at.entry(&experience.task_id).or_insert(groups.len());
        if place == groups.len() {
            groups.push(vec![]);
        }
        groups[place].push(index);
    }
    groups
}

/// One sweep: groups shuffled and kept together (their prompt is computed once), then cut into `parts` minibatches whose
/// sizes differ by one at most.
fn sweep(groups: &[Vec<usize>], parts: usize, key: &[u64]) -> Vec<Vec<usize>> {
    let order: Vec<usize> =
        permutation(groups.len(), key).into_iter().flat_map(|group| groups[group].iter().copied()).collect();
    (0..parts).map(|part| order[order.len() * part / parts..order.len() * (part + 1) / parts].to_vec()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(tasks: &[&str]) -> Vec<Experience> {
        let one = |task: &&str| Experience {
            task_id: (*task).to_owned(),
            tokens: vec![1, 2],
            trainable: vec![false, *task != "prompt only"],
            log_probs: vec![0.0, -1.0],
            reward: 0.0,
            truncated: false,
        };
        tasks.iter().map(one).collect()
    }

    #[test]
    fn every_sweep_sees_each_trainable_trajectory_once_and_groups_stay_together() {
        let batch = batch(&["a", "a", "b", "prompt only", "b", "c", "c", "d", "d"]);
        let config = TrainConfig { passes: 3, minibatch_trajectories: 4, critic_updates: 2, ..Default::default() };
        let schedule = Schedule::new(&batch, &config, 0);
        assert_eq!((schedule.steps(), schedule.critic.len(), schedule.per_pass), (6, 12, 2));
        for sweep in schedule.actor.chunks(2).chain(schedule.critic.chunks(2)) {
            let mut seen = sweep.concat();
            assert!(seen.chunks(2).all(|pair| batch[pair[0]].task_id == batch[pair[1]].task_id), "{seen:?}");
            seen.sort_unstable();
            assert_eq!(seen, [0, 1, 2, 4, 5, 6, 7, 8]);
        }
        let another = Schedule::new(&batch, &config, 1);
        assert_ne!(schedule.actor, another.actor, "a round has its own order");
        assert_eq!(schedule.actor, Schedule::new(&batch, &config, 0).actor);
    }
}
