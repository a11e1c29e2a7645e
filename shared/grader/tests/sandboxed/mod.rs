//! What the tests against a real sandbox share. They need the helper beside them: `cargo build -p rollmill-sandbox --bins`.
#![allow(dead_code, clippy::unwrap_used)] // each test binary uses a part; helpers are not seen as tests

pub mod attacks;
pub mod one_test;
pub mod repository;

use rollmill_grader::{
    Case, CaseOutcome, GradeError, Solution, SuiteResult, T0Options, TestSource, Value, grade, grade_tests, literal,
};
use rollmill_sandbox::{Namespaces, NamespacesOptions, Root, RootSource, prepare};
use std::sync::OnceLock;
use std::time::Duration;

/// The real backend, opened once a process: opening proves it with a run.
pub fn sandbox() -> &'static Namespaces {
    static OPENED: OnceLock<Namespaces> = OnceLock::new();
    OPENED.get_or_init(|| {
        Namespaces::open(NamespacesOptions::default())
            .unwrap_or_else(|e| panic!("{e}; first run: cargo build -p rollmill-sandbox --bins"))
    })
}

pub fn value(text: &str) -> Value {
    literal::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// A case from a literal tuple of arguments and a literal.
pub fn case(args: &str, expected: &str) -> Case {
    let Value::Tuple(args) = value(args) else { panic!("{args} is no tuple") };
    Case::exact(args, value(expected))
}

/// Short limits, so that hanging solutions do not hold the tests up; long enough for a busy machine.
pub fn options() -> T0Options {
    T0Options { per_call: Duration::from_secs(2), total: Duration::from_secs(20), ..T0Options::default() }
}

pub fn grade_source(source: &str, cases: &[Case]) -> SuiteResult {
    graded(&Solution::from_source(source), cases, &options())
}

pub fn outcomes(result: &SuiteResult) -> Vec<CaseOutcome> {
    result.verdicts.iter().map(|v| v.outcome).collect()
}

/// A grade, asked for again where the machine was too busy to tell: what every caller of `grade` does with the third
/// outcome. A verdict is never asked for twice.
pub fn graded(solution: &Solution, cases: &[Case], opts: &T0Options) -> SuiteResult {
    let sandbox = sandbox();
    settled(|| grade(sandbox, solution, "f", cases, opts)).unwrap()
}

/// A grade by written tests, as [`graded`].
pub fn proxied(solution: &Solution, entry: &str, tests: &TestSource, opts: &T0Options) -> SuiteResult {
    let sandbox = sandbox();
    settled(|| grade_tests(sandbox, solution, entry, tests, opts)).unwrap_or_else(|e| panic!("{tests:?}: {e}"))
}

/// Asks again while the machine is too busy to tell, as [`graded`] does.
pub fn settled<T>(mut ask: impl FnMut() -> Result<T, GradeError>) -> Result<T, GradeError> {
    for _ in 0..20 {
        match ask() {
            Err(e) if e.is_transient() => eprintln!("again: {e}"),
            result => return result,
        }
    }
    panic!("this machine is too busy for tests about time limits");
}

/// A sandbox on the root with all tool chains and pytest, or nothing: a skip with its name, and a failure where
/// ROLLMILL_REQUIRE has `packages`.
pub fn tools() -> Option<&'static Namespaces> {
    static OPEN: OnceLock<Option<Namespaces>> = OnceLock::new();
    OPEN.get_or_init(open_tools).as_ref()
}

fn open_tools() -> Option<Namespaces> {
    let options = NamespacesOptions { root: Root::Named("all".into()), ..NamespacesOptions::default() };
    let source = RootSource::profile("all").expect("a profile");
    if let Err(e) = prepare("all", &source, &options.cache_dir) {
        let required = std::env::var("ROLLMILL_REQUIRE").is_ok_and(|r| r.split(',').any(|p| p == "packages"));
        assert!(!required, "{e}");
        eprintln!("skipped: packages: {e}");
        return None;
    }
    Some(Namespaces::open(options).unwrap())
}

/// Files by path.
pub fn files(items: &[(&str, &str)]) -> std::collections::BTreeMap<String, Vec<u8>> {
    items.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect()
}
