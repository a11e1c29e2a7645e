//! Times steps on a real model and tells their peak memory: `step MODEL_DIR [key=value ...]`. Keys: `algorithm`, `dtype`
//! (f32, bf16), `threads`, `groups`, `each` (trajectories of a group), `prompt`, `answer` (tokens), `micro` (micro_tokens),
//! `recompute` (recompute_over), `minibatch`, `rounds`, `case` (a folder: the batch is written there for `tests/reference/speed.py`).
//! Trajectories are random tokens of equal length, so only seconds and bytes mean anything.

use std::collections::HashMap;
use std::path::Path;
use std::time::Instant;

use rollmill_model::{Decoder, sampling};
use rollmill_train::{Algorithm, Control, Dtype, Experience, TrainConfig, Trainer};

type Failure = Box<dyn std::error::Error>;

struct Keys(HashMap<String, String>);

impl Keys {
    fn number(&self, key: &str, default: usize) -> usize {
        self.0.get(key).and_then(|value| value.parse().ok()).unwrap_or(default)
    }
}

fn main() -> Result<(), Failure> {
    let mut args = std::env::args().skip(1);
    let dir = args.next().ok_or("usage: step MODEL_DIR [key=value ...]")?;
    let pair = |arg: String| arg.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned()));
    let keys = Keys(args.filter_map(pair).collect());
    tch::set_num_threads(keys.number("threads", 2) as i32);
    let policy = Decoder::load(Path::new(&dir), tch::Kind::Float, tch::Device::Cpu)?;
    let batch = batch(policy.config.vocab_size, &keys);
    if let Some(folder) = keys.0.get("case") {
        write(&batch, folder, &dir)?;
    }
    let mut trainer = Trainer::from_policy(policy, config(&keys)?)?;
    let tokens: usize = batch.iter().map(|e| e.tokens.len()).sum();
    for round in 1..=keys.number("rounds", 2) {
        let began = Instant::now();
        let mut updates = 0.0;
        let done = trainer.round(&batch, &mut |step, _| {
            updates += step.values["seconds"];
            Ok(Control::Continue)
        })?;
        let places = done.values["places"] * done.steps as f64;
        println!(
            "round {round}: {} steps, updates {updates:.2} s, whole {:.2} s, {:.0} tokens/s of updates, {places:.0} places for {tokens} tokens",
            done.steps,
            began.elapsed().as_secs_f64(),
            tokens as f64 / updates,
        );
    }
    println!("peak memory: {}", peak_memory());
    Ok(())
}

fn config(keys: &Keys) -> Result<TrainConfig, Failure> {
    let name = keys.0.get("algorithm").map_or("ppo", String::as_str);
    let algorithm: Algorithm = serde_json::from_value(name.into())?;
    let defaults = TrainConfig::default();
    Ok(TrainConfig {
        algorithm,
        dtype: if keys.0.get("dtype").is_some_and(|kind| kind == "bf16") { Dtype::Bf16 } else { Dtype::F32 },
        micro_tokens: keys.number("micro", defaults.micro_tokens),
        recompute_over: keys.number("recompute", defaults.recompute_over),
        minibatch_trajectories: keys.number("minibatch", defaults.minibatch_trajectories),
        passing_reward: 0.0,
        critic_pretrain_steps: 0,
        ..defaults
    })
}

fn batch(vocab: i64, keys: &Keys) -> Vec<Experience> {
    let (each, prompt, answer) = (keys.number("each", 4), keys.number("prompt", 150), keys.number("answer", 100));
    let token = |seed: usize, at: usize| (sampling::uniform(seed as u64, at as u64) * vocab as f64) as i64;
    let one = |i: usize| {
        let task = i / each;
        let question = (0..prompt).map(|t| token(task, t));
        let tokens: Vec<i64> = question.chain((0..answer).map(|t| token(10_000 + i, t))).collect();
        Experience {
            task_id: task.to_string(),
            trainable: (0..tokens.len()).map(|t| t >= prompt.max(1)).collect(),
            log_probs: vec![-10.8; tokens.len()], // about −ln(vocabulary)
            reward: Some(sampling::uniform(8, i as u64)),
            truncated: false,
            tokens,
        }
    };
    (0..keys.number("groups", 8) * each).map(one).collect()
}

fn write(batch: &[Experience], folder: &str, model: &str) -> Result<(), Failure> {
    let row =
        |e: &Experience| serde_json::json!({"tokens": e.tokens, "trainable": e.trainable, "log_probs": e.log_probs});
    let case = serde_json::json!({"model": model, "batch": batch.iter().map(row).collect::<Vec<_>>()});
    std::fs::create_dir_all(folder)?;
    Ok(std::fs::write(Path::new(folder).join("case.json"), case.to_string())?)
}

fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("unknown");
    line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
}
