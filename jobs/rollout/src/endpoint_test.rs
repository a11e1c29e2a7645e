//! Which sets an endpoint with wrong log-probs may be used for, from the flags to the exit code. No model: logits are
//! known.

use crate::discover::Address;
use crate::job::Rollout;
use crate::{Args, RolloutConfig, TRAIN};
use axum::extract::State;
use axum::routing::{get, post};
use axum::{Json, Router};
use clap::Parser;
use rollmill_job::checkpoint::{self, ACTOR, Draft, Manifest};
use rollmill_job::config::Config;
use rollmill_job::{Exit, JobError, Plan, PlanDraft, Run, Stage, service};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Divides by the temperature when it samples, and in its log-probs or not.
struct Server {
    checkpoint: String,
    divides: bool,
    log_probs: bool,
    asked: AtomicUsize,
}

/// Log-probs of 200 tokens, the first likeliest.
fn log_probs(temperature: f64) -> Vec<f64> {
    let logits = (0..200).map(|rank| -(1.0 + f64::from(rank)).ln() / temperature);
    let sum: f64 = logits.clone().map(f64::exp).sum();
    logits.map(|l| l - sum.ln()).collect()
}

async fn complete(State(server): State<Arc<Server>>, Json(body): Json<Value>) -> Json<Value> {
    server.asked.fetch_add(1, Ordering::SeqCst);
    let temperature = body["temperature"].as_f64().unwrap();
    // Fibonacci hashing (Knuth, volume 3): enough for seeds that are hashes themselves.
    let draw = body["seed"].as_u64().unwrap().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11;
    let mut left = draw as f64 / (1_u64 << 53) as f64;
    let found = log_probs(temperature).into_iter().position(|l| {
        left -= l.exp();
        left < 0.0
    });
    let token = found.unwrap_or(199);
    let log_prob = log_probs(if server.divides { temperature } else { 1.0 })[token];
    let listed = if server.log_probs { json!({ "token_logprobs": [log_prob] }) } else { Value::Null };
    Json(json!({"choices": [{"text": "", "finish_reason": "length", "token_ids": [token], "logprobs": listed}]}))
}

async fn health(State(server): State<Arc<Server>>) -> Json<Value> {
    Json(json!({ "checkpoint": server.checkpoint, "context": 512 }))
}

async fn serve(manifest: &Manifest, divides: bool, log_probs: bool) -> (String, Arc<Server>) {
    let server = Arc::new(Server { checkpoint: manifest.id(), divides, log_probs, asked: 0.into() });
    let routes = Router::new().route("/v1/completions", post(complete)).route("/health", get(health));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let routes = routes.with_state(server.clone());
    tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
    (url, server)
}

/// A run whose first checkpoint is a tokenizer.
async fn run(dir: &Path) -> (Run, Manifest) {
    let (model, actor) = (dir.join("model"), dir.join("model").join(ACTOR));
    std::fs::create_dir_all(&actor).unwrap();
    for file in ["tokenizer.json", "tokenizer_config.json"] {
        std::fs::copy(Path::new("../../shared/policy/fixtures/tiny").join(file), actor.join(file)).unwrap();
    }
    let run = Run::init(dir.join("run").to_str().unwrap(), &Config::parse("", "test").unwrap()).await.unwrap();
    let draft = Draft { round: 0, step: 0, last: true, inputs: vec![], metrics: vec![], seconds: 0.0 };
    let manifest = checkpoint::commit(&run, &model, draft).await.unwrap();
    (run, manifest)
}

#[derive(clap::Parser)]
struct Command {
    #[command(flatten)]
    args: Args,
}

/// Opens the job for a set as a worker does, at the set's temperature or another.
async fn open(
    run: &Run,
    manifest: &Manifest,
    url: &str,
    set: &str,
    temperature: Option<f64>,
) -> Result<Rollout, JobError> {
    let config = RolloutConfig::default();
    let mut set = config.set(set).unwrap();
    set.temperature = temperature.unwrap_or(set.temperature);
    let flags = ["rollout", "--run", "unused", "--round", "1", "--endpoint", url, "--split", &set.name];
    let args = Command::try_parse_from(flags).unwrap().args;
    let address = Address { url: url.into(), trusted: false };
    Rollout::open(run, config, set, vec![], 0, manifest, &address, &args).await
}

