//! The endpoint client against a server on loopback that misbehaves in each way.
// Clippy knows the tests, but not what they call, as tests.
#![allow(clippy::unwrap_used)]

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use rollmill_policy::endpoint::Jitter;
use rollmill_policy::{Completion, Endpoint, EndpointConfig, EndpointError, Finish, Health, Next};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Mutex;

/// Status, headers and body.
type Answer = (StatusCode, Vec<(&'static str, &'static str)>, String);

/// Answers in order, the last one again and again; keeps the requests.
struct Script {
    answers: Vec<Answer>,
    asked: Mutex<Vec<(HeaderMap, Value)>>,
}

impl Script {
    async fn count(&self) -> usize {
        self.asked.lock().await.len()
    }
}

async fn answer(State(script): State<Arc<Script>>, headers: HeaderMap, body: String) -> Response {
    let mut asked = script.asked.lock().await;
    let (status, headers_out, text) = script.answers[asked.len().min(script.answers.len() - 1)].clone();
    asked.push((headers, serde_json::from_str(&body).unwrap_or_default()));
    let mut response = (status, text).into_response();
    for (name, value) in headers_out {
        response.headers_mut().insert(name, value.parse().unwrap());
    }
    response
}

async fn listen(router: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    url
}

async fn scripted(answers: Vec<Answer>) -> (String, Arc<Script>) {
    let script = Arc::new(Script { answers, asked: Mutex::default() });
    let routes = Router::new().route("/v1/completions", post(answer)).route("/health", get(answer));
    (listen(routes.with_state(script.clone())).await, script)
}

async fn ok(body: Value) -> (String, Arc<Script>) {
    scripted(vec![(StatusCode::OK, vec![], body.to_string())]).await
}

fn config(url: &str) -> EndpointConfig {
    EndpointConfig { url: url.into(), retries: 0, vocab_size: Some(100), ..EndpointConfig::default() }
}

fn endpoint(config: EndpointConfig) -> Endpoint {
    Endpoint::with_jitter(config, Jitter::new(|| 0.0)).unwrap()
}

fn completion() -> Completion {
    let stop = vec!["```".to_owned()];
    Completion { prompt: vec![1, 2, 3], max_tokens: 4, temperature: 0.8, top_p: 1.0, seed: i64::MAX as u64, stop }
}

/// As vLLM answers, foreign fields included.
fn good() -> Value {
    json!({"id": "cmpl-1", "object": "text_completion", "model": "m", "usage": {"prompt_tokens": 3},
        "choices": [{"index": 0, "text": "ab", "finish_reason": "stop", "stop_reason": "```", "token_ids": [7, 8, 9],
            "prompt_token_ids": [1, 2, 3], "logprobs": {"text_offset": [0, 1, 2], "token_logprobs": [-0.5, 0.0, -2.25],
            "tokens": ["a", "b", "```"], "top_logprobs": [{"a": -0.5}, {"b": 0.0}, {"```": -2.25}]}}]})
}

fn with(change: impl FnOnce(&mut Value)) -> Value {
    let mut answer = good();
    change(&mut answer["choices"][0]);
    answer
}

#[tokio::test]
async fn a_good_answer_is_taken_as_it_is() {
    let (url, script) = ok(good()).await;
    let mut config = config(&format!("{url}/v1/"));
    config.model = "smol".into();
    // A variable every test process has; its value is sent to loopback only.
    config.api_key_env = Some("CARGO_PKG_NAME".into());
    let completed = endpoint(config).complete(&completion()).await.unwrap();
    assert_eq!((completed.token_ids, completed.log_probs), (vec![7, 8, 9], vec![-0.5, 0.0, -2.25]));
    assert_eq!((completed.finish, completed.text.as_str()), (Finish::Stop, "ab"));
    let asked = script.asked.lock().await;
    let (headers, body) = &asked[0];
    let want = json!({"model": "smol", "prompt": [1, 2, 3], "max_tokens": 4, "temperature": 0.8, "top_p": 1.0,
        "seed": i64::MAX, "stop": ["```"], "logprobs": 1, "return_token_ids": true});
    assert_eq!(*body, want);
    let key = std::env::var("CARGO_PKG_NAME").unwrap();
    assert_eq!(headers["authorization"], format!("Bearer {key}"));
}

