//! The tasks that cheats are tried on: one of each kind, with a wrong solution that passes some tests and not others.
//!
//! In: `corpus/tasks.jsonl` (a task of `examples/tasks`, its kind, a wrong solution). Out: [`Task`]s with the cases of that
//! task set. The task of kind `weak_b` is there on purpose: its wrong solution passes all of tests B, so that it earns something.

use crate::CorpusError;
use rollmill_grader::{Case, parse_cases};
use serde::Deserialize;
use serde_json::Value as Json;
use std::path::Path;

/// A function to write, its tests, and two solutions.
#[derive(Clone, Debug)]
pub struct Task {
    /// Its place in the task set.
    pub id: String,
    /// What sort of problem it is; the last part of every id.
    pub kind: String,
    /// Name of the function.
    pub entry_point: String,
    /// Cases that a policy sees.
    pub visible: Vec<Case>,
    /// Hidden tests A.
    pub tests_a: Vec<Case>,
    /// Independent tests B.
    pub tests_b: Vec<Case>,
    /// A right solution.
    pub reference: String,
    /// A wrong one.
    pub wrong: String,
}

impl Task {
    /// Whether the wrong solution passes tests B, so that B cannot tell it from a right one.
    pub fn weak_b(&self) -> bool {
        self.kind == "weak_b"
    }
}

#[derive(Deserialize)]
struct Line {
    task: String,
    kind: String,
    wrong: String,
}

/// Reads all tasks.
pub fn load(corpus: &Path, examples: &Path) -> Result<Vec<Task>, CorpusError> {
    let path = corpus.join("tasks.jsonl");
    let text = std::fs::read_to_string(&path).map_err(|e| CorpusError::read(&path, e))?;
    let mut tasks = Vec::new();
    for line in text.lines() {
        let line: Line = serde_json::from_str(line).map_err(|_| CorpusError::template(&path, "a line is no task"))?;
        let family = line.task.split('/').next().unwrap_or_default();
        let source = examples.join(format!("{family}.jsonl"));
        let lines = std::fs::read_to_string(&source).map_err(|e| CorpusError::read(&source, e))?;
        let found =
            lines.lines().filter_map(|l| serde_json::from_str::<Json>(l).ok()).find(|l| l["task_id"] == *line.task);
        let found = found.ok_or_else(|| CorpusError::template(&source, "a task of the corpus is not there"))?;
        tasks.push(task(line, &found).ok_or_else(|| CorpusError::template(&source, "a task lacks a field"))?);
    }
    Ok(tasks)
}

fn task(line: Line, found: &Json) -> Option<Task> {
    let cases = |field: &str| parse_cases(&found.get(field)?.to_string()).ok();
    Some(Task {
        id: line.task,
        kind: line.kind,
        entry_point: found["entry_point"].as_str()?.to_owned(),
        visible: cases("visible_tests")?,
        tests_a: cases("test_cases")?,
        tests_b: cases("tests_b")?,
        reference: found["reference"].as_str()?.to_owned(),
        wrong: line.wrong,
    })
}
