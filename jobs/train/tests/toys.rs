//! Toys that a small random model learns from reward alone: reverse the words, count the letters. In: a seed and an
//! algorithm. Must hold: greedy answers to all questions become right for more than .9 of them, with each seed; without
//! learning they stay where chance puts them.
#![allow(clippy::unwrap_used)] // clippy allows it in tests, but not in their helpers

use rollmill_model::{Decoder, ModelConfig, sampling};
use rollmill_train::numerics::lambda::Lambda;
use rollmill_train::{Algorithm, Control, Experience, TrainConfig, Trainer};
use tch::{Device, Kind, Tensor};

/// A question with its answer. Words are tokens from 4 on; 1 begins, 2 asks for the answer.
#[derive(Clone)]
struct Question {
    prompt: Vec<i64>,
    answer: Vec<i64>,
}

const VOCAB: i64 = 12;
const SAMPLES: usize = 8;

/// All rows of three words out of five; the answer is the row backwards.
fn reverse_the_words() -> Vec<Question> {
    let words = |code: i64| [code % 5, code / 5 % 5, code / 25].map(|w| 4 + w);
    let question = |code| {
        let [a, b, c] = words(code);
        Question { prompt: vec![1, a, b, c, 2], answer: vec![c, b, a] }
    };
    (0..125).map(question).collect()
}

/// All rows of five letters out of two, and one of the two to count; the answer is a digit.
fn count_letters() -> Vec<Question> {
    let question = |code: i64| {
        let letters: Vec<i64> = (0..5).map(|place| 4 + (code >> place & 1)).collect();
        let asked = 4 + (code >> 5);
        let count = letters.iter().filter(|&&letter| letter == asked).count() as i64;
        let prompt = [1].into_iter().chain(letters).chain([2, asked]).collect();
        Question { prompt, answer: vec![6 + count] }
    };
    (0..64).map(question).collect()
}

/// The next token of every row, by `choose` from its logits.
fn next(policy: &Decoder, rows: &[Vec<i64>], mut choose: impl FnMut(usize, &[f32]) -> (i64, f32)) -> Vec<(i64, f32)> {
    let shape = [rows.len() as i64, rows[0].len() as i64];
    let ids = Tensor::from_slice(&rows.concat()).reshape(shape);
    let positions = Tensor::arange(shape[1], (Kind::Int64, Device::Cpu)).unsqueeze(0).expand(shape, false);
    let logits = tch::no_grad(|| policy.logits(&policy.hidden(&ids, &positions, None).select(1, -1)));
    let flat = Vec::<f32>::try_from(logits.flatten(0, -1)).unwrap();
    flat.chunks(VOCAB as usize).enumerate().map(|(row, logits)| choose(row, logits)).collect()
}

/// Samples of some questions, paid by the share of right tokens.
fn sample(policy: &Decoder, questions: &[Question], seed: u64) -> Vec<Experience> {
    let picked: Vec<usize> = (0..24).map(|i| (sampling::uniform(seed, i) * questions.len() as f64) as usize).collect();
    let asked: Vec<&Question> = picked.iter().flat_map(|&q| std::iter::repeat_n(&questions[q], SAMPLES)).collect();
    let mut rows: Vec<Vec<i64>> = asked.iter().map(|q| q.prompt.clone()).collect();
    let mut log_probs: Vec<Vec<f32>> = asked.iter().map(|q| vec![0.0; q.prompt.len()]).collect();
    for at in 0..asked[0].answer.len() {
        let drawn = next(policy, &rows, |row, logits| {
            let drawn = sampling::sample(logits, 1.0, 1.0, sampling::uniform(seed + 1, (at * 1000 + row) as u64));
            (i64::from(drawn.token), drawn.log_prob)
        });
        for (row, (token, log_prob)) in drawn.into_iter().enumerate() {
            rows[row].push(token);
            log_probs[row].push(log_prob);
        }
    }
    let mut experiences = vec![];
    for (at, (tokens, log_probs)) in rows.into_iter().zip(log_probs).enumerate() {
        experiences.push(Experience {
            // Two picks of one question are two groups, as in two rounds.
            task_id: format!("{} {}", at / SAMPLES, picked[at / SAMPLES]),
            trainable: (0..tokens.len()).map(|t| t >= asked[at].prompt.len()).collect(),
            reward: Some(right(asked[at], &tokens)),
            truncated: false,
            tokens,
            log_probs,
        });
    }
    experiences
}

