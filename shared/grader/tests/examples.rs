//! The example tasks: the reference passes everything, an empty solution nothing.

#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

mod sandboxed;

use rollmill_grader::t1::{
    Language, Programs, ServerOptions, T1Options, grade_programs, grade_servers, parse_programs, parse_sessions,
};
use rollmill_grader::{Suite, SuiteResult, T0Options};
use rollmill_sandbox::Sandbox;
use sandboxed::{settled, tools};
use serde_json::Value as Json;
use std::collections::BTreeSet;

fn tasks(file: &str) -> Vec<Json> {
    let grader = std::path::PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap());
    let text = std::fs::read_to_string(grader.join("../../examples/programs").join(file)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn language(task: &Json) -> Language {
    serde_json::from_value(task["language"].clone()).unwrap()
}

const SUITES: [&str; 3] = ["visible_tests", "test_cases", "tests_b"];

/// Every suite of a task, graded.
fn graded(task: &Json, grade: impl Fn(&str) -> SuiteResult) -> Vec<SuiteResult> {
    SUITES.iter().map(|suite| grade(&task[suite].to_string())).collect()
}

fn programs(sandbox: &dyn Sandbox, task: &Json, source: &str) -> Vec<SuiteResult> {
    let solution = language(task).solution(source);
    graded(task, |json| {
        let cases = parse_programs(json).unwrap();
        let suite = Programs { language: language(task), cases: &cases, checker: task["checker"].as_str() };
        settled(|| grade_programs(sandbox, &solution, &suite, &T1Options::default())).unwrap()
    })
}

fn servers(sandbox: &dyn Sandbox, task: &Json, source: &str) -> Vec<SuiteResult> {
    let solution = language(task).solution(source);
    graded(task, |json| {
        let sessions = parse_sessions(json).unwrap();
        let opts = ServerOptions::default();
        settled(|| grade_servers(sandbox, &solution, language(task), &sessions, &opts)).unwrap()
    })
}

fn all_pass(task: &Json, results: &[SuiteResult]) {
    for result in results {
        assert!(result.total > 0 && result.passed == result.total, "{}: {result:?}", task["task_id"]);
    }
}

#[test]
fn programs_and_servers() {
    let Some(sandbox) = tools() else { return };
    let (one, two) = (tasks("programs.jsonl"), tasks("servers.jsonl"));
    assert_eq!((one.len(), two.len()), (12, 2));
    for task in &one {
        all_pass(task, &programs(sandbox, task, task["reference"].as_str().unwrap()));
        let empty = programs(sandbox, task, "");
        assert!(empty.iter().all(|r| r.passed == 0), "{}: {empty:?}", task["task_id"]);
    }
    for task in &two {
        all_pass(task, &servers(sandbox, task, task["reference"].as_str().unwrap()));
        let empty = servers(sandbox, task, "");
        assert!(empty.iter().all(|r| r.passed == 0), "{}: {empty:?}", task["task_id"]);
    }
}

#[test]
fn no_input_is_in_two_suites() {
    for task in tasks("programs.jsonl").iter().chain(&tasks("servers.jsonl")) {
        let mut seen = BTreeSet::new();
        for case in SUITES.iter().flat_map(|suite| task[suite].as_array().unwrap()) {
            let mut input = case.clone();
            input.as_object_mut().map(|case| case.remove("stdout"));
            assert!(seen.insert(input.to_string()), "{}: {input}", task["task_id"]);
        }
    }
}

/// Tests A passed, tests B passed, and of how many.
fn repository(sandbox: &dyn Sandbox, task: &Json, changed: &Json) -> (u32, u32, u32, u32) {
    let entry = task["entry_point"].as_str().unwrap();
    let parse = |field: &str| {
        let mut json = task[field].clone();
        let kind = json.as_object_mut().unwrap().entry("kind").or_insert("repository".into()).clone();
        (kind, Suite::parse(entry, &json.to_string()).unwrap())
    };
    let opts = T0Options::default();
    let (kind, a) = parse("test_cases");
    assert_eq!(kind, "repository");
    let mut solution = a.solution(&changed.to_string());
    let of_a = settled(|| a.grade(sandbox, &solution, &opts)).unwrap();
    let (kind, b) = parse("tests_b");
    assert_eq!(kind, "tests");
    solution.main = task["main"].as_str().unwrap().to_owned();
    let of_b = settled(|| b.grade(sandbox, &solution, &opts)).unwrap();
    (of_a.passed, of_a.total, of_b.passed, of_b.total)
}

#[test]
fn repositories() {
    let Some(sandbox) = tools() else { return };
    let tasks = tasks("repositories.jsonl");
    assert_eq!(tasks.len(), 2);
    for task in &tasks {
        let name = &task["task_id"];
        let (a, a_all, b, b_all) = repository(sandbox, task, &task["reference"]);
        assert!(a_all > 1 && b_all > 1 && (a, b) == (a_all, b_all), "{name}: {a} {b}");
        let (a, _, b, b_all) = repository(sandbox, task, &serde_json::json!({}));
        assert!(a == 0 && b < b_all, "{name}: {a} {b}");
        let mut emptied = task["reference"].clone();
        emptied.as_object_mut().unwrap().values_mut().for_each(|text| *text = "".into());
        let (a, _, b, _) = repository(sandbox, task, &emptied);
        assert_eq!((a, b), (0, 0), "{name}");
    }
}
