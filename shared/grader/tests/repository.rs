//! Tier T2 in a real sandbox: unittest and pytest suites, attacks from inside the process, honest repositories.

#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

mod sandboxed;

use rollmill_grader::GradeError;
use rollmill_grader::diff::Files;
use rollmill_grader::t2::TestOutcome::{self, Died, Errored, Failed, Missing, Passed, Skipped, Timeout, Xfailed};
use rollmill_grader::t2::{Framework, PythonSuite, RepositoryResult, T2Options, grade_repository};
use rollmill_sandbox::{Limits, Sandbox, Spec};
use sandboxed::{files, sandbox, settled, tools};
use std::time::Duration;

const TESTS: &str = r#"
import unittest
import calc

class Sums(unittest.TestCase):
    def test_add(self):
        self.assertEqual(calc.add(1, 2), 3)
        assert calc.add(2, 2) == 4

    def test_many(self):
        for a in range(3):
            with self.subTest(a=a):
                self.assertEqual(calc.add(a, 1), a + 1)

    def test_error(self):
        with self.assertRaises(TypeError):
            calc.add(1, "x")
        self.assertIn(calc.add(1, 1), [2, 4])
"#;

const RIGHT: &str = "def add(a, b):\n    return a + b\n";
/// The measure of every attack: it passes nothing.
const WRONG: &str = "def add(a, b):\n    return -1\n";

fn options() -> T2Options {
    T2Options { per_test: Duration::from_secs(3), ..T2Options::default() }
}

struct Repository<'a> {
    framework: Framework,
    tests: Files,
    ids: Vec<String>,
    without_twin: &'a [String],
}

impl Repository<'_> {
    fn unittest(text: &str, ids: &[&str]) -> Repository<'static> {
        let ids = ids.iter().map(|id| format!("tests.test_calc.{id}")).collect();
        let tests = files(&[("tests/__init__.py", ""), ("tests/test_calc.py", text)]);
        Repository { framework: Framework::Unittest, tests, ids, without_twin: &[] }
    }

    fn pytest(text: &str, ids: &[&str]) -> Repository<'static> {
        let ids = ids.iter().map(|id| format!("tests/test_calc.py::{id}")).collect();
        let conftest = "import pytest\n@pytest.fixture\ndef two(): return 2\n";
        let tests = files(&[("tests/conftest.py", conftest), ("tests/test_calc.py", text)]);
        Repository { framework: Framework::Pytest, tests, ids, without_twin: &[] }
    }

    fn asked(&self, sandbox: &dyn Sandbox, code: &Files) -> Result<RepositoryResult, GradeError> {
        self.asked_in(sandbox, code, options().per_test)
    }

    fn asked_in(
        &self,
        sandbox: &dyn Sandbox,
        code: &Files,
        per_test: Duration,
    ) -> Result<RepositoryResult, GradeError> {
        let paths = ["".to_owned(), "src".to_owned()];
        let suite = PythonSuite {
            framework: self.framework,
            tests: &self.tests,
            ids: &self.ids,
            import_paths: &paths,
            site: &Files::new(),
            without_twin: self.without_twin,
            has_tests_b: false,
        };
        // What the agent sees has the tests in it as well.
        let mut all = self.tests.clone();
        all.extend(code.clone());
        let opts = T2Options { per_test, ..options() };
        settled(|| grade_repository(sandbox, &all, &suite, &opts))
    }

    fn outcomes(&self, sandbox: &dyn Sandbox, code: &[(&str, &str)]) -> Vec<TestOutcome> {
        let result = self.asked(sandbox, &files(code)).unwrap();
        result.verdicts.iter().map(|v| v.outcome).collect()
    }
}

fn sums() -> Repository<'static> {
    Repository::unittest(TESTS, &["Sums.test_add", "Sums.test_many", "Sums.test_error"])
}

