//! The wire format of `/v1/completions`, and the check of what came back.
//!
//! In: a [`Completion`] or the bytes of an answer. Out: a request body or a [`Completed`], or what is wrong in words.

use super::{Completed, Completion, Finish};
use serde::{Deserialize, Serialize};

/// Rounding of a log-softmax in f32 can end this far above 0; such values count as 0.
const ROUNDING: f64 = 1e-5;

#[derive(Serialize)]
pub(super) struct Request<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    model: &'a str,
    prompt: &'a [u32],
    max_tokens: u32,
    temperature: f64,
    top_p: f64,
    seed: u64,
    stop: &'a [String],
    logprobs: u32,
    return_token_ids: bool,
}

impl<'a> Request<'a> {
    pub(super) fn new(model: &'a str, completion: &'a Completion) -> Self {
        let Completion { prompt, max_tokens, temperature, top_p, seed, stop } = completion;
        Self {
            model,
            prompt,
            max_tokens: *max_tokens,
            temperature: *temperature,
            top_p: *top_p,
            seed: *seed,
            stop,
            logprobs: 1,
            return_token_ids: true,
        }
    }
}

#[derive(Deserialize)]
struct Response {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    text: String,
    finish_reason: Option<String>,
    token_ids: Option<Vec<u32>>,
    logprobs: Option<LogProbs>,
}

#[derive(Deserialize)]
struct LogProbs {
    token_logprobs: Vec<Option<f64>>,
}

/// Why a well-formed answer is not used.
#[derive(Debug, PartialEq)]
pub(super) enum Flaw {
    /// The server gave the request up half-way: try again.
    Aborted,
    /// Not what was asked for.
    Nonsense(String),
    /// No log-probs, or not those of a probability.
    LogProbs(String),
}

pub(super) fn check(bytes: &[u8], asked: &Completion, vocab_size: Option<u32>) -> Result<Completed, Flaw> {
    let response: Response = serde_json::from_slice(bytes).map_err(|e| nonsense(format!("not a completion: {e}")))?;
    let Ok([choice]) = <[Choice; 1]>::try_from(response.choices) else {
        return Err(nonsense("not exactly one choice".into()));
    };
    let finish = match choice.finish_reason.as_deref() {
        Some("stop") => Finish::Stop,
        Some("length") => Finish::Length,
        Some("abort") => return Err(Flaw::Aborted),
        other => return Err(nonsense(format!("finish_reason is {other:?}, neither stop nor length"))),
    };
    let token_ids = choice.token_ids.ok_or_else(|| {
        nonsense("no token_ids: the server does not know return_token_ids, which rows to train on need".into())
    })?;
    check_ids(&token_ids, finish, asked, vocab_size)?;
    let listed = choice.logprobs.ok_or_else(|| Flaw::LogProbs("no logprobs".into()))?.token_logprobs;
    if listed.len() != token_ids.len() {
        return Err(Flaw::LogProbs(format!("{} log-probs for {} token ids", listed.len(), token_ids.len())));
    }
    let log_probs =
        listed.into_iter().enumerate().map(|(at, value)| check_log_prob(at, value)).collect::<Result<_, _>>()?;
    Ok(Completed { token_ids, log_probs, finish, text: choice.text })
}

fn check_ids(ids: &[u32], finish: Finish, asked: &Completion, vocab_size: Option<u32>) -> Result<(), Flaw> {
    if ids.len() > asked.max_tokens as usize {
        return Err(nonsense(format!("{} tokens where {} were the most", ids.len(), asked.max_tokens)));
    }
    if ids.is_empty() && finish == Finish::Length {
        return Err(nonsense("no token, yet cut by length".into()));
    }
    match ids.iter().find(|id| vocab_size.is_some_and(|size| **id >= size)) {
        Some(id) => Err(nonsense(format!(
            "token id {id} is outside the vocabulary of {}: is it another model's?",
            vocab_size.unwrap_or_default()
        ))),
        None => Ok(()),
    }
}

fn check_log_prob(at: usize, value: Option<f64>) -> Result<f32, Flaw> {
    match value {
        Some(value) if value.is_finite() && value <= ROUNDING => Ok(value.min(0.0) as f32),
        Some(value) => Err(Flaw::LogProbs(format!("log-prob {at} is {value}, which no probability has"))),
        None => Err(Flaw::LogProbs(format!("log-prob {at} is missing or not a number"))),
    }
}

fn nonsense(reason: String) -> Flaw {
    Flaw::Nonsense(reason)
}
