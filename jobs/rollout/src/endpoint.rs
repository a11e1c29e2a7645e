//! The endpoint a rollout uses: reached, serving the checkpoint the plan rests on, and fit to be trained on where it
//! has to be.

use crate::{RolloutSet, TRAIN};
use rollmill_job::JobError;
use rollmill_job::checkpoint::Manifest;
use rollmill_policy::probe::{ADVICE, Probe, ProbeError};
use rollmill_policy::{Endpoint, EndpointConfig, EndpointError, Health, Tokenizer, TokenizerError};

/// Opens the endpoint and refuses one that serves another checkpoint, or that `probe` finds fault with.
pub async fn open(
    config: EndpointConfig,
    manifest: &Manifest,
    trust: bool,
    probe: Option<Probe>,
) -> Result<(Endpoint, Health), JobError> {
    let url = config.url.clone();
    let endpoint = Endpoint::new(config).map_err(|e| refused(&url, e.to_string()))?;
    let health = endpoint.health().await.map_err(|e| sort("health", &url, e))?;
    match &health.checkpoint {
        Some(served) if *served == manifest.id() => (),
        Some(served) => {
            let reason = format!("it serves checkpoint {served}, but this round acts with {}", manifest.id());
            return Err(refused(&url, reason));
        }
        None if trust => (),
        None => {
            let reason = "it does not say which checkpoint it serves; if you know, pass --trust-endpoint";
            return Err(refused(&url, reason.into()));
        }
    }
    if let Some(probe) = probe {
        probe.check(&endpoint).await.map_err(|e| unfit(&url, e))?;
    }
    Ok((endpoint, health))
}

/// What rows of this set need to know of the endpoint. Evaluation looks at no log-prob, and greedy rows have no ratio.
pub fn probe_for(set: &RolloutSet, tokenizer: &Tokenizer) -> Result<Option<Probe>, TokenizerError> {
    let is_trained_on = set.name == TRAIN && set.temperature > 0.0;
    is_trained_on.then(|| Probe::of(tokenizer, set.temperature)).transpose()
}

fn refused(url: &str, reason: String) -> JobError {
    JobError::Config { place: format!("endpoint {url}"), reason }
}

/// Log-probs that cannot be trained on are a matter of how the server was started; whatever else went wrong is as ever.
fn unfit(url: &str, error: ProbeError) -> JobError {
    match error {
        ProbeError::Fault(fault) => refused(url, format!("{fault}; {ADVICE}")),
        ProbeError::Endpoint(EndpointError::LogProbs { reason, .. }) => {
            refused(url, format!("no usable log-probs ({reason}); {ADVICE}"))
        }
        ProbeError::Endpoint(error) => sort("probe", url, error),
    }
}

/// An endpoint's error at start, as the worker's.
fn sort(what: &str, url: &str, error: EndpointError) -> JobError {
    if error.is_transient() {
        JobError::Unavailable { reason: error.to_string() }
    } else {
        JobError::Stopped { key: format!("{what} of {url}"), reason: error.to_string() }
    }
}

#[cfg(test)]
#[path = "endpoint_test.rs"]
mod tests;
