//! One update of the policy. In: a minibatch and the round's fixed numbers. Out: the actor moved by one AdamW step.

use tch::{Kind, Tensor};

use super::gradients::Gradients;
use super::prepare::{Prepared, to_vec};
use super::selection::Selection;
use super::trainer::{Metrics, Trainer, named};
use crate::config::KlKind;
use crate::error::{Result, TrainError};
use crate::experience::Experience;
use crate::numerics::aggregate::{Counts, aggregate, weights};
use crate::numerics::kl;
use crate::numerics::policy_loss::policy_loss;
use crate::packing::{MicroBatch, micro_batches};

/// Sums over the tokens of a minibatch.
#[derive(Default)]
pub(super) struct ActorSums {
    loss: f64,
    clipped: f64,
    dual_clipped: f64,
    approx_kl: f64,
    entropy: f64,
    places: f64,
    mismatches: Vec<f32>,
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
        let counts = Counts::of(&minibatch.iter().map(|&i| batch[i].trainable_len()).collect::<Vec<_>>());
        let mut sums = ActorSums::default();
        let gradients = self.actor_gradients(batch, prepared, minibatch, counts, &mut sums);
        let norm = gradients.norm();
        if !norm.is_finite() || !sums.loss.is_finite() {
            return Err(TrainError::NotFinite { step: self.step, what: "the policy loss or its gradient" });
        }
        let gradients = gradients.clip(norm, self.config.grad_clip);
        self.optimizers.actor.step(&named(self.actor.parameters()), &gradients, self.config.actor_lr);
        self.actor_mirror.follow(&self.actor);
        let tokens = counts.tokens as f64;
        metrics.extend(
            [
                ("policy_loss", sums.loss),
                ("clip_fraction", sums.clipped / tokens),
                ("dual_clip_fraction", sums.dual_clipped / tokens),
                ("approx_kl", sums.approx_kl / tokens),
                ("entropy", sums.entropy / tokens),
                ("actor_grad_norm", norm),
                ("actor_lr", self.config.actor_lr),
                ("update_tokens", sums.places),
            ]
            .map(|(name, value)| (name.to_owned(), value)),
        );
        Ok(if first { mismatch(sums.mismatches) } else { Metrics::new() })
    }

    pub(super) fn actor_gradients(
        &self,
        batch: &[Experience],
        prepared: &Prepared,
        minibatch: &[usize],
        counts: Counts,
        sums: &mut ActorSums,
    ) -> Gradients {
        let (network, device) = (self.actor_mirror.of(&self.actor), self.actor.device());
        let parameters: Vec<Tensor> = network.parameters().iter().map(|(_, t)| t.shallow_clone()).collect();
        let mut gradients = Gradients::new(parameters.len());
        for rows in micro_batches(self.rows(batch, minibatch), self.config.micro_tokens) {
            let micro = MicroBatch::new(&rows, device);
            let selection = Selection::new(&micro, batch, device);
            let (log_probs, entropy) = selection.log_probs(network, &micro, self.config.temperature);
            let old = selection.flat(&prepared.old, device);
            let parts =
                policy_loss(&log_probs, &old, &selection.flat(&prepared.advantages, device), self.config.clip());
            let losses = match &prepared.reference {
                None => parts.loss,
                Some(reference) => parts.loss + self.kl_loss(&log_probs, &selection.flat(reference, device), &old),
            };
            let weights = weights(&selection.lengths(batch), self.config.aggregation, counts);
            let loss = aggregate(&losses, &Tensor::from_slice(&weights).to_device(device));
            gradients.add(&loss, &parameters);
            let sum = |t: &Tensor| t.sum(Kind::Double).double_value(&[]);
            let now = log_probs.detach();
            sums.loss += loss.double_value(&[]);
            sums.clipped += sum(&parts.clipped);
            sums.dual_clipped += sum(&parts.dual_clipped);
            sums.approx_kl += sum(&kl::k3(&old, &now));
            sums.entropy += sum(&entropy);
            sums.places += micro.ids.numel() as f64;
            sums.mismatches.extend(to_vec(&(now - old).abs()));
        }
        gradients
    }

    /// The KL's part of the loss per token, where it is there and not in the reward.
    fn kl_loss(&self, log_probs: &Tensor, reference: &Tensor, old: &Tensor) -> Tensor {
        match self.config.kl_kind {
            KlKind::InReward => log_probs.zeros_like(),
            KlKind::LossK2 => kl::k2(log_probs, reference) * self.config.kl_coef,
            KlKind::LossK3 => kl::k3_weighted(log_probs, reference, old) * self.config.kl_coef,
        }
    }
}

/// Median and maximum of |recomputed − recorded| log-prob.
fn mismatch(mut differences: Vec<f32>) -> Metrics {
    differences.sort_unstable_by(f32::total_cmp);
    let at = |share: f64| f64::from(differences[((differences.len() - 1) as f64 * share) as usize]);
    [("mismatch_p50", at(0.5)), ("mismatch_p99", at(0.99)), ("mismatch_max", at(1.0))]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
}