#[test]
fn right_and_wrong() {
    let sandbox = sandbox();
    let result = sums().asked(&sandbox, &files(&[("calc.py", RIGHT)])).unwrap();
    assert_eq!(result.passed(), 3, "{result:?}");
    assert!(result.without_twin.is_empty() && !result.proven);
    assert_eq!(sums().outcomes(&sandbox, &[("calc.py", WRONG)]), [Failed; 3]);
    let half = "def add(a, b):\n    return a + b if b != 2 else 0\n";
    let result = sums().asked(&sandbox, &files(&[("calc.py", half)])).unwrap();
    let outcomes: Vec<_> = result.verdicts.iter().map(|v| v.outcome).collect();
    assert_eq!(outcomes, [Failed, Passed, Passed]);
    assert_eq!(result.verdicts[0].detail, "AssertionError", "what was wanted stays unsaid");
    assert_eq!(result.to_suite(sandbox.level()).passed, 2);
    assert_eq!(sums().outcomes(&sandbox, &[("calc.py", "def add(:")]), [Errored; 3]);
    assert_eq!(sums().outcomes(&sandbox, &[]), [Errored; 3]);
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
    let result = repository.asked_in(&sandbox(), &Files::new(), Duration::from_secs(1)).unwrap();
    for ((id, outcome), verdict) in wanted.iter().zip(&result.verdicts) {
        assert_eq!(verdict.outcome, *outcome, "{id}: {verdict:?}");
    }
    assert_eq!(result.without_twin, ["tests.test_calc.T.test_nothing"], "nothing in it can be negated");
    let twice = Repository::unittest(text, &["T.test_ok", "T.test_ok"]);
    assert!(matches!(twice.asked(&sandbox(), &Files::new()), Err(GradeError::Task(_))));
    let elsewhere = Repository { ids: vec!["other.T.test".into(), "x".into(), "os.path.join".into()], ..twice };
    assert_eq!(elsewhere.outcomes(&sandbox(), &[]), [Missing; 3]);
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
    assert_eq!(repository.outcomes(&sandbox(), &[("calc.py", "state = []\n")]), [Passed, Passed]);
}

/// (name, a calc.py, whether the naive grader must be fooled by it). None may pass a single test.
const ATTACKS: &[(&str, &str, bool)] = &[
    ("exit at import", "import os\nos._exit(0)\n", false),
    (
        "exit in the call, with the last words of a good run",
        "import os\ndef add(a, b):\n    os.write(2, b'Ran 3 tests in 0.001s\\n\\nOK\\n')\n    os._exit(0)\n",
        true,
    ),
    ("skip out of product code", "import unittest\ndef add(a, b):\n    raise unittest.SkipTest('later')\n", true),
    (
        "tests do not run",
        "import unittest\nunittest.TestCase.run = lambda self, result=None: result\ndef add(a, b): return -1\n",
        true,
    ),
    (
        "tests succeed unrun",
        "import unittest\ndef run(self, result=None):\n    result.startTest(self)\n    result.addSuccess(self)\n    result.stopTest(self)\nunittest.TestCase.run = run\ndef add(a, b): return -1\n",
        true,
    ),
    (
        "results add no failures",
        "import unittest\nfor n in ('addFailure', 'addError', 'addSubTest'):\n    setattr(unittest.TestResult, n, lambda self, test, *a: None)\n    setattr(unittest.TextTestResult, n, lambda self, test, *a: None)\ndef add(a, b): return -1\n",
        true,
    ),
    (
        "asserts are empty",
        "import unittest\nfor n in dir(unittest.TestCase):\n    if n.startswith('assert') and n != 'assertRaises': setattr(unittest.TestCase, n, lambda self, *a, **k: None)\nclass Any(int):\n    def __eq__(self, o): return True\ndef add(a, b):\n    return Any(a) + (b if isinstance(b, str) else 0) if isinstance(b, str) else Any()\n",
        true,
    ),
    (
        "failures are skips",
        "import unittest\nunittest.TestCase.failureException = unittest.SkipTest\nclass Any:\n    def __eq__(self, o): return True\ndef add(a, b):\n    if b == 'x': raise TypeError\n    return Any()\n",
        true,
    ),
    (
        "equal to everything",
        "class Any:\n    def __eq__(self, o): return True\n    def __hash__(self): return 2\ndef add(a, b):\n    if b == 'x': raise TypeError\n    return Any()\n",
        true,
    ),
    (
        "test methods emptied when their class is made",
        "import unittest\ndef empty(cls, **k):\n    cls._classSetupFailed, cls._class_cleanups = False, []\n    for n in list(vars(cls)):\n        if n.startswith('test'): setattr(cls, n, lambda self: None)\nunittest.TestCase.__init_subclass__ = classmethod(empty)\n",
        true,
    ),
    (
        "the report forged with the word of the runner's frame",
        "import json, os, sys\nframe = sys._getframe()\nword = None\nwhile frame:\n    word = frame.f_locals.get('word', word)\n    frame = frame.f_back\nif word:\n    for fd in range(3, 256):\n        try: os.write(fd, json.dumps([word, 'passed', '']).encode())\n        except OSError: pass\n    os._exit(0)\ndef add(a, b): return -1\n",
        false,
    ),
    (
        "the report forged without it",
        "import os\nfor fd in range(3, 256):\n    try: os.write(fd, b'[\"\", \"passed\", \"\"]')\n    except OSError: pass\ndef add(a, b): return -1\n",
        false,
    ),
    ("the runner killed", "import os\nos.kill(os.getppid(), 9)\n", false),
    (
        "AssertionError is something else",
        "import builtins\nclass Quiet(Exception): pass\nbuiltins.AssertionError = Quiet\ndef add(a, b): return -1\n",
        false,
    ),
    (
        "exit code by atexit",
        "import atexit, os\natexit.register(lambda: (os.write(2, b'\\nOK\\n'), os._exit(0)))\ndef add(a, b): return -1\n",
        true,
    ),
    (
        "excepthook and trace",
        "import os, sys\nsys.excepthook = lambda *a: os._exit(0)\nsys.settrace(lambda *a: None)\ndef add(a, b): return -1\n",
        false,
    ),
];

