//! Ways of calling in a real sandbox: keyword and mutated arguments, steps on an object, messages, predicates, orders.

#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

mod sandboxed;

use rollmill_grader::CaseOutcome::*;
use rollmill_grader::{Bearing, Case, GradeError, Solution, SuiteResult, T0Options, bearing, grade, parse_cases};
use sandboxed::{case, grade_source, graded, options, outcomes, sandbox, settled};
use std::time::Duration;

fn by_json(source: &str, json: &str) -> SuiteResult {
    grade_source(source, &parse_cases(json).unwrap())
}

#[test]
fn keyword_arguments() {
    let json = r#"[
        {"args": "(1,)", "kwargs": "{'b': 2}", "expected": "(1, 2, 0)"},
        {"args": "()", "kwargs": "{'a': 1, 'b': 2, 'c': [3]}", "expected": "(1, 2, [3])"},
        {"args": "(1,)", "kwargs": "{'d': 2}", "exception": "TypeError"}]"#;
    let result = by_json("def f(a, b=0, *, c=0): return a, b, c\n", json);
    assert_eq!(outcomes(&result), [Passed; 3], "{result:?}");
}

#[test]
fn mutated_arguments_come_back() {
    let json = r#"[
        {"args": "([3, 1, 2],)", "expected": "None", "mutates": "{0: [1, 2, 3]}"},
        {"args": "([2, 1], 0)", "expected": "None", "mutates": "{0: [1, 2], 1: 0}"},
        {"args": "([0.1, 0.2],)", "expected": "None", "mutates": "{0: [0.1, 0.20000001]}", "comparator": "approx"}]"#;
    let result = by_json("def f(x, y=0): x.sort()\n", json);
    assert_eq!(outcomes(&result), [Passed; 3], "{result:?}");
    let result = by_json("def f(x, y=0): return sorted(x)\n", json);
    assert_eq!(result.passed, 0);
    let result = by_json("def f(x, y=0): x[:] = []\n", json);
    assert_eq!(outcomes(&result), [Wrong; 3]);
    assert_eq!(result.verdicts[0].detail, "argument 1 is [] after the call");
}

const STACK: &str = "
class f:
    def __init__(self, *items): self.items = list(items)
    def push(self, x, times=1): self.items.extend([x] * times)
    def pop(self):
        if not self.items: raise IndexError('pop from an empty stack')
        return self.items.pop()
    @property
    def size(self): return len(self.items)
    def __eq__(self, other): return True
";

#[test]
fn objects_with_state_are_asked_in_steps() {
    let json = r#"[{"args": "(1,)", "steps": [
            {"call": "push", "args": "(5,)", "kwargs": "{'times': 2}"}, {"get": "size", "expected": "3"},
            {"call": "pop", "expected": "5"}, {"call": "pop", "expected": "5"}, {"call": "pop", "expected": "1"},
            {"call": "pop", "exception": "IndexError", "pattern": "empty"}, {"get": "size", "expected": "0"}]},
        {"args": "()", "steps": [{"get": "size", "expected": "0"}]},
        {"args": "()", "steps": [{"call": "pop", "exception": "IndexError", "message": "pop from an empty stack"}]},
        {"args": "()", "steps": [{"get": "size", "expected": "1"}]},
        {"args": "()", "steps": [{"call": "pop", "exception": "IndexError", "message": "other"}]},
        {"args": "()", "steps": [{"call": "pop", "expected": "None"}]},
        {"args": "()", "expected": "1"}]"#;
    let result = by_json(STACK, json);
    assert_eq!(outcomes(&result), [Passed, Passed, Passed, Wrong, Exception, Exception, Wrong], "{result:?}");
    assert_eq!(result.verdicts[3].detail, "step 1 (size): got 0");
    let result = by_json("def f(*args): return [1]\n", r#"[{"args": "()", "steps": [{"get": "x"}]}]"#);
    assert_eq!((outcomes(&result), &*result.verdicts[0].detail), (vec![Wrong], "got [1]"));
}

#[test]
fn a_step_that_ends_the_worker_fails_its_case_alone() {
    let source = "
import os, time
class f:
    def exit(self): os._exit(0)
    def sleep(self): time.sleep(1000)
    def spin(self):
        while True: pass
    def one(self): return 1
";
    let steps = |name: &str| {
        format!(r#"{{"args": "()", "steps": [{{"call": "one", "expected": "1"}}, {{"call": "{name}"}}]}}"#)
    };
    let json = format!("[{}]", ["one", "exit", "one", "sleep", "spin", "one"].map(steps).join(", "));
    let result = by_json(source, &json);
    assert_eq!(outcomes(&result), [Passed, Died, Passed, Timeout, Timeout, Passed], "{result:?}");
}

#[test]
fn messages_of_exceptions() {
    let json = r#"[
        {"args": "()", "exception": "ValueError", "message": "no such thing"},
        {"args": "()", "exception": "ValueError", "pattern": "^no .* thing$"},
        {"args": "()", "exception": "ValueError", "message": "no such"},
        {"args": "()", "exception": "ValueError", "pattern": "^such"},
        {"args": "()", "exception": "KeyError", "message": "no such thing"}]"#;
    let result = by_json("def f(): raise ValueError('no such thing')\n", json);
    assert_eq!(outcomes(&result), [Passed, Passed, Exception, Exception, Exception], "{result:?}");
    let liar = "class E(ValueError):\n    def __str__(self): return 'no such thing'\ndef f(): raise E('x')\n";
    assert_eq!(by_json(liar, json).passed, 0);
}

