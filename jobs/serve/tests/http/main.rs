//! The program over real HTTP on loopback, with a tiny random model.
#![allow(clippy::unwrap_used)] // clippy allows it in tests, but not in their helpers

mod server;

use serde_json::{Value, json};
use server::{END, Server, assert_same, ids, log_probs};

/// A request that answers with everything; 40 tokens, whatever the model's end token says.
fn asking(prompt: &[i64], seed: u64) -> Value {
    json!({ "prompt": prompt, "max_tokens": 40, "temperature": 0.9, "seed": seed, "logprobs": 0,
        "return_token_ids": true, "ignore_eos": true, "a field nobody knows": [1] })
}

fn with(mut request: Value, key: &str, value: Value) -> Value {
    request[key] = value;
    request
}

#[tokio::test]
async fn health_and_models_say_what_is_served() {
    let server = Server::start(&["--slots", "3", "--context", "64"]);
    let health = server.get("/health").await;
    assert_eq!((&health["status"], &health["slots"], &health["context"]), (&json!("ok"), &json!(3), &json!(64)));
    assert_eq!((&health["vocab_size"], &health["tokens_generated"]), (&json!(100), &json!(0)));
    assert!(health["peak_memory_bytes"].as_u64().unwrap() > 0);
    let checkpoint = health["checkpoint"].as_str().unwrap();
    assert!(checkpoint.starts_with("sha256:") && checkpoint.len() == 7 + 16);
    assert_eq!(server.ready["checkpoint"], health["checkpoint"]);
    let port = std::fs::read_to_string(server.dir.path().join("port")).unwrap();
    assert!(server.url.ends_with(&format!(":{}", port.trim())));
    let models = server.get("/v1/models").await;
    assert_eq!((&models["data"][0]["id"], &models["data"][0]["max_model_len"]), (&health["model"], &json!(64)));
    assert!(server.get("/nowhere").await["error"]["message"].as_str().unwrap().contains("no such route"));
}

#[tokio::test]
async fn concurrent_requests_equal_each_alone() {
    let server = Server::start(&["--slots", "5", "--context", "128", "--checkpoint-id", "mine"]);
    assert_eq!(server.ready["checkpoint"], "mine");
    // lengths 1 to 60, some with common beginnings
    let prompt = |i: i64| (0..1 + 5 * i).map(|k| (k * (3 + i % 3)) % 94).collect::<Vec<_>>();
    let requests: Vec<Value> = (0..12).map(|i| asking(&prompt(i), 100 + i as u64)).collect();
    let mut alone = vec![];
    for request in &requests {
        alone.extend(server.complete(request.clone()).await);
    }
    let url = &server;
    let together = futures_join(requests.iter().map(|r| url.complete(r.clone()))).await;
    for (a, b) in alone.iter().zip(together.iter().flatten()) {
        assert_same(a, b);
        assert_eq!((a["text"].as_str(), ids(a).len()), (b["text"].as_str(), 40));
    }
    // the comparison can fail: another seed draws other tokens
    let other = server.complete(with(requests[3].clone(), "seed", json!(999))).await;
    assert_ne!(ids(&other[0]), ids(&alone[3]));
}

/// Waits for all, concurrently.
async fn futures_join<F: Future>(all: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut pending: Vec<_> = all.into_iter().map(Box::pin).collect();
    let mut done: Vec<Option<F::Output>> = pending.iter().map(|_| None).collect();
    std::future::poll_fn(move |context| {
        for (future, slot) in pending.iter_mut().zip(&mut done).filter(|(_, slot)| slot.is_none()) {
            if let std::task::Poll::Ready(output) = future.as_mut().poll(context) {
                *slot = Some(output);
            }
        }
        if done.iter().all(Option::is_some) {
            return std::task::Poll::Ready(done.drain(..).flatten().collect());
        }
        std::task::Poll::Pending
    })
    .await
}

