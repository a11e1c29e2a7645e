//! Honest solutions under real overload: sandboxes that spin on every core several times over, started and ended here. A
//! limit on the wall clock alone, the control, blames a solution that did nothing wrong.

#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

mod sandboxed;

use rollmill_grader::{Case, GradeError, Solution, SuiteResult, T0Options, TestSource, Value, grade, grade_tests};
use rollmill_sandbox::{Limits, Sandbox, Session, Spec};
use sandboxed::sandbox;
use std::time::Duration;

const CALL: Duration = Duration::from_millis(300);
/// Uses two thirds of the limit of a call, in CPU time.
const HONEST: &str = "import time\ndef f(x):\n    end = time.thread_time() + 0.2\n    while time.thread_time() < end: pass\n    return x\n";
const SPINNERS_A_CORE: usize = 4;

/// Busy processes, each in a sandbox; all end when this is dropped.
fn spinners(sandbox: &dyn Sandbox) -> Vec<Box<dyn Session>> {
    let cores = std::thread::available_parallelism().unwrap().get();
    let long = Duration::from_secs(300);
    let spec = Spec {
        argv: ["python3", "-I", "-S", "-c", "while True: pass"].map(str::to_owned).to_vec(),
        limits: Limits { wall: long, cpu: long, ..Limits::default() },
        ..Spec::default()
    };
    (0..SPINNERS_A_CORE * cores).map(|_| sandbox.start(&spec).unwrap()).collect()
}

/// What a limit on the wall clock says of one call.
fn blamed_by_the_clock(sandbox: &dyn Sandbox) -> bool {
    let spec = Spec {
        argv: ["python3", "-I", "-S", "-c", &format!("{HONEST}\nf(1)")].map(str::to_owned).to_vec(),
        limits: Limits { wall: CALL, ..Limits::default() },
        ..Spec::default()
    };
    sandbox.run(&spec).unwrap().facts.timed_out
}

#[test]
fn no_honest_solution_is_harmed() {
    let sandbox = sandbox();
    let busy = spinners(sandbox);
    let opts = T0Options { per_call: CALL, total: Duration::from_secs(3), ..T0Options::default() };
    let solution = Solution::from_source(HONEST);
    let cases = [1, 2].map(|x| Case::exact(vec![Value::int(x)], Value::int(x)));
    let tests = TestSource { tests: vec!["assert f(1) == 1 and f(2) == 2".into()], ..TestSource::default() };
    let harmed = |result: Result<SuiteResult, GradeError>| match result {
        Ok(result) if result.passed == result.total => None,
        Err(error) if error.is_transient() => None,
        other => Some(format!("{other:?}")),
    };
    let mut found: Vec<String> = Vec::new();
    let mut blamed = 0;
    for _ in 0..4 {
        blamed += u32::from(blamed_by_the_clock(sandbox));
        found.extend(harmed(grade(sandbox, &solution, "f", &cases, &opts)));
        found.extend(harmed(grade_tests(sandbox, &solution, "f", &tests, &opts)));
    }
    drop(busy);
    assert!(found.is_empty(), "{found:#?}");
    assert!(blamed > 0, "the control blames nobody, so there was no overload and this shows nothing");
}
