//! Repositories that the tests of tier T2 share: a module with sums, its tests, and how they are asked.

use super::{files, settled};
use rollmill_grader::GradeError;
use rollmill_grader::diff::Files;
use rollmill_grader::t2::{Framework, PythonSuite, RepositoryResult, T2Options, TestOutcome, grade_repository};
use rollmill_sandbox::Sandbox;
use std::time::Duration;

pub const TESTS: &str = r#"
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

pub const RIGHT: &str = "def add(a, b):\n    return a + b\n";
/// The measure of every attack: it passes nothing.
pub const WRONG: &str = "def add(a, b):\n    return -1\n";

pub fn options() -> T2Options {
    T2Options { per_test: Duration::from_secs(3), ..T2Options::default() }
}

pub struct Repository<'a> {
    pub framework: Framework,
    pub tests: Files,
    pub ids: Vec<String>,
    pub without_twin: &'a [String],
}

impl Repository<'_> {
    pub fn unittest(text: &str, ids: &[&str]) -> Repository<'static> {
        let ids = ids.iter().map(|id| format!("tests.test_calc.{id}")).collect();
        let tests = files(&[("tests/__init__.py", ""), ("tests/test_calc.py", text)]);
        Repository { framework: Framework::Unittest, tests, ids, without_twin: &[] }
    }

    pub fn pytest(text: &str, ids: &[&str]) -> Repository<'static> {
        let ids = ids.iter().map(|id| format!("tests/test_calc.py::{id}")).collect();
        let conftest = "import pytest\n@pytest.fixture\ndef two(): return 2\n";
        let tests = files(&[("tests/conftest.py", conftest), ("tests/test_calc.py", text)]);
        Repository { framework: Framework::Pytest, tests, ids, without_twin: &[] }
    }

    pub fn asked(&self, sandbox: &dyn Sandbox, code: &Files) -> Result<RepositoryResult, GradeError> {
        self.asked_in(sandbox, code, options().per_test)
    }

    pub fn asked_in(
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

    pub fn outcomes(&self, sandbox: &dyn Sandbox, code: &[(&str, &str)]) -> Vec<TestOutcome> {
        let result = self.asked(sandbox, &files(code)).unwrap();
        result.verdicts.iter().map(|v| v.outcome).collect()
    }
}

pub fn sums() -> Repository<'static> {
    Repository::unittest(TESTS, &["Sums.test_add", "Sums.test_many", "Sums.test_error"])
}
