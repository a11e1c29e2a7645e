//! What a round computes once, with the weights it starts from. In: the batch. Out: per trainable token what the
//! algorithm needs: log-probs of the proximal and of the reference policy, off-policy weights, values, advantages, targets.

use tch::Tensor;

use super::actor::mismatch;
use super::estimate::rewards;
use super::pairs::pairs;
use super::pretrain::{self, Features};
use super::round::{Metrics, Trainer};
use super::schedule::Schedule;
use super::selection::Selection;
use super::spread::spread;
use super::stats::{self, distribution, mean};
use crate::algorithm::Algorithm;
use crate::config::KlKind;
use crate::error::{Result, TrainError};
use crate::experience::Experience;
use crate::numerics::off_policy::OffPolicy;

/// One list per trajectory of the batch, one number per trainable token (empty for a trajectory that takes no part).
pub(super) type PerToken = Vec<Vec<f32>>;

/// The fixed numbers of a round. What an algorithm does not need is None.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Prepared {
    /// Log-probs of the proximal policy: those of the batch, or the trainer's own where rows are off-policy.
    pub(super) old: PerToken,
    /// Weights of off-policy tokens.
    pub(super) importance: Option<PerToken>,
    /// Whitened over the batch for PPO, as they are for algorithms that compare groups.
    pub(super) advantages: Option<PerToken>,
    /// The critic's values at the start of the round.
    pub(super) values: Option<PerToken>,
    /// Value targets, from advantages before whitening.
    pub(super) returns: Option<PerToken>,
    /// Reference log-probs, where something is learned from them.
    pub(super) reference: Option<PerToken>,
    /// The round's numbers; repeatable, no clock in them.
    pub(super) stats: Metrics,
}

/// The batch's own log-probs of trainable tokens.
fn recorded(batch: &[Experience]) -> PerToken {
    let of = |e: &Experience| e.trainable_indices().map(|at| e.log_probs[at]).collect();
    batch.iter().map(|e| if e.takes_part() { of(e) } else { vec![] }).collect()
}

impl Trainer {
    pub(super) fn prepare(&mut self, batch: &[Experience]) -> Result<Prepared> {
        let all: Vec<usize> = (0..batch.len()).filter(|&i| batch[i].takes_part()).collect();
        let mut stats = stats::of_batch(batch, self.config.passing_reward);
        stats.extend(spread(batch));
        let mut prepared = Prepared { old: recorded(batch), stats, ..Prepared::default() };
        self.proximal(batch, &all, &mut prepared)?;
        self.reference_log_probs(batch, &all, &mut prepared)?;
        if self.config.algorithm.has_advantages() {
            self.advantages(batch, &all, &mut prepared)?;
        }
        if self.config.algorithm.takes_pairs() {
            prepared.stats.insert("pairs".to_owned(), pairs(batch).len() as f64);
        }
        Ok(prepared)
    }

    /// Off-policy rows: the trainer's own log-probs, and what each token of another policy counts.
    fn proximal(&self, batch: &[Experience], all: &[usize], prepared: &mut Prepared) -> Result<()> {
        if self.config.off_policy == OffPolicy::None || !self.config.algorithm.has_advantages() {
            return Ok(());
        }
        let own = self.log_probs(self.actor_mirror.of(&self.actor), batch, all);
        finite(batch, &own, self.step, "the policy's log-prob")?;
        let apart = own.iter().flatten().zip(prepared.old.iter().flatten()).map(|(own, old)| (own - old).abs());
        prepared.stats.extend(mismatch(apart.collect()));
        let weights = |(own, old): (&Vec<f32>, &Vec<f32>)| self.config.off_policy.weights(own, old);
        let importance: PerToken = own.iter().zip(&prepared.old).map(weights).collect();
        let flat = || importance.iter().flatten().map(|&w| f64::from(w));
        distribution(&mut prepared.stats, "importance", flat().collect());
        prepared.stats.insert("importance_zero".to_owned(), mean(flat().map(|w| f64::from(u8::from(w == 0.0)))));
        prepared.old = own;
        prepared.importance = Some(importance);
        Ok(())
    }

    /// For the whole batch where they are learned from, else for the first minibatch as a measurement.
    fn reference_log_probs(&self, batch: &[Experience], all: &[usize], prepared: &mut Prepared) -> Result<()> {
        let algorithm = self.config.algorithm;
        if !algorithm.has_advantages() && algorithm != Algorithm::Dpo {
            return Ok(());
        }
        let learned = algorithm == Algorithm::Dpo || self.config.kl_coef > 0.0;
        let network = self.reference_mirror.of(&self.reference);
        let log_probs = if learned {
            self.log_probs(network, batch, all)
        } else {
            let first = Schedule::new(batch, &self.config, self.rounds).actor.into_iter().next().unwrap_or_default();
            self.log_probs(network, batch, &first)
        };
        finite(batch, &log_probs, self.step, "the reference's log-prob")?;
        let both = prepared.old.iter().zip(&log_probs);
        let kl = mean(both.flat_map(|(o, r)| o.iter().zip(r).map(|(o, r)| f64::from(o - r))));
        prepared.stats.insert("kl_reference".to_owned(), kl);
        prepared.reference = learned.then_some(log_probs);
        Ok(())
    }