/// Files beside the wrong solution.
const POISON: &[(&str, &str, &str)] = &[
    ("shadowed unittest", "unittest/__init__.py", "import sys\nprint('OK', file=sys.stderr)\nsys.exit(0)\n"),
    ("shadowed json", "json.py", "import os\nos._exit(0)\n"),
    ("sitecustomize", "sitecustomize.py", "import os\nos._exit(0)\n"),
    ("usercustomize", "usercustomize.py", "import os\nos._exit(0)\n"),
    ("path configuration", "x.pth", "import os; os._exit(0)\n"),
    (
        "edited tests",
        "tests/test_calc.py",
        "import unittest\nclass Sums(unittest.TestCase):\n    def test_add(self): pass\n    test_many = test_error = test_add\n",
    ),
    ("own package of tests", "tests/__init__.py", "import os\nos._exit(0)\n"),
];

/// The control: the tests in the solution's folder, by their own main program, judged by exit code and last words.
fn naive_pays(code: &Files) -> bool {
    let mut all = sums().tests;
    all.extend(code.clone());
    let spec = Spec {
        argv: ["python3", "-m", "unittest", "tests.test_calc"].map(str::to_owned).to_vec(),
        files: all.into_iter().collect(),
        limits: Limits { wall: Duration::from_secs(60), ..Limits::default() },
        ..Spec::default()
    };
    let done = sandbox().run(&spec).unwrap();
    let last = String::from_utf8_lossy(&done.stderr).trim_end().lines().last().unwrap_or("").to_owned();
    done.facts.exit == Some(0) && last.starts_with("OK")
}

#[test]
fn attacks_earn_what_the_wrong_solution_earns() {
    let sandbox = sandbox();
    for (name, source, _) in ATTACKS {
        let result = sums().asked(&sandbox, &files(&[("calc.py", source)])).unwrap();
        assert_eq!(result.passed(), 0, "{name}: {result:?}");
    }
    for (name, path, text) in POISON {
        let result = sums().asked(&sandbox, &files(&[("calc.py", WRONG), (path, text)])).unwrap();
        assert_eq!(result.passed(), 0, "{name}: {result:?}");
    }
}

#[test]
fn a_runner_that_is_stopped_reports_nothing() {
    let stops = "import os, signal\nos.kill(os.getppid(), signal.SIGSTOP)\ndef add(a, b): return a + b\n";
    let repository = Repository::unittest(TESTS, &["Sums.test_add"]);
    let result = repository.asked_in(&sandbox(), &files(&[("calc.py", stops)]), Duration::from_secs(1)).unwrap();
    assert_eq!(result.verdicts[0].outcome, Died, "{result:?}");
}

#[test]
fn the_naive_grader_is_fooled() {
    assert!(!naive_pays(&files(&[("calc.py", WRONG)])));
    assert!(naive_pays(&files(&[("calc.py", RIGHT)])));
    for (name, source, fools) in ATTACKS {
        assert!(!*fools || naive_pays(&files(&[("calc.py", source)])), "{name} does not fool the control");
    }
    let poisoned = |at: usize| naive_pays(&files(&[("calc.py", WRONG), (POISON[at].1, POISON[at].2)]));
    assert!(poisoned(0) && poisoned(5), "a shadowed framework and edited tests fool the control");
}

