//! One request being generated: draws a token from logits, sees whether that ends it.

use rollmill_model::sampling;
use rollmill_policy::tokenizer::Tokenizer;
use serde::Serialize;

use crate::engine::EngineError;

/// What to generate; checked already.
#[derive(Debug, Clone)]
pub struct Request {
    /// At least one id, inside the vocabulary, shorter than the context.
    pub prompt: Vec<i64>,
    /// Tokens to sample at most; at least 1.
    pub max_tokens: usize,
    /// 0 is greedy.
    pub temperature: f64,
    /// 1 keeps everything.
    pub top_p: f64,
    /// Token at position p of the sequence is drawn with `uniform(seed, p)`.
    pub seed: u64,
    /// Texts that end it; none is empty.
    pub stop: Vec<String>,
    /// Tokens that end it.
    pub stop_token_ids: Vec<u32>,
    /// True where the model's own end tokens do not end it.
    pub ignore_eos: bool,
}

/// Why it ended, in the protocol's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Finish {
    /// An end token, a stop token or a stop text.
    Stop,
    /// `max_tokens`, or the context.
    Length,
}

/// Which stop it was; none for the model's own end tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum StopReason {
    /// A stop text.
    Text(String),
    /// A stop token.
    Token(u32),
}

/// What was generated.
#[derive(Debug, Clone)]
pub struct Completion {
    /// Sampled tokens, those that complete a stop included.
    pub token_ids: Vec<u32>,
    /// Log-prob of each in the distribution it was drawn from.
    pub log_probs: Vec<f32>,
    /// Text before the stop, without control tokens.
    pub text: String,
    /// Why it ended.
    pub finish: Finish,
    /// Which stop it was.
    pub stop_reason: Option<StopReason>,
}

/// A request with what was drawn so far.
pub struct Generation {
    request: Request,
    token_ids: Vec<u32>,
    log_probs: Vec<f32>,
}

impl Generation {
    pub fn new(request: Request) -> Generation {
        Generation { request, token_ids: vec![], log_probs: vec![] }
    }

    /// Draws the next token from its logits \[V\]. Gives the token, and the completion where it is the last one.
    pub fn draw(
        &mut self,
        logits: &[f32],
        tokenizer: &Tokenizer,
        ends: &[i64],
        context: usize,
    ) -> Result<(u32, Option<Completion>), EngineError> {
        let request = &self.request;
        let position = request.prompt.len() + self.token_ids.len();
        let u = sampling::uniform(request.seed, position as u64);
        let drawn = sampling::sample(logits, request.temperature, request.top_p, u);
        if !drawn.log_prob.is_finite() {
            return Err(EngineError::Failed("logits are not numbers; the checkpoint is broken".into()));
        }
        self.token_ids.push(drawn.token);
        self.log_probs.push(drawn.log_prob);
        let end = self.end(tokenizer, ends, position + 1 >= context)?;
        Ok((drawn.token, end.map(|(finish, stop_reason, text)| self.complete(finish, stop_reason, text))))
    }

    fn end(&self, tokenizer: &Tokenizer, ends: &[i64], full: bool) -> Result<Option<End>, EngineError> {
        let Request { max_tokens, stop, stop_token_ids, ignore_eos, .. } = &self.request;
        let Some((&last, before)) = self.token_ids.split_last() else { return Ok(None) };
        if !ignore_eos && ends.contains(&i64::from(last)) {
            return Ok(Some((Finish::Stop, None, text(tokenizer, before)?)));
        }
        if stop_token_ids.contains(&last) {
            return Ok(Some((Finish::Stop, Some(StopReason::Token(last)), text(tokenizer, before)?)));
        }
        let spent = self.token_ids.len() >= *max_tokens || full;
        if stop.is_empty() && !spent {
            return Ok(None);
        }
        let whole = text(tokenizer, &self.token_ids)?;
        if let Some((at, found)) = first_stop(&whole, stop) {
            return Ok(Some((Finish::Stop, Some(StopReason::Text(found.into())), whole[..at].to_string())));
        }
        Ok(spent.then_some((Finish::Length, None, whole)))
    }

    fn complete(&mut self, finish: Finish, stop_reason: Option<StopReason>, text: String) -> Completion {
        let (token_ids, log_probs) = (std::mem::take(&mut self.token_ids), std::mem::take(&mut self.log_probs));
        Completion { token_ids, log_probs, text, finish, stop_reason }
    }
}

type End = (Finish, Option<StopReason>, String);

/// Text of tokens without control tokens.
fn text(tokenizer: &Tokenizer, ids: &[u32]) -> Result<String, EngineError> {
    let shown: Vec<u32> = ids.iter().copied().filter(|&id| !tokenizer.is_control(id)).collect();
    tokenizer.decode(&shown).map_err(|e| EngineError::Failed(e.to_string()))
}

/// The stop text that begins first, with its place; of two that begin together the one listed first.
fn first_stop<'a>(text: &str, stops: &'a [String]) -> Option<(usize, &'a str)> {
    stops.iter().filter_map(|stop| Some((text.find(stop)?, stop.as_str()))).min_by_key(|&(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stop_that_begins_first_counts() {
        let stops = ["cd".to_string(), "bc".to_string(), "b".to_string()];
        assert_eq!(first_stop("abcd", &stops), Some((1, "bc")));
        assert_eq!(first_stop("axd", &stops), None);
        assert_eq!(first_stop("abcd", &[]), None);
    }
}
