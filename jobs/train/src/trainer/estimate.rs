//! From rewards to advantages and value targets. In: rewards per token, and what the critic says or the group got. Out:
//! one advantage per trainable token, whitened over the batch where a critic gave it.

use super::prepare::{PerToken, Prepared};
use super::round::{Metrics, Trainer};
use super::schedule::groups;
use super::stats::{distribution, mean};
use crate::algorithm::Algorithm;
use crate::experience::Experience;
use crate::numerics::explained_variance::explained_variance;
use crate::numerics::gae::{End, gae, place_terminal, returns};
use crate::numerics::group::{group_relative, leave_one_out};
use crate::numerics::whiten::whiten;

impl Trainer {
    /// Advantages with the policy's λ, targets with the critic's, whitening over the whole batch.
    pub(super) fn estimate(
        &self,
        batch: &[Experience],
        rewards: &[Vec<f64>],
        values: PerToken,
        ends: &[f64],
        prepared: &mut Prepared,
    ) {
        let (config, mut advantages, mut targets) = (&self.config, vec![], vec![]);
        for (index, e) in batch.iter().enumerate() {
            if !e.takes_part() {
                advantages.push(vec![]);
                targets.push(vec![]);
                continue;
            }
            let end = if config.bootstraps(e) { End::Truncated(ends[index]) } else { End::Terminated };
            let values = spread(&values[index], e);
            let with = |lambda| gae(&rewards[index], &values, &e.trainable, end, config.gamma, lambda);
            targets.push(compact(&returns(&with(config.lambda_critic), &values, &e.trainable), e));
            advantages.push(compact(&with(config.lambda_actor.at(e.trainable_len())), e));
        }
        prepared.stats.extend(self.cut_off(batch, ends));
        let mut flat = advantages.concat();
        let flat_values: Vec<f64> = values.iter().flatten().map(|&v| f64::from(v)).collect();
        let flat_targets = targets.concat();
        if let Some(explained) = explained_variance(&flat_targets, &flat_values) {
            prepared.stats.insert("explained_variance".to_owned(), explained);
        }
        distribution(&mut prepared.stats, "advantage", flat.clone());
        distribution(&mut prepared.stats, "return", flat_targets);
        distribution(&mut prepared.stats, "value", flat_values);
        whiten(&mut flat);
        let mut rest = narrow(&flat);
        prepared.advantages = Some(advantages.iter().map(|list| rest.drain(..list.len()).collect()).collect());
        prepared.returns = Some(targets.iter().map(|t| narrow(t)).collect());
        prepared.values = Some(values);
    }

    /// What cut-off trajectories are taken to be worth, beside what finished ones got.
    fn cut_off(&self, batch: &[Experience], ends: &[f64]) -> Metrics {
        let part = |cut: bool| {
            let rows = batch.iter().zip(ends).filter(move |(e, _)| e.takes_part() && self.config.bootstraps(e) == cut);
            rows.map(move |(e, end)| e.reward.unwrap_or_default() + if cut { self.config.gamma * end } else { 0.0 })
        };
        let means = [("cut_off_value", true), ("finished_score", false)];
        let some = means.into_iter().filter(|(_, cut)| part(*cut).next().is_some());
        some.map(|(name, cut)| (name.to_owned(), mean(part(cut)))).collect()
    }

    /// The same advantage for every token of a trajectory, from the rewards of its group.
    pub(super) fn compare_groups(&self, batch: &[Experience], rewards: &[Vec<f64>], prepared: &mut Prepared) {
        let mut advantages = vec![vec![]; batch.len()];
        let mut all = vec![];
        for group in groups(batch) {
            let totals: Vec<Option<f64>> = group.iter().map(|&i| Some(rewards[i].iter().sum())).collect();
            let relative = match self.config.algorithm {
                Algorithm::Rloo => leave_one_out(&totals),
                _ => group_relative(&totals, self.config.group_std_floor),
            };
            for (&index, &advantage) in group.iter().zip(&relative) {
                advantages[index] = vec![advantage as f32; batch[index].trainable_len()];
            }
            all.extend(relative);
        }
        distribution(&mut prepared.stats, "advantage", all);
        prepared.advantages = Some(advantages);
    }
}

/// Reward per token: −coef·k1 on every trainable token, the terminal reward on the last. Nothing for a failed trajectory.
pub(super) fn rewards(e: &Experience, old: &[f32], reference: Option<&[f32]>, coef: f64) -> Vec<f64> {
    let mut rewards = vec![0.0; e.tokens.len()];
    let Some(terminal) = e.reward.filter(|_| e.takes_part()) else { return rewards };
    if let Some(reference) = reference.filter(|_| coef > 0.0) {
        for (slot, at) in e.trainable_indices().enumerate() {
            rewards[at] = -coef * f64::from(old[slot] - reference[slot]);
        }
    }
    place_terminal(&mut rewards, &e.trainable, terminal);
    rewards
}

fn narrow(list: &[f64]) -> Vec<f32> {
    list.iter().map(|&x| x as f32).collect()
}

/// From trainable tokens to all tokens, 0 elsewhere.
fn spread(list: &[f32], e: &Experience) -> Vec<f64> {
    let mut all = vec![0.0; e.tokens.len()];
    e.trainable_indices().zip(list).for_each(|(at, &value)| all[at] = f64::from(value));
    all
}

fn compact(all: &[f64], e: &Experience) -> Vec<f64> {
    e.trainable_indices().map(|at| all[at]).collect()
}
