//! One update of the critic's trunk and head. In: a minibatch and the round's fixed numbers. Out: both moved by one AdamW
//! step; the actor untouched.

use tch::{Kind, Tensor};

use super::gradients::Gradients;
use super::prepare::Prepared;
use super::selection::Selection;
use super::trainer::{Metrics, Trainer, critic_parameters};
use crate::error::{Result, TrainError};
use crate::experience::Experience;
use crate::numerics::aggregate::{Counts, aggregate, weights};
use crate::numerics::value_loss::{clipped, value_loss};
use crate::packing::{MicroBatch, micro_batches};

/// Sums over the tokens of a minibatch.
#[derive(Default)]
pub(super) struct CriticSums {
    loss: f64,
    clipped: f64,
    places: f64,
}

impl Trainer {
    pub(super) fn critic_step(
        &mut self,
        batch: &[Experience],
        prepared: &Prepared,
        minibatch: &[usize],
        metrics: &mut Metrics,
    ) -> Result<()> {
        let counts = Counts::of(&minibatch.iter().map(|&i| batch[i].trainable_len()).collect::<Vec<_>>());
        let mut sums = CriticSums::default();
        let gradients = self.critic_gradients(batch, prepared, minibatch, counts, &mut sums);
        let norm = gradients.norm();
        if !norm.is_finite() || !sums.loss.is_finite() {
            return Err(TrainError::NotFinite { step: self.step, what: "the value loss or its gradient" });
        }
        let lr = self.critic_lr();
        let gradients = gradients.clip(norm, self.config.grad_clip);
        self.optimizers.critic.step(&critic_parameters(&self.critic, &self.value_head), &gradients, lr);
        self.critic_mirror.follow(&self.critic);
        *metrics.entry("update_tokens".to_owned()).or_default() += sums.places;
        metrics.extend(
            [
                ("value_loss", sums.loss),
                ("value_clip_fraction", sums.clipped / counts.tokens as f64),
                ("critic_grad_norm", norm),
                ("critic_lr", lr),
            ]
            .map(|(name, value)| (name.to_owned(), value)),
        );
        Ok(())
    }

    /// Rises linearly over the warm-up, by the critic's own step count.
    fn critic_lr(&self) -> f64 {
        let (done, warmup) = (self.optimizers.critic.steps() + 1, self.config.critic_warmup_steps.max(1));
        self.config.critic_lr * (done as f64 / warmup as f64).min(1.0)
    }

    pub(super) fn critic_gradients(
        &self,
        batch: &[Experience],
        prepared: &Prepared,
        minibatch: &[usize],
        counts: Counts,
        sums: &mut CriticSums,
    ) -> Gradients {
        let (trunk, device) = (self.critic_mirror.of(&self.critic), self.critic.device());
        let parameters: Vec<Tensor> =
            critic_parameters(trunk, &self.value_head).into_iter().map(|(_, tensor)| tensor).collect();
        let mut gradients = Gradients::new(parameters.len());
        for rows in micro_batches(self.rows(batch, minibatch), self.config.micro_tokens) {
            let micro = MicroBatch::new(&rows, device);
            let selection = Selection::new(&micro, batch, device);
            let hidden = trunk.hidden(&micro.ids, &micro.positions, micro.attend.as_ref());
            let values = selection.tokens(&self.value_head.forward(&hidden).flatten(0, 1));
            let (old, returns) = (selection.flat(&prepared.values, device), selection.flat(&prepared.returns, device));
            let losses = value_loss(&values, &old, &returns, self.config.value_clip());
            let weights = weights(&selection.lengths(batch), self.config.aggregation, counts);
            let loss = aggregate(&losses, &Tensor::from_slice(&weights).to_device(device));
            gradients.add(&loss, &parameters);
            let cut = clipped(&values.detach(), &old, &returns, self.config.value_clip());
            sums.loss += loss.double_value(&[]);
            sums.clipped += cut.sum(Kind::Double).double_value(&[]);
            sums.places += micro.ids.numel() as f64;
        }
        gradients
    }
}
