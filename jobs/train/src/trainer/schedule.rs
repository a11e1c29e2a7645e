//! Which trajectories each update sees. In: the batch, the config and the round's number. Out: minibatches, all known
//! before the first step, so that a resumed round continues in the same order.

use std::collections::HashMap;

use super::pairs::pairs;
use crate::algorithm::Algorithm;
use crate::config::TrainConfig;
use crate::experience::Experience;
use crate::shuffle::permutation;

/// Minibatches of a round as indices into the batch; for algorithms of pairs chosen, rejected, chosen, rejected, …
pub(super) struct Schedule {
    /// One per step.
    pub(super) actor: Vec<Vec<usize>>,
    /// `critic_updates` per step, from shuffles of their own; empty without a critic.
    pub(super) critic: Vec<Vec<usize>>,
    /// Steps in a pass.
    pub(super) per_pass: usize,
}

impl Schedule {
    pub(super) fn new(batch: &[Experience], config: &TrainConfig, round: u64) -> Schedule {
        let units = units(batch, config);
        let pairs = config.algorithm.takes_pairs();
        let per_pass = match pairs {
            true => units.len().div_ceil((config.minibatch_trajectories / 2).max(1)),
            false => units.iter().map(Vec::len).sum::<usize>().div_ceil(config.minibatch_trajectories),
        };
        let sweep = |network: u64, pass: usize| {
            let order = permutation(units.len(), &[config.seed, network, round, pass as u64]);
            let units: Vec<&[usize]> = order.into_iter().map(|unit| units[unit].as_slice()).collect();
            cut(&units.concat(), per_pass, if pairs { 2 } else { 1 })
        };
        let updates = if config.algorithm == Algorithm::Ppo { config.critic_updates } else { 0 };
        Schedule {
            actor: (0..config.passes).flat_map(|pass| sweep(0, pass)).collect(),
            critic: (0..config.passes * updates).flat_map(|pass| sweep(1, pass)).collect(),
            per_pass,
        }
    }

    pub(super) fn steps(&self) -> usize {
        self.actor.len()
    }
}

/// What is shuffled as a whole: groups (their prompt is computed once), pairs, or the groups' passing trajectories.
fn units(batch: &[Experience], config: &TrainConfig) -> Vec<Vec<usize>> {
    match config.algorithm {
        Algorithm::Dpo | Algorithm::RewardModel => pairs(batch).into_iter().map(|(c, r)| vec![c, r]).collect(),
        Algorithm::Sft => {
            let passes = |&i: &usize| batch[i].reward.is_some_and(|r| r >= config.passing_reward);
            let passing = groups(batch).into_iter().map(|group| group.into_iter().filter(passes).collect());
            passing.filter(|group: &Vec<usize>| !group.is_empty()).collect()
        }
        Algorithm::Ppo | Algorithm::Grpo | Algorithm::Rloo => groups(batch),
    }
}

/// Trajectories that take part, by task, in the order of the batch.
pub(super) fn groups(batch: &[Experience]) -> Vec<Vec<usize>> {
    let (mut groups, mut at): (Vec<Vec<usize>>, HashMap<&str, usize>) = Default::default();
    for (index, experience) in batch.iter().enumerate().filter(|(_, e)| e.takes_part()) {
        let place = *at.entry(&experience.task_id).or_insert(groups.len());
        if place == groups.len() {
            groups.push(vec![]);
        }
        groups[place].push(index);
    }
    groups
}

/// `parts` minibatches whose sizes differ by one `grain` at most.
fn cut(order: &[usize], parts: usize, grain: usize) -> Vec<Vec<usize>> {
    let at = |part: usize| order.len() / grain * part / parts * grain;
    (0..parts).map(|part| order[at(part)..at(part + 1)].to_vec()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(tasks: &[&str]) -> Vec<Experience> {
        let one = |(at, task): (usize, &&str)| Experience {
            task_id: (*task).to_owned(),
            tokens: vec![1, 2],
            trainable: vec![false, *task != "prompt only"],
            log_probs: vec![0.0, -1.0],
            reward: Some((at % 2) as f64),
            truncated: false,
        };
        tasks.iter().enumerate().map(one).collect()
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

    #[test]
    fn pairs_stay_whole_and_sft_sees_what_passes() {
        let batch = batch(&["a", "a", "b", "b", "c", "c", "d", "d", "e", "e"]);
        let with = |algorithm| {
            let config = TrainConfig { algorithm, minibatch_trajectories: 4, ..Default::default() };
            Schedule::new(&batch, &config, 0)
        };
        let pairs = with(Algorithm::Dpo);
        assert_eq!(pairs.actor.iter().map(Vec::len).collect::<Vec<_>>(), [2, 4, 4]);
        assert!(pairs.actor.concat().chunks(2).all(|pair| pair[0] == pair[1] + 1), "{:?}", pairs.actor);
        let mut passing = with(Algorithm::Sft).actor.concat();
        passing.sort_unstable();
        assert_eq!(passing, [1, 3, 5, 7, 9]);
        let single = TrainConfig { algorithm: Algorithm::Dpo, minibatch_trajectories: 1, ..Default::default() };
        assert!(Schedule::new(&batch, &single, 0).actor.iter().all(|minibatch| minibatch.len() == 2));
        assert!(with(Algorithm::Grpo).critic.is_empty());
        let equal: Vec<Experience> = batch.iter().map(|e| Experience { reward: Some(0.5), ..e.clone() }).collect();
        assert_eq!(
            Schedule::new(&equal, &TrainConfig { algorithm: Algorithm::Dpo, ..Default::default() }, 0).steps(),
            0
        );
    }
}
