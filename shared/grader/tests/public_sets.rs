//! All of HumanEval and MBPP through the proxy: every reference passes its tests as they were written, and a solution that
//! returns something else passes none. With the other tests runs a sample, each time another one, whose seed is printed
//! (`ROLLMILL_SEED=n` takes it again). The whole:
//!
//! `cargo nextest run -p rollmill-grader --test public_sets --run-ignored only --no-capture`

#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

mod public;
mod sandboxed;

use public::{Row, data, humaneval, mbpp};
use rollmill_grader::{Solution, SuiteResult, T0Options, TestSource, grade_tests, t0};
use rollmill_sandbox::{Namespaces, NamespacesOptions, Warm};
use sandboxed::settled;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Their references use a class that nothing defines.
const BROKEN: &[&str] = &["MBPP/367", "MBPP/927"];
/// How many tasks run with the other tests.
const SAMPLE: usize = 60;

/// Loaded interpreters, as jobs use them.
fn sandbox() -> &'static Warm {
    static OPENED: OnceLock<Warm> = OnceLock::new();
    OPENED.get_or_init(|| {
        let host = Namespaces::open(NamespacesOptions::default())
            .unwrap_or_else(|e| panic!("{e}; first run: cargo build -p rollmill-sandbox --bins"));
        Warm::new(Arc::new(host), vec![t0::interpreter()])
    })
}

/// Python words at the place of a definition: `def name` or `class Name` at the start of a line.
fn defined<'a>(source: &'a str, keyword: &str) -> Vec<&'a str> {
    let lines = source.lines().filter_map(|line| line.strip_prefix(keyword));
    lines.map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()).collect()
}

fn suite(row: &Row) -> (String, TestSource) {
    let tests = TestSource {
        setup: row.prompt.clone(),
        tests: row.source.tests.clone(),
        names: defined(&row.reference, "class ").into_iter().map(str::to_owned).collect(),
        mutates: false,
    };
    let called = |name: &&str| tests.tests.iter().any(|t| t.contains(&format!("{name}(")));
    let entry = row.source.entry_point.clone();
    let entry = entry.or_else(|| defined(&row.reference, "def ").into_iter().rev().find(called).map(str::to_owned));
    (entry.unwrap_or_else(|| panic!("{}: no function is called", row.name)), tests)
}

fn grade(row: &Row, source: &str) -> SuiteResult {
    let (entry, tests) = suite(row);
    // Nothing here is about time, and some references need seconds of CPU.
    let opts = T0Options { per_call: Duration::from_secs(60), total: Duration::from_secs(300), ..T0Options::default() };
    let solution = Solution::from_source(&source.replace("ENTRY", &entry));
    settled(|| grade_tests(sandbox(), &solution, &entry, &tests, &opts)).unwrap_or_else(|e| panic!("{}: {e}", row.name))
}

fn rows(test: &str) -> Option<Vec<Row>> {
    let folder = data(test)?;
    let rows: Vec<Row> = humaneval(&folder).into_iter().chain(mbpp(&folder)).collect();
    assert_eq!(rows.len(), 164 + 974);
    Some(rows.into_iter().filter(|row| !BROKEN.contains(&&*row.name)).collect())
}

/// One of the samples that together are all rows: rows in an order drawn once by a linear congruence (Knuth, MMIX), of
/// which the seed takes a stretch.
fn sample(rows: Vec<Row>, seed: u64) -> Vec<Row> {
    let mut state: u64 = 4;
    let mut keyed: Vec<(u64, Row)> = Vec::new();
    for row in rows {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        keyed.push((state >> 20, row));
    }
    keyed.sort_by_key(|(key, _)| *key);
    let stretches = keyed.len().div_ceil(SAMPLE) as u64;
    let first = (seed % stretches) as usize * SAMPLE;
    keyed.into_iter().skip(first).take(SAMPLE).map(|(_, row)| row).collect()
}

/// The seed that is asked for, or any.
fn seed() -> u64 {
    let seed = match std::env::var("ROLLMILL_SEED") {
        Ok(seed) => seed.parse().expect("ROLLMILL_SEED is a number"),
        Err(_) => RandomState::new().build_hasher().finish() % 1000,
    };
    eprintln!("ROLLMILL_SEED={seed}");
    seed
}

fn all_pass(rows: &[Row]) {
    let began = Instant::now();
    let failed: Vec<String> = rows
        .iter()
        .enumerate()
        .filter_map(|(done, row)| {
            if done % 100 == 0 {
                eprintln!("{done} of {} after {:.0?}", rows.len(), began.elapsed());
            }
            let result = grade(row, &row.reference);
            let passed = result.passed == result.total && result.total > 0;
            (!passed).then(|| format!("{}: {:?} {:?}", row.name, result.import_error, result.verdicts))
        })
        .collect();
    eprintln!("{} graded in {:.1?}", rows.len(), began.elapsed());
    assert!(failed.is_empty(), "{} of {}: {failed:#?}", failed.len(), rows.len());
}

#[test]
fn references_of_a_sample_pass_as_written() {
    let Some(rows) = rows("references_of_a_sample_pass_as_written") else { return };
    all_pass(&sample(rows, seed()));
}

/// Every task is in the sample of some seed, and in no two.
#[test]
fn samples_are_all_rows() {
    let Some(all) = rows("samples_are_all_rows") else { return };
    let seeds = all.len().div_ceil(SAMPLE) as u64;
    let names = |rows: Vec<Row>| rows.into_iter().map(|row| row.name).collect::<Vec<_>>();
    let mut drawn: Vec<String> =
        (0..seeds).flat_map(|seed| names(sample(rows("samples_are_all_rows").unwrap_or_default(), seed))).collect();
    let mut wanted = names(all);
    drawn.sort();
    wanted.sort();
    assert_eq!(drawn, wanted);
}

#[test]
#[ignore = "the whole of both sets: a minute and a half on a busy machine of two cores"]
fn references_pass_as_written() {
    let Some(rows) = rows("references_pass_as_written") else { return };
    all_pass(&rows);
}

/// The five of HumanEval and four of MBPP that are no literal calls: without the proxy they could not be graded.
#[test]
fn tasks_that_are_no_literal_calls_pass_as_written() {
    let Some(rows) = rows("tasks_that_are_no_literal_calls_pass_as_written") else { return };
    let wanted = ["32", "33", "38", "50", "53"].map(|n| format!("HumanEval/{n}"));
    let wanted: Vec<String> =
        wanted.into_iter().chain(["533", "596", "601", "912"].map(|n| format!("MBPP/{n}"))).collect();
    let rows: Vec<Row> = rows.into_iter().filter(|row| wanted.contains(&row.name)).collect();
    assert_eq!(rows.len(), 9);
    all_pass(&rows);
}

/// The control: what returns an object that is equal to everything passes nothing.
#[test]
fn something_equal_to_everything_passes_nothing() {
    let Some(rows) = rows("something_equal_to_everything_passes_nothing") else { return };
    let source = "class Any:\n    def __eq__(self, other): return True\n    __hash__ = None\n    def __bool__(self): return True\ndef ENTRY(*args, **kwargs): return Any()\nclass Pair:\n    def __init__(self, a, b): pass\n";
    for row in sample(rows, seed()) {
        let result = grade(&row, source);
        assert_eq!(result.passed, 0, "{}: {:?}", row.name, result.verdicts);
    }
}
