//! What a round computes once, with the weights it starts from. In: the batch. Out: old values, whitened advantages, value
//! targets and, where a KL is part of learning, reference log-probs, all per trainable token.

use tch::Tensor;

use super::pretrain::{self, Features};
use super::schedule::Schedule;
use super::selection::Selection;
use super::trainer::{Metrics, Trainer};
use crate::config::KlKind;
use crate::error::Result;
use crate::experience::Experience;
use crate::numerics::explained_variance::explained_variance;
use crate::numerics::gae::{End, gae, place_terminal, returns};
use crate::numerics::whiten::{mean_std, whiten};
use crate::packing::{MicroBatch, micro_batches, pack};

/// Passes without gradients keep no activations, so they take larger micro-batches.
const NO_GRAD_FACTOR: usize = 4;

/// One list per trajectory of the batch, one number per trainable token (empty for a trajectory that has none).
pub(super) type PerToken = Vec<Vec<f32>>;

/// The fixed numbers of a round.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Prepared {
    /// Behaviour log-probs, from the batch.
    pub(super) old: PerToken,
    /// The critic's values at the start of the round.
    pub(super) values: PerToken,
    /// Whitened over the batch.
    pub(super) advantages: PerToken,
    /// Value targets, from advantages before whitening.
    pub(super) returns: PerToken,
    /// Reference log-probs; None where no KL is learned from.
    pub(super) reference: Option<PerToken>,
    /// The round's numbers; repeatable, no clock in them.
    pub(super) stats: Metrics,
}

/// The batch's own log-probs of trainable tokens.
fn recorded(batch: &[Experience]) -> PerToken {
    batch.iter().map(|e| e.trainable_indices().map(|at| e.log_probs[at]).collect()).collect()
}

impl Trainer {
    pub(super) fn prepare(&mut self, batch: &[Experience]) -> Result<Prepared> {
        let old = recorded(batch);
        let mut stats = lengths(batch);
        let all: Vec<usize> = (0..batch.len()).filter(|&i| !old[i].is_empty()).collect();
        let reference = self.reference_log_probs(batch, &all, &old, &mut stats);
        let rewards: Vec<Vec<f64>> = (0..batch.len())
            .map(|i| rewards(&batch[i], &old[i], reference.as_ref().map(|r| r[i].as_slice()), self.reward_kl()))
            .collect();
        stats.insert("score".to_owned(), mean(batch.iter().map(|e| e.reward)));
        stats.insert("reward".to_owned(), mean(rewards.iter().map(|r| r.iter().sum())));
        let (values, ends) = self.first_values(batch, &all, &rewards, &mut stats)?;
        let mut prepared = Prepared { old, values, advantages: vec![], returns: vec![], reference, stats };
        self.estimate(batch, &rewards, &ends, &mut prepared);
        Ok(prepared)
    }

    /// The weight of the KL in the reward.
    fn reward_kl(&self) -> f64 {
        if self.config.kl_kind == KlKind::InReward { self.config.kl_coef } else { 0.0 }
    }

    /// For the whole batch where the KL is learned from, else for the first minibatch as a measurement.
    fn reference_log_probs(
        &self,
        batch: &[Experience],
        all: &[usize],
        old: &PerToken,
        stats: &mut Metrics,
    ) -> Option<PerToken> {
        let learned = self.config.kl_coef > 0.0;
        let measured = Schedule::new(batch, &self.config, self.rounds).actor.swap_remove(0);
        let mut log_probs = vec![vec![]; batch.len()];
        let network = self.reference_mirror.of(&self.reference);
        self.sweep(batch, if learned { all } else { &measured }, |micro, selection| {
            let (flat, _) = selection.log_probs(network, micro, self.config.temperature);
            scatter(&flat, selection, batch, &mut log_probs);
        });
        let kl = old.iter().zip(&log_probs).flat_map(|(o, r)| o.iter().zip(r).map(|(o, r)| f64::from(o - r)));
        stats.insert("kl_reference".to_owned(), mean(kl));
        learned.then_some(log_probs)
    }

    /// Values per trainable token, and of the state behind each trajectory. On the first round the head is trained before.
    fn first_values(
        &mut self,
        batch: &[Experience],
        all: &[usize],
        rewards: &[Vec<f64>],
        stats: &mut Metrics,
    ) -> Result<(PerToken, Vec<f64>)> {
        let (mut values, mut ends) = (vec![vec![]; batch.len()], vec![0.0; batch.len()]);
        if self.rounds == 0 && self.config.critic_pretrain_steps > 0 {
            let mut features = vec![];
            self.features(batch, all, |selection, tokens, behind| {
                features.push(Features { indices: selection.indices.clone(), tokens, behind });
            });
            pretrain::value_head(&mut self.value_head, &features, batch, rewards, &self.config, stats);
            for Features { indices, tokens, behind } in &features {
                let behind = to_vec(&self.value_head.forward(behind).detach());
                indices.iter().zip(behind).for_each(|(&index, value)| ends[index] = f64::from(value));
                split(&to_vec(&self.value_head.forward(tokens).detach()), indices, batch, &mut values);
            }
        } else {
            self.features(batch, all, |selection, tokens, behind| {
                let behind = to_vec(&self.value_head.forward(&behind));
                selection.indices.iter().zip(behind).for_each(|(&index, value)| ends[index] = f64::from(value));
                scatter(&self.value_head.forward(&tokens), selection, batch, &mut values);
            });
        }
        Ok((values, ends))
    }

