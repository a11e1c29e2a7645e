//! Jobs as processes, on a folder and on a real S3 server, with the real model.
#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

use rollmill_e2e::{Killed, bucket, data, expect, model, program, project, rollmill, serve, small_config};
use rollmill_schema::{Metric, Rejection, Reward, Row, Task, TaskSecret, Trajectory, decode};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// All rows of a table folder, as any reader sees them.
fn rows<R: Row>(folder: &Path) -> Vec<R> {
    let mut found = Vec::new();
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    for file in files {
        let (mut rows, _) = decode::<R>(&bytes::Bytes::from(std::fs::read(&file).unwrap())).unwrap();
        found.append(&mut rows);
    }
    found
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Makes a run and takes it to admitted tasks.
fn verified(dir: &Path, model: Option<&Path>) -> PathBuf {
    let (config, run) = (small_config(dir, model, 2), dir.join("run"));
    expect(0, &["init", "--config", text(&config), "--run", text(&run)]);
    expect(0, &["synthesize", "--run", text(&run)]);
    expect(0, &["verify", "--run", text(&run)]);
    run
}

#[test]
fn tasks_are_verified_and_split_by_family() {
    let dir = tempfile::tempdir().unwrap();
    let run = verified(dir.path(), None);
    let tasks: Vec<Task> = rows(&run.join("tables/tasks"));
    let secrets: Vec<TaskSecret> = rows(&run.join("tables/task_secrets"));
    let rejections: Vec<Rejection> = rows(&run.join("tables/rejections"));
    assert_eq!((tasks.len(), secrets.len(), rejections.len()), (10, 10, 0), "{rejections:?}");
    for task in &tasks {
        let family: Vec<&str> = tasks.iter().filter(|t| t.group == task.group).map(|t| t.split.as_str()).collect();
        assert!(family.iter().all(|s| *s == task.split), "{} crosses splits", task.group);
    }
    // No hidden test and no reference reaches what a policy may see.
    let visible = serde_json::to_string(&tasks).unwrap();
    for secret in &secrets {
        let cases: Vec<serde_json::Value> = serde_json::from_str(&secret.tests_a).unwrap();
        for case in cases {
            let args = case["args"].as_str().unwrap();
            assert!(
                args.len() < 8 || !visible.contains(&serde_json::to_string(args).unwrap()),
                "{args} of {}",
                secret.task_id
            );
        }
        assert!(!visible.contains(secret.reference.trim()));
    }
    // Running a finished job again adds nothing.
    let before = std::fs::read_dir(run.join("tables/admissions")).unwrap().count();
    expect(0, &["verify", "--run", text(&run)]);
    assert_eq!(std::fs::read_dir(run.join("tables/admissions")).unwrap().count(), before);
}

/// Two workers verify at once and the tables hold every row once.
#[test]
fn workers_side_by_side() {
    let dir = tempfile::tempdir().unwrap();
    let (config, run) = (small_config(dir.path(), None, 2), dir.path().join("run"));
    std::fs::write(&config, std::fs::read_to_string(&config).unwrap().replace("[verify]", "[verify]\nshard_size = 3"))
        .unwrap();
    expect(0, &["init", "--config", text(&config), "--run", text(&run)]);
    expect(0, &["synthesize", "--run", text(&run)]);
    let start = || Command::new(program("rollmill")).args(["verify", "-q", "--run", text(&run)]).spawn().unwrap();
    let workers = [start(), start()];
    for mut worker in workers {
        assert_eq!(worker.wait().unwrap().code(), Some(0));
    }
    let tasks: Vec<Task> = rows(&run.join("tables/tasks"));
    let ids: std::collections::BTreeSet<&str> = tasks.iter().map(|t| t.task_id.as_str()).collect();
    assert_eq!((tasks.len(), ids.len()), (10, 10));
}

#[test]
fn faulty_references_of_mbpp_are_found_and_hanging_ones_end() {
    let Some(data) = data() else { return };
    let dir = tempfile::tempdir().unwrap();
    // The two faulty ones, two good ones, and a task of our own whose reference hangs.
    let all = std::fs::read_to_string(data.join("mbpp/mbpp.jsonl")).unwrap();
    let wanted = |l: &&str| {
        let row: serde_json::Value = serde_json::from_str(l).unwrap();
        [2, 3, 367, 927].contains(&row["task_id"].as_i64().unwrap())
    };
    let some: Vec<&str> = all.lines().filter(wanted).collect();
    std::fs::write(dir.path().join("mbpp.jsonl"), some.join("\n")).unwrap();
    let hangs = r#"{"task_id": "hangs", "question": "`f(x)`", "entry_point": "f", "reference": "def f(x):\n    while True: pass\n", "test_cases": [{"input": "1", "expected": "1"}, {"input": "3", "expected": "3"}], "tests_b": [{"input": "2", "expected": "2"}]}"#;
    std::fs::write(dir.path().join("own.jsonl"), format!("{hangs}\n{{\"question\": 1\n")).unwrap();
    let config = dir.path().join("c.toml");
    let source = |kind: &str, file: &str| {
        format!("[[synthesize.sources]]\nkind = {kind:?}\npath = {:?}\n", text(&dir.path().join(file)))
    };
    let toml =
        format!("{}{}[verify]\ncall_seconds = 1.0\n", source("mbpp", "mbpp.jsonl"), source("jsonl", "own.jsonl"));
    std::fs::write(&config, toml).unwrap();
    let run = dir.path().join("run");
    expect(0, &["init", "--config", text(&config), "--run", text(&run)]);
    let (_, stderr) = expect(0, &["synthesize", "--run", text(&run)]);
    assert!(stderr.contains("own.jsonl:2: no JSON") && stderr.contains("1 bad lines"), "{stderr}");
    expect(0, &["verify", "--run", text(&run)]);
    let rejections: Vec<Rejection> = rows(&run.join("tables/rejections"));
    let reason =
        |id: &str| rejections.iter().find(|r| r.source_id == id).map(|r| (r.reason.as_str(), r.detail.as_str()));
    for id in ["367", "927"] {
        let (why, detail) = reason(id).unwrap_or_else(|| panic!("{id} was admitted"));
        assert!(why == "reference_fails" && detail.contains("Node"), "{id}: {why}: {detail}");
    }
    assert_eq!(reason("hangs").unwrap().0, "reference_hangs");
    assert_eq!(rows::<Task>(&run.join("tables/tasks")).len(), 2);
}

/// A rollout worker is killed with −9; another finishes its shard, and no item is lost or doubled.
#[test]
fn a_killed_rollout_worker_loses_no_item() {
    let Some(model) = model() else { return };
    let dir = tempfile::tempdir().unwrap();
    let run = verified(dir.path(), Some(&model));
    let (status, _) = expect(0, &["status", "--format", "json", "--run", text(&run)]);
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    let id = status["checkpoints"][0]["id"].as_str().unwrap();
    let (_server, endpoint) = serve(&model, id);
    let args = [
        "rollout",
        "-q",
        "--run",
        text(&run),
        "--round",
        "1",
        "--concurrency",
        "1",
        "--lease-seconds",
        "3",
        "--chunk-items",
        "1",
        "--endpoint",
        &endpoint,
    ];
    let mut first = Killed(Command::new(program("rollmill")).args(args).stderr(Stdio::null()).spawn().unwrap());
    let chunks = run.join("control/rollout/train/round-0001/chunks");
    let count = |dir: &Path| -> usize {
        let shards = std::fs::read_dir(dir).into_iter().flatten().flatten();
        shards.map(|s| std::fs::read_dir(s.path()).map_or(0, Iterator::count)).sum()
    };
    // A chunk per item: after the first, at least one item is finished and at least one is not.
    while count(&chunks) == 0 {
        assert!(first.0.try_wait().unwrap().is_none(), "the worker ended before its first item");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    first.0.kill().unwrap();
    first.0.wait().unwrap();
    let parts = run.join("tables/trajectories/train/round-0001");
    let done_by_first = count(&chunks);
    assert!(done_by_first > 0);
    expect(0, &args);
    let trajectories: Vec<Trajectory> = rows(&parts);
    let ids: std::collections::BTreeSet<&str> = trajectories.iter().map(|t| t.trajectory_id.as_str()).collect();
    assert_eq!((trajectories.len(), ids.len()), (8, 8));
    let attempts: std::collections::BTreeSet<&str> =
        trajectories.iter().map(|t| t.provenance.attempt.as_str()).collect();
    assert_eq!(attempts.len(), 2, "rows of both workers are there");
    for t in &trajectories {
        assert_eq!(t.error_class, None, "{:?}", t.error);
        assert_eq!((t.token_ids.len(), t.token_ids.len()), (t.trainable.len(), t.log_probs.len()));
        assert_eq!(t.trainable.iter().filter(|m| **m).count(), t.sampled_tokens as usize);
        assert!(t.log_probs.iter().zip(&t.trainable).all(|(p, m)| *p <= 0.0 && (*m || *p == 0.0)));
    }
    // An endpoint that serves another checkpoint is refused, and so is one that is not there.
    let (_other, elsewhere) = serve(&model, "round-0009/step-000001/feed");
    let (_, stderr) =
        expect(2, &["rollout", "--run", text(&run), "--round", "0", "--split", "heldout", "--endpoint", &elsewhere]);
    assert!(stderr.contains("serves checkpoint round-0009"), "{stderr}");
    drop(_other);
    let (_, stderr) =
        expect(75, &["rollout", "--run", text(&run), "--round", "0", "--split", "heldout", "--endpoint", &elsewhere]);
    assert!(stderr.contains("cannot be reached"), "{stderr}");
}

/// An endpoint that names the right checkpoint and then answers nonsense stops the run with one clear line; what was
/// written stays.
#[test]
fn an_endpoint_that_answers_nonsense_is_refused() {
    let Some(model) = model() else { return };
    let dir = tempfile::tempdir().unwrap();
    let run = verified(dir.path(), Some(&model));
    let (status, _) = expect(0, &["status", "--format", "json", "--run", text(&run)]);
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    let health = serde_json::json!({"checkpoint": status["checkpoints"][0]["id"], "context": 512}).to_string();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            answer(stream.unwrap(), &health);
        }
    });
    let args = ["rollout", "-q", "--run", text(&run), "--round", "1", "--endpoint", &address];
    let (_, stderr) = expect(10, &args);
    assert!(stderr.contains("answers nonsense") && stderr.lines().count() == 1, "{stderr}");
    assert_eq!(rows::<Task>(&run.join("tables/tasks")).len(), 10);
}

