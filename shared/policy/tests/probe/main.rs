//! The probe against endpoints that are honest, and ones that are broken in one way each.
// Clippy knows the tests, but not what they call, as tests.
#![allow(clippy::unwrap_used)]

mod http;
mod sampler;

use axum::http::StatusCode;
use axum::routing::post;
use http::serve;
use rollmill_policy::endpoint::Jitter;
use rollmill_policy::probe::Fault as Found;
use rollmill_policy::{Endpoint, EndpointConfig, EndpointError, Probe, ProbeError};
use sampler::{BROAD, Fault, REPEATING, Sampler, mix, unit};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const TOKENS: usize = 3000;

fn probe(temperature: f64) -> Probe {
    Probe::with_prompts(BROAD.to_vec(), REPEATING.to_vec(), temperature)
}

fn endpoint(url: &str) -> Endpoint {
    let config = EndpointConfig { url: url.into(), backoff: std::time::Duration::ZERO, ..EndpointConfig::default() };
    Endpoint::with_jitter(config, Jitter::new(|| 0.0)).unwrap()
}

/// The verdict over HTTP.
async fn verdict(fault: Fault, temperature: f64) -> Result<(), ProbeError> {
    let url = serve(Arc::new(Sampler::zipf(TOKENS, fault))).await;
    probe(temperature).check(&endpoint(&url)).await
}

async fn found(fault: Fault, temperature: f64) -> Found {
    match verdict(fault, temperature).await {
        Err(ProbeError::Fault(found)) => found,
        other => panic!("{fault:?} at {temperature}: {other:?}"),
    }
}

#[tokio::test]
async fn honest_endpoints_pass_and_cost_what_is_said() {
    for (temperature, requests) in [(0.8, 384), (1.0, 256), (1.3, 384)] {
        let sampler = Arc::new(Sampler::zipf(TOKENS, Fault::None));
        let url = serve(sampler.clone()).await;
        probe(temperature).check(&endpoint(&url)).await.unwrap();
        assert_eq!(sampler.asked.load(Ordering::SeqCst), requests);
    }
    for fault in [Fault::Bf16, Fault::SilentEnd] {
        verdict(fault, 0.8).await.unwrap();
    }
}

#[tokio::test]
async fn log_probs_of_before_the_temperature_are_refused_unless_it_is_one() {
    for temperature in [0.5, 0.8, 0.95, 1.2] {
        let fault = found(Fault::Raw, temperature).await;
        assert!(matches!(fault, Found::NotDivided { other, .. } if other == temperature / 2.0), "{fault}");
    }
    let text = found(Fault::RawTopK(50), 0.8).await.to_string();
    assert!(text.starts_with("log-probs are not divided by the temperature"), "{text}");
    verdict(Fault::Raw, 1.0).await.unwrap();
}

#[tokio::test]
async fn truncations_and_penalties_after_the_log_probs_are_refused() {
    let broken = [Fault::TopK(20), Fault::TopK(50), Fault::MinP(0.05), Fault::Penalty(1.5), Fault::Penalty(4.0)];
    for temperature in [0.8, 1.0] {
        for fault in broken {
            let found = found(fault, temperature).await;
            assert!(matches!(found, Found::Counts { .. }), "{fault:?} at {temperature}: {found}");
        }
    }
    let found = found(Fault::RawTopK(50), 1.0).await;
    assert!(matches!(found, Found::Counts { .. }), "{found}");
}

/// What no client can see: the log-probs are those of the sampled distribution, which is not the model's. The control
/// of the test above, and the reason for the trainer's own comparison.
#[tokio::test]
async fn a_renormalised_truncation_passes() {
    verdict(Fault::Renormalised(50), 0.8).await.unwrap();
}