#[tokio::test]
async fn nonsense_stops_the_run_and_says_why() {
    let log_prob = |value: Value| with(|choice| choice["logprobs"]["token_logprobs"][1] = value);
    let cases = [
        (json!({}), "not a completion"),
        (json!([1]), "not a completion"),
        (json!({"choices": []}), "one choice"),
        (json!({"choices": [good()["choices"][0], good()["choices"][0]]}), "one choice"),
        (with(|c| c["token_ids"] = Value::Null), "return_token_ids"),
        (with(|c| c["token_ids"] = json!([7, -8, 9])), "not a completion"),
        (with(|c| c["token_ids"] = json!([7, 8, 100])), "vocabulary"),
        (with(|c| c["token_ids"] = json!([7, 8])), "3 log-probs for 2 token ids"),
        (with(|c| c["token_ids"] = json!([7, 8, 9, 9, 9])), "5 tokens where 4"),
        (with(|c| c["logprobs"] = Value::Null), "no logprobs"),
        (with(|c| (c["token_ids"], c["finish_reason"]) = (json!([]), json!("length"))), "no token"),
        (with(|c| c["finish_reason"] = "content_filter".into()), "content_filter"),
        (with(|c| c["finish_reason"] = Value::Null), "finish_reason"),
        (log_prob(json!(0.1)), "log-prob 1 is 0.1"),
        (log_prob(Value::Null), "log-prob 1 is missing"),
        (log_prob(json!("NaN")), "not a completion"),
    ];
    for (body, reason) in cases {
        let (url, script) = ok(body.clone()).await;
        let patient = EndpointConfig { retries: 3, ..config(&url) };
        let error = endpoint(patient).complete(&completion()).await.unwrap_err();
        let of_log_probs = matches!(error, EndpointError::LogProbs { .. });
        assert!(of_log_probs || matches!(error, EndpointError::Nonsense { .. }), "{body}: {error}");
        assert_eq!(of_log_probs, reason.contains("log"), "{body}: {error}");
        assert!(error.to_string().contains(reason), "{body}: {error}");
        assert_eq!((error.next(), script.count().await), (Next::Stop, 1), "nonsense is not asked for again");
    }
}

#[tokio::test]
async fn no_json_is_nonsense() {
    // Python's json writes NaN and -Infinity, which are no JSON.
    let bare_nan = good().to_string().replace("-2.25]", "NaN]");
    for body in ["", "<html>", "{\"choices\":", bare_nan.as_str()] {
        let (url, _) = scripted(vec![(StatusCode::OK, vec![], body.to_owned())]).await;
        let error = endpoint(config(&url)).complete(&completion()).await.unwrap_err();
        assert!(matches!(error, EndpointError::Nonsense { .. }), "{body:?}: {error}");
    }
}

#[tokio::test]
async fn rounding_above_zero_is_zero_and_the_vocabulary_may_be_unknown() {
    let (url, _) = ok(with(|c| c["logprobs"]["token_logprobs"][1] = json!(1e-7))).await;
    assert_eq!(endpoint(config(&url)).complete(&completion()).await.unwrap().log_probs[1], 0.0);
    let (url, _) = ok(with(|c| c["token_ids"][0] = json!(4_000_000_000_u32))).await;
    let any = EndpointConfig { vocab_size: None, ..config(&url) };
    assert_eq!(endpoint(any).complete(&completion()).await.unwrap().token_ids[0], 4_000_000_000);
}

#[tokio::test]
async fn busy_is_retried_and_then_handed_on() {
    let busy = |status| (status, vec![("retry-after", "0")], r#"{"error": {"message": "queue full"}}"#.to_owned());
    let aborted = (StatusCode::OK, vec![], with(|c| c["finish_reason"] = "abort".into()).to_string());
    let fine = (StatusCode::OK, vec![], good().to_string());
    let failures =
        vec![busy(StatusCode::SERVICE_UNAVAILABLE), busy(StatusCode::TOO_MANY_REQUESTS), busy(StatusCode::BAD_GATEWAY)];
    let (url, script) = scripted([failures.clone(), vec![aborted, fine]].concat()).await;
    let patient = EndpointConfig { retries: 4, ..config(&url) };
    endpoint(patient).complete(&completion()).await.unwrap();
    assert_eq!(script.count().await, 5);
    let asked = script.asked.lock().await;
    assert!(asked.iter().all(|(_, body)| *body == asked[0].1), "a retry asks the same");

    let (url, script) = scripted(failures).await;
    let error = endpoint(EndpointConfig { retries: 2, ..config(&url) }).complete(&completion()).await.unwrap_err();
    assert!(matches!(&error, EndpointError::Busy { status: 502, retry_after: Some(Duration::ZERO), .. }), "{error}");
    assert!(error.to_string().contains("queue full") && error.is_transient());
    assert_eq!(script.count().await, 3);
}

#[tokio::test]
async fn refusals_are_not_retried() {
    for (status, next) in [(400, Next::GiveUpItem), (401, Next::Stop), (404, Next::Stop), (307, Next::Stop)] {
        let status = StatusCode::from_u16(status).unwrap();
        let message = format!("{}{}", "long ".repeat(10), "x".repeat(1000));
        let headers = vec![("location", "http://127.0.0.1:1/")];
        let (url, script) = scripted(vec![(status, headers, json!({"error": {"message": message}}).to_string())]).await;
        let patient = EndpointConfig { retries: 3, ..config(&url) };
        let error = endpoint(patient).complete(&completion()).await.unwrap_err();
        assert!(matches!(error, EndpointError::Refused { .. }), "{error}");
        assert!(error.to_string().contains("long long") && error.to_string().len() < 500);
        assert_eq!((error.next(), script.count().await), (next, 1));
    }
}

#[tokio::test]
async fn silence_is_a_timeout() {
    let silent = Router::new().route("/v1/completions", post(std::future::pending::<StatusCode>));
    let url = listen(silent).await;
    let hasty = EndpointConfig { timeout: Duration::from_millis(30), ..config(&url) };
    let error = endpoint(hasty).complete(&completion()).await.unwrap_err();
    assert!(matches!(error, EndpointError::Timeout { .. }) && error.is_transient(), "{error}");
}

#[tokio::test]
async fn nobody_there_is_unreachable() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let error = endpoint(EndpointConfig { retries: 1, ..config(&url) }).complete(&completion()).await.unwrap_err();
    assert!(matches!(error, EndpointError::Unreachable { .. }) && error.is_transient(), "{error}");
    assert!(endpoint(config(&url)).health().await.unwrap_err().is_transient());
}

