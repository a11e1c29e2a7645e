//! One update of the policy. In: a minibatch and the round's fixed numbers. Out: the actor moved by one AdamW step.

use tch::{Device, Kind, Tensor};

use super::gradients::Gradients;
use super::pass::Micro;
use super::prepare::{PerToken, Prepared, scatter, to_vec};
use super::round::{Metrics, Trainer};
use crate::algorithm::Algorithm;
use crate::config::KlKind;
use crate::error::{Result, TrainError};
use crate::experience::Experience;
use crate::numerics::aggregate::{Counts, aggregate, weights};
use crate::numerics::kl;
use crate::numerics::policy_loss::policy_loss;
use crate::numerics::preference::pair_loss;

/// Sums over the tokens that a minibatch computed.
#[derive(Default)]
pub(super) struct ActorSums {
    pub(super) loss: f64,
    clipped: f64,
    dual_clipped: f64,
    approx_kl: f64,
    entropy: f64,
    places: f64,
    tokens: f64,
    mismatches: Vec<f32>,
    /// Trajectories whose own loss is not finite.
    bad: Vec<usize>,
}

impl Trainer {
    /// Moves the actor. On a round's first step the answer holds how far its log-probs are from the recorded ones, which
    /// costs nothing there because it has not moved yet.
    pub(super) fn actor_step(
        &mut self,
        batch: &[Experience],
        prepared: &Prepared,
        minibatch: &[usize],
        first: bool,
        metrics: &mut Metrics,
    ) -> Result<Metrics> {
        let mut sums = ActorSums::default();
        let gradients = match self.config.algorithm {
            Algorithm::Dpo => self.preference_gradients(batch, prepared, minibatch, &mut sums, metrics),
            _ => self.actor_gradients(batch, prepared, minibatch, counts(batch, minibatch), &mut sums),
        };
        let norm = gradients.norm();
        if !norm.is_finite() || !sums.loss.is_finite() {
            let rows = self.culprits(batch, if sums.bad.is_empty() { minibatch } else { &sums.bad });
            return Err(TrainError::not_finite(self.step + 1, "the policy loss or its gradient", batch, &rows));
        }
        let lr = self.actor_lr();
        if sums.tokens > 0.0 {
            self.move_actor(gradients.clip(norm, self.config.grad_clip), lr);
        }
        let each = |sum: f64| sum / sums.tokens.max(1.0);
        let numbers = [
            ("policy_loss", sums.loss),
            ("entropy", each(sums.entropy)),
            ("actor_grad_norm", norm),
            ("actor_lr", lr),
            ("places", sums.places),
            ("skipped_rows_share", 1.0 - sums.tokens / counts(batch, minibatch).tokens.max(1) as f64),
        ];
        metrics.extend(numbers.map(|(name, value)| (name.to_owned(), value)));
        if self.config.algorithm == Algorithm::Sft {
            return Ok(Metrics::new()); // what is imitated was not sampled by this policy
        }
        metrics.insert("approx_kl".to_owned(), each(sums.approx_kl));
        if self.config.algorithm.has_advantages() {
            metrics.insert("clip_fraction".to_owned(), each(sums.clipped));
            metrics.insert("dual_clip_fraction".to_owned(), each(sums.dual_clipped));
        }
        // Off-policy rows were compared with the recorded log-probs when the round was prepared.
        let compared = prepared.importance.is_some();
        Ok(if first && !compared { mismatch(sums.mismatches) } else { Metrics::new() })
    }

    /// Of some rows those whose log-probs are not finite when each is computed alone, for in a packed row one spoils all. All
    /// of them where none is: then the gradient overflowed.
    fn culprits(&self, batch: &[Experience], rows: &[usize]) -> Vec<usize> {
        let network = self.actor_mirror.of(&self.actor);
        let ill = |&row: &usize| self.log_probs(network, batch, &[row])[row].iter().any(|x| !x.is_finite());
        let ill: Vec<usize> = rows.iter().copied().filter(ill).collect();
        if ill.is_empty() { rows.to_vec() } else { ill }
    }

    fn move_actor(&mut self, gradients: Vec<Option<Tensor>>, lr: f64) {
        if let Some(optimizer) = &mut self.optimizers.actor {
            optimizer.step(&self.actor.trainable(), &gradients, lr);
        }
        self.actor_mirror.follow(&self.actor);
    }

    /// Rises linearly over the warm-up, by the policy's own step count.
    fn actor_lr(&self) -> f64 {
        let done = self.optimizers.actor.as_ref().map_or(0, |optimizer| optimizer.steps());
        warmed_up(self.config.actor_lr, done, self.config.actor_warmup_steps)
    }

    /// Gradients of the policy loss, or of the negative log-likelihood for SFT. Rows that cannot move anything are left
    /// out; the counts stay those of the whole minibatch, so the gradient is the same.
    pub(super) fn actor_gradients(
        &self,
        batch: &[Experience],
        prepared: &Prepared,
        minibatch: &[usize],
        counts: Counts,
        sums: &mut ActorSums,
    ) -> Gradients {
        let device = self.actor.device();
        let computed: Vec<usize> = minibatch.iter().copied().filter(|&i| self.moves(prepared, i)).collect();
        self.policy_gradients(batch, &computed, &mut |micro, log_probs, entropy| {
            let losses = self.token_losses(micro, log_probs, prepared, device, sums);
            let weights = weights(&micro.selection.lengths(batch), self.config.aggregation, counts);
            let loss = aggregate(&losses, &Tensor::from_slice(&weights).to_device(device));
            sums.observe(micro, batch, prepared, (log_probs, entropy), &losses, device);
            sums.loss += loss.double_value(&[]);
            loss
        })
    }