#[tokio::test]
async fn sequences_that_grow_reuse_their_prefix_and_draw_the_same() {
    let server = Server::start(&["--slots", "2", "--context", "200"]);
    let prompt: Vec<i64> = (0..50).collect();
    let whole = server.complete(with(asking(&prompt, 5), "max_tokens", json!(60))).await;
    let before = server.get("/health").await["prompt_tokens_reused"].as_u64().unwrap();
    // the same sequence in two requests: draws depend on the seed and the position only
    let first = server.complete(with(asking(&prompt, 5), "max_tokens", json!(25))).await;
    let grown: Vec<i64> = prompt.iter().copied().chain(ids(&first[0])).collect();
    let second = server.complete(with(asking(&grown, 5), "max_tokens", json!(35))).await;
    let joined: Vec<i64> = ids(&first[0]).into_iter().chain(ids(&second[0])).collect();
    assert_eq!(joined, ids(&whole[0]));
    let joined: Vec<f64> = log_probs(&first[0]).into_iter().chain(log_probs(&second[0])).collect();
    let worst = joined.iter().zip(log_probs(&whole[0])).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(worst < 1e-4, "{worst}");
    let reused = server.get("/health").await["prompt_tokens_reused"].as_u64().unwrap() - before;
    assert!(reused >= 49 + 74, "{reused}");
}

#[tokio::test]
async fn choices_are_seeds_in_a_row_and_prompts_may_be_many() {
    let server = Server::start(&["--slots", "4", "--context", "128"]);
    let prompt: Vec<i64> = (10..30).collect();
    let (status, _, answer) = server.post(with(asking(&prompt, 50), "n", json!(6))).await;
    assert_eq!(status, 200);
    assert_eq!(answer["usage"], json!({ "prompt_tokens": 20, "completion_tokens": 240, "total_tokens": 260 }));
    for (i, choice) in answer["choices"].as_array().unwrap().iter().enumerate() {
        assert_eq!(choice["index"], json!(i));
        assert_same(choice, &server.complete(asking(&prompt, 50 + i as u64)).await[0]);
    }
    let two = server.complete(with(asking(&[], 3), "prompt", json!([[1, 2, 3], [4, 5]]))).await;
    assert_same(&two[0], &server.complete(asking(&[1, 2, 3], 3)).await[0]);
    assert_same(&two[1], &server.complete(asking(&[4, 5], 3)).await[0]);
    assert_eq!(two[1]["prompt_token_ids"], json!([4, 5]));
    // text prompts go through the tokenizer: "ab" is one token
    let text = server.complete(with(asking(&[], 3), "prompt", json!("cab"))).await;
    assert_eq!(text[0]["prompt_token_ids"], json!([66, 96]));
    // what was not asked for is not there
    let plain = server.complete(json!({ "prompt": [1], "max_tokens": 2 })).await;
    assert_eq!((&plain[0]["token_ids"], &plain[0]["logprobs"]), (&Value::Null, &Value::Null));
}

#[tokio::test]
async fn greedy_ignores_the_seed() {
    let server = Server::start(&[]);
    let greedy = |seed| with(asking(&[1, 2, 3], seed), "temperature", json!(0));
    assert_same(&server.complete(greedy(1)).await[0], &server.complete(greedy(2)).await[0]);
}

#[tokio::test]
async fn bf16_serves_too() {
    let server = Server::start(&["--dtype", "bf16"]);
    let greedy = with(asking(&[1, 2, 3], 1), "temperature", json!(0));
    let wide = Server::start(&[]).complete(greedy.clone()).await;
    let narrow = server.complete(greedy).await;
    // bf16 has 8 bits of mantissa: the first log-prob is near, and not the same
    let difference = (log_probs(&wide[0])[0] - log_probs(&narrow[0])[0]).abs();
    assert!(difference < 0.1 && difference > 0.0, "{difference}");
}

