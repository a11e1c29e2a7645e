//! Routes: `/health`, `/v1/models`, `/v1/completions`. Errors are OpenAI's: {"error": {"message", "type", "code"}}.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use rollmill_policy::tokenizer::Tokenizer;
use serde_json::{Value, json};

use crate::engine::{Engine, EngineError};
use crate::process;
use crate::protocol::{self, Limits};

/// Seconds after which a refused client should come back.
const RETRY_AFTER: &str = "1";

/// What every request sees.
pub struct Served {
    pub engine: Engine,
    pub tokenizer: Arc<Tokenizer>,
    pub model: String,
    pub checkpoint: String,
    pub limits: Limits,
    pub slots: usize,
    pub requests: AtomicU64,
}

/// The routes over what is served.
pub fn router(served: Arc<Served>) -> Router {
    Router::new()
        .route("/health", get(health))
        .route("/v1/models", get(models))
        .route("/v1/completions", post(completions))
        .fallback(|| async { error(StatusCode::NOT_FOUND, "no such route; see /v1/completions, /v1/models, /health") })
        .with_state(served)
}

async fn health(State(served): State<Arc<Served>>) -> Json<Value> {
    Json(json!({
        "status": "ok",
        "model": served.model,
        "checkpoint": served.checkpoint,
        "context": served.limits.context,
        "slots": served.slots,
        "vocab_size": served.limits.vocab_size,
        "tokens_generated": served.engine.tokens_generated(),
        "prompt_tokens_reused": served.engine.prompt_tokens_reused(),
        "peak_memory_bytes": process::peak_memory_bytes(),
    }))
}

async fn models(State(served): State<Arc<Served>>) -> Json<Value> {
    let model = json!({ "id": served.model, "object": "model", "owned_by": "rollmill",
        "max_model_len": served.limits.context, "checkpoint": served.checkpoint });
    Json(json!({ "object": "list", "data": [model] }))
}

async fn completions(State(served): State<Arc<Served>>, body: Bytes) -> Response {
    let number = served.requests.fetch_add(1, Ordering::Relaxed);
    let asked = match protocol::parse(&body, &served.tokenizer, served.limits, number) {
        Ok(asked) => asked,
        Err(message) => return error(StatusCode::BAD_REQUEST, &message),
    };
    // all are queued before the first is awaited, so that they share steps; dropping the receivers cancels them
    let queued: Result<Vec<_>, _> =
        asked.requests.iter().map(|request| served.engine.submit(request.clone())).collect();
    let receivers = match queued {
        Ok(receivers) => receivers,
        Err(e) => return engine_error(&e),
    };
    let mut done = Vec::with_capacity(receivers.len());
    for receiver in receivers {
        match receiver.await.unwrap_or(Err(EngineError::Stopping)) {
            Ok(completion) => done.push(completion),
            Err(e) => return engine_error(&e),
        }
    }
    Json(protocol::answer(number, &served.model, &asked, &done, &served.tokenizer)).into_response()
}

fn engine_error(e: &EngineError) -> Response {
    match e {
        EngineError::Busy | EngineError::Stopping => {
            let mut response = error(StatusCode::SERVICE_UNAVAILABLE, &e.to_string());
            response.headers_mut().insert(header::RETRY_AFTER, header::HeaderValue::from_static(RETRY_AFTER));
            response
        }
        EngineError::Failed(_) => error(StatusCode::INTERNAL_SERVER_ERROR, &e.to_string()),
    }
}

fn error(status: StatusCode, message: &str) -> Response {
    let kind = if status.is_client_error() { "invalid_request_error" } else { "server_error" };
    let body = json!({ "error": { "message": message, "type": kind, "code": status.as_u16() } });
    (status, Json(body)).into_response()
}
