//! Suites graded from loaded interpreters have the verdicts that cold ones give, for right, wrong and forging solutions, and
//! nothing of one grade is left for the next.
#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests
mod sandboxed;

use rollmill_grader::diff::Files;
use rollmill_grader::t2::{Framework, PythonSuite, T2Options, TestOutcome, grade_repository, interpreter};
use rollmill_sandbox::{Namespaces, NamespacesOptions, Root, RootSource, Sandbox, Warm, prepare};
use sandboxed::settled;
use std::sync::Arc;

const SUITES: [(Framework, &str, &str); 2] = [
    (Framework::Pytest, "test_a.py::test_f", "from a import f\ndef test_f():\n    assert f(2) == 4\n"),
    (
        Framework::Unittest,
        "test_a.T.test_f",
        "import unittest\nfrom a import f\nclass T(unittest.TestCase):\n    def test_f(self):\n        self.assertEqual(f(2), 4)\n",
    ),
];

const SOLUTIONS: [&str; 6] = [
    "def f(x):\n    return x * 2\n",
    "def f(x):\n    return x\n",
    "import os\nos._exit(0)\n",
    "import unittest, sys\nunittest.TestCase.run = lambda self, result=None: result\n\
     for m in list(sys.modules.values()):\n    if hasattr(m, 'TestReport'): m.TestReport = None\ndef f(x):\n    return x\n",
    "class E:\n    def __eq__(self, o): return True\n    __hash__ = None\ndef f(x):\n    return E()\n",
    "def f(x):\n    return x * 2\n",
];

fn outcome(sandbox: &dyn Sandbox, (framework, id, text): (Framework, &str, &str), solution: &str) -> TestOutcome {
    let files = |name: &str, text: &str| Files::from([(name.to_string(), text.as_bytes().to_vec())]);
    let (ids, paths) = ([id.to_string()], [String::new()]);
    let suite = PythonSuite {
        framework,
        tests: &files("test_a.py", text),
        ids: &ids,
        import_paths: &paths,
        site: &Files::new(),
        without_twin: &[],
        has_tests_b: false,
    };
    let graded = settled(|| grade_repository(sandbox, &files("a.py", solution), &suite, &T2Options::default()));
    graded.unwrap().verdicts[0].outcome
}

#[test]
fn loaded_and_cold_agree() {
    let options = NamespacesOptions::default();
    let source = RootSource::profile("all").unwrap();
    if let Err(e) = prepare("all", &source, &options.cache_dir) {
        let required = std::env::var("ROLLMILL_REQUIRE").is_ok_and(|r| r.split(',').any(|p| p == "packages"));
        assert!(!required, "{e}");
        return eprintln!("skipped: packages: {e}");
    }
    let cold = Arc::new(Namespaces::open(NamespacesOptions { root: Root::Named("all".into()), ..options }).unwrap());
    let loaded = Warm::new(cold.clone(), vec![interpreter()]);
    for suite in SUITES {
        let of = |sandbox: &dyn Sandbox| SOLUTIONS.map(|solution| outcome(sandbox, suite, solution));
        let (cold, loaded) = (of(cold.as_ref()), of(&loaded));
        assert_eq!(loaded, cold, "{suite:?}");
        assert_eq!((cold[0], cold[5]), (TestOutcome::Passed, TestOutcome::Passed), "{suite:?}");
        assert!(cold[1..5].iter().all(|o| *o != TestOutcome::Passed), "{suite:?}: {cold:?}");
    }
}