#[tokio::test]
async fn stops_end_a_completion_where_they_should() {
    let server = Server::start(&["--slots", "2", "--context", "600"]);
    let prompt = [7, 8, 9];
    let free = &server.complete(with(asking(&prompt, 2), "max_tokens", json!(400))).await[0];
    assert_eq!((&free["finish_reason"], &free["stop_reason"]), (&json!("length"), &Value::Null));
    let tokens = ids(free);
    let long = |key: &str, value: Value| with(with(asking(&prompt, 2), "max_tokens", json!(400)), key, value);

    // a stop text over two token borders: the texts of three single-character tokens in the middle
    let word = |id: i64| char::from(33 + id as u8);
    let at = (20..).find(|&i| tokens[i..i + 3].iter().all(|&id| id < 94)).unwrap();
    let stop: String = tokens[at..at + 3].iter().map(|&id| word(id)).collect();
    let stopped = &server.complete(long("stop", json!(["never there", stop]))).await[0];
    assert_eq!((&stopped["finish_reason"], &stopped["stop_reason"]), (&json!("stop"), &json!(stop)));
    assert_eq!(ids(stopped), tokens[..at + 3]);
    let text = free["text"].as_str().unwrap();
    assert_eq!(stopped["text"], json!(text[..text.find(&stop).unwrap()]));

    // a stop token: its text is left out, its id is not
    let stopped = &server.complete(long("stop_token_ids", json!([tokens[at]]))).await[0];
    let first = tokens.iter().position(|&id| id == tokens[at]).unwrap();
    assert_eq!((&stopped["finish_reason"], &stopped["stop_reason"]), (&json!("stop"), &json!(tokens[at])));
    assert_eq!(ids(stopped), tokens[..=first]);

    // the model's own end token
    let end = tokens.iter().position(|&id| id == END).expect("this seed draws the end token within 400");
    let ended = &server.complete(long("ignore_eos", json!(false))).await[0];
    assert_eq!((&ended["finish_reason"], &ended["stop_reason"]), (&json!("stop"), &Value::Null));
    assert_eq!(ids(ended), tokens[..=end]);
    assert!(text.starts_with(ended["text"].as_str().unwrap()) && !ended["text"].as_str().unwrap().contains("<|end|>"));

    // the context ends it too
    let full = &server.complete(with(asking(&prompt, 2), "max_tokens", json!(5000))).await[0];
    assert_eq!((full["finish_reason"].as_str(), ids(full).len()), (Some("length"), 597));
}

#[tokio::test]
async fn bad_requests_are_told_why() {
    let server = Server::start(&["--context", "16"]);
    let long: Vec<i64> = vec![1; 16];
    for (key, value, word) in [
        ("prompt", json!(long), "context"),
        ("prompt", json!([1, 100]), "vocabulary"),
        ("prompt", json!([-1]), "vocabulary"),
        ("prompt", json!([]), "at least one token"),
        ("prompt", json!(""), "at least one token"),
        ("prompt", json!({ "a": 1 }), "prompt must be"),
        ("prompt", json!([1, "a"]), "prompt must be"),
        ("temperature", json!(-0.1), "temperature"),
        ("temperature", json!("hot"), "completion request"),
        ("top_p", json!(0), "top_p"),
        ("top_p", json!(1.5), "top_p"),
        ("max_tokens", json!(0), "max_tokens"),
        ("n", json!(0), "n times prompts"),
        ("n", json!(1000), "n times prompts"),
        ("stop", json!([""]), "stop must be"),
        ("stop", json!(5), "stop must be"),
        ("stream", json!(true), "streaming"),
    ] {
        let (status, _, body) = server.post(with(asking(&[1, 2], 1), key, value.clone())).await;
        let message = body["error"]["message"].as_str().unwrap_or_default();
        assert!(status == 400 && message.contains(word), "{key} {value}: {status} {body}");
    }
    let nothing = reqwest::Client::new().post(format!("{}/v1/completions", server.url)).body("{").send().await.unwrap();
    assert_eq!(nothing.status(), 400);
    assert_eq!(server.complete(asking(&[1, 2], 1)).await.len(), 1);
}