#[test]
fn without_twins_some_attacks_would_pay() {
    let sandbox = sandbox();
    let repository = sums();
    let suite = PythonSuite {
        framework: Framework::Unittest,
        tests: &repository.tests,
        ids: &repository.ids,
        import_paths: &["".to_owned()],
        site: &Files::new(),
        without_twin: &[],
        has_tests_b: true,
    };
    let opts = T2Options { twins: false, ..options() };
    let paid: Vec<&str> = ATTACKS
        .iter()
        .filter(|(_, source, _)| {
            let code = files(&[("calc.py", source)]);
            settled(|| grade_repository(&sandbox, &code, &suite, &opts)).unwrap().passed() > 0
        })
        .map(|(name, ..)| *name)
        .collect();
    for name in ["tests succeed unrun", "equal to everything", "test methods emptied when their class is made"] {
        assert!(paid.contains(&name), "{name} is caught without twins, so they show nothing: {paid:?}");
    }
}

#[test]
fn a_thief_of_expectations_passes_and_the_result_is_unproven() {
    // What this tier does not promise: what is wanted is a constant of the caller.
    let thief = "import sys\ndef add(a, b):\n    if isinstance(b, str): raise TypeError\n    frame = sys._getframe(1)\n    if frame.f_code.co_name == 'test_add':\n        return 3 if a == 1 else 4\n    return -1\n";
    let result = sums().asked(&sandbox(), &files(&[("calc.py", thief)])).unwrap();
    assert_eq!(result.verdicts[0].outcome, Passed);
    assert!(!result.proven);
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
        let result = sums().asked(&sandbox, &code).unwrap();
        assert_eq!(result.passed(), 3, "{name}: {result:?}");
    }
    let package = [("src/calc/__init__.py", "from .inner import add\n"), ("src/calc/inner.py", RIGHT)];
    assert_eq!(sums().outcomes(&sandbox, &package), [Passed; 3]);
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
    let result = Repository::unittest(text, &ids).asked(&sandbox(), &Files::new()).unwrap();
    assert_eq!(result.passed(), 6, "{result:?}");
    assert_eq!(result.without_twin, ["tests.test_calc.T.test_nothing"]);
}

#[test]
fn a_twin_that_the_reference_passes_is_not_asked() {
    // The only expectation is never reached.
    let text =
        "import unittest\nclass T(unittest.TestCase):\n    def test(self):\n        for x in []: self.assertTrue(x)\n";
    let repository = Repository::unittest(text, &["T.test"]);
    assert_eq!(repository.outcomes(&sandbox(), &[]), [TestOutcome::Forged]);
    let without_twin = repository.ids.clone();
    let repository = Repository { without_twin: &without_twin, ..Repository::unittest(text, &["T.test"]) };
    let result = repository.asked(&sandbox(), &Files::new()).unwrap();
    assert_eq!((result.passed(), result.without_twin), (1, without_twin.clone()));
}

const PYTESTS: &str = r#"
import pytest
import calc

def test_add(two):
    assert calc.add(1, two) == 3

@pytest.mark.parametrize("a", [1, 2])
def test_many(a):
    assert calc.add(a, 1) == a + 1, "message"

class TestErrors:
    def test_error(self):
        with pytest.raises(TypeError) as info:
            calc.add(1, "x")
        assert "unsupported" in str(info.value)

@pytest.mark.skip
def test_skipped(): pass

@pytest.mark.xfail
def test_xfail(): assert False

@pytest.mark.xfail
def test_xpass(): assert True

def test_approx():
    assert calc.add(0.1, 0.2) == pytest.approx(0.3)
"#;

const PYTEST_IDS: [&str; 5] = ["test_add", "test_many[1]", "test_many[2]", "TestErrors::test_error", "test_approx"];

#[test]
fn pytest_suites() {
    let Some(sandbox) = tools() else { return };
    let repository = Repository::pytest(PYTESTS, &PYTEST_IDS);
    let result = repository.asked(&sandbox, &files(&[("calc.py", RIGHT)])).unwrap();
    assert_eq!(result.passed(), 5, "{result:?}");
    assert!(result.without_twin.is_empty());
    assert_eq!(repository.outcomes(&sandbox, &[("calc.py", WRONG)]), [Failed; 5]);
    assert_eq!(repository.outcomes(&sandbox, &[("calc.py", "def add(:")]), [Errored; 5]);
    let others = ["test_skipped", "test_xfail", "test_xpass", "test_none", "test_many", "test_many[3]"];
    let repository = Repository::pytest(PYTESTS, &others);
    let want = [Skipped, Xfailed, Xfailed, Missing, Missing, Missing];
    assert_eq!(repository.outcomes(&sandbox, &[("calc.py", RIGHT)]), want);
}

/// Path and text.
type Code = &'static [(&'static str, &'static str)];

