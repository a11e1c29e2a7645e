//! Every job under a key of its own, with the rights that `terraform/modules/rights/rights.json` gives its role: a whole round on a real S3
//! server, and what such a key must not see.
#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

use bytes::Bytes;
use rollmill_e2e::{Killed, model, program, project, skip, small_config};
use rollmill_store::{Blobs, Key, S3Settings, StoreError, open};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

/// A command with the key of a job.
fn job(name: &str, run: &str, cache: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(program("rollmill"));
    command.args(args).current_dir(project()).env("ROLLMILL_RUN", run).env("XDG_CACHE_HOME", cache);
    command.env("AWS_ACCESS_KEY_ID", format!("{name}key")).env("AWS_SECRET_ACCESS_KEY", format!("{name}secret"));
    command.stdin(Stdio::null());
    command
}

/// The run as the key of a job sees it.
fn store(name: &str, run: &str) -> Arc<dyn Blobs> {
    let settings = S3Settings {
        endpoint: std::env::var("AWS_ENDPOINT_URL").ok(),
        access_key: Some(format!("{name}key")),
        secret_key: Some(format!("{name}secret")),
        ..S3Settings::default()
    };
    open(run, &settings).unwrap()
}

#[test]
fn a_round_of_jobs_that_hold_only_the_rights_of_their_roles() {
    let Some(model) = model() else { return };
    let Ok(run) = std::env::var("ROLLMILL_TEST_S3_ROLES") else {
        skip::<()>("s3", "ROLLMILL_TEST_S3_ROLES is not set");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let config = small_config(dir.path(), Some(&model), 2);
    let cache = dir.path().join("cache");
    let done = |name: &str, args: &[&str]| {
        let out = job(name, &run, &cache, args).output().unwrap();
        assert!(out.status.success(), "{name} {args:?}: {}", String::from_utf8_lossy(&out.stderr));
    };
    done("test", &["init", "--config", config.to_str().unwrap()]);
    done("synthesize", &["synthesize"]);
    done("verify", &["verify"]);
    let until = ["--until", "rollout/train/round-0001", "--until", "rollout/heldout/round-0000"];
    let endpoint: Vec<&str> = ["endpoint", "--round", "0", "--host", "127.0.0.1"].into_iter().chain(until).collect();
    let mut endpoint = Killed(job("endpoint", &run, &cache, &endpoint).spawn().unwrap());
    for (split, round) in [("train", "1"), ("heldout", "0")] {
        let act = ["rollout", "--split", split, "--round", round, "--policy-round", "0"];
        done("rollout", &act);
        done("score", &["score", "--split", split, "--round", round]);
    }
    assert!(endpoint.0.wait().unwrap().success(), "the endpoint ends when its stages are done");
    // What stands before a pod's work asks with the pod's own key.
    done("evaluate", &["wait", "--seconds", "1", "--stage", "score/v1/heldout/round-0000"]);
    done("rollout", &["budget", "--core-hours", "1000"]);
    done("conduct", &["status"]);
    done("evaluate", &["evaluate", "--split", "heldout", "--round", "0"]);
    done("train", &["train", "--round", "1"]);

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let listed = store("rollout", &run).list(&Key::new("tables/task_secrets").unwrap()).await.unwrap();
        let secret = &listed.first().expect("names are no secret").key;
        for name in ["rollout", "train", "evaluate", "endpoint", "synthesize"] {
            let read = store(name, &run).get(secret).await;
            assert!(matches!(read, Err(StoreError::Denied { .. })), "{name} reads {secret}: {read:?}");
        }
        // Chunks are rows too, before they are committed.
        let chunk = "control/verify/chunks/00000/0000.parquet";
        store("verify", &run).create(&Key::new(chunk).unwrap(), Bytes::from_static(b"x")).await.unwrap();
        for name in ["rollout", "train", "evaluate", "endpoint", "conduct"] {
            let read = store(name, &run).get(&Key::new(chunk).unwrap()).await;
            assert!(matches!(read, Err(StoreError::Denied { .. })), "{name} reads {chunk}: {read:?}");
        }
        assert!(store("score", &run).get(secret).await.unwrap().is_some(), "who grades reads them");
        for (name, key) in
            [("rollout", "tables/rewards/forged"), ("score", "tables/tasks/forged"), ("train", "run.toml")]
        {
            let written = store(name, &run).create(&Key::new(key).unwrap(), Bytes::from_static(b"x")).await;
            assert!(matches!(written, Err(StoreError::Denied { .. })), "{name} writes {key}: {written:?}");
        }
    });
}