#[tokio::test]
async fn a_full_queue_says_come_back_and_forgets_the_refused() {
    let server = Server::start(&["--slots", "1", "--queue", "1", "--context", "20000"]);
    // one runs, one waits, a third finds no place
    let many = with(with(asking(&[1, 2], 1), "n", json!(8)), "max_tokens", json!(15000));
    let (status, retry, body) = server.post(many).await;
    assert_eq!((status, retry.as_deref()), (503, Some("1")), "{body}");
    // those of it that were queued are cancelled, not computed
    loop {
        let (status, _, _) = server.post(asking(&[1, 2], 1)).await;
        if status == 200 {
            break;
        }
        assert_eq!(status, 503);
    }
    assert!(server.get("/health").await["tokens_generated"].as_u64().unwrap() < 15000);
}

#[tokio::test]
async fn a_client_that_leaves_frees_its_slot() {
    let server = Server::start(&["--slots", "1", "--context", "60000"]);
    let url = format!("{}/v1/completions", server.url);
    let endless = with(asking(&[1, 2], 1), "max_tokens", json!(50000));
    let leaving = tokio::spawn(async move { reqwest::Client::new().post(url).json(&endless).send().await.map(drop) });
    while server.get("/health").await["tokens_generated"] == json!(0) {
        tokio::task::yield_now().await;
    }
    leaving.abort();
    // the only slot: this ends long before the 50,000 tokens would have
    assert_eq!(server.complete(asking(&[3], 1)).await.len(), 1);
    assert!(server.get("/health").await["tokens_generated"].as_u64().unwrap() < 50000);
}

#[tokio::test]
async fn a_signal_ends_it_cleanly_and_tells_who_waits() {
    let mut server = Server::start(&["--context", "60000"]);
    let url = format!("{}/v1/completions", server.url);
    let endless = with(asking(&[1, 2], 1), "max_tokens", json!(50000));
    let waiting = tokio::spawn(async move { reqwest::Client::new().post(url).json(&endless).send().await });
    while server.get("/health").await["tokens_generated"] == json!(0) {
        tokio::task::yield_now().await;
    }
    server.terminate();
    assert_eq!(waiting.await.unwrap().unwrap().status(), 503);
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

#[test]
fn it_dies_with_its_parent_if_asked() {
    let dir = tempfile::tempdir().unwrap();
    server::model(dir.path());
    // a shell between us: it is killed, its child must end by itself
    let script = "\"$0\" --threads 1 --die-with-parent --model \"$1\" & wait";
    let mut shell = std::process::Command::new("sh")
        .args(["-c", script])
        .arg(server::binary())
        .arg(dir.path())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let (ready, mut rest) = server::ready_line(shell.stdout.take().unwrap());
    assert!(ready["listening"].is_string());
    shell.kill().unwrap();
    shell.wait().unwrap();
    // both ends of the pipe's writers are gone only when the server is
    std::io::Read::read_to_end(&mut rest, &mut vec![]).unwrap();
}

#[test]
fn a_folder_that_is_no_model_is_a_usage_error() {
    let dir = tempfile::tempdir().unwrap();
    let run = |flags: &[&str]| {
        std::process::Command::new(server::binary()).args(flags).output().map(|o| (o.status.code(), o.stderr)).unwrap()
    };
    let (code, message) = run(&["--model", dir.path().to_str().unwrap()]);
    assert!(code == Some(2) && String::from_utf8(message).unwrap().contains("tokenizer.json"));
    let missing = dir.path().join("none.gguf");
    let (code, message) = run(&["convert-gguf", missing.to_str().unwrap(), dir.path().to_str().unwrap()]);
    assert!(code == Some(2) && String::from_utf8(message).unwrap().contains("none.gguf"));
    assert_eq!(run(&[]).0, Some(2));
}
