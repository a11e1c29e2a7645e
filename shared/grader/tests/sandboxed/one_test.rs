//! A suite of one test, `f(2) == 4`, in either framework: what loaded interpreters are compared and measured with.

use rollmill_grader::GradeError;
use rollmill_grader::diff::Files;
use rollmill_grader::t2::{Framework, PythonSuite, RepositoryResult, T2Options, grade_repository};
use rollmill_sandbox::Sandbox;

/// A framework, the id of its test, the text of the file.
pub type Suite = (Framework, &'static str, &'static str);

pub const SUITES: [Suite; 2] = [
    (Framework::Pytest, "test_a.py::test_f", "from a import f\ndef test_f():\n    assert f(2) == 4\n"),
    (
        Framework::Unittest,
        "test_a.T.test_f",
        "import unittest\nfrom a import f\nclass T(unittest.TestCase):\n    def test_f(self):\n        self.assertEqual(f(2), 4)\n",
    ),
];

pub const RIGHT: &str = "def f(x):\n    return x * 2\n";

pub fn graded(
    sandbox: &dyn Sandbox,
    (framework, id, text): Suite,
    solution: &str,
    twins: bool,
) -> Result<RepositoryResult, GradeError> {
    let files = |name: &str, text: &str| Files::from([(name.to_string(), text.as_bytes().to_vec())]);
    let (ids, paths) = ([id.to_string()], [String::new()]);
    let suite = PythonSuite {
        framework,
        tests: &files("test_a.py", text),
        ids: &ids,
        import_paths: &paths,
        site: &Files::new(),
        without_twin: &[],
        has_tests_b: true,
    };
    let options = T2Options { twins, ..T2Options::default() };
    grade_repository(sandbox, &files("a.py", solution), &suite, &options)
}
