//! From an agent's sandbox to a grade: what is brought out, what of it counts, and what a suite says to it.

#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

mod sandboxed;

use rollmill_grader::diff::{Applied, DiffRules, Files};
use rollmill_grader::t2::{Framework, PythonSuite, T2Options, grade_repository};
use rollmill_sandbox::{Sandbox, Spec};
use sandboxed::{files, sandbox, settled};

const TESTS: &str =
    "import unittest, calc\nclass T(unittest.TestCase):\n    def test(self): self.assertEqual(calc.add(1, 2), 3)\n";

fn pristine() -> Files {
    files(&[
        ("calc.py", "def add(a, b):\n    return 0\n"),
        ("old.py", "x = 1\n"),
        ("tests/__init__.py", ""),
        ("tests/test_calc.py", TESTS),
    ])
}

/// Runs an agent's commands on the repository and applies what it left.
fn worked(commands: &str) -> Applied {
    let spec = Spec {
        argv: ["sh", "-c", commands].map(str::to_owned).to_vec(),
        files: pristine().into_iter().collect(),
        collect: vec![String::new()],
        ..Spec::default()
    };
    let done = sandbox().run(&spec).unwrap();
    DiffRules::default().apply(&pristine(), &done.collected)
}

fn passed(applied: &Applied) -> usize {
    let suite = PythonSuite {
        framework: Framework::Unittest,
        tests: &files(&[("tests/__init__.py", ""), ("tests/test_calc.py", TESTS)]),
        ids: &["tests.test_calc.T.test".to_owned()],
        import_paths: &["".to_owned()],
        site: &Files::new(),
        without_twin: &[],
        has_tests_b: false,
    };
    settled(|| grade_repository(sandbox(), &applied.files, &suite, &T2Options::default())).unwrap().passed()
}

const SOLVED: &str = "printf 'def add(a, b):\\n    return a + b\\n' > calc.py";

#[test]
fn honest_work_counts() {
    let applied = worked(&format!("{SOLVED}; rm old.py; mkdir new; echo y=2 > new/m.py"));
    assert_eq!(applied.changed, ["calc.py", "new/m.py"]);
    assert_eq!(applied.deleted, ["old.py"]);
    assert_eq!((applied.ignored.len(), applied.refused.len()), (0, 0));
    assert_eq!(passed(&applied), 1);
    assert_eq!(passed(&worked("true")), 0);
}

#[test]
fn own_tests_and_configuration_cost_nothing() {
    let own = "echo 'assert False' > tests/test_own.py; echo 'import os; os._exit(1)' > conftest.py; echo '[pytest]' > pytest.ini; echo 'raise SystemExit' > tests/__init__.py";
    let applied = worked(&format!("{SOLVED}; {own}"));
    let ignored: Vec<&str> = applied.ignored.iter().map(|r| r.path.as_str()).collect();
    assert_eq!(ignored, ["conftest.py", "pytest.ini", "tests/__init__.py", "tests/test_own.py"]);
    assert_eq!(passed(&applied), 1);
}

#[test]
fn tricks_with_files_earn_nothing() {
    let easy =
        "printf 'import unittest\\nclass T(unittest.TestCase):\\n    def test(self): pass\\n' > tests/test_calc.py";
    for commands in [
        easy,
        "rm -r tests",
        "rm -r tests; ln -s /tmp tests",
        "rm calc.py; ln -s tests/test_calc.py calc.py",
        "ln calc.py twin.py",
        "mkfifo pipe; printf 'import os; os._exit(0)' > sitecustomize.py; printf x > a.pth; printf x > calc.pyc",
        "rm calc.py; mkdir calc.py; echo x > calc.py/x",
        "mkdir -p tests/__pycache__; printf x > tests/__pycache__/test_calc.cpython-311.pyc",
    ] {
        let applied = worked(commands);
        for (path, content) in pristine() {
            // What was changed in place by a link is as it was; only the product code may be gone.
            let kept = applied.files.get(&path) == Some(&content) || applied.deleted.contains(&path);
            assert!(kept && !applied.deleted.iter().any(|p| p.starts_with("tests/")), "{commands}: {applied:?}");
        }
        assert!(applied.changed.is_empty(), "{commands}: {applied:?}");
        assert_eq!(passed(&applied), 0, "{commands}");
    }
}
