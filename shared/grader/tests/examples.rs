//! The example tasks: the reference passes everything, an empty solution nothing.

#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

mod sandboxed;

use rollmill_grader::diff::{DiffRules, Files};
use rollmill_grader::t1::{
    Language, Programs, ServerOptions, T1Options, grade_programs, grade_servers, parse_programs, parse_sessions,
};
use rollmill_grader::t2::{Framework, PythonSuite, T2Options, grade_repository};
use rollmill_grader::{Solution, SuiteResult, T0Options, grade, parse_cases};
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
        all_pass(task, &programs(&sandbox, task, task["reference"].as_str().unwrap()));
        let empty = programs(&sandbox, task, "");
        assert!(empty.iter().all(|r| r.passed == 0), "{}: {empty:?}", task["task_id"]);
    }
    for task in &two {
        all_pass(task, &servers(&sandbox, task, task["reference"].as_str().unwrap()));
        let empty = servers(&sandbox, task, "");
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

fn files(json: &Json) -> Files {
    json.as_object().unwrap().iter().map(|(path, text)| (path.clone(), text.as_str().unwrap().into())).collect()
}

fn strings(json: &Json) -> Vec<String> {
    serde_json::from_value(json.clone()).unwrap()
}

/// Tests A passed, tests B passed, and of how many.
fn repository(sandbox: &dyn Sandbox, task: &Json, changed: &Files) -> (usize, usize, u32, u32) {
    let rules = DiffRules { allow: strings(&task["allow"]), ..DiffRules::default() };
    let changed: Vec<_> = changed.clone().into_iter().collect();
    let applied = rules.overlay(&files(&task["files"]), &changed);
    assert_eq!(applied.changed.len(), changed.len(), "{applied:?}");
    let framework: Framework = serde_json::from_value(task["framework"].clone()).unwrap();
    let ids = [strings(&task["visible_ids"]), strings(&task["ids"])].concat();
    let suite = PythonSuite {
        framework,
        tests: &files(&task["tests"]),
        ids: &ids,
        import_paths: &strings(&task["import_paths"]),
        site: &Files::new(),
        without_twin: &[],
        has_tests_b: true,
    };
    let a = settled(|| grade_repository(sandbox, &applied.files, &suite, &T2Options::default())).unwrap();
    assert!(a.proven && a.without_twin.is_empty(), "{a:?}");
    let b = &task["tests_b"];
    let main = b["main"].as_str().unwrap().to_owned();
    let solution = Solution { files: applied.files.into_iter().collect(), main };
    let cases = parse_cases(&b["cases"].to_string()).unwrap();
    let entry = b["entry_point"].as_str().unwrap();
    let b = settled(|| grade(sandbox, &solution, entry, &cases, &T0Options::default())).unwrap();
    (a.passed(), ids.len(), b.passed, b.total)
}

#[test]
fn repositories() {
    let Some(sandbox) = tools() else { return };
    let tasks = tasks("repositories.jsonl");
    assert_eq!(tasks.len(), 2);
    for task in &tasks {
        let (a, a_all, b, b_all) = repository(&sandbox, task, &files(&task["reference"]));
        assert_eq!((a, b), (a_all, b_all), "{}", task["task_id"]);
        let (a, a_all, b, b_all) = repository(&sandbox, task, &Files::new());
        let visible = task["visible_ids"].as_array().unwrap().len();
        assert!(a <= visible && a_all > visible && b < b_all, "{}: {a} {b}", task["task_id"]);
        let emptied = files(&task["reference"]).into_keys().map(|path| (path, vec![])).collect();
        let (a, _, b, _) = repository(&sandbox, task, &emptied);
        assert_eq!((a, b), (0, 0), "{}", task["task_id"]);
    }
}
