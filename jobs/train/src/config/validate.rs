//! Which numbers cannot train.

use super::{KlKind, TrainConfig};
use crate::error::{Result, TrainError};
use crate::numerics::lambda::Lambda;
use crate::numerics::off_policy::OffPolicy;

impl TrainConfig {
    /// Refuses numbers that cannot train.
    pub fn validate(&self) -> Result<()> {
        let unit = 0.0..=1.0;
        let lambda_ok = match self.lambda_actor {
            Lambda::Fixed(l) => unit.contains(&l),
            Lambda::Adaptive { adaptive } => adaptive > 0.0,
        };
        let rules = [
            (
                self.actor_lr >= 0.0 && self.critic_lr >= 0.0 && self.critic_pretrain_lr >= 0.0,
                "a learning rate is below 0",
            ),
            ([self.betas.0, self.betas.1].iter().all(|b| (0.0..1.0).contains(b)), "betas must be in [0, 1)"),
            (
                self.eps > 0.0 && self.weight_decay >= 0.0 && self.kl_coef >= 0.0,
                "eps, weight_decay or kl_coef is too small",
            ),
            (
                self.clip_low > 0.0 && self.clip_low < 1.0 && self.clip_high > 0.0,
                "clip_low must be in (0, 1), clip_high above 0",
            ),
            (self.clip().dual.is_none_or(|c| c > 1.0), "dual_clip must be above 1, or 0 for none"),
            (self.value_clip().is_none_or(|c| c > 0.0), "value_clip must be above 0, or 0 for none"),
            (
                unit.contains(&self.gamma) && unit.contains(&self.lambda_critic) && lambda_ok,
                "gamma and lambda must be in [0, 1]",
            ),
            (self.off_policy.is_valid(), "off_policy: a band needs 0 <= min < 1 < max, a cap at least 1"),
            (
                self.off_policy == OffPolicy::None || self.kl_coef == 0.0 || self.kl_kind == KlKind::InReward,
                "off_policy with a KL loss has no right weight for the KL: set kl_kind = \"in_reward\"",
            ),
            (
                self.max_age == 0 || !self.algorithm.has_advantages() || self.off_policy != OffPolicy::None,
                "max_age above 0 needs an off_policy of kind band or truncated: rows of earlier rounds are another policy's",
            ),
            (
                self.group_std_floor >= 0.0 && self.dpo_beta > 0.0 && self.passing_reward.is_finite(),
                "group_std_floor must be at least 0, dpo_beta above 0, passing_reward a number",
            ),
            (self.passes > 0 && self.critic_updates > 0, "passes and critic_updates must be at least 1"),
            (
                self.minibatch_trajectories > 0 && self.micro_tokens > 0,
                "minibatch_trajectories and micro_tokens must be at least 1",
            ),
            (self.grad_clip > 0.0, "grad_clip must be above 0"),
            (self.temperature > 0.0, "temperature must be above 0: greedy samples cannot be trained on"),
            (self.checkpoint_every > 0, "checkpoint_every must be at least 1"),
        ];
        match rules.iter().find(|(holds, _)| !holds) {
            Some((_, problem)) => Err(TrainError::Config((*problem).to_owned())),
            None => Ok(()),
        }
    }
}
