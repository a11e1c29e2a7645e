//! A policy with known logits, honest or broken in one way.

use rollmill_policy::{Completed, Completion, EndpointError, Finish, Policy};
use std::sync::atomic::{AtomicU64, Ordering};

/// The prompt with a broad next token, and the one that its own tokens continue.
pub const BROAD: [u32; 1] = [9];
pub const REPEATING: [u32; 3] = [0, 1, 2];
/// An end token, among the likelier ones.
pub const END: u32 = 5;

/// How log-probs and draws differ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fault {
    None,
    /// Log-probs at temperature 1.
    Raw,
    /// Draws from the likeliest; log-probs of before.
    TopK(usize),
    /// The same with log-probs at temperature 1.
    RawTopK(usize),
    /// Draws from what has at least this share of the likeliest; log-probs of before.
    MinP(f64),
    /// Draws from the likeliest and says so.
    Renormalised(usize),
    /// Logits of the prompt's tokens lowered; log-probs of before.
    Penalty(f64),
    Constant(f64),
    /// Whose they are is another matter.
    OfNextToken,
    /// Independent errors of up to this many logits.
    Noisy(f64),
    /// Logits as bf16, which the batch moves by a step now and then: honest.
    Bf16,
    /// Draws at another temperature than asked for, by this factor.
    Hotter(f64),
    /// [`END`] ends the answer and is left out of it: honest.
    SilentEnd,
    /// One answer for all seeds.
    Cached,
    NoLogProbs,
    NotANumber,
    Positive,
}

/// A policy over `logits`.
pub struct Sampler {
    /// Of the broad prompt.
    pub logits: Vec<f64>,
    pub fault: Fault,
    /// Mixed into every request's seed: another one, other draws.
    pub salt: u64,
    pub asked: AtomicU64,
}

/// SplitMix64's output function (Steele, Lea and Flood 2014).
pub fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

pub fn unit(z: u64) -> f64 {
    (mix(z) >> 11) as f64 / (1_u64 << 53) as f64
}

fn softmax(logits: &[f64], temperature: f64) -> Vec<f64> {
    let highest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = logits.iter().map(|l| ((l - highest) / temperature).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|w| w / sum).collect()
}

/// The `k` likeliest keep their logits.
fn top_k(logits: &[f64], k: usize) -> Vec<f64> {
    let mut sorted = logits.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let least = sorted[k.min(sorted.len()) - 1];
    logits.iter().map(|l| if *l >= least { *l } else { f64::NEG_INFINITY }).collect()
}

impl Sampler {
    pub fn new(logits: Vec<f64>, fault: Fault, salt: u64) -> Self {
        Self { logits, fault, salt, asked: AtomicU64::new(0) }
    }

    /// Logits that fall with the logarithm of the rank, as words of a language do (Zipf 1935), over `size` tokens. As
    /// broad as the next token of the probe's own prompt by SmolLM2-135M-Instruct: of 3000 the 50 likeliest have 0.26
    /// together.
    pub fn zipf(size: usize, fault: Fault) -> Self {
        Self::new((0..size).map(|rank| 12.0 - 0.7 * (1.0 + rank as f64).ln()).collect(), fault, 0)
    }

    /// The repeating prompt makes its tokens likelier by so much that they have most of the mass (0.9 at temperature
    /// 0.8).
    fn logits_after(&self, prompt: &[u32], noise: u64) -> Vec<f64> {
        let mut logits = self.logits.clone();
        if prompt == REPEATING {
            prompt.iter().for_each(|token| logits[*token as usize] += 3.3);
        }
        if self.fault == Fault::Bf16 {
            let step = |l: &f64| 2_f64.powi((l.abs().max(1e-3)).log2().floor() as i32 - 7);
            let moved = |(at, l): (usize, &f64)| {
                let roll = unit(noise ^ (at as u64) << 20);
                let steps = if roll < 0.1 {
                    1.0
                } else if roll > 0.9 {
                    -1.0
                } else {
                    0.0
                };
                ((l / step(l)).round() + steps) * step(l)
            };
            logits = logits.iter().enumerate().map(moved).collect();
        }
        logits
    }

    fn drawn_from(&self, logits: &[f64], asked: &Completion) -> Vec<f64> {
        let temperature = asked.temperature;
        match self.fault {
            Fault::TopK(k) | Fault::RawTopK(k) | Fault::Renormalised(k) => softmax(&top_k(logits, k), temperature),
            Fault::MinP(share) => {
                let all = softmax(logits, temperature);
                let least = share * all.iter().copied().fold(0.0, f64::max);
                let kept: Vec<f64> = all.iter().map(|p| if *p >= least { *p } else { 0.0 }).collect();
                let sum: f64 = kept.iter().sum();
                kept.into_iter().map(|p| p / sum).collect()
            }
            Fault::Penalty(by) => {
                let mut lowered = logits.to_vec();
                asked.prompt.iter().for_each(|token| lowered[*token as usize] -= by);
                softmax(&lowered, temperature)
            }
            Fault::Hotter(factor) => softmax(logits, temperature * factor),
            _ => softmax(logits, temperature),
        }
    }

    /// A token and its alleged log-prob.
    pub fn sample(&self, asked: &Completion) -> (u32, f64) {
        let number = self.asked.fetch_add(1, Ordering::SeqCst);
        let seed = if self.fault == Fault::Cached { 0 } else { asked.seed };
        let draw = mix(seed ^ mix(self.salt));
        let logits = self.logits_after(&asked.prompt, number / 16);
        let mut left = unit(draw);
        let drawn_from = self.drawn_from(&logits, asked);
        let found = drawn_from.iter().position(|p| {
            left -= p;
            left < 0.0
        });
        let token = found.unwrap_or_else(|| drawn_from.iter().rposition(|p| *p > 0.0).unwrap());
        let log_prob = |at: usize, temperature: f64| softmax(&logits, temperature)[at].ln();
        let alleged = match self.fault {
            Fault::Raw | Fault::RawTopK(_) => log_prob(token, 1.0),
            Fault::Renormalised(_) => drawn_from[token].ln(),
            Fault::Constant(value) => value,
            Fault::OfNextToken => log_prob((token + 1) % logits.len(), asked.temperature),
            Fault::Noisy(by) => {
                log_prob(token, asked.temperature) + by * (unit(number) - 0.5) * 2.0 / asked.temperature
            }
            _ => log_prob(token, asked.temperature),
        };
        (token as u32, alleged.min(0.0))
    }
}

#[async_trait::async_trait]
impl Policy for Sampler {
    async fn complete(&self, asked: &Completion) -> Result<Completed, EndpointError> {
        let (token, log_prob) = self.sample(asked);
        let log_probs = vec![log_prob as f32];
        Ok(Completed { token_ids: vec![token], log_probs, finish: Finish::Length, text: String::new() })
    }
}
