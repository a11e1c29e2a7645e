//! Attacks on written tests that run inside the solution: through the proxy each earns what the same wrong solution earns
//! without the trick. The control, tests and solution in one process judged by its exit code, pays for them.

#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

mod sandboxed;

use rollmill_grader::CaseOutcome::{self, *};
use rollmill_grader::{Solution, SuiteResult, T0Options, TestSource};
use rollmill_sandbox::{Limits, Sandbox, Spec};
use sandboxed::{options, outcomes, proxied, sandbox};
use std::time::Duration;

/// The task: `f(x) == x * x + 1`. The wrong solution under every attack passes one test of four, by `f(1) == 2`.
const WRONG: &str = "def f(x):\n    return 2\n";

const TESTS: &str = "
import math, unittest
from solution import f
class TestF(unittest.TestCase):
    def check(self, x, expected):
        got = f(x)
        self.assertEqual(got, expected)
        self.assertTrue(math.isclose(got, expected))
    def test_1(self): self.check(1, 2)
    def test_2(self): self.check(2, 5)
    def test_3(self): self.check(3, 10)
    def test_4(self): self.check(10, 101)
";

/// (name, source, whether the naive grader must be fooled by it)
const ATTACKS: &[(&str, &str, bool)] = &[
    (
        "equal to everything",
        "class Any(float):\n    def __eq__(self, o): return True\n    def __ne__(self, o): return False\n    def __sub__(self, o): return 0.0\n    __hash__ = None\nimport math\nmath.isclose = lambda *a, **k: True\ndef f(x):\n    return 2 if x == 1 else Any(2)\n",
        true,
    ),
    (
        "an object equal to everything",
        "class Any:\n    def __eq__(self, o): return True\n    def __float__(self): return float('inf')\n    def __bool__(self): return True\n    def __len__(self): return 1\n    def __hash__(self): return 1\nimport math\nmath.isclose = lambda *a, **k: True\ndef f(x):\n    return 2 if x == 1 else Any()\n",
        true,
    ),
    (
        "an AssertionError that exits when it is printed",
        "import os\nclass E(AssertionError):\n    def __str__(self): os._exit(0)\n    __repr__ = __str__\ndef f(x):\n    if x > 1: raise E()\n    return 2\n",
        true,
    ),
    (
        "an AssertionError that is no failure",
        "import unittest\nclass E(AssertionError, unittest.SkipTest): pass\ndef f(x):\n    if x > 1: raise E()\n    return 2\n",
        true,
    ),
    (
        "the framework's skip",
        "import unittest\ndef f(x):\n    if x > 1: raise unittest.SkipTest('later')\n    return 2\n",
        true,
    ),
    ("sys.exit in the call", "import sys\ndef f(x):\n    if x > 1: sys.exit(0)\n    return 2\n", false),
    ("exit in the call", "import os\ndef f(x):\n    if x > 1: os._exit(0)\n    return 2\n", true),
    ("exit at import", "import os\nos._exit(0)\n", true),
    (
        "stolen from the caller's frame",
        "import sys\ndef f(x):\n    frame = sys._getframe()\n    while frame:\n        if 'expected' in frame.f_locals: return frame.f_locals['expected']\n        frame = frame.f_back\n    return 2\n",
        true,
    ),
    (
        "the framework patched",
        "import unittest, math\nunittest.TestCase.assertEqual = lambda *a: None\nunittest.TestCase.assertTrue = lambda *a: None\ndef f(x):\n    return 2\n",
        true,
    ),
    (
        "the results patched",
        "import unittest\nunittest.TestResult.wasSuccessful = lambda self: True\ndef f(x):\n    return 2\n",
        true,
    ),
    (
        "the test's code swapped",
        "import gc, types\ndef f(x):\n    for o in gc.get_objects():\n        if isinstance(o, types.FunctionType) and o.__name__ == 'check' and 'expected' in o.__code__.co_varnames:\n            o.__code__ = (lambda self, x, expected: None).__code__\n    return 2\nimport unittest\nunittest.TestCase.setUp = lambda self: f(0)\n",
        true,
    ),
    ("atexit rewrites the code", "import atexit, os\natexit.register(os._exit, 0)\ndef f(x):\n    return 2\n", false),
    ("answers twice by a fork", "import os\ndef f(x):\n    os.fork()\n    return 2\n", false),
    (
        "answers twice by hand",
        "import os, json\ndef f(x):\n    for seq in range(40):\n        b = json.dumps({'seq': seq, 'kind': 'value', 'nodes': [{'t': 'int', 'v': str(x * x + 2)}]}).encode()\n        for fd in range(3, 256):\n            try: os.write(fd, len(b).to_bytes(4, 'big') + b)\n            except OSError: pass\n    return 2\n",
        false,
    ),
    (
        "ends of tests written by hand",
        "import os, json\nb = json.dumps({'seq': 3, 'kind': 'done', 'outcome': 'passed', 'message': ''}).encode()\ndef f(x):\n    for fd in range(3, 256):\n        try: os.write(fd, len(b).to_bytes(4, 'big') + b)\n        except OSError: pass\n    return 2\n",
        false,
    ),
    (
        "a flood of frames",
        "import os\ndef f(x):\n    if x == 1: return 2\n    while True:\n        for fd in range(3, 256):\n            try: os.write(fd, b'\\x00\\x00\\x00\\x02{}' * 10000)\n            except OSError: pass\n",
        false,
    ),
    ("an iterator without end", "import itertools\ndef f(x):\n    return 2 if x == 1 else itertools.count()\n", false),
    (
        "an exception with a strange name",
        "E = type('ValueError\\n{\"kind\": \"done\"}', (Exception,), {})\ndef f(x):\n    if x > 1: raise E('passed')\n    return 2\n",
        false,
    ),
    (
        "a text that looks like an end",
        "def f(x):\n    return 2 if x == 1 else '{\"seq\": 3, \"kind\": \"done\", \"outcome\": \"passed\"}'\n",
        false,
    ),
];

