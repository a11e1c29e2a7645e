//! The trainer's configuration. In: a table of a config file, of which every field may be absent. Out: `TrainConfig`.
//! Must hold: what the file names wins over the preset, and the preset over nothing.

use serde::{Deserialize, Serialize};

use crate::error::{Result, TrainError};
use crate::numerics::aggregate::Aggregation;
use crate::numerics::lambda::Lambda;
use crate::numerics::policy_loss::Clip;

/// A named set of defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Preset {
    /// Short answers: λ = .95 for both networks, ε = .2 on both sides, one critic update, no critic pretraining.
    Classic,
    /// Many-turn trajectories, the default: critic λ = 1, length-adaptive policy λ, clip-higher, a pretrained critic.
    #[default]
    Long,
}

/// Where the KL to the reference goes. With `kl_coef` 0 it is only measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KlKind {
    /// −kl_coef·k1 per token in the reward.
    #[default]
    InReward,
    /// kl_coef·k2 in the actor's loss.
    LossK2,
    /// kl_coef·ρ·k3 in the actor's loss.
    LossK3,
}

/// Everything that shapes training. `Default` is the preset `long`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")] // the traits are below: a file's fields are laid over its preset
pub struct TrainConfig {
    /// Which defaults the rest starts from.
    pub preset: Preset,
    /// Learning rate of the policy.
    pub actor_lr: f64,
    /// Learning rate of the critic (trunk and head) after its warm-up.
    pub critic_lr: f64,
    /// Critic steps over which its learning rate rises linearly.
    pub critic_warmup_steps: u64,
    /// β1 and β2 of AdamW.
    pub betas: (f64, f64),
    /// ε of AdamW.
    pub eps: f64,
    /// Decoupled weight decay.
    pub weight_decay: f64,
    /// ε of the clip below.
    pub clip_low: f64,
    /// ε of the clip above.
    pub clip_high: f64,
    /// Dual clip c for A < 0; none or 0 (TOML knows no null) turns it off.
    pub dual_clip: Option<f64>,
    /// Value clip; none or 0 turns it off.
    pub value_clip: Option<f64>,
    /// Weight of the KL to the reference.
    pub kl_coef: f64,
    /// Where that KL goes.
    pub kl_kind: KlKind,
    /// Discount γ.
    pub gamma: f64,
    /// λ of the policy's advantages.
    pub lambda_actor: Lambda,
    /// λ of the critic's targets.
    pub lambda_critic: f64,
    /// Sweeps over a round's batch.
    pub passes: usize,
    /// Trajectories per actor update.
    pub minibatch_trajectories: usize,
    /// Token budget of one forward pass with gradients, padding included; four times as much without.
    pub micro_tokens: usize,
    /// Critic updates per actor update.
    pub critic_updates: usize,
    /// Steps of the value head alone, on the first round, before anything else moves.
    pub critic_pretrain_steps: u64,
    /// Learning rate of those steps (they train a linear head on fixed features, so it is far larger).
    pub critic_pretrain_lr: f64,
    /// Bound on the gradient's norm.
    pub grad_clip: f64,
    /// Sampling temperature of the recorded log-probs; the logits are divided by it.
    pub temperature: f64,
    /// How per-token losses become one.
    pub aggregation: Aggregation,
    /// Seed of every shuffle.
    pub seed: u64,
    /// Steps between checkpoints; the caller of `Trainer::round` acts on it.
    pub checkpoint_every: u64,
    /// Kind the networks compute in. The master weights, gradients sums and optimizer are float32 either way.
    pub dtype: Dtype,
}

/// Kind of the forward and backward pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dtype {
    /// float32.
    #[default]
    F32,
    /// bfloat16 products; log-probs, values and losses stay float32.
    Bf16,
}

impl Default for TrainConfig {
    fn default() -> TrainConfig {
        TrainConfig::preset(Preset::Long)
    }
}