    /// Whether a row has a part in the gradient.
    fn moves(&self, prepared: &Prepared, index: usize) -> bool {
        let any = |lists: &Option<PerToken>| lists.as_ref().is_none_or(|lists| lists[index].iter().any(|&x| x != 0.0));
        let kl_loss = self.config.kl_kind != KlKind::InReward && prepared.reference.is_some();
        kl_loss || (any(&prepared.advantages) && any(&prepared.importance))
    }

    /// [M].
    fn token_losses(
        &self,
        micro: &Micro,
        log_probs: &Tensor,
        prepared: &Prepared,
        device: Device,
        sums: &mut ActorSums,
    ) -> Tensor {
        let flat = |lists: &PerToken| micro.selection.flat(lists, device);
        let Some(advantages) = &prepared.advantages else { return -log_probs };
        let old = flat(&prepared.old);
        let parts = policy_loss(log_probs, &old, &flat(advantages), self.config.clip());
        let sum = |t: &Tensor| t.sum(Kind::Double).double_value(&[]);
        sums.clipped += sum(&parts.clipped);
        sums.dual_clipped += sum(&parts.dual_clipped);
        let loss = match &prepared.importance {
            None => parts.loss,
            Some(weights) => parts.loss * flat(weights),
        };
        match &prepared.reference {
            None => loss,
            Some(reference) => loss + self.kl_loss(log_probs, &flat(reference), &old),
        }
    }

    /// The KL's part of the loss per token, where it is there and not in the reward.
    fn kl_loss(&self, log_probs: &Tensor, reference: &Tensor, old: &Tensor) -> Tensor {
        match self.config.kl_kind {
            KlKind::InReward => log_probs.zeros_like(),
            KlKind::LossK2 => kl::k2(log_probs, reference) * self.config.kl_coef,
            KlKind::LossK3 => kl::k3_weighted(log_probs, reference, old) * self.config.kl_coef,
        }
    }

    /// DPO: the log-ratios of all pairs first, then one pass with the slope of each trajectory.
    pub(super) fn preference_gradients(
        &self,
        batch: &[Experience],
        prepared: &Prepared,
        minibatch: &[usize],
        sums: &mut ActorSums,
        metrics: &mut Metrics,
    ) -> Gradients {
        let device = self.actor.device();
        let now = self.log_probs(self.actor_mirror.of(&self.actor), batch, minibatch);
        let total = |list: &[f32]| list.iter().map(|&x| f64::from(x)).sum::<f64>();
        let log_ratio = |i: usize| total(&now[i]) - prepared.reference.as_ref().map_or(0.0, |r| total(&r[i]));
        let pairs: Vec<(f64, f64)> = minibatch.chunks(2).map(|p| (log_ratio(p[0]), log_ratio(p[1]))).collect();
        let result = pair_loss(&pairs, self.config.dpo_beta);
        let slopes = result.by_row(minibatch, batch.len());
        sums.loss = result.loss;
        metrics.insert("pair_accuracy".to_owned(), result.accuracy);
        metrics.insert("pair_margin".to_owned(), result.margin);
        self.policy_gradients(batch, minibatch, &mut |micro, log_probs, entropy| {
            let losses = log_probs * micro.selection.per_row(batch, |i| slopes[i], device);
            sums.observe(micro, batch, prepared, (log_probs, entropy), &losses, device);
            losses.sum(Kind::Float)
        })
    }
}

impl ActorSums {
    /// Places computed so far, padding included.
    #[cfg(test)]
    pub(super) fn places(&self) -> f64 {
        self.places
    }

    fn observe(
        &mut self,
        micro: &Micro,
        batch: &[Experience],
        prepared: &Prepared,
        (log_probs, entropy): (&Tensor, &Tensor),
        losses: &Tensor,
        device: Device,
    ) {
        let sum = |t: &Tensor| t.sum(Kind::Double).double_value(&[]);
        let (now, old) = (log_probs.detach(), micro.selection.flat(&prepared.old, device));
        self.approx_kl += sum(&kl::k3(&old, &now));
        self.entropy += sum(entropy);
        self.places += micro.places;
        self.tokens += now.numel() as f64;
        self.mismatches.extend(to_vec(&(now - old).abs()));
        if !sum(losses).is_finite() {
            let mut each = vec![vec![]; batch.len()];
            scatter(&losses.detach(), micro.selection, batch, &mut each);
            let bad = |i: &&usize| each[**i].iter().any(|x| !x.is_finite());
            self.bad.extend(micro.selection.indices.iter().filter(bad));
        }
    }
}

pub(super) fn counts(batch: &[Experience], minibatch: &[usize]) -> Counts {
    Counts::of(&minibatch.iter().map(|&i| batch[i].trainable_len()).collect::<Vec<_>>())
}

/// A learning rate that rises linearly over the first `warmup` steps.
pub(super) fn warmed_up(lr: f64, done: u64, warmup: u64) -> f64 {
    lr * ((done + 1) as f64 / warmup.max(1) as f64).min(1.0)
}

/// Median and maximum of |recomputed − recorded| log-prob.
pub(super) fn mismatch(mut differences: Vec<f32>) -> Metrics {
    if differences.is_empty() {
        return Metrics::new();
    }
    differences.sort_unstable_by(f32::total_cmp);
    let at = |share: f64| f64::from(differences[((differences.len() - 1) as f64 * share) as usize]);
    [("mismatch_p50", at(0.5)), ("mismatch_p99", at(0.99)), ("mismatch_max", at(1.0))]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
}
