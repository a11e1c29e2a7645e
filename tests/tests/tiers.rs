//! Tasks of every tier through the real programs: read, verified, and graded as a person does it. Two programs each in C++, Rust,
//! Go, JavaScript, shell and Python, two servers, two repositories.
#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

use rollmill_e2e::{expect, project, rollmill, skip};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

const FILES: [&str; 3] = ["programs", "servers", "repositories"];

/// Whether the root file system with all compilers is there: `make test` prepares it.
fn compilers() -> Option<()> {
    let listed = rollmill(&["sandbox", "list"]);
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let there = listed.lines().any(|line| line.starts_with("all "));
    if there { Some(()) } else { skip("packages", "`rollmill sandbox prepare all --profile all` was not run") }
}

fn tasks() -> Vec<(&'static str, Value)> {
    let mut all = Vec::new();
    for file in FILES {
        let text = std::fs::read_to_string(project().join(format!("examples/programs/{file}.jsonl"))).unwrap();
        all.extend(text.lines().map(|line| (file, serde_json::from_str(line).unwrap())));
    }
    all
}

#[test]
fn examples_of_every_tier_are_admitted() {
    let Some(()) = compilers() else { return };
    let dir = tempfile::tempdir().unwrap();
    let sources =
        FILES.map(|f| format!("[[synthesize.sources]]\nkind = \"jsonl\"\npath = \"examples/programs/{f}.jsonl\"\n"));
    let config = dir.path().join("tiers.toml");
    let text = format!("{}\n[verify]\nrepeats = 1\n", sources.concat());
    std::fs::write(&config, text).unwrap();
    let run = dir.path().join("run").display().to_string();
    expect(0, &["init", "--config", config.to_str().unwrap(), "--run", &run]);
    expect(0, &["synthesize", "--run", &run]);
    let (_, stderr) = expect(2, &["verify", "--run", &run, "--sandbox", "namespaces,root=no-such-root"]);
    assert!(stderr.contains("rollmill sandbox prepare"), "{stderr}");
    expect(0, &["verify", "--run", &run, "--sandbox", "namespaces,root=all"]);
    let rows: Vec<rollmill_schema::Task> = read(dir.path());
    let mut tiers: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for task in &rows {
        *tiers.entry((task.tier.as_str(), task.kind.as_str())).or_default() += 1;
    }
    let rejected: Vec<rollmill_schema::Rejection> = read(dir.path());
    let why: Vec<_> = rejected.iter().map(|r| (&r.source_id, &r.reason, &r.detail)).collect();
    let want = [(("T1", "program"), 12), (("T1", "server"), 2), (("T2", "repository"), 2)];
    assert_eq!(tiers, BTreeMap::from(want), "rejected: {why:?}");
}

/// All rows of a table of a run in a folder.
fn read<R: rollmill_schema::Row>(dir: &Path) -> Vec<R> {
    let folder = dir.join("run/tables").join(R::TABLE);
    let mut files: Vec<_> = walk(&folder);
    files.sort();
    let rows = files.iter().map(|f| rollmill_schema::decode::<R>(&std::fs::read(f).unwrap().into()).unwrap().0);
    rows.flatten().collect()
}

fn walk(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|e| e.path());
    paths
        .flat_map(|p| if p.is_dir() { walk(&p) } else { vec![p] })
        .filter(|p| p.extension().is_some_and(|e| e == "parquet"))
        .collect()
}

fn grade(file: &str, task: &str, solution: &Path, more: &[&str]) -> Value {
    let tasks = project().join(format!("examples/programs/{file}.jsonl"));
    let mut args = vec!["grade", "--tasks", tasks.to_str().unwrap(), "--task", task, "--format", "json"];
    args.extend(["--root", "all", "--solution", solution.to_str().unwrap()]);
    args.extend(more);
    serde_json::from_str(&expect(0, &args).0).unwrap()
}

#[test]
fn references_and_wrong_solutions_are_graded_at_every_tier() {
    let Some(()) = compilers() else { return };
    for (file, task) in tasks() {
        let dir = tempfile::tempdir().unwrap();
        let id = task["task_id"].as_str().unwrap();
        let (right, wrong) = (dir.path().join("right"), dir.path().join("wrong"));
        for folder in [&right, &wrong] {
            write_solution(folder, &task);
        }
        spoil(&wrong, &task);
        let graded = grade(file, id, &right, &[]);
        assert_eq!((graded["reward"].as_f64(), graded["solved"].as_bool()), (Some(1.0), Some(true)), "{id}: {graded}");
        let tier = if file == "repositories" { "T2" } else { "T1" };
        assert_eq!((graded["tier"].as_str(), graded["proven"].as_bool()), (Some(tier), Some(true)), "{id}");
        let graded = grade(file, id, &wrong, &[]);
        assert_eq!(graded["reward"].as_f64(), Some(0.0), "{id}: {graded}");
    }
}

/// The reference as a person would lay it out.
fn write_solution(folder: &Path, task: &Value) {
    let write = |path: &str, text: &str| {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    match &task["reference"] {
        Value::Object(changed) => {
            for (path, text) in task["test_cases"]["repository"].as_object().unwrap().iter().chain(changed) {
                write(path, text.as_str().unwrap());
            }
        }
        source => {
            let endings =
                [("cpp", "cpp"), ("rust", "rs"), ("go", "go"), ("javascript", "js"), ("shell", "sh"), ("python", "py")];
            let ending = endings.iter().find(|(language, _)| task["language"] == *language).unwrap().1;
            write(&format!("main.{ending}"), source.as_str().unwrap());
        }
    }
}

/// Makes a right solution wrong: a repository as it was, a program without its file's content.
fn spoil(folder: &Path, task: &Value) {
    match &task["reference"] {
        Value::Object(changed) => {
            let before = task["test_cases"]["repository"].as_object().unwrap();
            for path in changed.keys() {
                std::fs::write(folder.join(path), before.get(path).and_then(Value::as_str).unwrap_or("")).unwrap();
            }
        }
        _ => {
            let main = std::fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
            std::fs::write(main, "").unwrap();
        }
    }
}

#[test]
fn what_happened_inside_can_be_looked_at() {
    let Some(()) = compilers() else { return };
    let dir = tempfile::tempdir().unwrap();
    let (file, task) = &tasks()[0];
    write_solution(&dir.path().join("s"), task);
    let keep = dir.path().join("keep");
    grade(file, task["task_id"].as_str().unwrap(), &dir.path().join("s"), &["--keep", keep.to_str().unwrap()]);
    let first = keep.join("000");
    let command: Value = serde_json::from_slice(&std::fs::read(first.join("command.json")).unwrap()).unwrap();
    assert!(command["argv"][0] == "g++" && first.join("files/main.cpp").is_file(), "{command}");
    assert!(first.join("facts.json").is_file() && std::fs::read_dir(first.join("collected")).unwrap().count() == 1);
}

#[test]
fn a_root_without_the_tools_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let (file, task) = &tasks()[0];
    write_solution(dir.path(), task);
    let tasks = project().join(format!("examples/programs/{file}.jsonl")).display().to_string();
    let (id, solution) = (task["task_id"].as_str().unwrap(), dir.path().display().to_string());
    let (_, stderr) = expect(2, &["grade", "--tasks", &tasks, "--task", id, "--solution", &solution]);
    assert!(stderr.contains("no g++ in the sandbox's root file system"), "{stderr}");
    let (_, stderr) =
        expect(2, &["grade", "--tasks", &tasks, "--task", id, "--solution", &solution, "--root", "no-such-root"]);
    assert!(stderr.contains("rollmill sandbox prepare"), "{stderr}");
}
