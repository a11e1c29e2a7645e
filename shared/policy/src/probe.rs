//! Whether an endpoint's log-probs are those of the distribution that it samples from.
//!
//! In: a policy and the temperature of a run. Out: nothing where no fault is seen, else the fault. Must hold: whatever
//! the model, chance refuses an honest endpoint with a probability below [`FALSE_ALARM`], and noise of the size that
//! its answers show does not; the same endpoint gets the same verdict, since prompts and seeds are fixed.
//!
//! Servers differ: log-probs of before the division by the temperature, or of before a truncation or penalty that the
//! model's `generation_config.json` turned on (vLLM's default for both). Ratios of PPO are wrong then, and nothing
//! downstream says so. Two tests, on completions of one token:
//! - *Two temperatures.* Log-probs times the temperature are logits plus a constant, so between two temperatures tokens
//!   must differ by the same. At temperature 1 there is nothing to divide, and nothing to test.
//! - *Counts.* How often tokens come back that were drawn before has to be what their log-probs promise. Without a
//!   truncation new tokens go on to appear; under a penalty tokens of the prompt come back too rarely.
//!
//! What cannot be seen from here: log-probs that are *renormalised* after a truncation or penalty are those of the
//! sampled distribution; that it is not the model's own shows in the trainer's `mismatch_*` metrics. So do penalties on
//! tokens of the answer alone (one token has none before it), and what changes too little: a truncation that takes a
//! few percent of the mass, a penalty below one logit. The rates at which others are found stand with the number of
//! draws.

mod counts;
mod draws;
mod temperatures;

use crate::{EndpointError, Policy, Tokenizer, TokenizerError};
use counts::{Class, counts};
use draws::{Draws, draw, noise};
use std::collections::BTreeSet;
use temperatures::{Compared, compare};

/// Continued by many different words: at temperature 1 SmolLM2-135M-Instruct gives its 50 likeliest 0.31 together, of
/// some twenty prompts tried the second least.
const BROAD: &str = "He said that the";
/// Continued mostly by its own words (0.89 at temperature 0.8, 0.75 at 1, same model), and not only, so that a penalty
/// shows.
const REPEATING: &str = "red or blue or green or blue or red or green or";
/// Probability at most of refusing an honest endpoint.
pub const FALSE_ALARM: f64 = 1e-6;
/// Half a step of bf16 between 16 and 32, where large logits are: what rounding shifts a logit by. In logits.
const ROUNDING: f64 = 0.0625;
/// Standard deviations of the measured noise that a difference may have besides.
const DEVIATIONS: f64 = 3.0;
/// Noise above which log-probs say nothing, in logits. Between batches `rollmill-serve` has a standard deviation of
/// 0.012 in bf16 (SmolLM2-135M on a CPU, the largest difference 0.1), and of 1e-6 in f32.
const UNSTEADY: f64 = 0.25;

/// What is wrong with an endpoint's log-probs.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Fault {
    /// One prompt, one token, several log-probs.
    #[error("log-probs of one token after one prompt vary by {noise:.2} logits from answer to answer")]
    Unsteady {
        /// Standard deviation, in logits.
        noise: f64,
    },
    /// The same log-probs at two temperatures.
    #[error("log-probs are not divided by the temperature: {tokens} tokens have the same at {temperature} and {other}")]
    NotDivided {
        /// The run's temperature.
        temperature: f64,
        /// The one compared with.
        other: f64,
        /// Tokens compared.
        tokens: usize,
    },
    /// No logits give the log-probs of both temperatures.
    #[error(
        "log-probs at temperatures {temperature} and {other} differ in their logits: {tokens} tokens are off by {off:.2}"
    )]
    Inconsistent {
        /// The run's temperature.
        temperature: f64,
        /// The one compared with.
        other: f64,
        /// Tokens compared.
        tokens: usize,
        /// Root mean square, in logits.
        off: f64,
    },
    /// More than all.
    #[error("the probabilities of {tokens} tokens at temperature {temperature} add up to more than 1")]
    Mass {
        /// The temperature.
        temperature: f64,
        /// Different tokens seen until then.
        tokens: usize,
    },
    /// Tokens come at other rates than their log-probs say.
    #[error(
        "{found} of {draws} answers at temperature {temperature} were {what} seen before, where log-probs promise \
        {promised:.1}: something (top-k, top-p, min-p, a penalty) changes the distribution after the log-probs"
    )]
    Counts {
        /// The temperature.
        temperature: f64,
        /// Which tokens were counted.
        what: &'static str,
        /// Answers.
        draws: usize,
        /// How many were such tokens.
        found: usize,
        /// How many the log-probs promise.
        promised: f64,
    },
}

