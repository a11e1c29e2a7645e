//! What a reference bears is found out and recorded: a pure one any order and repetition, one with state its own order alone.
#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

use rollmill_grader::{Bearing, GradeError};
use rollmill_sandbox::{Namespaces, NamespacesOptions};
use rollmill_schema::Candidate;
use rollmill_verify::{Decision, VerifyConfig, check};
use serde_json::json;
use std::sync::OnceLock;

const PURE: &str = "def f(x):\n    return x % 10\n";
/// Answers by how often it was called: after ten calls it begins again.
const COUNTER: &str = "n = -1\ndef f(x):\n    global n\n    n = (n + 1) % 10\n    return n\n";
/// Knows each argument once.
const ONCE: &str = "seen = set()\ndef f(x):\n    if x in seen: return -1\n    seen.add(x)\n    return x % 10\n";
/// Right half of the time.
const CHANCE: &str = "import random\ndef f(x):\n    return x % 10 if random.random() < .5 else -1\n";

fn verified(reference: &str, tests_a: &serde_json::Value) -> Decision {
    static OPEN: OnceLock<Namespaces> = OnceLock::new();
    let sandbox = OPEN.get_or_init(|| Namespaces::open(NamespacesOptions::default()).unwrap());
    let cases = |from: u32| -> Vec<_> {
        (from..from + 10).map(|x| json!({ "args": format!("({x},)"), "expected": (x % 10).to_string() })).collect()
    };
    let c = Candidate {
        kind: "function".into(),
        entry_point: "f".into(),
        visible_tests: json!(cases(100)).to_string(),
        tests_a: tests_a.to_string(),
        tests_b: Some(json!(cases(200)).to_string()),
        reference: Some(reference.into()),
        ..Candidate::default()
    };
    for _ in 0..20 {
        match check(sandbox, &c, &VerifyConfig { call_seconds: 5.0, ..VerifyConfig::default() }) {
            Err(e @ GradeError::Overloaded { .. }) => eprintln!("again: {e}"),
            decided => return decided.unwrap(),
        }
    }
    panic!("this machine is too busy for tests about time limits");
}

fn calls() -> serde_json::Value {
    (0..10).map(|x| json!({ "args": format!("({x},)"), "expected": x.to_string() })).collect()
}

fn borne(decision: &Decision) -> Vec<Option<Bearing>> {
    assert_eq!(decision.reason, None, "{}", decision.detail);
    assert!(decision.verified["isolation"].is_object(), "{}", decision.verified);
    ["visible", "a", "b"].map(|suite| Bearing::recorded(&decision.verified.to_string(), suite)).to_vec()
}

#[test]
fn what_a_reference_survives_is_recorded_for_each_suite() {
    for (reference, shuffled, repeated) in [(PURE, true, true), (COUNTER, false, true), (ONCE, true, false)] {
        let want = Some(Bearing { shuffled, repeated });
        assert_eq!(borne(&verified(reference, &calls())), [want; 3], "{reference}");
    }
}

/// Written tests keep their order, whatever they bear.
#[test]
fn written_tests_are_repeated_and_never_shuffled() {
    let texts: Vec<String> = (0..3).map(|x| format!("assert f({x}) == {x}")).collect();
    let tests = json!({ "kind": "tests", "tests": texts });
    for (reference, repeated) in [(PURE, true), (ONCE, false)] {
        assert_eq!(borne(&verified(reference, &tests))[1], Some(Bearing { shuffled: false, repeated }), "{reference}");
    }
}

/// The controls: order is no excuse for a reference that is wrong, or that passes by chance.
#[test]
fn a_reference_that_fails_in_the_written_order_too_is_rejected() {
    let wrong = verified("def f(x):\n    return 0\n", &calls());
    assert_eq!(wrong.reason.as_deref(), Some("reference_fails"), "{}", wrong.detail);
    let hangs = verified("def f(x):\n    while x == 3: pass\n    return x % 10\n", &calls());
    assert_eq!(hangs.reason.as_deref(), Some("reference_hangs"), "{}", hangs.detail);
    let chance = verified(CHANCE, &calls());
    assert!(chance.reason.as_deref().is_some_and(|r| r.starts_with("reference_")), "{}", chance.detail);
}

#[test]
fn rows_without_a_record_say_nothing() {
    for verified in
        ["", "{}", r#"{"bearing": {"b": {"shuffled": true, "repeated": true}}}"#, r#"{"bearing": {"a": 1}}"#]
    {
        assert_eq!(Bearing::recorded(verified, "a"), None, "{verified}");
    }
}
