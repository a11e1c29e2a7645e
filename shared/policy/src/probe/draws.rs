//! Answers of one token to the same prompt.
//!
//! In: a policy, prompts and temperatures. Out: tokens with their log-probs in the order of their seeds. Must hold:
//! seeds are fixed and all different, so that draws are independent and come out the same again.

use crate::seed::segment_seed;
use crate::{Completed, Completion, EndpointError, Policy};
use futures::future::try_join_all;
use std::collections::BTreeMap;

/// Answers for each prompt and temperature.
///
/// Enough for what a `generation_config.json` usually names. Of 400 simulated servers each, drawing again from 5120
/// answers of SmolLM2-135M-Instruct, found at temperature 0.8 (1.0): top-k 20 100 % (100 %), top-k 50 99 % (100 %),
/// min-p 0.05 100 % (100 %), top-p 0.8 0 % (0 %; requests name their top-p), a penalty of 1 logit 12 % (18 %), 1.5 98 %
/// (96 %), 2 to 5 at least 99.5 %. A repetition penalty of 1.1 takes 2 logits from one of 22. Honest servers refused: 0
/// of 4000.
const EACH: usize = 128;
/// What the seeds of all probes are made from.
const SEED: u64 = 0x7072_6f62_6500;

/// What one prompt gave at one temperature.
pub(super) struct Draws {
    pub temperature: f64,
    /// Token and log-prob; none where the server answered with no token, which only an end token can be.
    pub drawn: Vec<Option<(u32, f64)>>,
}

/// Asks for `EACH` draws of every prompt and temperature.
///
/// They take turns, so that whatever a server's batches do to its logits, they do alike to all.
pub(super) async fn draw(policy: &dyn Policy, asked: &[(&[u32], f64)]) -> Result<Vec<Draws>, EndpointError> {
    let requests = (0..EACH * asked.len()).map(|number| {
        let (prompt, temperature) = asked[number % asked.len()];
        let seed = segment_seed(SEED, number as u32);
        let completion =
            Completion { prompt: prompt.to_vec(), max_tokens: 1, temperature, top_p: 1.0, seed, stop: vec![] };
        async move { policy.complete(&completion).await.map(first) }
    });
    let answers = try_join_all(requests).await?;
    let of = |(at, (_, temperature)): (usize, &(&[u32], f64))| Draws {
        temperature: *temperature,
        drawn: answers.iter().skip(at).step_by(asked.len()).copied().collect(),
    };
    Ok(asked.iter().enumerate().map(of).collect())
}

fn first(answer: Completed) -> Option<(u32, f64)> {
    answer.token_ids.first().copied().zip(answer.log_probs.first().map(|log_prob| f64::from(*log_prob)))
}

impl Draws {
    /// All log-probs of each token.
    pub fn by_token(&self) -> BTreeMap<u32, Vec<f64>> {
        let mut all: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for (token, log_prob) in self.drawn.iter().flatten() {
            all.entry(*token).or_default().push(*log_prob);
        }
        all
    }
}

/// Standard deviation of a token's log-prob around its mean, over all draws, in logits.
pub(super) fn noise(all: &[Draws]) -> f64 {
    let (mut squares, mut freedom) = (0.0, 0);
    for draws in all {
        for log_probs in draws.by_token().into_values() {
            let mean = mean(&log_probs);
            squares += log_probs.iter().map(|l| ((l - mean) * draws.temperature).powi(2)).sum::<f64>();
            freedom += log_probs.len() - 1;
        }
    }
    if freedom == 0 { 0.0 } else { (squares / freedom as f64).sqrt() }
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
