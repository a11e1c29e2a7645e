//! Tier T2 in a real sandbox: suites of pytest, attacks on it, honest repositories.

#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

mod sandboxed;

use rollmill_grader::GradeError;
use rollmill_grader::diff::Files;
use rollmill_grader::t2::TestOutcome::{Errored, Failed, Missing, Passed, Skipped, Xfailed};
use rollmill_sandbox::{Limits, Sandbox, Spec};
use sandboxed::repository::{RIGHT, Repository, WRONG};
use sandboxed::{files, sandbox, tools};
use std::time::Duration;

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
    let result = repository.asked(sandbox, &files(&[("calc.py", RIGHT)])).unwrap();
    assert_eq!(result.passed(), 5, "{result:?}");
    assert!(result.without_twin.is_empty());
    assert_eq!(repository.outcomes(sandbox, &[("calc.py", WRONG)]), [Failed; 5]);
    assert_eq!(repository.outcomes(sandbox, &[("calc.py", "def add(:")]), [Errored; 5]);
    let others = ["test_skipped", "test_xfail", "test_xpass", "test_none", "test_many", "test_many[3]"];
    let repository = Repository::pytest(PYTESTS, &others);
    let want = [Skipped, Xfailed, Xfailed, Missing, Missing, Missing];
    assert_eq!(repository.outcomes(sandbox, &[("calc.py", RIGHT)]), want);
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
        let result = repository.asked(sandbox, &files(code)).unwrap();
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
    assert_eq!(repository.outcomes(sandbox, &code), [Passed; 5]);
}

#[test]
fn a_root_without_pytest_stops_the_run() {
    let error = Repository::pytest(PYTESTS, &["test_add"]).asked(sandbox(), &Files::new()).unwrap_err();
    assert!(matches!(&error, GradeError::NoTool(_)) && error.to_string().contains("pytest"), "{error}");
}