/// The message, where the endpoint is what was refused. A machine without sandboxes opens no job at all, which is no
/// matter here.
fn refusal(opened: Result<Rollout, JobError>) -> Option<String> {
    let error = opened.err()?;
    let message = error.to_string();
    message.starts_with("endpoint").then(|| {
        assert_eq!(Exit::from(&error), Exit::Usage, "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
        message
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endpoint_with_raw_log_probs_is_refused_for_training_only() {
    let dir = tempfile::tempdir().unwrap();
    let (run, manifest) = run(dir.path()).await;
    let (url, server) = serve(&manifest, false, true).await;
    let message = refusal(open(&run, &manifest, &url, TRAIN, None).await).unwrap();
    assert!(message.starts_with(&format!("endpoint {url}: log-probs are not divided by the temperature")), "{message}");
    assert!(message.contains("processed_logprobs") && message.contains("evaluation only"), "{message}");
    let asked = server.asked.swap(0, Ordering::SeqCst);
    assert_eq!(asked, 384);
    // Neither evaluation nor greedy rows are asked for.
    assert_eq!(refusal(open(&run, &manifest, &url, "heldout", None).await), None);
    assert_eq!(refusal(open(&run, &manifest, &url, TRAIN, Some(0.0)).await), None);
    assert_eq!(server.asked.load(Ordering::SeqCst), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_honest_endpoint_is_trained_on_and_one_without_log_probs_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let (run, manifest) = run(dir.path()).await;
    let (url, server) = serve(&manifest, true, true).await;
    assert_eq!(refusal(open(&run, &manifest, &url, TRAIN, None).await), None);
    assert_eq!(server.asked.load(Ordering::SeqCst), 384);
    let (url, _) = serve(&manifest, true, false).await;
    let message = refusal(open(&run, &manifest, &url, TRAIN, None).await).unwrap();
    assert!(message.contains("no usable log-probs (no logprobs)"), "{message}");
    assert_eq!(refusal(open(&run, &manifest, &url, "heldout", None).await), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endpoint_that_goes_away_is_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let (run, manifest) = run(dir.path()).await;
    let busy = || async { (axum::http::StatusCode::SERVICE_UNAVAILABLE, [("retry-after", "0")]) };
    let id = manifest.id();
    let health = move || async move { Json(json!({ "checkpoint": id })) };
    let routes = Router::new().route("/v1/completions", post(busy)).route("/health", get(health));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
    let config = rollmill_policy::EndpointConfig { url, retries: 1, ..rollmill_policy::EndpointConfig::default() };
    let probe = rollmill_policy::Probe::with_prompts(vec![1], vec![1, 2], 0.8);
    let error = super::open(config, &manifest, false, Some(probe)).await.err().unwrap();
    assert_eq!(Exit::from(&error), Exit::Again, "{error}");
    drop(run);
}

/// Flags of a worker that finds its endpoint in the store.
fn finding(more: &[&str]) -> Args {
    let flags = ["rollout", "--run", "unused", "--round", "1", "--endpoint-wait", "0"];
    Command::try_parse_from(flags.iter().chain(more)).unwrap().args
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_published_endpoint_is_found_tried_and_not_believed() {
    let dir = tempfile::tempdir().unwrap();
    let (run, manifest) = run(dir.path()).await;
    let find = async || crate::discover::address(&run, &manifest, &finding(&[])).await;
    let nothing = find().await.unwrap_err();
    assert_eq!(Exit::from(&nothing), Exit::Again);
    assert!(nothing.to_string().contains("rollmill endpoint --round 0"), "{nothing}");
    // One was killed and left its record, one serves another checkpoint, one has closed.
    let publish = async |url: &str| {
        let run = Run::open(dir.path().join("run").to_str().unwrap()).await.unwrap();
        let service = service::publish(&run, &manifest, url).await.unwrap();
        (run, service)
    };
    publish("http://127.0.0.1:9").await;
    let (other, _) = serve(&Manifest { step: 7, ..manifest.clone() }, true, true).await;
    publish(&other).await;
    let (url, _) = serve(&manifest, true, true).await;
    let (closer, closed) = publish(&url).await;
    service::close(&closer, &closed).await.unwrap();
    assert_eq!(Exit::from(&find().await.unwrap_err()), Exit::Again);
    publish(&url).await;
    assert_eq!(find().await.unwrap(), Address { url, trusted: true });
    let given = crate::discover::address(&run, &manifest, &finding(&["--endpoint", "http://given"])).await;
    assert_eq!(given.unwrap(), Address { url: "http://given".into(), trusted: false });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_plan_pins_the_policy_of_a_round_that_lags() {
    let dir = tempfile::tempdir().unwrap();
    let (run, manifest) = run(dir.path()).await;
    let train = RolloutConfig::default().set(TRAIN).unwrap();
    let args = |more: &[&str]| Args { round: 3, ..finding(more) };
    let policy = async |more: &[&str], lag| crate::discover::policy_round(&run, &train, &args(more), lag).await;
    assert_eq!(policy(&[], 1).await.unwrap(), 2, "the newest, unless told otherwise");
    assert_eq!(policy(&["--policy-round", "1"], 1).await.unwrap(), 1);
    for (round, lag) in [("1", 0), ("3", 1), ("0", 1)] {
        let error = policy(&["--policy-round", round], lag).await.unwrap_err();
        assert_eq!(Exit::from(&error), Exit::Usage, "{error}");
    }
    let draft =
        PlanDraft { keys: vec!["a.0".into()], shard_size: 1, inputs: vec![manifest.input()], ..PlanDraft::default() };
    Plan::ensure(&run, &Stage::rollout(TRAIN, 3), draft).await.unwrap();
    assert_eq!(policy(&[], 3).await.unwrap(), 0, "the plan's");
}
