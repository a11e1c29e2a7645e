//! Attacks on tier T0 that run inside the solution: each earns exactly what the same wrong solution earns without the trick.
//! A naive grader (tests in the solution's directory, exit code 0 means passed) pays for them, which shows that they work;
//! honest solutions that look alike pass both.

#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

mod sandboxed;

use rollmill_grader::CaseOutcome::{Died, ImportError, Protocol};
use rollmill_grader::{Case, Solution, SuiteResult, T0Options, Value};
use rollmill_sandbox::{Limits, Sandbox, Spec};
use sandboxed::attacks::{ATTACKS, Attack, HONEST, PROTOCOL, WRONG};
use sandboxed::{graded, options, sandbox};
use std::time::Duration;

fn cases() -> Vec<Case> {
    [1, 2, 3, 10].into_iter().map(|x| Case::exact(vec![Value::int(x)], Value::int(x * x + 1))).collect()
}

fn grade(source: &str) -> SuiteResult {
    let opts = T0Options { per_call: Duration::from_secs(1), total: Duration::from_secs(20), ..options() };
    graded(&Solution::from_source(source), &cases(), &opts)
}

/// The control: the solution and the asserts in one process, judged by its exit code.
fn naive_pays(source: &str) -> bool {
    let test = "import sys\nsys.path.insert(0, '/work')\nfrom solution import f\ndef test(x, expected):\n    assert f(x) == expected\nfor x in (1, 2, 3, 10): test(x, x * x + 1)\n";
    let files = [("solution.py", source), ("test.py", test)];
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
    assert_eq!((wrong.passed, wrong.total), (1, 4));
    for Attack { name, source, .. } in ATTACKS {
        let result = grade(source);
        // A trick that spoils its own process loses what that process had not answered yet.
        let spoiled = result.verdicts.iter().any(|v| matches!(v.outcome, Died | ImportError | Protocol));
        assert!(result.passed == wrong.passed || (spoiled && result.passed < wrong.passed), "{name}: {result:?}");
    }
}

#[test]
fn the_naive_grader_is_fooled() {
    assert!(!naive_pays(WRONG));
    for Attack { name, source, fools_asserts, .. } in ATTACKS {
        assert!(!*fools_asserts || naive_pays(source), "{name} does not fool the control, so it shows nothing");
    }
}

#[test]
fn attacks_on_the_protocol_earn_no_more() {
    for (name, source) in PROTOCOL {
        eprintln!("{name}");
        let result = grade(source);
        assert!(result.passed <= 1, "{name}: {result:?}");
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