/// Answers one request: health as given, completions without token ids.
fn answer(mut stream: std::net::TcpStream, health: &str) {
    use std::io::{BufRead, BufReader, Read, Write};
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut first, mut length) = (String::new(), 0);
    let _ = reader.read_line(&mut first);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) <= 2 {
            break;
        }
        if let Some(n) = line.to_lowercase().strip_prefix("content-length:") {
            length = n.trim().parse().unwrap();
        }
    }
    let _ = reader.read_exact(&mut vec![0; length]);
    let body = if first.contains("/health") { health } else { r#"{"choices": [{"text": "hello"}]}"# };
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length:";
    let _ = write!(stream, "{head} {}\r\n\r\n{body}", body.len());
}

/// One whole round with the real model: on a folder, and on a bucket.
fn whole_round(address: &str, model: &Path, dir: &Path, samples: u32) {
    let config = small_config(dir, Some(model), samples);
    let (stdout, stderr) = expect(0, &["run", "--config", text(&config), "--run", address]);
    assert!(stdout.contains("heldout") && stdout.contains("Rejected tasks: 0"), "{stdout}\n{stderr}");
    // The same command again finds everything done and starts no job.
    let (_, stderr) = expect(0, &["run", "--config", text(&config), "--run", address]);
    assert!(!stderr.contains("rollout/"), "{stderr}");
    // A changed experiment is refused, and the difference is named.
    let changed = dir.join("changed.toml");
    std::fs::write(
        &changed,
        std::fs::read_to_string(&config)
            .unwrap()
            .replace(&format!("samples = {samples}\ntasks = 4"), "samples = 3\ntasks = 4"),
    )
    .unwrap();
    let (_, stderr) = expect(2, &["run", "--config", text(&changed), "--run", address]);
    assert!(stderr.contains(&format!("rollout.samples: {samples} -> 3")), "{stderr}");
    let (status, _) = expect(0, &["status", "--format", "json", "--run", address]);
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    for stage in status["stages"].as_array().unwrap() {
        assert_eq!((&stage["shards"], stage["sealed"].as_bool()), (&stage["shards_done"], Some(true)), "{stage}");
    }
}

