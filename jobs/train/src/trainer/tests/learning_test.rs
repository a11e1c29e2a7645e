//! A toy problem end to end: sample from the model, reward the share of one token, train. It must learn, and a learning
//! rate of 0 must not.

use super::*;

const WANTED: i64 = 3;
const LENGTH: usize = 8;
const TOY_VOCAB: i64 = 8;

/// 32 trajectories of 8 tokens, 8 for each of 4 prompts, sampled from the policy with seeds of round and trajectory.
fn sample(decoder: &Decoder, round: u64) -> Vec<Experience> {
    let mut all: Vec<Experience> = (0..32).map(|i| prompt(i / 8)).collect();
    for _ in 0..LENGTH {
        let ids = Tensor::from_slice(&all.iter().flat_map(|e| e.tokens.clone()).collect::<Vec<_>>()).reshape([32, -1]);
        let positions = Tensor::arange(ids.size()[1], (Kind::Int64, Device::Cpu)).unsqueeze(0).expand_as(&ids);
        let logits = tch::no_grad(|| decoder.logits(&decoder.hidden(&ids, &positions, None).select(1, -1)));
        for (i, e) in all.iter_mut().enumerate() {
            let row = Vec::<f32>::try_from(logits.get(i as i64)).unwrap();
            let u = sampling::uniform(1000 * round + i as u64, e.tokens.len() as u64);
            let drawn = sampling::sample(&row, 1.0, 1.0, u);
            e.tokens.push(i64::from(drawn.token));
            e.log_probs.push(drawn.log_prob);
            e.trainable.push(true);
            let paid = f64::from(u8::from(i64::from(drawn.token) == WANTED)) / LENGTH as f64;
            e.reward = e.reward.map(|r| r + paid);
        }
    }
    all
}

fn prompt(task: i64) -> Experience {
    Experience {
        task_id: format!("{task}"),
        tokens: vec![task, 7],
        trainable: vec![false; 2],
        log_probs: vec![0.0; 2],
        reward: Some(0.0),
        truncated: false,
    }
}

/// Mean reward of the first and the last batch, over 15 rounds of two updates.
fn rewards(actor_lr: f64) -> (f64, f64) {
    tch::set_num_threads(1);
    let config = TrainConfig {
        actor_lr,
        critic_lr: 2.0 * actor_lr,
        critic_pretrain_steps: 20,
        minibatch_trajectories: 16,
        micro_tokens: 400,
        ..TrainConfig::default()
    };
    let mut trainer = Trainer::from_policy(Decoder::random(ModelConfig::tiny(TOY_VOCAB), 4), config).unwrap();
    let mut means = vec![];
    for round in 0..15 {
        let batch = sample(&trainer.actor, round);
        let metrics = trainer.round(&batch, &mut go_on).unwrap();
        assert!(metrics.values["mismatch_max"] < 1e-4, "sampler and trainer disagree: {:?}", metrics.values);
        means.push(metrics.values["score"]);
    }
    (means[0], means[14])
}

#[test]
fn ppo_learns_the_toy_problem_and_a_rate_of_zero_does_not() {
    let (first, last) = rewards(2e-3);
    assert!(first < 0.3, "{first}");
    assert!(last > first + 0.4, "{first} to {last}");
    let (first, last) = rewards(0.0);
    assert!((last - first).abs() < 0.1, "{first} to {last}");
}