fn predicate(source: &str, x: i64) -> Case {
    let row = serde_json::json!([{"args": format!("({x},)"), "predicate": source}]);
    parse_cases(&row.to_string()).unwrap().remove(0)
}

const DIVISOR: &str =
    "def accept(args, got):\n    return type(got) is int and 1 < got < args[0] and args[0] % got == 0\n";

#[test]
fn predicates_decide_on_data() {
    let cases: Vec<Case> = [6, 15, 7].map(|x| predicate(DIVISOR, x)).to_vec();
    let result = grade_source("def f(x): return next((d for d in range(2, x) if x % d == 0), None)\n", &cases);
    assert_eq!(outcomes(&result), [Passed, Passed, Wrong], "{result:?}");
    let any = "class Any(int):\n    def __eq__(self, o): return True\n    __lt__ = __gt__ = __rmod__ = __eq__\n    __hash__ = int.__hash__\ndef f(x): return Any(5)\n";
    assert_eq!(outcomes(&grade_source(any, &cases)), [Wrong, Passed, Wrong]);
    let object = "class Any:\n    def __eq__(self, o): return True\ndef f(x): return Any()\n";
    assert_eq!(outcomes(&grade_source(object, &cases)), [Wrong; 3]);
    let result =
        grade_source("def f(x): return 'no number'\n", &[predicate("def accept(args, got): return got > 1\n", 1)]);
    assert!(result.verdicts[0].detail.contains("on which the predicate raises TypeError"), "{result:?}");
}

#[test]
fn a_predicate_cannot_be_talked_into_yes() {
    // Each value is a try to be taken for the predicate's answer, or to keep it from answering.
    let accept = "def accept(args, got):\n    print(got)\n    import sys, os\n    os.write(1, str(got).encode())\n    return got == 'right'\n";
    for answer in [
        r#"'{"seq": 1, "kind": "accepted"}'"#,
        "[True, 1, 'accepted']",
        "{'kind': 'accepted', 'seq': 2}",
        "b'\\x00\\x00\\x00\\x1d{\"seq\":2,\"kind\":\"accepted\"}'",
        "'x' * 100000",
    ] {
        let result = grade_source(&format!("def f(x): return {answer}\n"), &[predicate(accept, 1)]);
        assert_eq!(outcomes(&result), [Wrong], "{answer}: {result:?}");
    }
    assert_eq!(grade_source("def f(x): return 'right'\n", &[predicate(accept, 1)]).passed, 1);
}

#[test]
fn a_predicate_is_asked_once_for_a_value() {
    // It accepts in its first call only.
    let once = "calls = []\ndef accept(args, got):\n    calls.append(got)\n    return len(calls) == 1\n";
    let opts = T0Options { repeat: 3, ..options() };
    let repeated = graded(&Solution::from_source("def f(x): return 1\n"), &[predicate(once, 1)], &opts);
    assert_eq!(repeated.passed, 1, "{repeated:?}");
    let changing = Solution::from_source("n = 0\ndef f(x):\n    global n\n    n += 1\n    return n\n");
    assert_eq!(graded(&changing, &[predicate(once, 1)], &opts).passed, 0);
}

#[test]
fn a_predicate_that_cannot_be_used_is_the_tasks_fault() {
    let solution = Solution::from_source("def f(x): return x\n");
    for source in ["def accept(", "x = 1", "raise ValueError", "import os\ndef accept(args, got): os._exit(0)\n"] {
        let error = settled(|| grade(sandbox(), &solution, "f", &[predicate(source, 1)], &options())).unwrap_err();
        assert!(matches!(error, GradeError::Task(_)) && !error.is_transient(), "{source}: {error}");
    }
    let endless = predicate("def accept(args, got):\n    while got: pass\n    return True\n", 1);
    assert_eq!(outcomes(&graded(&solution, &[endless], &options())), [Wrong]);
}

#[test]
fn a_task_bears_what_its_reference_survives() {
    let cases: Vec<Case> = (0..8).map(|i| case(&format!("({i},)"), &i.to_string())).collect();
    let bears = |source: &str| {
        let opts = T0Options { total: Duration::from_secs(60), ..options() };
        settled(|| bearing(sandbox(), &Solution::from_source(source), "f", &cases, &opts)).unwrap()
    };
    assert_eq!(bears("def f(x): return x\n"), Some(Bearing { shuffled: true, repeated: true }));
    let counting = "n = -1\ndef f(x):\n    global n\n    n = (n + 1) % 8\n    return n\n";
    assert_eq!(bears(counting), Some(Bearing { shuffled: false, repeated: true }));
    let once = "seen = set()\ndef f(x):\n    if x in seen: return -1\n    seen.add(x)\n    return x\n";
    assert_eq!(bears(once), Some(Bearing { shuffled: true, repeated: false }));
    assert_eq!(bears("def f(x): return 0\n"), None);
    let strict = Bearing { shuffled: false, repeated: false }.options(&T0Options { repeat: 3, ..options() });
    assert_eq!((strict.shuffle, strict.repeat), (false, 1));
    // Twice at least, in twice the time.
    let any = Bearing::ANY.options(&options());
    assert_eq!((any.shuffle, any.repeat, any.total), (true, 2, 2 * options().total));
}
