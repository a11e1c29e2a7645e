//! The critic, and one update of its trunk and head. In: a minibatch and the round's fixed numbers. Out: both moved by one
//! AdamW step; the actor untouched. For a reward model the same network scores whole trajectories.

use rollmill_model::{Decoder, ValueHead};
use tch::{Kind, Tensor};

use super::actor::{counts, warmed_up};
use super::gradients::Gradients;
use super::mirror::Mirror;
use super::pass::{Micro, Read};
use super::prepare::{PerToken, Prepared, to_vec};
use super::round::{Metrics, Trainer, named};
use crate::config::Dtype;
use crate::error::{Result, TrainError};
use crate::experience::Experience;
use crate::numerics::aggregate::{Counts, aggregate, weights};
use crate::numerics::explained_variance::explained_variance;
use crate::numerics::preference::pair_loss;
use crate::numerics::value_loss::{clipped, value_loss};

/// A network of its own with a scalar head.
pub struct Critic {
    /// Its trunk, float32.
    pub trunk: Decoder,
    /// Its head.
    pub head: ValueHead,
    pub(super) mirror: Mirror,
}

impl Critic {
    pub(super) fn new(mut trunk: Decoder, mut head: ValueHead, dtype: Dtype) -> Critic {
        trunk.set_trainable(true);
        head.set_trainable(true);
        let mirror = Mirror::new(&trunk, dtype);
        Critic { trunk, head, mirror }
    }

    /// What its optimizer moves: the trunk's weights and, last, the head's two.
    pub(super) fn trainable(&self) -> Vec<(String, Tensor)> {
        self.trunk.trainable().into_iter().chain(named(self.head.parameters())).collect()
    }
}

/// Sums over the tokens of a minibatch.
#[derive(Default)]
pub(super) struct CriticSums {
    loss: f64,
    clipped: f64,
    places: f64,
    values: Vec<f64>,
    returns: Vec<f64>,
}

impl Trainer {
    /// One update on the value loss.
    pub(super) fn critic_step(
        &mut self,
        batch: &[Experience],
        prepared: &Prepared,
        minibatch: &[usize],
        metrics: &mut Metrics,
    ) -> Result<()> {
        let mut sums = CriticSums::default();
        let counts = counts(batch, minibatch);
        let gradients = self.critic_gradients(batch, prepared, minibatch, counts, &mut sums)?;
        self.move_critic(gradients, sums.loss, batch, minibatch, metrics)?;
        *metrics.entry("places".to_owned()).or_default() += sums.places;
        metrics.insert("value_loss".to_owned(), sums.loss);
        metrics.insert("value_clip_fraction".to_owned(), sums.clipped / counts.tokens as f64);
        if let Some(explained) = explained_variance(&sums.returns, &sums.values) {
            metrics.insert("critic_explained_variance".to_owned(), explained);
        }
        Ok(())
    }

    fn move_critic(
        &mut self,
        gradients: Gradients,
        loss: f64,
        batch: &[Experience],
        minibatch: &[usize],
        metrics: &mut Metrics,
    ) -> Result<()> {
        let norm = gradients.norm();
        if !norm.is_finite() || !loss.is_finite() {
            return Err(TrainError::not_finite(self.step + 1, "the critic's loss or its gradient", batch, minibatch));
        }
        let (Some(critic), Some(optimizer)) = (&self.critic, &mut self.optimizers.critic) else {
            return Err(TrainError::NoCritic);
        };
        let lr = warmed_up(self.config.critic_lr, optimizer.steps(), self.config.critic_warmup_steps);
        optimizer.step(&critic.trainable(), &gradients.clip(norm, self.config.grad_clip), lr);
        critic.mirror.follow(&critic.trunk);
        metrics.insert("critic_grad_norm".to_owned(), norm);
        metrics.insert("critic_lr".to_owned(), lr);
        Ok(())
    }

    pub(super) fn critic_gradients(
        &self,
        batch: &[Experience],
        prepared: &Prepared,
        minibatch: &[usize],
        counts: Counts,
        sums: &mut CriticSums,
    ) -> Result<Gradients> {
        let (Some(critic), Some(old), Some(returns)) = (&self.critic, &prepared.values, &prepared.returns) else {
            return Err(TrainError::NoCritic);
        };
        let (device, clip) = (self.actor.device(), self.config.value_clip());
        let networks = (critic.mirror.of(&critic.trunk), &critic.head);
        Ok(self.critic_gradients_of(networks, batch, minibatch, Read::Tokens, &mut |micro, values| {
            let flat = |lists: &PerToken| micro.selection.flat(lists, device);
            let (old, returns) = (flat(old), flat(returns));
            let losses = value_loss(values, &old, &returns, clip);
            let weights = weights(&micro.selection.lengths(batch), self.config.aggregation, counts);
            let loss = aggregate(&losses, &Tensor::from_slice(&weights).to_device(device));
            sums.loss += loss.double_value(&[]);
            sums.clipped += clipped(&values.detach(), &old, &returns, clip).sum(Kind::Double).double_value(&[]);
            sums.places += micro.places;
            sums.values.extend(to_vec(&values.detach()).into_iter().map(f64::from));
            sums.returns.extend(to_vec(&returns).into_iter().map(f64::from));
            loss
        }))
    }

    /// One update of the reward model.
    pub(super) fn reward_model_step(
        &mut self,
        batch: &[Experience],
        minibatch: &[usize],
        metrics: &mut Metrics,
    ) -> Result<()> {
        let (gradients, loss) = self.reward_model_gradients(batch, minibatch, metrics)?;
        self.move_critic(gradients, loss, batch, minibatch, metrics)
    }

    /// The scores of all pairs first, then one pass with the slope of each trajectory.
    pub(super) fn reward_model_gradients(
        &self,
        batch: &[Experience],
        minibatch: &[usize],
        metrics: &mut Metrics,
    ) -> Result<(Gradients, f64)> {
        let Some(critic) = &self.critic else { return Err(TrainError::NoCritic) };
        let (trunk, device) = (critic.mirror.of(&critic.trunk), self.actor.device());
        let mut scores = vec![0f64; batch.len()];
        self.sweep(batch, minibatch, |micro, selection| {
            let hidden = trunk.hidden(&micro.ids, &micro.positions, micro.attend.as_ref()).flatten(0, 1);
            let behind = to_vec(&critic.head.forward(&hidden.index_select(0, &selection.ends)));
            selection.indices.iter().zip(behind).for_each(|(&index, score)| scores[index] = f64::from(score));
        });
        let pairs = minibatch.chunks(2).map(|pair| (scores[pair[0]], scores[pair[1]]));
        let result = pair_loss(&pairs.collect::<Vec<_>>(), 1.0);
        let slopes = result.by_row(minibatch, batch.len());
        let mut places = 0.0;
        let mut loss = |micro: &Micro, scores: &Tensor| {
            places += micro.places;
            let slopes: Vec<f32> = micro.selection.indices.iter().map(|&i| slopes[i]).collect();
            (scores * Tensor::from_slice(&slopes).to_device(device)).sum(Kind::Float)
        };
        let gradients = self.critic_gradients_of((trunk, &critic.head), batch, minibatch, Read::Ends, &mut loss);
        let numbers = [
            ("reward_model_loss", result.loss),
            ("pair_accuracy", result.accuracy),
            ("pair_margin", result.margin),
            ("places", places),
        ];
        metrics.extend(numbers.map(|(name, value)| (name.to_owned(), value)));
        Ok((gradients, result.loss))
    }
}