/// Honest solutions that look like attacks.
const HONEST: &[(&str, &str)] = &[
    ("exit in main", "import sys\ndef f(x):\n    return x * x + 1\nif __name__ == '__main__':\n    sys.exit(0)\n"),
    (
        "its own tests",
        "import unittest\ndef f(x):\n    return x * x + 1\nclass T(unittest.TestCase):\n    def test(self): self.assertEqual(f(2), 5)\n",
    ),
    (
        "asserts",
        "def f(x):\n    assert x >= 0\n    try:\n        raise AssertionError\n    except AssertionError:\n        return x * x + 1\n",
    ),
    ("prints", "import sys\ndef f(x):\n    print(x); print(x, file=sys.stderr)\n    return x * x + 1\n"),
    ("frames", "import inspect\ndef f(x):\n    assert inspect.currentframe()\n    return x * x + 1\n"),
    ("an int of its own", "class I(int): pass\ndef f(x):\n    return I(x * x + 1)\n"),
];

fn grade(source: &str) -> SuiteResult {
    let opts = T0Options { per_call: Duration::from_secs(1), total: Duration::from_secs(20), ..options() };
    let tests = TestSource { tests: vec![TESTS.to_owned()], ..TestSource::default() };
    proxied(&Solution::from_source(source), "f", &tests, &opts)
}

fn naive_pays(source: &str) -> bool {
    let test = format!("import sys\nsys.path.insert(0, '/work')\n{TESTS}\nunittest.main()\n");
    let files = [("solution.py", source), ("test.py", &*test)];
    let spec = Spec {
        argv: ["/usr/bin/python3", "/work/test.py"].map(str::to_owned).to_vec(),
        files: files.map(|(n, c)| (n.to_owned(), c.as_bytes().to_vec())).to_vec(),
        limits: Limits { wall: Duration::from_secs(60), ..Limits::default() },
        ..Spec::default()
    };
    sandbox().run(&spec).unwrap().facts.exit == Some(0)
}

#[test]
fn tricks_earn_what_the_wrong_solution_earns() {
    let wrong = grade(WRONG);
    assert_eq!((wrong.passed, wrong.total), (1, 4), "{wrong:?}");
    for (name, source, _) in ATTACKS {
        let result = grade(source);
        assert_eq!(result.total, 4, "{name}");
        // A trick that spoils its own process loses what it had not answered yet.
        let spoiled = |o: CaseOutcome| matches!(o, Died | ImportError | Protocol);
        let lost = outcomes(&result).into_iter().any(spoiled) && result.passed < wrong.passed;
        assert!(result.passed == wrong.passed || lost, "{name}: {result:?}");
    }
}

#[test]
fn the_naive_grader_is_fooled() {
    assert!(!naive_pays(WRONG));
    for (name, source, fools) in ATTACKS {
        assert!(!*fools || naive_pays(source), "{name} does not fool the control, so it shows nothing");
    }
}

#[test]
fn honest_solutions_pass_both() {
    for (name, source) in HONEST {
        let result = grade(source);
        assert_eq!(result.passed, 4, "{name}: {result:?}");
        assert!(naive_pays(source), "{name}");
    }
}

/// What ends a test from outside ends it whatever the test catches, and the next test goes on with fresh processes.
#[test]
fn the_end_of_a_worker_cannot_be_caught() {
    let source = "
import os, time
def f(x):
    if x == 'exit': os._exit(0)
    if x == 'sleep': time.sleep(1000)
    if x == 'spin':
        while True: pass
    if x == 'memory': return len(bytearray(b'x') * (4 << 30))
    if x == 'raise': raise SystemExit(0)
    if x == 'frames': os.write(101, b'x' * 9)
    return 1
";
    let caught = |x: &str| format!("try:\n    f('{x}')\nexcept BaseException:\n    pass\nfinally:\n    pass");
    let words = ["exit", "fine", "sleep", "spin", "memory", "raise", "frames", "fine"];
    let tests = TestSource { tests: words.iter().map(|w| caught(w)).collect(), ..TestSource::default() };
    let opts = T0Options { total: Duration::from_secs(60), ..options() };
    let result = proxied(&Solution::from_source(source), "f", &tests, &opts);
    let got = outcomes(&result);
    // Where an address space is limited, the allocation raises, and a test may catch that.
    assert!(matches!(got[4], Oom | Passed), "{result:?}");
    assert_eq!(got, [Died, Passed, Timeout, Timeout, got[4], Exception, Protocol, Passed], "{result:?}");
}

/// A loop in a test that only the right answer would leave.
#[test]
fn a_test_that_never_ends_by_data_is_ended() {
    let tests =
        TestSource { tests: vec!["while f(1): pass".into(), "assert f(1) == 1".into()], ..TestSource::default() };
    let opts = T0Options { total: Duration::from_secs(3), ..options() };
    let result = proxied(&Solution::from_source("def f(x): return 1\n"), "f", &tests, &opts);
    assert_eq!(outcomes(&result)[0], Timeout, "{result:?}");
}
