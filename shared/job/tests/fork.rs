//! A fork begins as its parent was before a round, and is a run of its own after.
#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

use async_trait::async_trait;
use rollmill_job::config::Config;
use rollmill_job::{
    Exit, ItemError, Job, JobError, Plan, PlanDraft, Run, Stage, WorkerOptions, checkpoint, seal, work,
};
use rollmill_schema::{Metric, Row};
use std::path::Path;

struct Toy;

#[async_trait]
impl Job for Toy {
    type Row = Metric;

    async fn process(&self, key: &str) -> Result<Metric, ItemError> {
        let name = key.split('|').next().unwrap();
        Ok(Metric { name: name.into(), scope: "all".into(), value: Some(1.0), ..Metric::default() })
    }

    fn failed(&self, _key: &str, _reason: &str) -> Option<Metric> {
        None
    }
}

fn config(text: &str) -> Config {
    Config::parse(text, "test.toml").unwrap()
}

async fn stage(run: &Run, round: u32) {
    let stage = Stage::evaluate("v1", "t", round);
    let keys = (0..7).map(|i| format!("m{i}|all|0")).collect();
    let draft = PlanDraft { keys, shard_size: 3, inputs: vec![], settings: serde_json::json!({}) };
    let plan = Plan::ensure(run, &stage, draft).await.unwrap();
    work(run, &stage, &plan, &Toy, WorkerOptions::default()).await.unwrap();
}

async fn train(run: &Run, round: u32) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("model.safetensors"), format!("round {round}")).unwrap();
    let draft = checkpoint::Draft { round, step: 4, last: true, inputs: vec![], metrics: vec![], seconds: 1.0 };
    checkpoint::commit(run, folder.path(), draft).await.unwrap();
}

async fn rows(run: &Run, round: u32) -> Result<usize, JobError> {
    let (rows, _) = seal::read_sealed::<Metric>(run, &Stage::evaluate("v1", "t", round)).await?;
    Ok(rows.iter().map(Row::key).collect::<std::collections::BTreeSet<_>>().len())
}

async fn parent(dir: &Path) -> Run {
    let mut run =
        Run::init(dir.join("parent").to_str().unwrap(), &config("[train]\nlr = 1\n[verify]\nn = 2")).await.unwrap();
    run.quiet = true;
    for round in 0..3 {
        stage(&run, round).await;
        train(&run, round).await;
    }
    run
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_has_what_came_before_and_goes_its_own_way() {
    let dir = tempfile::tempdir().unwrap();
    let parent = parent(dir.path()).await;
    let address = dir.path().join("fork");
    let other = config("[train]\nlr = 2\n[verify]\nn = 2");
    let mut fork = Run::fork(&parent, address.to_str().unwrap(), &other, 2).await.unwrap();
    fork.quiet = true;
    assert_ne!(fork.id, parent.id);
    let from = fork.forked_from.clone().unwrap();
    assert_eq!((from.run_id, from.round), (parent.id.clone(), 2));
    for round in 0..2 {
        assert_eq!(rows(&fork, round).await.unwrap(), 7, "round {round} was copied");
        let there = checkpoint::last_of_round(&fork, round).await.unwrap().unwrap();
        let folder = tempfile::tempdir().unwrap();
        checkpoint::fetch(&fork, &there, |_| true, folder.path()).await.unwrap();
        assert_eq!(
            std::fs::read(folder.path().join("model.safetensors")).unwrap(),
            format!("round {round}").as_bytes()
        );
    }
    assert!(matches!(rows(&fork, 2).await.unwrap_err(), JobError::InputAbsent { .. }), "round 2 is the fork's own");
    assert!(checkpoint::last_of_round(&fork, 2).await.unwrap().is_none());
    assert!(!address.join("control/evaluate/v1/t/round-0000/leases").exists(), "leases are the parent's");
    stage(&fork, 2).await;
    train(&fork, 2).await;
    // The same command again opens it, whatever it has done since.
    let again = Run::fork(&parent, address.to_str().unwrap(), &other, 2).await.unwrap();
    assert_eq!(again.id, fork.id);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_that_was_killed_is_finished_by_the_same_command() {
    let dir = tempfile::tempdir().unwrap();
    let parent = parent(dir.path()).await;
    let address = dir.path().join("fork");
    let whole = Run::fork(&parent, address.to_str().unwrap(), &parent.config, 2).await.unwrap();
    // What a kill before the end leaves: no run.toml, and half of the objects.
    std::fs::remove_file(address.join("run.toml")).unwrap();
    std::fs::remove_file(address.join("control/evaluate/v1/t/round-0001/sealed.json")).unwrap();
    std::fs::remove_dir_all(address.join("checkpoints/round-0001")).unwrap();
    assert!(
        matches!(Run::open(address.to_str().unwrap()).await, Err(JobError::NoRun { .. })),
        "no run before its commit"
    );
    let fork = Run::fork(&parent, address.to_str().unwrap(), &parent.config, 2).await.unwrap();
    assert_ne!(fork.id, whole.id);
    assert_eq!(rows(&fork, 1).await.unwrap(), 7);
    let there = checkpoint::last_of_round(&fork, 1).await.unwrap().unwrap();
    checkpoint::fetch(&fork, &there, |_| true, &dir.path().join("files")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn forks_that_would_not_be_what_they_say_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let parent = parent(dir.path()).await;
    let address = dir.path().join("fork");
    let refused = async |config: &Config, round| {
        let e = Run::fork(&parent, address.to_str().unwrap(), config, round).await.err().unwrap();
        assert_eq!(Exit::from(&e), Exit::Usage, "{e}");
        e.to_string()
    };
    let e = refused(&config("[verify]\nn = 3"), 2).await;
    assert!(e.contains("verify.n: 2 -> 3"), "{e}");
    assert!(refused(&parent.config, 0).await.contains("round 0 is the base model"));
    assert!(refused(&parent.config, 7).await.contains("round 6 has no finished checkpoint"));
    assert!(!address.exists(), "nothing was made");
    Run::fork(&parent, address.to_str().unwrap(), &parent.config, 2).await.unwrap();
    assert!(refused(&parent.config, 1).await.contains("at 2, not of"), "a fork at another round lies there");
}
