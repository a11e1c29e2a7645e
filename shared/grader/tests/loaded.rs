//! Suites graded from loaded interpreters have the verdicts that cold ones give, for right, wrong and forging solutions, and
//! nothing of one grade is left for the next.
#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests
mod sandboxed;

use rollmill_grader::t2::{TestOutcome, interpreter};
use rollmill_sandbox::{Namespaces, NamespacesOptions, Root, Sandbox, Warm};
use sandboxed::one_test::{RIGHT, SUITES, Suite, graded};
use sandboxed::{settled, tools};
use std::sync::Arc;

const SOLUTIONS: [&str; 6] = [
    RIGHT,
    "def f(x):\n    return x\n",
    "import os\nos._exit(0)\n",
    "import unittest, sys\nunittest.TestCase.run = lambda self, result=None: result\n\
     for m in list(sys.modules.values()):\n    if hasattr(m, 'TestReport'): m.TestReport = None\ndef f(x):\n    return x\n",
    "class E:\n    def __eq__(self, o): return True\n    __hash__ = None\ndef f(x):\n    return E()\n",
    RIGHT,
];

fn outcome(sandbox: &dyn Sandbox, suite: Suite, solution: &str) -> TestOutcome {
    settled(|| graded(sandbox, suite, solution, true)).unwrap().verdicts[0].outcome
}

#[test]
fn loaded_and_cold_agree() {
    if tools().is_none() {
        return;
    }
    let root = Root::Named("all".into());
    let cold = Arc::new(Namespaces::open(NamespacesOptions { root, ..NamespacesOptions::default() }).unwrap());
    let loaded = Warm::new(cold.clone(), vec![interpreter()]);
    for suite in SUITES {
        let of = |sandbox: &dyn Sandbox| SOLUTIONS.map(|solution| outcome(sandbox, suite, solution));
        let (cold, loaded) = (of(cold.as_ref()), of(&loaded));
        assert_eq!(loaded, cold, "{suite:?}");
        assert_eq!((cold[0], cold[5]), (TestOutcome::Passed, TestOutcome::Passed), "{suite:?}");
        assert!(cold[1..5].iter().all(|o| *o != TestOutcome::Passed), "{suite:?}: {cold:?}");
    }
}
