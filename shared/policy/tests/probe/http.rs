//! A [`Sampler`] behind `/v1/completions`.

use crate::sampler::{END, Fault, Sampler};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use rollmill_policy::Completion;
use serde_json::{Value, json};
use std::sync::Arc;

/// An answer as vLLM writes it, as far as it is read.
fn answer(sampler: &Sampler, body: &Value) -> String {
    let asked = Completion {
        prompt: serde_json::from_value(body["prompt"].clone()).unwrap(),
        max_tokens: 1,
        temperature: body["temperature"].as_f64().unwrap(),
        top_p: 1.0,
        seed: body["seed"].as_u64().unwrap(),
        stop: vec![],
    };
    assert_eq!((&body["max_tokens"], &body["top_p"], &body["stop"]), (&json!(1), &json!(1.0), &json!([])));
    let (token, log_prob) = sampler.sample(&asked);
    let log_probs = match sampler.fault {
        Fault::NoLogProbs => Value::Null,
        Fault::NotANumber => json!({"token_logprobs": [null]}),
        Fault::Positive => json!({"token_logprobs": [-log_prob]}),
        _ => json!({"token_logprobs": [log_prob]}),
    };
    let ended = sampler.fault == Fault::SilentEnd && token == END;
    let (ids, log_probs) = if ended { (json!([]), json!({"token_logprobs": []})) } else { (json!([token]), log_probs) };
    let finish = if ended { "stop" } else { "length" };
    json!({"choices": [{"text": "", "finish_reason": finish, "token_ids": ids, "logprobs": log_probs}]}).to_string()
}

async fn complete(State(sampler): State<Arc<Sampler>>, Json(body): Json<Value>) -> Response {
    answer(&sampler, &body).into_response()
}

/// Answers on loopback until the test ends.
pub async fn serve(sampler: Arc<Sampler>) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let routes = Router::new().route("/v1/completions", post(complete)).with_state(sampler);
    tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
    url
}
