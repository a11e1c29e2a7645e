//! HumanEval and MBPP as tests read them, from `ROLLMILL_DATA` or `shared/data` beside the project.
#![allow(dead_code, clippy::unwrap_used)] // each test binary uses a part; helpers are not seen as tests

use rollmill_grader::asserts::AssertSource;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub fn python() -> PathBuf {
    PathBuf::from("python3")
}

/// The folder with `humaneval` and `mbpp`, or why the test is skipped.
pub fn data(test: &str) -> Option<PathBuf> {
    let beside = PathBuf::from("../../../shared/data");
    let folder = std::env::var_os("ROLLMILL_DATA").map_or(beside, PathBuf::from);
    if folder.join("mbpp/mbpp.jsonl").is_file() && folder.join("humaneval/HumanEval.jsonl.gz").is_file() {
        return Some(folder);
    }
    eprintln!("skipped: {test}: no humaneval and mbpp in {}; set ROLLMILL_DATA", folder.display());
    None
}

/// One task of a set.
pub struct Row {
    pub name: String,
    pub source: AssertSource,
    /// Statements before the tests, among them what the reference shares with them.
    pub prompt: String,
    pub reference: String,
}

fn rows(text: &str) -> Vec<serde_json::Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn string(row: &serde_json::Value, field: &str) -> String {
    row[field].as_str().unwrap_or_default().to_owned()
}

pub fn humaneval(folder: &Path) -> Vec<Row> {
    let script = "import gzip,sys; sys.stdout.buffer.write(gzip.decompress(sys.stdin.buffer.read()))";
    let mut child =
        Command::new(python()).args(["-I", "-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let packed = std::fs::read(folder.join("humaneval/HumanEval.jsonl.gz")).unwrap();
    child.stdin.take().unwrap().write_all(&packed).unwrap();
    let text = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    let row = |r: &serde_json::Value| Row {
        name: string(r, "task_id"),
        source: AssertSource {
            setup: String::new(),
            tests: vec![string(r, "test")],
            entry_point: Some(string(r, "entry_point")),
        },
        prompt: string(r, "prompt"),
        reference: string(r, "prompt") + &string(r, "canonical_solution"),
    };
    rows(&text).iter().map(row).collect()
}

pub fn mbpp(folder: &Path) -> Vec<Row> {
    let text = std::fs::read_to_string(folder.join("mbpp/mbpp.jsonl")).unwrap();
    let row = |r: &serde_json::Value| Row {
        name: format!("MBPP/{}", r["task_id"]),
        source: AssertSource {
            setup: string(r, "test_setup_code"),
            tests: r["test_list"].as_array().unwrap().iter().map(|t| t.as_str().unwrap().to_owned()).collect(),
            entry_point: None,
        },
        prompt: string(r, "test_setup_code"),
        reference: string(r, "code"),
    };
    rows(&text).iter().map(row).collect()
}