#[tokio::test]
async fn log_probs_of_something_else_are_refused() {
    for value in [0.0, -0.7, -3.0, -6.0] {
        let found = found(Fault::Constant(value), 0.8).await;
        assert!(matches!(found, Found::Mass { .. } | Found::Counts { .. }), "{value}: {found}");
    }
    for fault in [Fault::Cached, Fault::Hotter(0.5)] {
        let found = found(fault, 0.8).await;
        assert!(matches!(found, Found::Counts { .. }), "{fault:?}: {found}");
    }
    let noisy = found(Fault::Noisy(1.0), 0.8).await;
    assert!(matches!(noisy, Found::Unsteady { noise } if noise > 0.3 && noise < 0.9), "{noisy}");
    let next = verdict(Fault::OfNextToken, 0.8).await;
    assert!(matches!(next, Err(ProbeError::Fault(_))), "{next:?}");
}

#[tokio::test]
async fn without_log_probs_there_is_no_verdict() {
    for fault in [Fault::NoLogProbs, Fault::NotANumber, Fault::Positive] {
        let error = verdict(fault, 0.8).await.unwrap_err();
        assert!(matches!(error, ProbeError::Endpoint(EndpointError::LogProbs { .. })), "{fault:?}: {error}");
    }
}

#[tokio::test]
async fn the_same_endpoint_gets_the_same_verdict() {
    for fault in [Fault::TopK(20), Fault::Penalty(2.0), Fault::Raw] {
        assert_eq!(found(fault, 0.8).await, found(fault, 0.8).await);
    }
}

/// A failure that passes is retried as in any request, one that stays is told as what it is.
#[tokio::test]
async fn a_busy_endpoint_is_asked_again() {
    let sampler = Arc::new(Sampler::zipf(TOKENS, Fault::None));
    let (inner, failures) = (serve(sampler).await, Arc::new(AtomicUsize::new(0)));
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let answer = move |body: String| {
        let (inner, client, failures) = (inner.clone(), client.clone(), failures.clone());
        async move {
            if failures.fetch_add(1, Ordering::SeqCst) % 5 == 0 {
                return (StatusCode::SERVICE_UNAVAILABLE, "busy".to_owned());
            }
            let request = client.post(format!("{inner}/v1/completions")).header("content-type", "application/json");
            (StatusCode::OK, request.body(body).send().await.unwrap().text().await.unwrap())
        }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let routes = axum::Router::new().route("/v1/completions", post(answer));
    tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
    let patient = EndpointConfig { url, retries: 50, backoff: std::time::Duration::ZERO, ..EndpointConfig::default() };
    let patient = Endpoint::with_jitter(patient, Jitter::new(|| 0.0)).unwrap();
    probe(0.8).check(&patient).await.unwrap();

    let hasty = EndpointConfig { url: "http://127.0.0.1:9".into(), retries: 0, ..EndpointConfig::default() };
    let error = probe(0.8).check(&Endpoint::new(hasty).unwrap()).await.unwrap_err();
    assert!(matches!(&error, ProbeError::Endpoint(e) if e.is_transient()), "{error}");
}

/// Any distribution: from one token that has nearly all to thousands alike, at any temperature.
fn any(seed: u64) -> (Sampler, f64) {
    let draw = |what: u64| unit(mix(seed).wrapping_add(what));
    let size = 3 + (4.0 * 10_f64.powf(3.0 * draw(1))) as usize;
    let spread = 12.0 * draw(2) * draw(2);
    let logits = (0..size).map(|at| spread * (unit(mix(seed) ^ at as u64) - 0.5) * 2.0 + 10.0).collect();
    let fault = if draw(4) < 0.5 { Fault::None } else { Fault::Bf16 };
    let temperature = if draw(3) < 0.2 { 1.0 } else { 0.05 + 1.9 * draw(3) };
    (Sampler::new(logits, fault, seed), temperature)
}

#[tokio::test]
async fn honest_endpoints_are_never_refused() {
    let first = match std::env::var("ROLLMILL_SEED") {
        Ok(seed) => seed.parse().expect("ROLLMILL_SEED is a number"),
        Err(_) => u64::from(std::process::id()) << 20,
    };
    for seed in first..first + 150 {
        let (sampler, temperature) = any(seed);
        let verdict = probe(temperature).check(&sampler).await;
        let size = sampler.logits.len();
        assert!(verdict.is_ok(), "ROLLMILL_SEED={seed}: {size} tokens at {temperature}: {}", verdict.unwrap_err());
    }
}