/// Share of the answer's tokens that are right.
fn right(question: &Question, tokens: &[i64]) -> f64 {
    let given = &tokens[question.prompt.len()..];
    question.answer.iter().zip(given).filter(|(a, b)| a == b).count() as f64 / question.answer.len() as f64
}

/// Share of all questions whose greedy answer is right in every token.
fn solved(policy: &Decoder, questions: &[Question]) -> f64 {
    let mut rows: Vec<Vec<i64>> = questions.iter().map(|q| q.prompt.clone()).collect();
    for _ in 0..questions[0].answer.len() {
        let best = |_: usize, logits: &[f32]| {
            let best = (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b])).unwrap();
            (best as i64, 0.0)
        };
        let tokens = next(policy, &rows, best);
        rows.iter_mut().zip(tokens).for_each(|(row, (token, _))| row.push(token));
    }
    let exact = questions.iter().zip(&rows).filter(|(question, row)| right(question, row) == 1.0).count();
    exact as f64 / questions.len() as f64
}

fn config(algorithm: Algorithm, actor_lr: f64, seed: u64) -> TrainConfig {
    TrainConfig {
        algorithm,
        actor_lr,
        critic_lr: 4.0 * actor_lr,
        critic_warmup_steps: 1,
        critic_pretrain_steps: 20,
        lambda_actor: Lambda::Fixed(0.5),
        passes: 2,
        minibatch_trajectories: 96,
        micro_tokens: 2000,
        seed,
        ..TrainConfig::default()
    }
}

/// Share of the questions that are solved after at most `rounds` rounds, and how many it took.
fn learn(config: TrainConfig, questions: &[Question], rounds: u64) -> (f64, u64) {
    tch::set_num_threads(1);
    let seed = config.seed;
    let model = ModelConfig { hidden_size: 64, head_dim: 16, intermediate_size: 128, ..ModelConfig::tiny(VOCAB) };
    let mut trainer = Trainer::from_policy(Decoder::random(model, seed), config).unwrap();
    for round in 0..rounds {
        let share = if round % 10 == 0 { solved(&trainer.actor, questions) } else { 0.0 };
        if share > 0.9 {
            return (share, round);
        }
        let batch = sample(&trainer.actor, questions, 1_000_000 * (seed + 1) + 10 * round);
        trainer.round(&batch, &mut |_, _| Ok(Control::Continue)).unwrap();
    }
    (solved(&trainer.actor, questions), rounds)
}

fn all_seeds_learn(algorithm: Algorithm, questions: &[Question]) {
    for seed in 0..3 {
        let (share, rounds) = learn(config(algorithm, 5e-4, seed), questions, 1000);
        println!("{algorithm:?} seed {seed}: {share:.3} of {} solved after {rounds} rounds", questions.len());
        assert!(share > 0.9, "{algorithm:?} seed {seed}: {share:.3} after {rounds} rounds");
    }
}

#[test]
fn ppo_learns_to_reverse_the_words() {
    all_seeds_learn(Algorithm::Ppo, &reverse_the_words());
}

#[test]
fn grpo_learns_to_reverse_the_words() {
    all_seeds_learn(Algorithm::Grpo, &reverse_the_words());
}

#[test]
fn ppo_learns_to_count_letters() {
    all_seeds_learn(Algorithm::Ppo, &count_letters());
}

#[test]
fn grpo_learns_to_count_letters() {
    all_seeds_learn(Algorithm::Grpo, &count_letters());
}

#[test] // the broken control: a learning rate of 0 stays at chance, however many rounds
fn nothing_is_learned_at_a_rate_of_zero() {
    for questions in [reverse_the_words(), count_letters()] {
        let (share, rounds) = learn(config(Algorithm::Ppo, 0.0, 0), &questions, 20);
        assert!(rounds == 20 && share < 0.3, "{share} after {rounds} rounds");
    }
}