/// As for unittest, on pytest. The naive grader must be fooled where it says so.
const PYTEST_ATTACKS: &[(&str, Code, bool)] = &[
    ("pytest.exit", &[("calc.py", "import pytest\ndef add(a, b): pytest.exit('done', returncode=0)\n")], true),
    ("pytest.skip", &[("calc.py", "import pytest\ndef add(a, b): pytest.skip('later')\n")], true),
    (
        "a conftest that reports success",
        &[
            ("calc.py", WRONG),
            (
                "conftest.py",
                "import pytest\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item, call):\n    out = yield\n    out.get_result().outcome = 'passed'\n",
            ),
        ],
        true,
    ),
    (
        "a configuration that deselects",
        &[("calc.py", WRONG), ("pytest.ini", "[pytest]\naddopts = --collect-only\n")],
        true,
    ),
    ("a shadowed pytest", &[("calc.py", WRONG), ("pytest.py", "import sys\nprint('7 passed')\nsys.exit(0)\n")], true),
    (
        "reports made to pass",
        &[(
            "calc.py",
            "import _pytest.reports as r\nmake = r.TestReport.from_item_and_call\ndef passed(item, call):\n    call.excinfo = None\n    return make(item, call)\nr.TestReport.from_item_and_call = staticmethod(passed)\ndef add(a, b): return -1\n",
        )],
        true,
    ),
    (
        "tests that are not called",
        &[(
            "calc.py",
            "import _pytest.python as p\np.Function.runtest = lambda self: None\ndef add(a, b): return -1\n",
        )],
        true,
    ),
    (
        "equal to everything, raising nothing",
        &[(
            "calc.py",
            "class Any(float):\n    def __eq__(self, o): return True\n    __hash__ = None\ndef add(a, b):\n    return a + b if b == 'x' else Any()\n",
        )],
        false,
    ),
    (
        "raises accepts everything",
        &[(
            "calc.py",
            "import pytest\nclass R:\n    value = 'unsupported'\n    def __init__(self, *a, **k): pass\n    def __enter__(self): return self\n    def __exit__(self, *a): return True\npytest.raises = R\ndef add(a, b): return -1\n",
        )],
        false,
    ),
];

#[test]
fn attacks_on_pytest_earn_what_the_wrong_solution_earns() {
    let Some(sandbox) = tools() else { return };
    let repository = Repository::pytest(PYTESTS, &PYTEST_IDS);
    for (name, code, fools) in PYTEST_ATTACKS {
        let result = repository.asked(&sandbox, &files(code)).unwrap();
        let passed: Vec<&str> = result.verdicts.iter().filter(|v| v.outcome == Passed).map(|v| v.id.as_str()).collect();
        // One of them raises as it should, and earns that.
        let earned: &[&str] =
            if name.starts_with("equal") { &["tests/test_calc.py::TestErrors::test_error"] } else { &[] };
        assert_eq!(passed, earned, "{name}: {result:?}");
        let mut all = repository.tests.clone();
        all.extend(files(code));
        let spec = Spec {
            argv: ["python3", "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"].map(str::to_owned).to_vec(),
            files: all.into_iter().collect(),
            env: vec![("PYTHONPATH".into(), "/work".into())],
            limits: Limits { wall: Duration::from_secs(60), ..Limits::default() },
            ..Spec::default()
        };
        let done = sandbox.run(&spec).unwrap();
        assert!(!*fools || done.facts.exit == Some(0), "{name} does not fool the control: {:?}", done.facts);
    }
}

#[test]
fn honest_pytest_repositories_pass() {
    let Some(sandbox) = tools() else { return };
    let repository = Repository::pytest(PYTESTS, &PYTEST_IDS);
    let code = [
        (
            "src/calc.py",
            "import logging\nlogging.basicConfig()\ndef add(a, b):\n    logging.warning('x')\n    return a + b\n",
        ),
        ("conftest.py", "import sys\nsys.path.insert(0, 'src')\n"),
        ("tests/test_own.py", "def test(): assert False\n"),
        ("setup.cfg", "[tool:pytest]\naddopts = -x\n"),
    ];
    assert_eq!(repository.outcomes(&sandbox, &code), [Passed; 5]);
}

#[test]
fn a_root_without_pytest_stops_the_run() {
    let error = Repository::pytest(PYTESTS, &["test_add"]).asked(&sandbox(), &Files::new()).unwrap_err();
    assert!(matches!(&error, GradeError::Worker(_)) && error.to_string().contains("pytest"), "{error}");
}
