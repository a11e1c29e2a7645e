//! The trainer's configuration. In: a table of a config file, of which every field may be absent. Out: `TrainConfig`.
//! Must hold: what the file names wins over the preset, and the preset over nothing.

mod validate;

use rollmill_model::LoraConfig;
use serde::{Deserialize, Serialize};

use crate::alerts::Thresholds;
use crate::algorithm::Algorithm;
use crate::experience::Experience;
use crate::numerics::aggregate::Aggregation;
use crate::numerics::lambda::Lambda;
use crate::numerics::off_policy::OffPolicy;
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
    /// How a batch changes the weights.
    pub algorithm: Algorithm,
    /// Learning rate of the policy after its warm-up.
    pub actor_lr: f64,
    /// Policy steps over which its learning rate rises linearly.
    pub actor_warmup_steps: u64,
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
    /// Least deviation that group-relative advantages are divided by: rewards closer than this are noise.
    pub group_std_floor: f64,
    /// β of DPO.
    pub dpo_beta: f64,
    /// Least reward of a trajectory that passes: SFT imitates those, and their lengths are watched.
    pub passing_reward: f64,
    /// What happens to tokens that another policy sampled.
    pub off_policy: OffPolicy,
    /// Rounds that a row's policy may be behind the one that learns; older rows are left out. Above 0, rows of earlier rounds
    /// are trained on again.
    pub max_age: u32,
    /// Whether a trajectory that was cut off ends with the critic's value of the state behind it. False takes its reward as
    /// final: right where whatever gets that far is cut off and graded as it stands, for then no return ever anchors that
    /// value, and with λ = 1 it is its own target.
    pub bootstrap_cut_off: bool,
    /// Sweeps over a round's batch.
    pub passes: usize,
    /// Trajectories per actor update.
    pub minibatch_trajectories: usize,
    /// Token budget of one forward pass with gradients, padding included; four times as much without.
    pub micro_tokens: usize,
    /// Forward passes of more places than this keep each layer's input alone, and run the layers again on the way back.
    pub recompute_over: usize,
    /// Critic updates per actor update.
    pub critic_updates: usize,
    /// Steps of the value head alone, on the first round, before anything else moves.
    pub critic_pretrain_steps: u64,
    /// Learning rate of those steps (they train a linear head on fixed features, so it is far larger).
    pub critic_pretrain_lr: f64,
    /// Bound on the gradient's norm.
    pub grad_clip: f64,
    /// Updates of a round that may be skipped because a loss or a gradient is not finite; one more stops the run.
    pub max_skipped: u64,
    /// Sampling temperature of the recorded log-probs; the logits are divided by it.
    pub temperature: f64,
    /// How per-token losses become one.
    pub aggregation: Aggregation,
    /// Seed of every shuffle.
    pub seed: u64,
    /// Steps between checkpoints; the caller of `Trainer::round` acts on it.
    pub checkpoint_every: u64,
    /// Checkpoints of a round under way that are kept; older ones are retired (`rollmill gc` deletes their files). 0 keeps all.
    pub keep_checkpoints: usize,
    /// When to raise an alert.
    pub alerts: Thresholds,
    /// Adapters of low rank that learn in place of the weights; none trains all weights.
    pub lora: Option<LoraConfig>,
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
            algorithm: Algorithm::Ppo,
            actor_lr: 1e-6,
            actor_warmup_steps: 0,
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
            group_std_floor: 1e-3,
            dpo_beta: 0.1,
            passing_reward: 0.999,
            off_policy: OffPolicy::None,
            max_age: 0,
            bootstrap_cut_off: true,
            passes: 1,
            minibatch_trajectories: 32,
            micro_tokens: 1024,
            recompute_over: 2048,
            critic_updates: 2,
            critic_pretrain_steps: 100,
            critic_pretrain_lr: 1e-3,
            grad_clip: 1.0,
            max_skipped: 3,
            temperature: 1.0,
            aggregation: Aggregation::TokenMean,
            seed: 0,
            checkpoint_every: 10,
            keep_checkpoints: 2,
            alerts: Thresholds::default(),
            lora: None,
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

    /// Whether the critic's value stands for what would have followed.
    pub(crate) fn bootstraps(&self, e: &Experience) -> bool {
        e.truncated && self.bootstrap_cut_off
    }

    /// The value loss's clip.
    pub fn value_clip(&self) -> Option<f64> {
        self.value_clip.filter(|&c| c != 0.0)
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