#[test]
fn a_whole_round_on_a_folder() {
    let Some(model) = model() else { return };
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    whole_round(text(&run), &model, dir.path(), 4);
    let trajectories: Vec<Trajectory> = rows(&run.join("tables/trajectories/train/round-0001"));
    let rewards: Vec<Reward> = rows(&run.join("tables/rewards/v1/train/round-0001"));
    assert_eq!((trajectories.len(), rewards.len()), (16, 16));
    // All 16 were sampled in one batch of the KV cache; the trainer computes them packed, in one forward pass. numerics: the
    // worst of 1,920 tokens was 3.3e-5 apart in float32, 1e-4 is promised.
    let metrics: Vec<Metric> = rows(&run.join("tables/metrics/train/round-0001"));
    let mismatch = metrics.iter().find(|m| m.name == "train/mismatch_max" && m.step == 1).and_then(|m| m.value);
    assert!(mismatch.is_some_and(|m| m < 1e-4), "{mismatch:?}");
    assert!(rewards.iter().all(|r| r.status == "graded" && r.total.is_some_and(|t| (0.0..=1.0).contains(&t))));
    // The checkpoint is a whole HF folder, and its weights are not those of the base model.
    let folder = run.join("checkpoints/round-0001");
    let step = std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).max().unwrap();
    let attempt = std::fs::read_dir(&step).unwrap().next().unwrap().unwrap().path().join("actor");
    for file in ["config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json"] {
        assert!(attempt.join(file).is_file(), "{file}");
    }
    let bytes = |folder: &Path| std::fs::read(folder.join("model.safetensors")).unwrap();
    assert!(bytes(&attempt) != bytes(&model), "training changed nothing");
    load_in_transformers(&attempt);
}

