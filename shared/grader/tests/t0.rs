//! Tier T0 in a real sandbox: every outcome, what values survive the way, restarts, time and memory.

#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

mod sandboxed;

use rollmill_grader::CaseOutcome::*;
use rollmill_grader::{Case, Comparator, GradeError, Solution, T0Options, Value, grade, visible_output};
use sandboxed::{case, grade_source, graded, options, outcomes, sandbox, value};
use std::time::Duration;

#[test]
fn right_and_wrong() {
    let cases = [case("(1, 2)", "3"), case("('a', 'b')", "'ab'"), case("(1, 1)", "3"), case("(1, 'a')", "0")];
    let result = grade_source("def f(a, b):\n    print('5 passed')\n    return a + b\n", &cases);
    assert_eq!(outcomes(&result), [Passed, Passed, Wrong, Exception]);
    assert_eq!((result.compiled, result.passed, result.total), (true, 2, 4));
    assert_eq!(result.verdicts[2].detail, "got 2");
    assert_eq!(result.verdicts[3].detail, "TypeError: unsupported operand type(s) for +: 'int' and 'str'");
    assert_eq!(
        visible_output(&result, &cases),
        "2 of 4 visible tests passed. Test 3 with (1, 1): expected 3, but got 2"
    );
    assert_eq!(result.isolation["backend"], "namespaces");
}

#[test]
fn solutions_that_cannot_be_loaded() {
    let cases = [case("(1,)", "1"), case("(2,)", "2")];
    for (source, outcome, compiled, message) in [
        ("def f(x:\n", SyntaxError, false, "SyntaxError"),
        ("def f(x): return '\0'", SyntaxError, false, "null bytes"),
        ("def g(x): return x", NoFunction, true, "f is not defined"),
        ("f = 3", NoFunction, true, "f is not defined"),
        ("raise ValueError('no')", ImportError, true, "ValueError: no"),
        ("import numpy_is_not_here", ImportError, true, "ModuleNotFoundError"),
        ("import sys; sys.exit(0)", ImportError, true, "SystemExit: 0"),
        ("import os; os._exit(0)", Died, true, "exit code 0"),
        ("import os; os.kill(os.getpid(), 11)", Died, true, "signal 11"),
        ("while True: pass", Timeout, true, "too long"),
        ("import time; time.sleep(1000)", Timeout, true, "too long"),
        ("x = bytearray(4 << 30)", Oom, true, "memory"),
    ] {
        let result = grade_source(source, &cases);
        let memory_error = outcome == Oom && outcomes(&result) == [ImportError; 2]; // where RLIMIT_AS holds the memory
        assert!(memory_error || outcomes(&result) == [outcome; 2], "{source}: {result:?}");
        assert_eq!((result.compiled, result.passed), (compiled, 0), "{source}");
        let error = result.import_error.unwrap();
        assert!(memory_error || error.contains(message), "{source}: {error}");
    }
    let missing = Solution { files: vec![], main: "solution.py".into() };
    let result = grade(sandbox(), &missing, "f", &cases, &options()).unwrap();
    assert_eq!((result.compiled, outcomes(&result)), (false, vec![NoFunction; 2]));
}

#[test]
fn a_call_that_ends_the_worker_fails_alone() {
    let source = "
import os, time
def f(x):
    if x == 'exit': os._exit(0)
    if x == 'segv': os.kill(os.getpid(), 11)
    if x == 'close': os.closerange(0, 256)
    if x == 'spin':
        while True: pass
    if x == 'sleep': time.sleep(1000)
    if x == 'stop': os.kill(os.getpid(), 19)
    if x == 'sysexit': raise SystemExit(0)
    if x == 'recurse': return f(x)
    if x == 'memory': return len(bytearray(b'x') * (4 << 30))
    if x == 'half': return object()
    return x
";
    let words = ["a", "exit", "b", "segv", "close", "spin", "sleep", "sysexit", "recurse", "memory", "half", "c"];
    let cases: Vec<Case> = words.iter().map(|w| Case::exact(vec![Value::str(w)], Value::str(w))).collect();
    let opts = T0Options { total: Duration::from_secs(60), ..options() };
    let result = graded(&Solution::from_source(source), &cases, &opts);
    let got = outcomes(&result);
    let memory = got[9];
    assert!(memory == Oom || memory == Exception, "{result:?}");
    let want = [Passed, Died, Passed, Died, Died, Timeout, Timeout, Exception, Exception, memory, Wrong, Passed];
    assert_eq!(got, want, "{result:?}");
    assert_eq!(result.verdicts[10].detail, "got <object>");
}

#[test]
fn restarts_are_bounded() {
    let cases: Vec<Case> = (0..6).map(|i| Case::exact(vec![Value::int(i)], Value::int(i))).collect();
    let opts = T0Options { restarts: 2, ..options() };
    let solution = Solution::from_source("import os\ndef f(x): os._exit(0)\n");
    let result = grade(sandbox(), &solution, "f", &cases, &opts).unwrap();
    assert_eq!(outcomes(&result), [Died; 6]);
    assert_eq!(result.verdicts.iter().filter(|v| v.detail.starts_with("not called")).count(), 3);
}

