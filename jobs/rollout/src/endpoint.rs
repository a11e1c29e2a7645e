//! The endpoint a rollout uses: reached, and serving the checkpoint the plan rests on.

use rollmill_job::JobError;
use rollmill_job::checkpoint::Manifest;
use rollmill_policy::{Endpoint, EndpointConfig, EndpointError, Health};

/// Opens the endpoint and refuses one that serves another checkpoint.
pub async fn open(config: EndpointConfig, manifest: &Manifest, trust: bool) -> Result<(Endpoint, Health), JobError> {
    let url = config.url.clone();
    let endpoint = Endpoint::new(config).map_err(|e| refused(&url, e.to_string()))?;
    let health = endpoint.health().await.map_err(|e| sort(&url, e))?;
    match &health.checkpoint {
        Some(served) if *served == manifest.id() => Ok((endpoint, health)),
        Some(served) => {
            Err(refused(&url, format!("it serves checkpoint {served}, but this round acts with {}", manifest.id())))
        }
        None if trust => Ok((endpoint, health)),
        None => {
            Err(refused(&url, "it does not say which checkpoint it serves; if you know, pass --trust-endpoint".into()))
        }
    }
}

fn refused(url: &str, reason: String) -> JobError {
    JobError::Config { place: format!("endpoint {url}"), reason }
}

/// An endpoint's error at start, as the worker's.
fn sort(url: &str, error: EndpointError) -> JobError {
    if error.is_transient() {
        JobError::Unavailable { reason: error.to_string() }
    } else {
        JobError::Stopped { key: format!("health of {url}"), reason: error.to_string() }
    }
}
