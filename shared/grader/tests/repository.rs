//! Tier T2 in a real sandbox: suites of unittest, every outcome, honest repositories, twins.

#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

mod sandboxed;

use rollmill_grader::GradeError;
use rollmill_grader::diff::Files;
use rollmill_grader::t2::TestOutcome::{self, Died, Errored, Failed, Missing, Passed, Skipped, Timeout, Xfailed};
use rollmill_sandbox::Sandbox;
use sandboxed::repository::{RIGHT, Repository, WRONG, sums};
use sandboxed::{files, sandbox};
use std::time::Duration;

#[test]
fn right_and_wrong() {
    let sandbox = sandbox();
    let result = sums().asked(sandbox, &files(&[("calc.py", RIGHT)])).unwrap();
    assert_eq!(result.passed(), 3, "{result:?}");
    assert!(result.without_twin.is_empty() && !result.proven);
    assert_eq!(sums().outcomes(sandbox, &[("calc.py", WRONG)]), [Failed; 3]);
    let half = "def add(a, b):\n    return a + b if b != 2 else 0\n";
    let result = sums().asked(sandbox, &files(&[("calc.py", half)])).unwrap();
    let outcomes: Vec<_> = result.verdicts.iter().map(|v| v.outcome).collect();
    assert_eq!(outcomes, [Failed, Passed, Passed]);
    assert_eq!(result.verdicts[0].detail, "AssertionError", "what was wanted stays unsaid");
    assert_eq!(result.to_suite(sandbox.level()).passed, 2);
    assert_eq!(sums().outcomes(sandbox, &[("calc.py", "def add(:")]), [Errored; 3]);
    assert_eq!(sums().outcomes(sandbox, &[]), [Errored; 3]);
}

