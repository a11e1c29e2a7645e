//! Solutions are asked in the orders that their task's reference survives, and in no others.
#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

mod busy;

use busy::settled;
use rollmill_grader::{RewardConfig, Solution, T0Options};
use rollmill_sandbox::{Namespaces, NamespacesOptions};
use rollmill_score::{Graded, Suites, grade_solution};
use serde_json::json;
use std::sync::OnceLock;

const PURE: &str = "def f(x):\n    return x\n";
/// The reference of a task about a counter; for a task about a pure function it is a cheat that knows the order.
const COUNTER: &str = "n = -1\ndef f(x):\n    global n\n    n = (n + 1) % 10\n    return n\n";
/// For a task about a pure function, right as long as nothing is asked twice.
const ONCE: &str = "seen = set()\ndef f(x):\n    if x in seen: return -1\n    seen.add(x)\n    return x\n";

/// Ten calls in order; `verified` is what verification left of the task.
fn reward(source: &str, verified: &str) -> f64 {
    static OPEN: OnceLock<Namespaces> = OnceLock::new();
    let sandbox = OPEN.get_or_init(|| Namespaces::open(NamespacesOptions::default()).unwrap());
    let cases: serde_json::Value =
        (0..10).map(|x| json!({ "args": format!("({x},)"), "expected": x.to_string() })).collect();
    let suites = Suites::of("f", &cases.to_string(), Some(&cases.to_string())).unwrap().verified(verified);
    let graded: Graded = settled(|| {
        let options = T0Options { seed: 7, ..T0Options::default() };
        grade_solution(sandbox, &Solution::from_source(source), &suites, &RewardConfig::default(), &options)
    });
    graded.reward
}

fn bearing(shuffled: bool, repeated: bool) -> String {
    let one = json!({ "shuffled": shuffled, "repeated": repeated });
    json!({ "tier": "T0", "bearing": { "a": one, "b": one } }).to_string()
}

#[test]
fn a_task_with_state_is_not_shuffled() {
    assert_eq!(reward(COUNTER, &bearing(false, true)), 1.0);
    // The control: shuffled, the task's own reference would earn nothing.
    assert_eq!(reward(COUNTER, &bearing(true, true)), 0.0);
}

#[test]
fn a_task_without_state_is_shuffled_and_repeated() {
    assert_eq!(reward(PURE, &bearing(true, true)), 1.0);
    for cheat in [COUNTER, ONCE] {
        assert_eq!(reward(cheat, &bearing(true, true)), 0.0, "{cheat}");
    }
    // The controls: each cheat is found by one of the two.
    assert_eq!(reward(COUNTER, &bearing(false, false)), 1.0);
    assert_eq!(reward(ONCE, &bearing(true, false)), 1.0);
}

/// Rows of before are asked as they were: shuffled, once.
#[test]
fn rows_without_a_record_are_asked_as_ever() {
    for old in ["", r#"{"tier": "T0"}"#] {
        assert_eq!([PURE, ONCE, COUNTER].map(|source| reward(source, old)), [1.0, 1.0, 0.0], "{old:?}");
    }
}