#[test]
fn the_time_for_all_calls_is_bounded() {
    let cases: Vec<Case> = (0..20).map(|i| Case::exact(vec![Value::int(i)], Value::int(i))).collect();
    let opts = T0Options { per_call: Duration::from_secs(2), total: Duration::from_secs(3), ..options() };
    let solution = Solution::from_source("import time\ndef f(x):\n    time.sleep(1)\n    return x\n");
    let result = graded(&solution, &cases, &opts);
    let passed = outcomes(&result).iter().filter(|o| **o == Passed).count();
    assert!((1..=3).contains(&passed), "{result:?}");
    assert_eq!(outcomes(&result).iter().filter(|o| **o == Timeout).count(), 20 - passed);
}

#[test]
fn values_come_back_as_they_went() {
    let literals = [
        "None",
        "True",
        "0",
        "-12345678901234567890123456789012345678901234567890",
        "1.5",
        "-0.0",
        "1e999",
        "-1e999",
        "5e-324",
        "0.1",
        "(1.5-2.5j)",
        "'é😀\\x00\\n\"'",
        "b'\\x00\\xff'",
        "()",
        "(1, (2,))",
        "[]",
        "[[], [None]]",
        "set()",
        "{1, 'a', (2, 3)}",
        "frozenset({1})",
        "{}",
        "{1: {2: 3}, 'a': [b'']}",
        "{(1, 2): {3}}",
    ];
    let big = format!("[{}]", "7".repeat(9000));
    let deep = format!("{}{}", "[".repeat(95), "]".repeat(95));
    let mut cases: Vec<Case> =
        literals.iter().chain([&&*big, &&*deep]).map(|l| Case::exact(vec![value(l)], value(l))).collect();
    for case in &mut cases {
        case.comparator = Comparator::Identical;
    }
    cases.push(Case::exact(vec![value("nan")], value("nan")));
    let result = grade_source("def f(x): return x\n", &cases);
    assert_eq!(result.passed, result.total, "{result:?}");
}

#[test]
fn subclasses_are_their_base_and_other_things_are_no_data() {
    let source = r#"
import collections, enum, dataclasses
P = collections.namedtuple('P', 'a b')
class I(int):
    def __repr__(self): return '7'
    def __eq__(self, o): return True
    __hash__ = int.__hash__
    __str__ = __repr__
    def __index__(self): return 7
class L(list):
    def __iter__(self): return iter([7])
    def __len__(self): return 1
class D(dict):
    def items(self): return [(7, 7)]
class S(str):
    def __str__(self): return '7'
class E(enum.IntEnum):
    A = 3
class Any:
    def __eq__(self, o): return True
    __hash__ = None
class Meta(type):
    def __instancecheck__(c, o): return True
    def __subclasscheck__(c, o): return True
    __name__ = 'int'
class M(metaclass=Meta):
    __class__ = int
@dataclasses.dataclass
class Data: x: int
def f(what):
    cyclic = []; cyclic.append(cyclic)
    deep = 0
    for _ in range(200): deep = [deep]
    return {'named': P(1, 2), 'int': I(3), 'list': L([1, 2]), 'dict': D({1: 2}), 'str': S('x'), 'enum': E.A,
        'counter': collections.Counter('aab'), 'ordered': collections.OrderedDict(a=1), 'default': collections.defaultdict(int, a=1),
        'bytearray': bytearray(b'x'), 'any': Any(), 'meta': M(), 'data': Data(1), 'gen': (i for i in [1]), 'range': range(2),
        'in': [Any()], 'cyclic': cyclic, 'deep': deep, 'huge': [0] * 10**6, 'surrogate': '\ud800', 'none': None,
        'wide': 1 << 200000}[what]
"#;
    let expected = [
        ("named", "(1, 2)", Passed),
        ("int", "3", Passed),
        ("int", "7", Wrong),
        ("list", "[1, 2]", Passed),
        ("list", "[7]", Wrong),
        ("dict", "{1: 2}", Passed),
        ("dict", "{7: 7}", Wrong),
        ("str", "'x'", Passed),
        ("str", "'7'", Wrong),
        ("enum", "3", Passed),
        ("counter", "{'a': 2, 'b': 1}", Passed),
        ("ordered", "{'a': 1}", Passed),
        ("default", "{'a': 1}", Passed),
        ("bytearray", "b'x'", Passed),
        ("any", "1", Wrong),
        ("any", "None", Wrong),
        ("meta", "7", Wrong),
        ("data", "1", Wrong),
        ("gen", "[1]", Wrong),
        ("range", "[0, 1]", Wrong),
        ("in", "[1]", Wrong),
        ("cyclic", "[]", Unreturnable),
        ("deep", "[]", Unreturnable),
        ("huge", "[]", Unreturnable),
        ("surrogate", "''", Unreturnable),
        ("none", "None", Passed),
        ("wide", "0", Unreturnable),
    ];
    let cases: Vec<Case> =
        expected.iter().map(|(what, want, _)| Case::exact(vec![Value::str(what)], value(want))).collect();
    let result = grade_source(source, &cases);
    for (verdict, (what, want, outcome)) in result.verdicts.iter().zip(expected) {
        assert_eq!(verdict.outcome, outcome, "{what} against {want}: {}", verdict.detail);
    }
}

