//! Tests of the update loop on tiny random models, and what they share.

mod gradients_test;
mod learning_test;
mod reference_test;
mod resume_test;
mod round_test;

use rollmill_model::{Decoder, ModelConfig, sampling};
use tch::{Device, Kind, Tensor};

use super::{Control, Critic, Metrics, StepMetrics, Trainer};
use crate::{Experience, Result, TrainConfig};

const VOCAB: i64 = 11;

fn policy() -> Decoder {
    // Threads that wait for each other by spinning slow everything down where tests share the cores.
    tch::set_num_threads(1);
    Decoder::random(ModelConfig::tiny(VOCAB), 1)
}

/// Rates large enough to see, minibatches small enough to have several.
fn config() -> TrainConfig {
    TrainConfig {
        actor_lr: 1e-3,
        critic_lr: 2e-3,
        critic_warmup_steps: 3,
        minibatch_trajectories: 4,
        micro_tokens: 40,
        passes: 2,
        critic_pretrain_steps: 5,
        seed: 7,
        ..TrainConfig::default()
    }
}

/// Log-softmax over the vocabulary at every position of one sequence, alone and causal: [T,V].
fn alone(decoder: &Decoder, tokens: &[i64]) -> Tensor {
    let hidden = hidden_alone(decoder, tokens);
    decoder.logits(&hidden).log_softmax(-1, Kind::Float)
}

/// [T,H].
fn hidden_alone(decoder: &Decoder, tokens: &[i64]) -> Tensor {
    let ids = Tensor::from_slice(tokens).unsqueeze(0);
    let positions = Tensor::arange(tokens.len() as i64, (Kind::Int64, Device::Cpu)).unsqueeze(0);
    decoder.hidden(&ids, &positions, None).squeeze_dim(0)
}

fn draw(seed: u64, at: usize, below: usize) -> usize {
    (sampling::uniform(seed, at as u64) * below as f64) as usize
}

/// Three tasks of three trajectories with a common prompt, different lengths, a stretch of tool output in the middle, one
/// cut off and two equal; log-probs are the policy's own.
fn batch(decoder: &Decoder, seed: u64) -> Vec<Experience> {
    let mut all: Vec<Experience> = (0..9).map(|i| trajectory(decoder, seed, i)).collect();
    all[4].truncated = true;
    (all[7].tokens, all[7].trainable, all[7].log_probs) =
        (all[6].tokens.clone(), all[6].trainable.clone(), all[6].log_probs.clone());
    all
}

fn trajectory(decoder: &Decoder, seed: u64, i: usize) -> Experience {
    let (task, length) = (i / 3, 6 + draw(seed, i, 6));
    let prompt = [1, task as i64 + 2, 3];
    let answer = (0..length).map(|t| draw(seed + 1, 100 * i + t, VOCAB as usize) as i64);
    let tokens: Vec<i64> = prompt.into_iter().chain(answer).collect();
    let trainable: Vec<bool> = (0..tokens.len()).map(|t| t >= 3 && !(5..7).contains(&t)).collect();
    let log_softmax = tch::no_grad(|| alone(decoder, &tokens));
    let at = |t: usize| if t == 0 { 0.0 } else { log_softmax.double_value(&[t as i64 - 1, tokens[t]]) as f32 };
    Experience {
        task_id: format!("task-{task}"),
        log_probs: (0..tokens.len()).map(at).collect(),
        reward: Some(sampling::uniform(seed + 2, i as u64)),
        truncated: false,
        tokens,
        trainable,
    }
}

fn go_on(_: &StepMetrics, _: &Trainer) -> Result<Control> {
    Ok(Control::Continue)
}

/// The critic's trunk and head.
fn critic(trainer: &Trainer) -> &Critic {
    trainer.critic.as_ref().unwrap()
}

fn head(trainer: &Trainer) -> Vec<f32> {
    Vec::try_from(critic(trainer).head.weight.detach().flatten(0, -1)).unwrap()
}

fn weights(decoder: &Decoder) -> Vec<Vec<f32>> {
    decoder.parameters().iter().map(|(_, t)| Vec::try_from(t.detach().flatten(0, -1)).unwrap()).collect()
}

fn is_clock(name: &str) -> bool {
    name.contains("second")
}

/// Metrics that must repeat.
fn without_clocks(metrics: &Metrics) -> Metrics {
    metrics.iter().filter(|(name, _)| !is_clock(name)).map(|(n, v)| (n.clone(), *v)).collect()
}
