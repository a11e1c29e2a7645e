//! Attacks on written tests that run inside the solution: through the proxy each earns what the same wrong solution earns
//! without the trick. The control, tests and solution in one process judged by its exit code, pays for them.

#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

mod sandboxed;

use rollmill_grader::CaseOutcome::{self, *};
use rollmill_grader::{Solution, SuiteResult, T0Options, TestSource};
use rollmill_sandbox::{Limits, Sandbox, Spec};
use sandboxed::attacks::{ATTACKS, Attack, HONEST, PROTOCOL, WRONG};
use sandboxed::{options, outcomes, proxied, sandbox};
use std::time::Duration;

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
    for Attack { name, source, .. } in ATTACKS {
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
    for Attack { name, source, fools_suite, .. } in ATTACKS {
        assert!(!*fools_suite || naive_pays(source), "{name} does not fool the control, so it shows nothing");
    }
}

#[test]
fn attacks_on_the_protocol_earn_no_more() {
    for (name, source) in PROTOCOL {
        let result = grade(source);
        assert!(result.passed <= 1 && result.total == 4, "{name}: {result:?}");
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