#[test]
fn iterators_are_collected_where_the_comparator_asks_for_elements() {
    let cases: Vec<Case> = [Comparator::Sequence, Comparator::Unordered, Comparator::SetEq, Comparator::Exact]
        .into_iter()
        .map(|comparator| Case { comparator, ..case("(3,)", "[0, 1, 2]") })
        .collect();
    let result = grade_source("def f(n):\n    yield from range(n)\n", &cases);
    assert_eq!(outcomes(&result), [Passed, Passed, Passed, Wrong]);
}

#[test]
fn exceptions_can_be_expected() {
    let expecting = |name: &str, x: i64| Case {
        expect_exception: Some(name.into()),
        ..Case::exact(vec![Value::int(x)], Value::None)
    };
    let cases =
        [expecting("KeyError", 1), expecting("LookupError", 1), expecting("ValueError", 1), expecting("KeyError", 0)];
    let result = grade_source("def f(x):\n    if x: raise KeyError(x)\n", &cases);
    assert_eq!(outcomes(&result), [Passed, Passed, Exception, Wrong]);
}

#[test]
fn several_files_methods_and_ordinary_surroundings() {
    let files = vec![
        ("solution.py".to_owned(), b"import os, sys, threading, logging, inspect, pickle, dataclasses\nfrom pkg import helper\nopen('scratch', 'w').write('x')\nclass Solution:\n    def __init__(self): self.n = 0\n    def f(self, x):\n        self.n += 1\n        return [self.n, helper.double(x), __name__, os.getcwd(), len(inspect.getsource(Solution)) > 10]\n".to_vec()),
        ("pkg/__init__.py".to_owned(), vec![]),
        ("pkg/helper.py".to_owned(), b"def double(x): return 2 * x\n".to_vec()),
        ("json.py".to_owned(), b"raise SystemExit('shadow')\n".to_vec()),
    ];
    let solution = Solution { files, main: "solution.py".into() };
    let cases = [case("(2,)", "[1, 4, 'solution', '/work', True]"), case("(3,)", "[1, 6, 'solution', '/work', True]")];
    let result = grade(sandbox(), &solution, "Solution.f", &cases, &T0Options { repeat: 2, ..options() }).unwrap();
    assert_eq!(result.passed, 2, "{result:?}");
}

#[test]
fn order_depends_on_the_seed_and_results_do_not_depend_on_the_hash_seed() {
    let cases: Vec<Case> = (0..8).map(|i| Case::exact(vec![Value::int(i)], Value::int(i))).collect();
    let counting = Solution::from_source("n = -1\ndef f(x):\n    global n\n    n += 1\n    return n\n");
    let sandbox = sandbox();
    let by = |seed| grade(sandbox, &counting, "f", &cases, &T0Options { seed, ..options() }).unwrap();
    assert_eq!(by(1), by(1));
    assert!((1..4).any(|seed| by(seed).passed < 8), "a solution that counts calls passes in every order");
    let order = Solution::from_source("def f(x): return list({'a', 'b', 'c', 'd', str(x)})\n");
    let lists = |seed| grade(sandbox, &order, "f", &cases, &T0Options { seed, ..options() }).unwrap().verdicts;
    assert_eq!(lists(1), lists(2));
}

#[test]
fn repeated_calls_get_fresh_arguments() {
    let cases = [case("([3, 1, 2],)", "[1, 2, 3]")];
    let solution = Solution::from_source("def f(x):\n    x.sort()\n    y = list(x)\n    x.append(0)\n    return y\n");
    let result = grade(sandbox(), &solution, "f", &cases, &T0Options { repeat: 5, ..options() }).unwrap();
    assert_eq!(result.passed, 1);
    let flaky =
        Solution::from_source("n = 0\ndef f(x):\n    global n\n    n += 1\n    return sorted(x) if n < 3 else 0\n");
    let result = grade(sandbox(), &flaky, "f", &cases, &T0Options { repeat: 5, ..options() }).unwrap();
    assert_eq!(outcomes(&result), [Wrong]);
}

#[test]
fn what_cannot_be_sent_is_no_verdict() {
    let cases = [Case::exact(vec![Value::Opaque { type_name: "x".into() }], Value::None)];
    let error = grade(sandbox(), &Solution::from_source("def f(x): pass"), "f", &cases, &options()).unwrap_err();
    assert!(matches!(error, GradeError::Arguments { index: 0, .. }) && !error.is_transient());
}

#[test]
fn no_cases_still_tell_whether_it_compiles() {
    let result = grade_source("def f(x): return x", &[]);
    assert_eq!((result.compiled, result.passed, result.total), (true, 0, 0));
    assert!(!grade_source("def f(", &[]).compiled);
}
