//! The value head's own training on the first round, before anything else moves. In: the critic's hidden states, which do
//! not change meanwhile, and the rewards. Out: a head that predicts Monte-Carlo returns.
//! Must hold: a zero head would turn every first advantage into the return itself (VC-PPO, Yuan et al. 2025).

use rollmill_model::ValueHead;
use tch::{Kind, Tensor};

use super::round::{Metrics, adamw_config, named};
use crate::adamw::AdamW;
use crate::config::TrainConfig;
use crate::experience::Experience;
use crate::numerics::gae::{End, gae};

/// Hidden states of some trajectories.
pub(super) struct Features {
    /// Trajectories in order.
    pub(super) indices: Vec<usize>,
    /// [M,H] before each trainable token.
    pub(super) tokens: Tensor,
    /// [trajectories,H] behind each trajectory.
    pub(super) behind: Tensor,
}

/// Fits the head by AdamW with a learning rate that falls linearly to 0, on all finished trajectories at once. Those that
/// were cut off have no return yet and take no part; without a finished one nothing happens.
pub(super) fn value_head(
    head: &ValueHead,
    features: &[Features],
    batch: &[Experience],
    rewards: &[Vec<f64>],
    config: &TrainConfig,
    stats: &mut Metrics,
) {
    let (mut rows, mut targets) = (vec![], vec![]);
    for part in features {
        let mut at = 0;
        for &index in &part.indices {
            let length = batch[index].trainable_len() as i64;
            if !config.bootstraps(&batch[index]) {
                rows.push(part.tokens.narrow(0, at, length));
                targets.extend(monte_carlo(&batch[index], &rewards[index], config.gamma));
            }
            at += length;
        }
    }
    if rows.is_empty() {
        return;
    }
    let (inputs, targets) = (Tensor::cat(&rows, 0), Tensor::from_slice(&targets).to_device(head.weight.device()));
    let parameters = named(head.parameters());
    let handles = [head.weight.shallow_clone(), head.bias.shallow_clone()];
    let mut adamw = AdamW::new(&parameters, adamw_config(config));
    let loss = || (head.forward(&inputs) - &targets).square().mean(Kind::Float) * 0.5;
    for step in 0..config.critic_pretrain_steps {
        let lr = config.critic_pretrain_lr * (1.0 - step as f64 / config.critic_pretrain_steps as f64);
        let gradients = Tensor::run_backward(&[loss()], &handles, false, false);
        adamw.step(&parameters, &gradients.into_iter().map(Some).collect::<Vec<_>>(), lr);
    }
    stats.insert("pretrain_value_loss".to_owned(), tch::no_grad(|| loss().double_value(&[])));
}

/// The discounted reward to go of each trainable token.
fn monte_carlo(e: &Experience, rewards: &[f64], gamma: f64) -> Vec<f32> {
    let to_go = gae(rewards, &vec![0.0; rewards.len()], &e.trainable, End::Terminated, gamma, 1.0);
    e.trainable_indices().map(|at| to_go[at] as f32).collect()
}
