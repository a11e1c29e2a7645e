//! Client of an OpenAI completions endpoint, asked with token ids and answering token ids (vLLM's names).
//!
//! In: a [`Completion`]. Out: the sampled ids with one log-prob each, exactly as the server sent them, or a typed error
//! that says whether to try again. Must hold: an answer that is not certainly what was asked for (no ids, log-probs of
//! another length, NaN, above 0, ids outside the vocabulary) is never used.
//!
//! The recorded log-prob has to be that of the distribution sampled from (temperature applied). `rollmill-serve` answers
//! so; vLLM does where started with `--logprobs-mode processed_logprobs`. [`crate::probe`] finds out.

mod answer;
mod backoff;
mod client;

pub use backoff::Jitter;
pub use client::Endpoint;

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Whatever completes a token sequence; [`Endpoint`], or a script in tests.
#[async_trait::async_trait]
pub trait Policy: Send + Sync {
    /// Samples a continuation of the prompt.
    async fn complete(&self, completion: &Completion) -> Result<Completed, EndpointError>;
}

/// Where a policy answers and how patiently it is asked. Operational: no part of an experiment's fingerprint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EndpointConfig {
    /// Base address, with or without `/v1`: `http://127.0.0.1:8000`.
    pub url: String,
    /// Model name sent with each request; empty: none is sent.
    pub model: String,
    /// Name of the environment variable that holds the bearer token.
    pub api_key_env: Option<String>,
    /// Limit of one request from sending to the last byte, in seconds in configuration files.
    #[serde(with = "seconds")]
    pub timeout: Duration,
    /// Requests in flight at most.
    pub concurrency: usize,
    /// How often a transient failure is retried before it is handed on.
    pub retries: u32,
    /// Cap of the back-off before the first retry; it doubles up to `backoff_max`. Full jitter below the cap.
    #[serde(with = "seconds")]
    pub backoff: Duration,
    /// Largest wait, also where the server's Retry-After asks for more.
    #[serde(with = "seconds")]
    pub backoff_max: Duration,
    /// Ids at or above it are nonsense. Take [`crate::Tokenizer::vocab_size`].
    pub vocab_size: Option<u32>,
}

impl Default for EndpointConfig {
    fn default() -> Self {
        Self {
            url: "http://127.0.0.1:8000".into(),
            model: String::new(),
            api_key_env: None,
            timeout: Duration::from_secs(120),
            concurrency: 16,
            retries: 5,
            backoff: Duration::from_millis(250),
            backoff_max: Duration::from_secs(20),
            vocab_size: None,
        }
    }
}

/// One request: continue `prompt`.
#[derive(Debug, Clone, PartialEq)]
pub struct Completion {
    /// Token ids of everything so far.
    pub prompt: Vec<u32>,
    /// Cap of sampled tokens, at least 1.
    pub max_tokens: u32,
    /// Sampling temperature; the logits are divided by it.
    pub temperature: f64,
    /// Nucleus; 1 for rows to train on.
    pub top_p: f64,
    /// Seed below 2^63.
    pub seed: u64,
    /// Texts that end sampling. The ids that complete one are part of the answer.
    pub stop: Vec<String>,
}

/// Why sampling ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// A stop text or an end-of-sequence token.
    Stop,
    /// The cap of tokens.
    Length,
}

/// A checked answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Completed {
    /// Sampled ids, those that complete a stop text or end the turn included.
    pub token_ids: Vec<u32>,
    /// Natural log of each sampled id's probability; as many as ids, finite, at most 0.
    pub log_probs: Vec<f32>,
    /// Why sampling ended.
    pub finish: Finish,
    /// The server's text, cut before the stop text. The ids are what counts.
    pub text: String,
}

/// What `GET /health` tells. Plain vLLM answers an empty 200: all fields are `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Health {
    /// Identity of the weights that answer.
    pub checkpoint: Option<String>,
    /// Name of the model.
    pub model: Option<String>,
    /// Longest sequence in tokens.
    pub context: Option<usize>,
    /// Size of the model's vocabulary.
    pub vocab_size: Option<u32>,
}

/// What to do about a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Transient: the same request may succeed later.
    Retry,
    /// This item cannot be done; others can.
    GiveUpItem,
    /// Every item would fail alike.
    Stop,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// No connection, or one torn before the answer was whole.
    #[error("the endpoint {url} cannot be reached: {reason}; is it running?")]
    Unreachable {
        /// The address asked.
        url: String,
        /// What the client saw.
        reason: String,
    },
    /// No answer within the limit.
    #[error("the endpoint {url} gave no answer within {seconds} s")]
    Timeout {
        /// The address asked.
        url: String,
        /// The limit.
        seconds: f64,
    },
    /// The server is overloaded or failed inside (408, 429, 5xx).
    #[error("the endpoint {url} is busy or failing (http {status}): {message}")]
    Busy {
        /// The address asked.
        url: String,
        /// The HTTP status.
        status: u16,
        /// The wait the server asked for.
        retry_after: Option<Duration>,
        /// The server's words, shortened.
        message: String,
    },
    /// The answer cannot be trusted as what was asked for.
    #[error("the endpoint {url} answers nonsense: {reason}")]
    Nonsense {
        /// The address asked.
        url: String,
        /// What is wrong with the answer.
        reason: String,
    },
    /// The answer is well-formed, but its log-probs are missing or no probability has them.
    #[error("the endpoint {url} answers without usable log-probs: {reason}")]
    LogProbs {
        /// The address asked.
        url: String,
        /// What is wrong with them.
        reason: String,
    },
    /// The server rejects the request (other 4xx, redirects).
    #[error("the endpoint {url} refuses the request (http {status}): {message}")]
    Refused {
        /// The address asked.
        url: String,
        /// The HTTP status.
        status: u16,
        /// The server's words, shortened.
        message: String,
    },
    /// The configuration cannot work.
    #[error("endpoint configuration: {0}")]
    Config(String),
}

impl EndpointError {
    /// Whether to try again, to give up the item or to stop the run.
    pub fn next(&self) -> Next {
        match self {
            Self::Unreachable { .. } | Self::Timeout { .. } | Self::Busy { .. } => Next::Retry,
            Self::Refused { status: 400 | 413 | 422, .. } => Next::GiveUpItem,
            Self::Nonsense { .. } | Self::LogProbs { .. } | Self::Refused { .. } | Self::Config(_) => Next::Stop,
        }
    }

    /// Whether the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        self.next() == Next::Retry
    }
}

/// Durations as seconds in configuration files.
mod seconds {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::time::Duration;

    pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(duration.as_secs_f64())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        Duration::try_from_secs_f64(f64::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}