#[tokio::test]
async fn a_torn_answer_is_unreachable() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.read(&mut [0; 4096]).await.unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{\"choices\": [").await.unwrap();
    });
    let error = endpoint(config(&url)).complete(&completion()).await.unwrap_err();
    assert!(matches!(error, EndpointError::Unreachable { .. }), "{error}");
}

#[tokio::test]
async fn an_endless_answer_is_cut() {
    let (url, _) = scripted(vec![(StatusCode::OK, vec![], " ".repeat((32 << 20) + 1))]).await;
    let error = endpoint(config(&url)).complete(&completion()).await.unwrap_err();
    assert!(matches!(error, EndpointError::Nonsense { .. }), "{error}");
}

#[tokio::test]
async fn health_of_ours_and_of_others() {
    let body =
        json!({"status": "ok", "checkpoint": "sha256:ab", "model": "m", "context": 1024, "vocab_size": 9, "slots": 2});
    let (url, _) = ok(body).await;
    let want = Health {
        checkpoint: Some("sha256:ab".into()),
        model: Some("m".into()),
        context: Some(1024),
        vocab_size: Some(9),
    };
    assert_eq!(endpoint(config(&url)).health().await.unwrap(), want);
    for plain in ["", "OK", "true"] {
        let (url, _) = scripted(vec![(StatusCode::OK, vec![], plain.into())]).await;
        assert_eq!(endpoint(config(&url)).health().await.unwrap(), Health::default(), "{plain:?}");
    }
    let (url, _) = ok(json!({"context": "long"})).await;
    assert!(matches!(endpoint(config(&url)).health().await, Err(EndpointError::Nonsense { .. })));
}

#[tokio::test]
async fn requests_in_flight_stay_below_the_limit() {
    /// Answers once `meet` requests are in flight together; keeps the most that ever were.
    struct Load {
        now: AtomicUsize,
        most: AtomicUsize,
        meet: tokio::sync::Barrier,
    }
    async fn count(State(load): State<Arc<Load>>) -> Json<Value> {
        let now = load.now.fetch_add(1, Ordering::SeqCst) + 1;
        load.most.fetch_max(now, Ordering::SeqCst);
        load.meet.wait().await;
        load.now.fetch_sub(1, Ordering::SeqCst);
        Json(good())
    }
    // The second limit is the control: where all twelve are let in, they do meet and the count sees them.
    for limit in [2, 12] {
        let load = Load { now: 0.into(), most: 0.into(), meet: tokio::sync::Barrier::new(limit) };
        let load = Arc::new(load);
        let url = listen(Router::new().route("/v1/completions", post(count)).with_state(load.clone())).await;
        let endpoint = Arc::new(endpoint(EndpointConfig { concurrency: limit, ..config(&url) }));
        let ask = |_| {
            let endpoint = endpoint.clone();
            tokio::spawn(async move { endpoint.complete(&completion()).await.unwrap() })
        };
        for task in (0..12).map(ask).collect::<Vec<_>>() {
            task.await.unwrap();
        }
        assert_eq!(load.most.load(Ordering::SeqCst), limit);
    }
}

#[test]
fn configurations_that_cannot_work_are_refused() {
    let refused = [
        config("no address"),
        config("ftp://127.0.0.1"),
        EndpointConfig { concurrency: 0, ..config("http://127.0.0.1:1") },
        EndpointConfig { timeout: Duration::ZERO, ..config("http://127.0.0.1:1") },
        EndpointConfig { api_key_env: Some("ROLLMILL_TEST_UNSET".into()), ..config("http://127.0.0.1:1") },
    ];
    for config in refused {
        let error = Endpoint::new(config.clone()).err().unwrap();
        assert!(matches!(error, EndpointError::Config(_)) && error.next() == Next::Stop, "{config:?}");
    }
}

#[test]
fn configuration_comes_back_from_its_text() {
    let text = r#"{"url": "http://h:1", "timeout": 1.5, "api_key_env": "KEY"}"#;
    let config: EndpointConfig = serde_json::from_str(text).unwrap();
    assert_eq!((config.timeout, config.retries), (Duration::from_millis(1500), 5));
    assert_eq!(serde_json::from_str::<EndpointConfig>(&serde_json::to_string(&config).unwrap()).unwrap(), config);
    assert!(serde_json::from_str::<EndpointConfig>(r#"{"urll": "x"}"#).is_err());
    assert!(serde_json::from_str::<EndpointConfig>(r#"{"timeout": -1}"#).is_err());
}