#[test]
fn only_a_pass_is_a_pass() {
    let text = r#"
import os, time, unittest
class T(unittest.TestCase):
    def test_ok(self): self.assertTrue(True)
    def test_skip(self): self.skipTest("no")
    @unittest.skip("no")
    def test_skipped(self): pass
    @unittest.expectedFailure
    def test_xfail(self): self.assertTrue(False)
    @unittest.expectedFailure
    def test_xpass(self): self.assertTrue(True)
    def test_raise(self): raise ValueError("x")
    def test_exit(self): raise SystemExit(0)
    def test_leave(self): os._exit(0)
    def test_spin(self):
        while True: pass
    def test_sleep(self): time.sleep(1000)
    def test_sub(self):
        with self.subTest(): self.assertTrue(False)
    def helper(self): pass
    def test_nothing(self): pass
class Broken(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise ValueError("x")
    def test(self): pass
"#;
    let wanted = [
        ("T.test_ok", Passed),
        ("T.test_skip", Skipped),
        ("T.test_skipped", Skipped),
        ("T.test_xfail", Xfailed),
        ("T.test_xpass", Xfailed),
        ("T.test_raise", Errored),
        ("T.test_exit", Errored),
        ("T.test_leave", Died),
        ("T.test_spin", Timeout),
        ("T.test_sleep", Timeout),
        ("T.test_sub", Failed),
        ("T.test_nothing", Passed),
        ("T.test_none", Missing),
        ("None.test", Missing),
        ("Broken.test", Errored),
    ];
    let repository = Repository::unittest(text, &wanted.map(|(id, _)| id));
    let result = repository.asked_in(sandbox(), &Files::new(), Duration::from_secs(1)).unwrap();
    for ((id, outcome), verdict) in wanted.iter().zip(&result.verdicts) {
        assert_eq!(verdict.outcome, *outcome, "{id}: {verdict:?}");
    }
    assert_eq!(result.without_twin, ["tests.test_calc.T.test_nothing"], "nothing in it can be negated");
    let twice = Repository::unittest(text, &["T.test_ok", "T.test_ok"]);
    assert!(matches!(twice.asked(sandbox(), &Files::new()), Err(GradeError::Task(_))));
    let elsewhere = Repository { ids: vec!["other.T.test".into(), "x".into(), "os.path.join".into()], ..twice };
    assert_eq!(elsewhere.outcomes(sandbox(), &[]), [Missing; 3]);
}

#[test]
fn tests_run_alone_and_leave_nothing() {
    let text = r#"
import os, subprocess, unittest, calc
class T(unittest.TestCase):
    def test_a(self):
        calc.state.append(1)
        self.assertEqual(len(calc.state), 1)
        subprocess.Popen(["sleep", "1000"], start_new_session=True)
    def test_b(self):
        calc.state.append(1)
        self.assertEqual(len(calc.state), 1)
        running = [open("/proc/%s/cmdline" % p).read() for p in os.listdir("/proc") if p.isdigit()]
        self.assertFalse(any("1000" in line for line in running))
"#;
    let repository = Repository::unittest(text, &["T.test_a", "T.test_b"]);
    assert_eq!(repository.outcomes(sandbox(), &[("calc.py", "state = []\n")]), [Passed, Passed]);
}

#[test]
fn honest_repositories_pass() {
    let sandbox = sandbox();
    let logs = "import logging, sys\nlogging.basicConfig(level=10)\ndef add(a, b):\n    logging.info('add %r', a)\n    print('x' * 10000)\n    return a + b\n";
    let main = "import sys\ndef add(a, b):\n    return a + b\nif __name__ == '__main__':\n    print(add(1, 2))\n    sys.exit(0)\n";
    let slow = "import time\ntime.sleep(0.5)\nimport functools\n@functools.lru_cache(None)\ndef add(a, b):\n    return a + b\n";
    let own = "import inspect, unittest, unittest.mock\ndef add(a, b):\n    assert inspect.currentframe()\n    return a + b\nclass T(unittest.TestCase):\n    def test(self):\n        with unittest.mock.patch('calc.add', return_value=unittest.mock.ANY): self.assertEqual(add(1, 1), 2)\n";
    let children = "import subprocess, threading\ndef add(a, b):\n    out = []\n    t = threading.Thread(target=lambda: out.append(subprocess.run(['true']).returncode)); t.start(); t.join()\n    return a + b + out[0]\n";
    for (name, source) in [("logs", logs), ("main", main), ("slow", slow), ("own tests", own), ("children", children)] {
        let code = files(&[("calc.py", source), ("conftest.py", "collect_ignore = ['tests']\n"), ("test_own.py", own)]);
        let result = sums().asked(sandbox, &code).unwrap();
        assert_eq!(result.passed(), 3, "{name}: {result:?}");
    }
    let package = [("src/calc/__init__.py", "from .inner import add\n"), ("src/calc/inner.py", RIGHT)];
    assert_eq!(sums().outcomes(sandbox, &package), [Passed; 3]);
}

#[test]
fn expectations_of_many_kinds_have_twins() {
    let text = r#"
"""Doc."""
from __future__ import annotations
import unittest
from unittest import mock

def holds(x):
    assert x

class T(unittest.TestCase):
    def test_methods(self):
        self.assertAlmostEqual(0.1 + 0.2, 0.3)
        self.assertCountEqual([1, 2], [2, 1])
        self.assertRegex("abc", "b")
        self.assertIsNone(None, "message")
        self.assertEqual({"a": [1]}, {"a": [1]})
        self.assertEqual((1, 2), mock.ANY)
        self.assertGreater(2, 1, msg="m")
    def test_raises(self):
        with self.assertRaisesRegex(ValueError, "lit") as context:
            int("x")
        self.assertIn("lit", str(context.exception))
        self.assertRaises(ValueError, int, "x")
    def test_helper(self): holds(1)
    def test_early(self):
        if True:
            self.assertTrue(1)
            return
    def test_boolean(self): assert 1 == 1 and not 2 < 1 and (3 or 4)
    async def test_nothing(self): pass
"#;
    let ids = ["T.test_methods", "T.test_raises", "T.test_helper", "T.test_early", "T.test_boolean", "T.test_nothing"];
    let result = Repository::unittest(text, &ids).asked(sandbox(), &Files::new()).unwrap();
    assert_eq!(result.passed(), 6, "{result:?}");
    assert_eq!(result.without_twin, ["tests.test_calc.T.test_nothing"]);
}

#[test]
fn a_twin_that_the_reference_passes_is_not_asked() {
    // The only expectation is never reached.
    let text =
        "import unittest\nclass T(unittest.TestCase):\n    def test(self):\n        for x in []: self.assertTrue(x)\n";
    let repository = Repository::unittest(text, &["T.test"]);
    assert_eq!(repository.outcomes(sandbox(), &[]), [TestOutcome::Forged]);
    let without_twin = repository.ids.clone();
    let repository = Repository { without_twin: &without_twin, ..Repository::unittest(text, &["T.test"]) };
    let result = repository.asked(sandbox(), &Files::new()).unwrap();
    assert_eq!((result.passed(), result.without_twin), (1, without_twin.clone()));
}