    /// The weight of the KL in the reward.
    fn reward_kl(&self) -> f64 {
        if self.config.kl_kind == KlKind::InReward { self.config.kl_coef } else { 0.0 }
    }

    fn advantages(&mut self, batch: &[Experience], all: &[usize], prepared: &mut Prepared) -> Result<()> {
        let reference = |i: usize| prepared.reference.as_ref().map(|r| r[i].as_slice());
        let token_rewards: Vec<Vec<f64>> =
            (0..batch.len()).map(|i| rewards(&batch[i], &prepared.old[i], reference(i), self.reward_kl())).collect();
        let totals = all.iter().map(|&i| token_rewards[i].iter().sum());
        let totals: Vec<f64> = totals.collect();
        prepared.stats.insert("reward".to_owned(), mean(totals.iter().copied()));
        distribution(&mut prepared.stats, "reward", totals);
        if self.config.algorithm == Algorithm::Ppo {
            let (values, ends) = self.first_values(batch, all, &token_rewards, &mut prepared.stats)?;
            self.estimate(batch, &token_rewards, values, &ends, prepared);
        } else {
            self.compare_groups(batch, &token_rewards, prepared);
        }
        Ok(())
    }

    /// Values per trainable token, and of the state behind each trajectory. On the first round the head is trained before.
    fn first_values(
        &mut self,
        batch: &[Experience],
        all: &[usize],
        rewards: &[Vec<f64>],
        stats: &mut Metrics,
    ) -> Result<(PerToken, Vec<f64>)> {
        let Some(critic) = &self.critic else { return Err(TrainError::NoCritic) };
        let (mut values, mut ends) = (vec![vec![]; batch.len()], vec![0.0; batch.len()]);
        let mut read = |tokens: &Tensor, behind: &Tensor, indices: &[usize]| {
            let behind = to_vec(&critic.head.forward(behind).detach());
            indices.iter().zip(behind).for_each(|(&index, value)| ends[index] = f64::from(value));
            split(&to_vec(&critic.head.forward(tokens).detach()), indices, batch, &mut values);
        };
        if self.rounds == 0 && self.config.critic_pretrain_steps > 0 {
            let mut features = vec![];
            self.features(batch, all, |selection, tokens, behind| {
                features.push(Features { indices: selection.indices.clone(), tokens, behind });
            });
            pretrain::value_head(&critic.head, &features, batch, rewards, &self.config, stats);
            features.iter().for_each(|part| read(&part.tokens, &part.behind, &part.indices));
        } else {
            self.features(batch, all, |selection, tokens, behind| read(&tokens, &behind, &selection.indices));
        }
        finite(batch, &values, self.step, "the critic's value")?;
        Ok((values, ends))
    }

    /// The critic's hidden states, f32: [M,H] of the states before the trainable tokens, [trajectories,H] behind them.
    fn features(&self, batch: &[Experience], all: &[usize], mut each: impl FnMut(&Selection, Tensor, Tensor)) {
        let Some(critic) = &self.critic else { return };
        let trunk = critic.mirror.of(&critic.trunk);
        self.sweep(batch, all, |micro, selection| {
            let hidden = trunk.hidden(&micro.ids, &micro.positions, micro.attend.as_ref()).flatten(0, 1);
            let behind = hidden.index_select(0, &selection.ends).to_kind(tch::Kind::Float);
            each(selection, selection.tokens(&hidden).to_kind(tch::Kind::Float), behind);
        });
    }
}

/// Refuses numbers that would spoil every row's advantage, and names the rows they came from.
fn finite(batch: &[Experience], lists: &PerToken, step: u64, what: &'static str) -> Result<()> {
    let bad: Vec<usize> = (0..lists.len()).filter(|&i| lists[i].iter().any(|x| !x.is_finite())).collect();
    if bad.is_empty() { Ok(()) } else { Err(TrainError::not_finite(step + 1, what, batch, &bad)) }
}

pub(super) fn to_vec(flat: &Tensor) -> Vec<f32> {
    Vec::try_from(flat.to_device(tch::Device::Cpu)).expect("a flat f32 tensor, by the callers")
}

/// A flat [M] tensor into per-trajectory lists.
pub(super) fn scatter(flat: &Tensor, selection: &Selection, batch: &[Experience], into: &mut PerToken) {
    split(&to_vec(flat), &selection.indices, batch, into);
}

fn split(flat: &[f32], indices: &[usize], batch: &[Experience], into: &mut PerToken) {
    let mut rest = flat;
    for &index in indices {
        let (mine, others) = rest.split_at(batch[index].trainable_len());
        into[index] = mine.to_vec();
        rest = others;
    }
}
