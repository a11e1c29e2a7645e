//! The body of `/v1/completions`, in OpenAI's shape with vLLM's names, and back.
//!
//! In: JSON. Out: checked [`Request`]s, or what is wrong with it in words. Unknown fields are ignored.

use rollmill_policy::tokenizer::Tokenizer;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::generation::{Completion, Request};

/// Most choices of one request, over prompts and samples.
const MOST_CHOICES: usize = 128;

#[derive(Deserialize)]
struct Body {
    prompt: Value,
    max_tokens: Option<u32>,
    temperature: Option<f64>,
    top_p: Option<f64>,
    seed: Option<u64>,
    n: Option<u32>,
    #[serde(default)]
    stop: Value,
    stop_token_ids: Option<Vec<u32>>,
    #[serde(default)]
    logprobs: Value,
    return_token_ids: Option<bool>,
    ignore_eos: Option<bool>,
    stream: Option<bool>,
}

/// What the model allows.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Longest sequence in tokens.
    pub context: usize,
    /// Number of token ids.
    pub vocab_size: i64,
}

/// A checked body: one request per choice, in the order of the choices.
#[derive(Debug)]
pub struct Asked {
    /// The requests.
    pub requests: Vec<Request>,
    /// Choices of each prompt.
    pub n: usize,
    /// Answer with log-probs.
    pub log_probs: bool,
    /// Answer with token ids.
    pub token_ids: bool,
}

/// Checks a body. `fallback_seed` is taken where it names none.
pub fn parse(body: &[u8], tokenizer: &Tokenizer, limits: Limits, fallback_seed: u64) -> Result<Asked, String> {
    let body: Body = serde_json::from_slice(body).map_err(|e| format!("the body is not a completion request: {e}"))?;
    if body.stream == Some(true) {
        return Err("streaming is not supported; leave stream out".into());
    }
    let temperature = body.temperature.unwrap_or(1.0);
    if !(0.0..=100.0).contains(&temperature) {
        return Err(format!("temperature must be between 0 and 100, not {temperature}"));
    }
    let top_p = body.top_p.unwrap_or(1.0);
    if !(top_p > 0.0 && top_p <= 1.0) {
        return Err(format!("top_p must be above 0 and at most 1, not {top_p}"));
    }
    let max_tokens = body.max_tokens.unwrap_or(16) as usize;
    if max_tokens == 0 {
        return Err("max_tokens must be at least 1".into());
    }
    let prompts = prompts(&body.prompt, tokenizer, limits)?;
    let n = body.n.unwrap_or(1) as usize;
    if n == 0 || n.saturating_mul(prompts.len()) > MOST_CHOICES {
        return Err(format!("n times prompts must be between 1 and {MOST_CHOICES}"));
    }
    let stop = stops(&body.stop)?;
    let (seed, ignore_eos) = (body.seed.unwrap_or(fallback_seed), body.ignore_eos.unwrap_or(false));
    let stop_token_ids = body.stop_token_ids.unwrap_or_default();
    let request = |prompt: &Vec<i64>, i: usize| Request {
        prompt: prompt.clone(),
        max_tokens,
        temperature,
        top_p,
        seed: seed.wrapping_add(i as u64),
        stop: stop.clone(),
        stop_token_ids: stop_token_ids.clone(),
        ignore_eos,
    };
    let requests = prompts.iter().flat_map(|prompt| (0..n).map(move |i| request(prompt, i))).collect();
    let log_probs = !matches!(body.logprobs, Value::Null | Value::Bool(false));
    Ok(Asked { requests, n, log_probs, token_ids: body.return_token_ids.unwrap_or(false) })
}

fn prompts(prompt: &Value, tokenizer: &Tokenizer, limits: Limits) -> Result<Vec<Vec<i64>>, String> {
    const SHAPE: &str = "prompt must be a text, a list of token ids, or a list of such lists";
    let prompts: Vec<Vec<i64>> = match prompt {
        Value::String(text) => vec![encode(text, tokenizer)?],
        Value::Array(items) if items.first().is_some_and(Value::is_number) => vec![ids(items).ok_or(SHAPE)?],
        Value::Array(items) => items
            .iter()
            .map(|item| match item {
                Value::String(text) => encode(text, tokenizer),
                Value::Array(inner) => ids(inner).ok_or_else(|| SHAPE.to_string()),
                _ => Err(SHAPE.to_string()),
            })
            .collect::<Result<_, _>>()?,
        _ => return Err(SHAPE.into()),
    };
    if prompts.is_empty() || prompts.iter().any(Vec::is_empty) {
        return Err("prompt must have at least one token".into());
    }
    for prompt in &prompts {
        if prompt.len() >= limits.context {
            let (length, context) = (prompt.len(), limits.context);
            return Err(format!(
                "prompt has {length} tokens and leaves no room in the context of {context}; shorten it"
            ));
        }
        if let Some(id) = prompt.iter().find(|id| !(0..limits.vocab_size).contains(*id)) {
            return Err(format!("token id {id} is outside the vocabulary of {}", limits.vocab_size));
        }
    }
    Ok(prompts)
}

fn encode(text: &str, tokenizer: &Tokenizer) -> Result<Vec<i64>, String> {
    Ok(tokenizer.encode(text).map_err(|e| e.to_string())?.into_iter().map(i64::from).collect())
}

fn ids(items: &[Value]) -> Option<Vec<i64>> {
    items.iter().map(Value::as_i64).collect()
}

fn stops(stop: &Value) -> Result<Vec<String>, String> {
    const SHAPE: &str = "stop must be a text or a list of texts, none of them empty";
    let stops: Vec<String> = match stop {
        Value::Null => vec![],
        Value::String(one) => vec![one.clone()],
        Value::Array(many) => many.iter().map(|s| s.as_str().map(String::from)).collect::<Option<_>>().ok_or(SHAPE)?,
        _ => return Err(SHAPE.into()),
    };
    if stops.iter().any(String::is_empty) { Err(SHAPE.into()) } else { Ok(stops) }
}

/// The answer's body. `id` numbers the answer; `created` is always 0, since the server reads no clock.
pub fn answer(id: u64, model: &str, asked: &Asked, done: &[Completion], tokenizer: &Tokenizer) -> Value {
    let prompt_tokens: usize = asked.requests.iter().step_by(asked.n).map(|r| r.prompt.len()).sum();
    let completion_tokens: usize = done.iter().map(|c| c.token_ids.len()).sum();
    let choices: Vec<Value> =
        asked.requests.iter().zip(done).enumerate().map(|(i, (r, c))| choice(i, asked, r, c, tokenizer)).collect();
    json!({
        "id": format!("cmpl-{id}"),
        "object": "text_completion",
        "created": 0,
        "model": model,
        "choices": choices,
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
        },
    })
}

fn choice(index: usize, asked: &Asked, request: &Request, done: &Completion, tokenizer: &Tokenizer) -> Value {
    let mut choice = json!({
        "index": index,
        "text": done.text,
        "finish_reason": done.finish,
        "stop_reason": done.stop_reason,
        "logprobs": null,
    });
    if asked.log_probs {
        let word = |id: &u32| tokenizer.decode(&[*id]).unwrap_or_default();
        let words: Vec<String> = done.token_ids.iter().map(word).collect();
        choice["logprobs"] = json!({ "tokens": words, "token_logprobs": done.log_probs });
    }
    if asked.token_ids {
        choice["token_ids"] = json!(done.token_ids);
        choice["prompt_token_ids"] = json!(request.prompt);
    }
    choice
}
