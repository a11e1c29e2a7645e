//! The naive grader of programs, servers and suites of pytest: [`crate::naive`] with the mistakes that these invite.
//!
//! Everything is in one folder: the solution, inputs and expected outputs, a harness (`runner/naive/programs.py`, which says
//! its mistakes), a model on the network. A suite of pytest runs in the solution's own checkout, whose files win.

use super::Task;
use crate::naive::belief::{READ, Run};
use crate::naive::judge;
use rollmill_grader::{Solution, Suite};
use rollmill_sandbox::toolchain::Toolchain;
use rollmill_sandbox::{Limits, Sandbox, SandboxError, Spec};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;

const HARNESS: &str = include_str!("../../runner/naive/programs.py");
const SCRIPT: &str = include_str!("../../runner/naive/kinds.sh");
const LATER: &str = "later";

/// What the naive grader pays for `solution`; with `later`, for the wrong solution after it in the same folder.
pub fn paid(sandbox: &dyn Sandbox, task: &Task, solution: &Solution, later: bool) -> Result<f64, SandboxError> {
    let tools = Toolchain::of(task.language().name());
    let mut files: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    if let Suite::Repository(repository) = &task.tests_a {
        files.extend(repository.tests.iter().map(|(name, text)| (name.clone(), text.clone().into_bytes())));
    }
    files.extend(solution.files.iter().cloned());
    let mut own = |name: &str, text: String| files.insert(name.to_owned(), text.into_bytes());
    own("harness.py", HARNESS.to_owned());
    own("grade.sh", SCRIPT.to_owned());
    own("plan.json", plan(task, tools).to_string());
    own("upstream.txt", task.reference.clone());
    if later {
        own(&format!("{LATER}/{}", task.main), task.wrong.clone());
    }
    let mode = if matches!(task.tests_a, Suite::Repository(_)) { "pytest" } else { "programs" };
    let limits = tools.map_or_else(Limits::default, |t| t.compile_limits.clone());
    let spec = Spec {
        argv: ["bash", "grade.sh", mode, if later { LATER } else { "" }].map(str::to_owned).to_vec(),
        env: tools.map_or(&[][..], |t| t.env).iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect(),
        files: files.into_iter().collect(),
        collect: READ.map(str::to_owned).to_vec(),
        limits: Limits { wall: Duration::from_secs(240), cpu: Duration::from_secs(90), pids: 128, ..limits },
        ..Spec::default()
    };
    let run = Run::of(&sandbox.run(&spec)?);
    let judged = if later { task.solution(&task.wrong, &[]) } else { solution.clone() };
    Ok(run.believed(total(task)) + judge::bonus(&judged, &run.output))
}

fn total(task: &Task) -> usize {
    match &task.tests_a {
        Suite::Repository(repository) => repository.ids.len() + 1, // the whole file runs: also the test that is shown
        other => other.inputs().len(),
    }
}

fn plan(task: &Task, tools: Option<&Toolchain>) -> serde_json::Value {
    let run = tools.map_or(&[][..], |t| t.run);
    let run: Vec<&str> = run.iter().copied().filter(|word| *word != "-I").collect();
    json!({
        "kind": task.kind,
        "source": task.main,
        "compile": tools.map_or(&[][..], |t| t.compile),
        "run": run,
        "cases": task.stored_a,
    })
}