/// `transformers` loads the checkpoint and continues a prompt.
fn load_in_transformers(actor: &Path) {
    let Some(python) = std::env::var_os("ROLLMILL_TRANSFORMERS") else {
        rollmill_e2e::skip::<()>("transformers", "ROLLMILL_TRANSFORMERS names no Python that has it");
        return;
    };
    let script = project().join("tests/python/load_checkpoint.py");
    let out = Command::new(python).arg(script).arg(actor).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}

#[test]
fn a_whole_round_on_a_bucket() {
    let (Some(bucket), Some(model)) = (bucket(), model()) else { return };
    let dir = tempfile::tempdir().unwrap();
    let unique = dir.path().file_name().unwrap().to_str().unwrap().trim_start_matches('.').to_string();
    whole_round(&format!("{bucket}/round-{unique}"), &model, dir.path(), 1);
    // A wrong key is one clear line.
    let out = Command::new(program("rollmill"))
        .args(["status", "--run", &format!("{bucket}/round-{unique}")])
        .env("AWS_SECRET_ACCESS_KEY", "wrong")
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("was denied") && stderr.lines().count() == 1, "{stderr}");
}

#[test]
fn bad_configurations_and_addresses_get_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("c.toml");
    let run = dir.path().join("run");
    let init = |toml: &str| {
        std::fs::write(&config, toml).unwrap();
        let (_, stderr) = expect(2, &["init", "--config", text(&config), "--run", text(&run)]);
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        stderr
    };
    assert!(init("[rollout]\nsample = 4\n").contains("unknown field `sample`"));
    assert!(init("[roll]\n").contains("unknown section [roll]"));
    assert!(init("[rollout]\nsamples = = 4\n").contains("c.toml:2"));
    assert!(init("[policy]\nmodel = \"no-such-model\"\n").contains("no-such-model"));
    assert!(init("[rollout.act]\ntop_p = 0.9\n").contains("top_p must be 1"));
    assert!(!run.join("run.toml").exists(), "a refused configuration makes no run");
    let (_, stderr) = expect(2, &["status", "--run", text(&dir.path().join("nowhere"))]);
    assert!(stderr.contains("holds no run"), "{stderr}");
    let out = Command::new(program("rollmill"))
        .args(["status", "--run", "s3://bucket/run"])
        .env("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
        .env("AWS_ACCESS_KEY_ID", "a")
        .env("AWS_SECRET_ACCESS_KEY", "b")
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(75), "an unreachable bucket may come back");
    let (_, stderr) = expect(2, &["status", "--run", "s3://bucket"]);
    assert!(stderr.contains("give a prefix"), "{stderr}");
    // A stage whose input is missing says what to run first.
    std::fs::write(&config, "").unwrap();
    expect(0, &["init", "--config", text(&config), "--run", text(&run)]);
    let (_, stderr) = expect(2, &["verify", "--run", text(&run)]);
    assert!(stderr.contains("synthesize"), "{stderr}");
    assert_eq!(rollmill(&["--help"]).status.code(), Some(0));
    assert_eq!(rollmill(&["no-such-command"]).status.code(), Some(2));
}