impl TrainConfig {
    /// The defaults of a preset. Sources: the numerics table's section on defaults (VAPO for `long`).
    pub fn preset(preset: Preset) -> TrainConfig {
        let long = TrainConfig {
            preset,
            actor_lr: 1e-6,
            critic_lr: 5e-6,
            critic_warmup_steps: 10,
            betas: (0.9, 0.95),
            eps: 1e-8,
            weight_decay: 0.0,
            clip_low: 0.2,
            clip_high: 0.28,
            dual_clip: Some(3.0),
            value_clip: Some(0.2),
            kl_coef: 0.0,
            kl_kind: KlKind::InReward,
            gamma: 1.0,
            lambda_actor: Lambda::Adaptive { adaptive: 1.5 },
            lambda_critic: 1.0,
            passes: 1,
            minibatch_trajectories: 32,
            micro_tokens: 1024,
            critic_updates: 2,
            critic_pretrain_steps: 100,
            critic_pretrain_lr: 1e-3,
            grad_clip: 1.0,
            temperature: 1.0,
            aggregation: Aggregation::TokenMean,
            seed: 0,
            checkpoint_every: 10,
            dtype: Dtype::F32,
        };
        match preset {
            Preset::Long => long,
            Preset::Classic => TrainConfig {
                clip_high: 0.2,
                dual_clip: None,
                lambda_actor: Lambda::Fixed(0.95),
                lambda_critic: 0.95,
                critic_updates: 1,
                critic_pretrain_steps: 0,
                ..long
            },
        }
    }

    /// The policy loss's clip.
    pub fn clip(&self) -> Clip {
        Clip { low: self.clip_low, high: self.clip_high, dual: self.dual_clip.filter(|&c| c != 0.0) }
    }

    /// The value loss's clip.
    pub fn value_clip(&self) -> Option<f64> {
        self.value_clip.filter(|&c| c != 0.0)
    }

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

impl Serialize for TrainConfig {
    fn serialize<S: serde::Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        TrainConfig::serialize(self, to)
    }
}

impl<'de> Deserialize<'de> for TrainConfig {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> std::result::Result<TrainConfig, D::Error> {
        use serde::de::Error;
        let named = serde_json::Map::deserialize(from)?;
        let preset = match named.get("preset") {
            Some(name) => serde_json::from_value(name.clone()).map_err(|e| D::Error::custom(format!("preset: {e}")))?,
            None => Preset::default(),
        };
        let base = serde_json::to_value(TrainConfig::preset(preset)).map_err(D::Error::custom)?;
        let serde_json::Value::Object(mut all) = base else { return Err(D::Error::custom("a config is a table")) };
        all.extend(named);
        TrainConfig::deserialize(serde_json::Value::Object(all)).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_table_is_the_preset_long() {
        let config: TrainConfig = serde_json::from_str("{}").unwrap();
        assert_eq!(config, TrainConfig::default());
        assert_eq!((config.clip_high, config.lambda_critic, config.critic_updates), (0.28, 1.0, 2));
        config.validate().unwrap();
    }

    #[test]
    fn named_fields_win_over_the_named_preset() {
        let config: TrainConfig = serde_json::from_str(r#"{"preset":"classic","actor_lr":1e-5}"#).unwrap();
        assert_eq!((config.actor_lr, config.clip_high, config.lambda_critic), (1e-5, 0.2, 0.95));
        let again: TrainConfig = serde_json::from_str(&serde_json::to_string(&config).unwrap()).unwrap();
        assert_eq!(again, config);
    }

    #[test]
    fn unknown_fields_and_impossible_numbers_are_refused() {
        assert!(
            serde_json::from_str::<TrainConfig>(r#"{"actor_lrr":1}"#).unwrap_err().to_string().contains("actor_lrr")
        );
        let config = TrainConfig { temperature: 0.0, ..Default::default() };
        assert!(config.validate().unwrap_err().to_string().contains("temperature"));
    }
}
