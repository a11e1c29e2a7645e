//! A tiny random model in a folder, and the real program serving it on a free loopback port.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rollmill_model::{Decoder, ModelConfig};
use serde_json::{Value, json};

/// The model's end token.
pub const END: i64 = 95;

/// Writes a random two-layer model of 100 ids: printable ASCII, a space, `<|end|>`, "ab"; three ids decode to nothing.
pub fn model(dir: &Path) {
    let config = ModelConfig { eos_token_ids: vec![END], max_position_embeddings: 1 << 16, ..ModelConfig::tiny(100) };
    Decoder::random(config, 4).save(dir).unwrap();
    let mut vocab: serde_json::Map<String, Value> =
        (33u8..127).map(|c| ((c as char).to_string(), json!(c - 33))).collect();
    vocab.extend([("Ġ".to_string(), json!(94)), ("ab".to_string(), json!(96))]);
    let level = json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true });
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null, "normalizer": null, "post_processor": null,
        "added_tokens": [{ "id": END, "content": "<|end|>", "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false, "special": true }],
        "pre_tokenizer": level, "decoder": level,
        "model": { "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
            "vocab": vocab, "merges": [["a", "b"]] },
    });
    std::fs::write(dir.join("tokenizer.json"), tokenizer.to_string()).unwrap();
}

/// The served program; killed when dropped.
pub struct Server {
    pub child: Child,
    pub url: String,
    pub ready: Value,
    pub dir: tempfile::TempDir,
}

impl Server {
    pub fn start(flags: &[&str]) -> Server {
        let dir = tempfile::tempdir().unwrap();
        model(dir.path());
        let mut child = Command::new(binary())
            .args(["--threads", "1", "--model"])
            .arg(dir.path())
            .arg("--port-file")
            .arg(dir.path().join("port"))
            .args(flags)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let ready = ready_line(child.stdout.take().unwrap()).0;
        let url = format!("http://{}", ready["listening"].as_str().unwrap());
        Server { child, url, ready, dir }
    }

    /// Sends SIGTERM.
    pub fn terminate(&self) {
        assert!(Command::new("kill").arg(self.child.id().to_string()).status().unwrap().success());
    }

    pub async fn get(&self, path: &str) -> Value {
        reqwest::get(format!("{}{path}", self.url)).await.unwrap().json().await.unwrap()
    }

    /// Status, headers' Retry-After, body.
    pub async fn post(&self, body: Value) -> (u16, Option<String>, Value) {
        let sent = reqwest::Client::new().post(format!("{}/v1/completions", self.url)).json(&body).send().await;
        let response = sent.unwrap();
        let retry = response.headers().get("retry-after").map(|v| v.to_str().unwrap().to_string());
        (response.status().as_u16(), retry, response.json().await.unwrap())
    }

    /// The choices of a request that must succeed.
    pub async fn complete(&self, body: Value) -> Vec<Value> {
        let (status, _, answer) = self.post(body).await;
        assert_eq!(status, 200, "{answer}");
        answer["choices"].as_array().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn binary() -> PathBuf {
    env!("CARGO_BIN_EXE_rollmill-serve").into()
}

/// The first line of a program's stdout, and the rest of it.
pub fn ready_line<R: std::io::Read>(stdout: R) -> (Value, BufReader<R>) {
    let mut reader = BufReader::new(stdout);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    (serde_json::from_str(&line).unwrap(), reader)
}

pub fn ids(choice: &Value) -> Vec<i64> {
    choice["token_ids"].as_array().unwrap().iter().map(|id| id.as_i64().unwrap()).collect()
}

pub fn log_probs(choice: &Value) -> Vec<f64> {
    let all = choice["logprobs"]["token_logprobs"].as_array().unwrap();
    all.iter().map(|p| p.as_f64().unwrap()).collect()
}

/// Same tokens, and log-probs within the promise of numerics.md.
pub fn assert_same(a: &Value, b: &Value) {
    assert_eq!(ids(a), ids(b));
    let worst = log_probs(a).iter().zip(log_probs(b)).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(worst < 1e-4, "{worst}");
}