    /// The critic's hidden states, f32: [M,H] of the states before the trainable tokens, [trajectories,H] behind them.
    fn features(&self, batch: &[Experience], all: &[usize], mut each: impl FnMut(&Selection, Tensor, Tensor)) {
        let trunk = self.critic_mirror.of(&self.critic);
        self.sweep(batch, all, |micro, selection| {
            let hidden = trunk.hidden(&micro.ids, &micro.positions, micro.attend.as_ref()).flatten(0, 1);
            let behind = hidden.index_select(0, &selection.ends).to_kind(tch::Kind::Float);
            each(selection, selection.tokens(&hidden).to_kind(tch::Kind::Float), behind);
        });
    }

    /// Every trajectory of `indices` once, without gradients.
    fn sweep(&self, batch: &[Experience], indices: &[usize], mut each: impl FnMut(&MicroBatch, &Selection)) {
        let device = self.actor.device();
        tch::no_grad(|| {
            let budget = self.config.micro_tokens * NO_GRAD_FACTOR;
            for rows in micro_batches(self.rows(batch, indices), budget) {
                let micro = MicroBatch::new(&rows, device);
                each(&micro, &Selection::new(&micro, batch, device));
            }
        });
    }

    /// Some trajectories, packed by task.
    pub(super) fn rows(&self, batch: &[Experience], indices: &[usize]) -> Vec<crate::packing::PackedRow> {
        let items = indices.iter().map(|&i| (i, batch[i].task_id.as_str(), batch[i].tokens.as_slice()));
        pack(items, self.config.micro_tokens)
    }

    /// Advantages with the policy's λ, targets with the critic's, whitening over the whole batch.
    fn estimate(&self, batch: &[Experience], rewards: &[Vec<f64>], ends: &[f64], prepared: &mut Prepared) {
        let (config, mut advantages, mut targets) = (&self.config, vec![], vec![]);
        for (index, e) in batch.iter().enumerate() {
            let end = if e.truncated { End::Truncated(ends[index]) } else { End::Terminated };
            let values = spread(&prepared.values[index], e);
            let with = |lambda| gae(&rewards[index], &values, &e.trainable, end, config.gamma, lambda);
            let critic = with(config.lambda_critic);
            targets.push(compact(&returns(&critic, &values, &e.trainable), e));
            advantages.push(compact(&with(config.lambda_actor.at(e.trainable_len())), e));
        }
        let mut flat = advantages.concat();
        let (mean_advantage, std_advantage) = mean_std(&flat);
        whiten(&mut flat);
        let flat_values: Vec<f64> = prepared.values.iter().flatten().map(|&v| f64::from(v)).collect();
        let flat_targets = targets.concat();
        let stats = &mut prepared.stats;
        stats.insert("advantage_mean".to_owned(), mean_advantage);
        stats.insert("advantage_std".to_owned(), std_advantage);
        stats.insert("return_mean".to_owned(), mean_std(&flat_targets).0);
        stats.insert("value_mean".to_owned(), mean_std(&flat_values).0);
        if let Some(explained) = explained_variance(&flat_targets, &flat_values) {
            stats.insert("explained_variance".to_owned(), explained);
        }
        let narrow = |list: &[f64]| list.iter().map(|&x| x as f32).collect::<Vec<f32>>();
        prepared.returns = targets.iter().map(|t| narrow(t)).collect();
        let mut rest = narrow(&flat);
        prepared.advantages = batch.iter().map(|e| rest.drain(..e.trainable_len()).collect()).collect();
    }
}

/// Reward per token: −coef·k1 on every trainable token, the terminal reward on the last.
fn rewards(e: &Experience, old: &[f32], reference: Option<&[f32]>, coef: f64) -> Vec<f64> {
    let mut rewards = vec![0.0; e.tokens.len()];
    if let Some(reference) = reference.filter(|_| coef > 0.0) {
        for (slot, at) in e.trainable_indices().enumerate() {
            rewards[at] = -coef * f64::from(old[slot] - reference[slot]);
        }
    }
    place_terminal(&mut rewards, &e.trainable, e.reward);
    rewards
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

pub(super) fn to_vec(flat: &Tensor) -> Vec<f32> {
    Vec::try_from(flat.to_device(tch::Device::Cpu)).expect("a flat f32 tensor, by the callers")
}

/// A flat [M] tensor into per-trajectory lists.
fn scatter(flat: &Tensor, selection: &Selection, batch: &[Experience], into: &mut PerToken) {
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

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0u64), |(sum, count), x| (sum + x, count + 1));
    if count == 0 { 0.0 } else { sum / count as f64 }
}

fn lengths(batch: &[Experience]) -> Metrics {
    let trainable = || batch.iter().map(|e| e.trainable_len() as f64);
    [
        ("trajectories", batch.len() as f64),
        ("trainable_tokens", trainable().sum()),
        ("trainable_length_mean", mean(trainable())),
        ("trainable_length_max", trainable().fold(0.0, f64::max)),
        ("length_mean", mean(batch.iter().map(|e| e.tokens.len() as f64))),
        ("truncated_share", mean(batch.iter().map(|e| f64::from(u8::from(e.truncated))))),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}
