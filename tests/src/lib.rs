//! Real programs for end-to-end tests: `rollmill`, `rollmill-serve` with the real model, `rollmill-train`.
//!
//! What a machine lacks is a named skip, and a failure where `ROLLMILL_REQUIRE` names it.

pub mod kube;
pub mod slurm;

use rollmill_schema::{Rejection, Task, decode};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// A program of the workspace, built beside the tests.
pub fn program(name: &str) -> PathBuf {
    // A test runs as target/<profile>/deps/<test>.
    let here = std::env::current_exe().expect("a test knows its own path");
    let folder = here.parent().and_then(Path::parent).expect("tests lie two folders deep");
    let path = folder.join(name);
    assert!(path.is_file(), "{} is missing: `cargo build --workspace --bins`, or `make test`", path.display());
    path
}

/// The root of the project: the nearest folder above the test's package that has the lock file. Asked at run time, because
/// two checkouts that share a target folder also share what was compiled.
pub fn project() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let here = package.or_else(|| std::env::current_dir().ok()).expect("a test runs somewhere");
    let root = here.ancestors().find(|folder| folder.join("Cargo.lock").is_file());
    root.expect("the package lies in the project").to_path_buf()
}

/// Whether `name` must be there.
fn required(name: &str) -> bool {
    std::env::var("ROLLMILL_REQUIRE").unwrap_or_default().split(',').any(|n| n == name)
}

/// Skips by name, or fails where the part is required.
pub fn skip<T>(name: &str, why: &str) -> Option<T> {
    assert!(!required(name), "ROLLMILL_REQUIRE names {name}, but {why}");
    eprintln!("skipped: {name}: {why}");
    None
}

/// The folder of the real model.
pub fn model() -> Option<PathBuf> {
    match std::env::var_os("ROLLMILL_MODEL").map(PathBuf::from).filter(|p| p.join("config.json").is_file()) {
        Some(folder) => Some(folder),
        None => skip("model", "ROLLMILL_MODEL is no model folder (`make test` sets it up)"),
    }
}

/// Address of an S3 bucket whose server this test may use.
pub fn bucket() -> Option<String> {
    std::env::var("ROLLMILL_TEST_S3").ok().or_else(|| skip("s3", "ROLLMILL_TEST_S3 is not set"))
}

/// The folder with HumanEval and MBPP.
pub fn data() -> Option<PathBuf> {
    let beside = project().join("../shared/data");
    let folder = std::env::var_os("ROLLMILL_DATA").map_or(beside, PathBuf::from);
    if folder.join("mbpp/mbpp.jsonl").is_file() {
        Some(folder)
    } else {
        skip("data", "no HumanEval and MBPP beside the project")
    }
}

/// All that a program printed.
pub fn said(out: &Output) -> String {
    String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr)
}

/// Runs `rollmill` in the project's root.
pub fn rollmill(args: &[&str]) -> Output {
    Command::new(program("rollmill")).args(args).current_dir(project()).output().expect("rollmill starts")
}

/// Runs `rollmill`, which must end with `code`; its output.
pub fn expect(code: i32, args: &[&str]) -> (String, String) {
    let out = rollmill(args);
    let (stdout, stderr) =
        (String::from_utf8_lossy(&out.stdout).into_owned(), String::from_utf8_lossy(&out.stderr).into_owned());
    assert_eq!(out.status.code(), Some(code), "rollmill {args:?}\n{stdout}\n{stderr}");
    (stdout, stderr)
}

/// A process that is killed when the test ends, however it ends.
pub struct Killed(pub Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `rollmill-serve` with `model`, naming its checkpoint `id`; its address.
pub fn serve(model: &Path, id: &str) -> (Killed, String) {
    use std::io::BufRead;
    let mut command = Command::new(program("rollmill-serve"));
    command.arg("--model").arg(model).args(["--checkpoint-id", id, "--port", "0", "--die-with-parent"]);
    command.args(["--slots", "8", "--context", "512"]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("rollmill-serve starts");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("its output is piped");
    std::io::BufReader::new(stdout).read_line(&mut line).expect("it prints one line");
    let killed = Killed(child);
    let ready: serde_json::Value = serde_json::from_str(&line).expect("the line is JSON");
    let address = format!("http://{}", ready["listening"].as_str().expect("it says where it listens"));
    (killed, address)
}

/// Ids of all tasks of a run in a folder, those that were rejected included, as often as they are there.
pub fn task_ids(run: &Path) -> Vec<String> {
    let mut ids = Vec::new();
    for table in ["tasks", "rejections"] {
        let files = std::fs::read_dir(run.join("tables").join(table)).expect("the table is there");
        let mut files: Vec<PathBuf> = files.map(|file| file.expect("it can be listed").path()).collect();
        files.sort();
        for file in files {
            let bytes = bytes::Bytes::from(std::fs::read(&file).expect("it can be read"));
            match table {
                "tasks" => ids.extend(decode::<Task>(&bytes).expect("a part").0.into_iter().map(|t| t.task_id)),
                _ => ids.extend(decode::<Rejection>(&bytes).expect("a part").0.into_iter().map(|r| r.task_id)),
            }
        }
    }
    ids
}

/// A configuration of ten example tasks and very short answers; a round of training has `4 * samples` trajectories.
pub fn small_config(dir: &Path, model: Option<&Path>, samples: u32) -> PathBuf {
    let model = model.map(|m| format!("[policy]\nmodel = {:?}\n", m.display().to_string())).unwrap_or_default();
    let text = format!(
        r#"{model}
[[synthesize.sources]]
kind = "jsonl"
path = "examples/tasks/list_mapping.jsonl"
[[synthesize.sources]]
kind = "jsonl"
path = "examples/tasks/list_sums.jsonl"
[[synthesize.sources]]
kind = "jsonl"
path = "examples/tasks/reversal.jsonl"
limit = 2
[verify]
heldout = 0.4
repeats = 2
[rollout]
samples = {samples}
tasks = 4
rotate = false
shard_tasks = 2
[rollout.act]
max_attempts = 2
plan_tokens = 8
code_tokens = 32
[[rollout.sets]]
name = "heldout"
tasks = 2
samples = 2
[score.reward]
preset = "shaped"
[serve]
slots = 16
context = 512
[train]
actor_lr = 1e-5
critic_updates = 1
minibatch_trajectories = 16
critic_pretrain_steps = 2
checkpoint_every = 1
[operations]
rounds = 1
chunk_items = 1
lease_seconds = 3
"#
    );
    let path = dir.join("small.toml");
    std::fs::write(&path, text).expect("the folder is writable");
    path
}