/// Why an endpoint has not passed.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// It did not answer, or not usably.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// Its log-probs are not those of what it samples.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// What to do about an endpoint that has not passed; the end of a message.
pub const ADVICE: &str = "start the server with log-probs of the sampled distribution and without sampling defaults of \
    the model (vllm: --logprobs-mode processed_logprobs --generation-config vllm), or use it for evaluation only";

/// What is asked. Costs 384 completions of one token, 256 at temperature 1.
#[derive(Debug, Clone)]
pub struct Probe {
    broad: Vec<u32>,
    repeating: Vec<u32>,
    temperature: f64,
}

impl Probe {
    /// The probe for rows sampled at `temperature`, above 0.
    pub fn of(tokenizer: &Tokenizer, temperature: f64) -> Result<Self, TokenizerError> {
        let ids = |text| tokenizer.encode_untrusted(text);
        Ok(Self::with_prompts(ids(BROAD)?, ids(REPEATING)?, temperature))
    }

    /// The same with prompts of the caller's: one with a broad next token, and one that its own tokens may continue.
    pub fn with_prompts(broad: Vec<u32>, repeating: Vec<u32>, temperature: f64) -> Self {
        Self { broad, repeating, temperature }
    }

    /// Asks and judges. The first fault found is the one told.
    pub async fn check(&self, policy: &dyn Policy) -> Result<(), ProbeError> {
        let mut asked = vec![(self.broad.as_slice(), self.temperature), (&self.repeating, self.temperature)];
        if self.temperature != 1.0 {
            // Downwards, so that what is drawn there is drawn at the run's temperature too: upwards few tokens meet.
            asked.push((&self.broad, self.temperature / 2.0));
        }
        let drawn = draw(policy, &asked).await?;
        Ok(self.judge(&drawn)?)
    }

    fn judge(&self, drawn: &[Draws]) -> Result<(), Fault> {
        let noise = noise(drawn);
        if noise > UNSTEADY {
            return Err(Fault::Unsteady { noise });
        }
        let tolerance = ROUNDING + DEVIATIONS * noise;
        if let [broad, _, other] = drawn {
            divided(broad, other, tolerance)?;
        }
        let prompt: BTreeSet<u32> = self.repeating.iter().copied().collect();
        let of_prompt = drawn.iter().skip(1).take(1).map(|repeating| (repeating, Class::Only(&prompt)));
        let bets: Vec<_> = drawn.iter().map(|draws| (draws, Class::All)).chain(of_prompt).collect();
        // Each bet may raise a false alarm; together they may do so with the probability promised.
        let limit = (bets.len() as f64 / FALSE_ALARM).ln();
        bets.into_iter().try_for_each(|(draws, class)| counts(draws, class, tolerance, limit))
    }
}

fn divided(at: &Draws, other: &Draws, tolerance: f64) -> Result<(), Fault> {
    let (temperature, lower) = (at.temperature, other.temperature);
    match compare(at, other, tolerance) {
        Compared::Divided | Compared::Unclear => Ok(()),
        Compared::Same { tokens } => Err(Fault::NotDivided { temperature, other: lower, tokens }),
        Compared::Neither { tokens, off } => Err(Fault::Inconsistent { temperature, other: lower, tokens, off }),
    }
}
