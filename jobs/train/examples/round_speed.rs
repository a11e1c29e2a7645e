//! Times one PPO round on a real model:
//! `round_speed MODEL_DIR [f32|bf16] [threads] [groups] [per group] [prompt] [answer] [micro tokens] [checkpoint folder]`.
//! Trajectories are random tokens, so only the seconds mean anything.

use std::path::Path;
use std::time::Instant;

use rollmill_model::{Decoder, sampling};
use rollmill_train::{Control, Dtype, Experience, TrainConfig, Trainer};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    let number = |at: usize, default: usize| args.get(at).and_then(|a| a.parse().ok()).unwrap_or(default);
    let dir = args.get(1).ok_or("usage: round_speed MODEL_DIR [f32|bf16] [threads] …")?;
    let dtype = if args.get(2).is_some_and(|kind| kind == "bf16") { Dtype::Bf16 } else { Dtype::F32 };
    tch::set_num_threads(number(3, 2) as i32);
    let policy = Decoder::load(Path::new(dir), tch::Kind::Float, tch::Device::Cpu)?;
    let micro_tokens = number(8, TrainConfig::default().micro_tokens);
    let config = TrainConfig { dtype, micro_tokens, ..TrainConfig::default() };
    let batch = batch(policy.config.vocab_size, number(4, 32), number(5, 4), number(6, 150), number(7, 100));
    let mut trainer = Trainer::from_policy(policy, config)?;
    let began = Instant::now();
    let round = trainer.round(&batch, &mut |metrics, _| {
        println!(
            "step {} after {:.1} s: {:.1} s",
            metrics.step,
            began.elapsed().as_secs_f64(),
            metrics.values["seconds"]
        );
        Ok(Control::Continue)
    })?;
    println!("{:#?}", round.values);
    println!("peak memory: {}", peak_memory());
    if let Some(keep) = args.get(9) {
        let saving = Instant::now();
        trainer.save(Path::new(keep))?;
        println!("saved in {:.1} s", saving.elapsed().as_secs_f64());
    }
    Ok(())
}

fn batch(vocab: i64, groups: usize, each: usize, prompt: usize, answer: usize) -> Vec<Experience> {
    let token = |seed: usize, at: usize| (sampling::uniform(seed as u64, at as u64) * vocab as f64) as i64;
    let one = |i: usize| {
        let task = i / each;
        let length = answer / 2 + (sampling::uniform(9, i as u64) * answer as f64) as usize;
        let tokens: Vec<i64> =
            (0..prompt).map(|t| token(task, t)).chain((0..length).map(|t| token(10_000 + i, t))).collect();
        Experience {
            task_id: task.to_string(),
            trainable: (0..tokens.len()).map(|t| t >= prompt).collect(),
            log_probs: vec![-10.8; tokens.len()], // about −ln(vocabulary)
            reward: Some(sampling::uniform(8, i as u64)),
            truncated: false,
            tokens,
        }
    };
    (0..groups * each).map(one).collect()
}

fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("unknown").to_owned()
}
