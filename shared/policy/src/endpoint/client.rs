//! The HTTP side of the endpoint client: one request, its limits, and retries around it.
//!
//! In: an [`EndpointConfig`] and requests. Out: checked answers. Must hold: requests in flight never exceed the
//! configured number, a request that waits for a retry holds no slot, an answer is read up to a cap of bytes.

use super::answer::{Flaw, Request, check};
use super::backoff::{Jitter, wait};
use super::{Completed, Completion, EndpointConfig, EndpointError, Health, Policy};
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use std::time::Duration;
use tokio::sync::Semaphore;

/// An answer to one completion stays far below this, whatever a misdirected server sends.
const ANSWER_BYTES: usize = 32 << 20;
/// How much of a server's error message is handed on.
const MESSAGE_CHARS: usize = 300;

/// A policy behind an OpenAI completions endpoint.
pub struct Endpoint {
    config: EndpointConfig,
    base: String,
    client: Client,
    api_key: Option<String>,
    slots: Semaphore,
    jitter: Jitter,
}

impl Endpoint {
    /// A client with this process's own jitter. Opens no connection. Errors are [`EndpointError::Config`].
    pub fn new(config: EndpointConfig) -> Result<Self, EndpointError> {
        Self::with_jitter(config, Jitter::of_process())
    }

    /// A client whose back-off draws from `jitter`.
    pub fn with_jitter(config: EndpointConfig, jitter: Jitter) -> Result<Self, EndpointError> {
        let bad = EndpointError::Config;
        let url = reqwest::Url::parse(&config.url).map_err(|e| bad(format!("url {:?}: {e}", config.url)))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(bad(format!("url {:?} is neither http nor https", config.url)));
        }
        if config.concurrency == 0 || config.concurrency > Semaphore::MAX_PERMITS || config.timeout.is_zero() {
            return Err(bad("concurrency and timeout must be above 0".into()));
        }
        let api_key = config.api_key_env.as_deref().map(|name| {
            std::env::var(name).map_err(|_| bad(format!("set the environment variable {name} to the api key")))
        });
        let builder = Client::builder().timeout(config.timeout).redirect(reqwest::redirect::Policy::none());
        let builder = if is_loopback(&url) { builder.no_proxy() } else { builder };
        let base = config.url.trim_end_matches('/');
        Ok(Self {
            base: base.strip_suffix("/v1").unwrap_or(base).to_owned(),
            client: builder.build().map_err(|e| bad(e.to_string()))?,
            api_key: api_key.transpose()?,
            slots: Semaphore::new(config.concurrency),
            jitter,
            config,
        })
    }

    /// Asks `GET /health`, with retries. Plain text or an empty answer is a healthy server that tells nothing.
    pub async fn health(&self) -> Result<Health, EndpointError> {
        let url = format!("{}/health", self.base);
        self.with_retries(|| async {
            let body = self.ask(&url, self.client.get(&url)).await?;
            let told: Option<serde_json::Value> = serde_json::from_slice(&body).ok();
            let Some(told) = told.filter(|value| value.is_object()) else { return Ok(Health::default()) };
            serde_json::from_value(told).map_err(|e| self.nonsense(&url, format!("health: {e}")))
        })
        .await
    }

    /// Samples a continuation of the prompt, with retries.
    pub async fn complete(&self, completion: &Completion) -> Result<Completed, EndpointError> {
        let url = format!("{}/v1/completions", self.base);
        self.with_retries(|| async {
            let request = self.client.post(&url).json(&Request::new(&self.config.model, completion));
            let body = self.ask(&url, request).await?;
            check(&body, completion, self.config.vocab_size).map_err(|flaw| match flaw {
                Flaw::Aborted => self.unreachable(&url, "it gave the request up".into()),
                Flaw::Nonsense(reason) => self.nonsense(&url, reason),
                Flaw::LogProbs(reason) => EndpointError::LogProbs { url: url.clone(), reason },
            })
        })
        .await
    }

    async fn with_retries<T, F: Future<Output = Result<T, EndpointError>>>(
        &self,
        once: impl Fn() -> F,
    ) -> Result<T, EndpointError> {
        for retry in 0.. {
            let slot = self.slots.acquire().await.map_err(|e| EndpointError::Config(e.to_string()))?;
            let outcome = once().await;
            drop(slot);
            match outcome {
                Err(e) if e.is_transient() && retry < self.config.retries => {
                    let asked = if let EndpointError::Busy { retry_after, .. } = &e { *retry_after } else { None };
                    let EndpointConfig { backoff, backoff_max, .. } = self.config;
                    tokio::time::sleep(wait(retry, backoff, backoff_max, asked, self.jitter.draw())).await;
                }
                outcome => return outcome,
            }
        }
        unreachable!("the last retry returns")
    }

    /// The body of a 200 answer.
    async fn ask(&self, url: &str, request: RequestBuilder) -> Result<Vec<u8>, EndpointError> {
        let request = match &self.api_key {
            Some(key) => request.bearer_auth(key),
            None => request,
        };
        let response = request.send().await.map_err(|e| self.transport(url, &e))?;
        let status = response.status();
        let retry_after = retry_after(response.headers());
        let body = self.body(url, response).await?;
        if status == StatusCode::OK {
            return Ok(body);
        }
        let (url, message, code) = (url.to_owned(), message(&body), status.as_u16());
        Err(match status {
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => {
                EndpointError::Busy { url, status: code, retry_after, message }
            }
            _ if status.is_server_error() => EndpointError::Busy { url, status: code, retry_after, message },
            _ => EndpointError::Refused { url, status: code, message },
        })
    }

    async fn body(&self, url: &str, mut response: Response) -> Result<Vec<u8>, EndpointError> {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|e| self.transport(url, &e))? {
            if body.len() + chunk.len() > ANSWER_BYTES {
                return Err(self.nonsense(url, format!("more than {ANSWER_BYTES} bytes")));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    fn transport(&self, url: &str, error: &reqwest::Error) -> EndpointError {
        if error.is_timeout() {
            return EndpointError::Timeout { url: url.to_owned(), seconds: self.config.timeout.as_secs_f64() };
        }
        self.unreachable(url, root_cause(error))
    }

    fn unreachable(&self, url: &str, reason: String) -> EndpointError {
        EndpointError::Unreachable { url: url.to_owned(), reason }
    }

    fn nonsense(&self, url: &str, reason: String) -> EndpointError {
        EndpointError::Nonsense { url: url.to_owned(), reason }
    }
}

#[async_trait::async_trait]
impl Policy for Endpoint {
    async fn complete(&self, completion: &Completion) -> Result<Completed, EndpointError> {
        Endpoint::complete(self, completion).await
    }
}

fn is_loopback(url: &reqwest::Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
}

/// Whole seconds; the form with a date is left to the back-off.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

fn message(body: &[u8]) -> String {
    let json: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let told = json["error"]["message"].as_str().or_else(|| json["message"].as_str());
    let text = told.map_or_else(|| String::from_utf8_lossy(body).into_owned(), str::to_owned);
    text.chars().take(MESSAGE_CHARS).collect()
}

fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
