//! What is killed: the commands of one run, the stage each finishes, and the configuration they share.

use crate::place::Place;
use crate::rng::Rng;
use rollmill_job::Stage;
use rollmill_schema::{Admission, Candidate, Metric, Reward, Row};
use std::path::Path;
use std::time::Duration;

/// One command that several workers run at once.
#[derive(Clone, Debug)]
pub struct Command {
    /// What people call it.
    pub name: &'static str,
    /// Arguments of `rollmill`, but for the run.
    pub args: Vec<String>,
    /// The stage it finishes and the table it commits; none for `init`.
    pub stage: Option<(Stage, &'static str)>,
    /// Until when after its start a worker may be killed: about what the job takes.
    pub longest: Duration,
    /// Which program: `rollmill` itself, or this one (the job that counts).
    pub program: Program,
}

/// A program that workers run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// `rollmill`.
    Rollmill,
    /// This program, as the worker of the job that counts its items.
    Counted,
}

/// How the workers of a run are started.
#[derive(Clone, Copy, Debug)]
pub struct Operations {
    /// `--lease-seconds`.
    pub lease_seconds: u64,
    /// `--chunk-items`.
    pub chunk_items: usize,
}

impl Operations {
    fn flags(self, name: &str) -> Vec<String> {
        let (lease, chunk) = (self.lease_seconds.to_string(), self.chunk_items.to_string());
        let flags = [name, "-q", "--lease-seconds", &lease, "--chunk-items", &chunk];
        flags.into_iter().map(String::from).collect()
    }
}

/// `init`: makes the run, or opens it.
pub fn init(config: &Path) -> Command {
    let args = ["init", "--config", &config.display().to_string()].map(String::from).to_vec();
    Command { name: "init", args, stage: None, longest: Duration::from_millis(80), program: Program::Rollmill }
}

/// `synthesize`: nothing but writing.
pub fn synthesize(operations: Operations) -> Command {
    Command {
        name: "synthesize",
        args: operations.flags("synthesize"),
        stage: Some((Stage::synthesize(), Candidate::TABLE)),
        longest: Duration::from_millis(800),
        program: Program::Rollmill,
    }
}

/// `verify`: sandboxes, chunks, parts and three projections a part. One candidate at once, so that the work a kill loses
/// can be bounded.
pub fn verify(operations: Operations) -> Command {
    let mut args = operations.flags("verify");
    args.extend(["--concurrency", "1"].map(String::from));
    Command {
        name: "verify",
        args,
        stage: Some((Stage::verify(), Admission::TABLE)),
        longest: Duration::from_secs(5),
        program: Program::Rollmill,
    }
}

/// `score` of a set of real trajectories under a version of its own.
pub fn score(operations: Operations, version: &str, split: &str, round: u32) -> Command {
    let mut args = operations.flags("score");
    let round_text = round.to_string();
    let more = ["--score-version", version, "--split", split, "--round", &round_text, "--concurrency", "1"];
    args.extend(more.map(String::from));
    Command {
        name: "score",
        args,
        stage: Some((Stage::score(version, split, round), Reward::TABLE)),
        longest: Duration::from_secs(4),
        program: Program::Rollmill,
    }
}

/// `evaluate` of what was scored: one shard of some hundred items that cost nothing, so that chunks of one would measure
/// the store.
pub fn evaluate(operations: Operations, version: &str, split: &str, round: u32) -> Command {
    let operations = Operations { chunk_items: 20 * operations.chunk_items, ..operations };
    let mut args = operations.flags("evaluate");
    let round_text = round.to_string();
    args.extend(["--score-version", version, "--split", split, "--round", &round_text].map(String::from));
    Command {
        name: "evaluate",
        args,
        stage: Some((Stage::evaluate(version, split, round), Metric::TABLE)),
        longest: Duration::from_millis(800),
        program: Program::Rollmill,
    }
}

/// The job that counts, with its log.
pub fn counted(operations: Operations, log: &Path) -> Command {
    let mut args = operations.flags("counted");
    args.extend(["--log".into(), log.display().to_string()]);
    Command {
        name: "counted",
        args,
        stage: Some((crate::counted::stage(), Metric::TABLE)),
        longest: Duration::from_secs(3),
        program: Program::Counted,
    }
}

/// A task that `verify` must reject, so that every run has a row in each projection.
const FAULTY: &str = r#"{"task_id": "faulty", "question": "Write a function `double(x)` that returns twice x.", "entry_point": "double", "visible_tests": [{"args": "(1,)", "expected": "2"}], "test_cases": [{"args": "(3,)", "expected": "6"}, {"args": "(4,)", "expected": "8"}], "tests_b": [{"args": "(5,)", "expected": "10"}], "reference": "def double(x):\n    return x + 2\n"}"#;

/// The one candidate of [`write_config`] that must be rejected.
pub const REJECTED: &str = "faulty";

/// Writes a configuration of some example tasks, drawn by `rng`, and one faulty one; small shards.
pub fn write_config(dir: &Path, project: &Path, rng: &mut Rng, tasks: usize) -> anyhow::Result<std::path::PathBuf> {
    std::fs::write(dir.join("faulty.jsonl"), format!("{FAULTY}\n"))?;
    let mut files: Vec<_> =
        std::fs::read_dir(project.join("examples/tasks"))?.map(|e| e.map(|e| e.path())).collect::<Result<_, _>>()?;
    files.sort();
    let mut sources = vec![(dir.join("faulty.jsonl"), 1)];
    let mut left = tasks;
    while left > 0 && !files.is_empty() {
        let limit = (1 + rng.below(4)).min(left);
        sources.push((files.remove(rng.below(files.len())), limit));
        left -= limit;
    }
    let (shard, verify_shard) = (1 + rng.below(4), 1 + rng.below(6));
    let mut text =
        format!("[verify]\nrepeats = 1\nshard_size = {verify_shard}\n[score]\nshard_size = {}\n", 2 + rng.below(6));
    text += &format!("[synthesize]\nshard_size = {shard}\n");
    for (path, limit) in sources {
        let path = toml_text(&path.display().to_string());
        text += &format!("[[synthesize.sources]]\nkind = \"jsonl\"\npath = {path}\nlimit = {limit}\n");
    }
    let path = dir.join("config.toml");
    std::fs::write(&path, text)?;
    Ok(path)
}

/// JSON's escapes are TOML's.
fn toml_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Copies the sealed stages that `score` and `evaluate` read from a finished run, byte for byte.
pub async fn import_trajectories(from: &Place, to: &Place, split: &str, round: u32) -> anyhow::Result<()> {
    let rollout = Stage::rollout(split, round);
    for stage in [rollout, Stage::verify()] {
        let sealed = from.blobs.get(&stage.sealed()?).await?;
        let sealed = sealed.ok_or_else(|| anyhow::anyhow!("{}: stage {} is not sealed", from.address, stage.name()))?;
        let seal: rollmill_job::seal::Seal = serde_json::from_slice(&sealed)?;
        for part in &seal.parts {
            let key = rollmill_store::Key::new(&part.key)?;
            let bytes = from.blobs.get(&key).await?.ok_or_else(|| anyhow::anyhow!("{key} is not there"))?;
            rollmill_store::create_once(to.blobs.as_ref(), &key, bytes).await?;
        }
        for key in [stage.plan()?, stage.sealed()?] {
            let bytes = from.blobs.get(&key).await?.ok_or_else(|| anyhow::anyhow!("{key} is not there"))?;
            rollmill_store::create_once(to.blobs.as_ref(), &key, bytes).await?;
        }
    }
    Ok(())
}
