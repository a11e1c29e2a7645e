//! The checks of one candidate, in the sandbox.

use crate::VerifyConfig;
use rollmill_grader::reward::Components;
use rollmill_grader::{
    Case, CaseOutcome, GradeError, RewardConfig, Solution, SuiteResult, T0Options, Value, grade, parse_cases, pass_rate,
};
use rollmill_sandbox::Sandbox;
use rollmill_schema::Candidate;
use serde_json::json;
use std::time::Duration;

/// What was decided, and what was seen.
#[derive(Clone, Debug)]
pub struct Decision {
    /// Why it is rejected, in one word; none if admitted.
    pub reason: Option<String>,
    /// The evidence for people.
    pub detail: String,
    /// Counts and isolation, as JSON.
    pub verified: serde_json::Value,
}

impl Decision {
    /// A rejection without measurements.
    pub fn rejected(reason: &str, detail: String) -> Decision {
        Decision { reason: Some(reason.into()), detail, verified: json!({}) }
    }
}

/// Solutions that must earn nothing: no file content at all, and a function that does nothing.
fn nothing(entry_point: &str) -> [(&'static str, Solution); 2] {
    [
        ("empty_solution_passes", Solution::from_source("")),
        ("doing_nothing_passes", Solution::from_source(&format!("def {entry_point}(*args, **kwargs):\n    pass\n"))),
    ]
}

/// Decides about one candidate. An error is the machine's: try again or stop, but do not reject.
pub fn check(sandbox: &dyn Sandbox, c: &Candidate, config: &VerifyConfig) -> Result<Decision, GradeError> {
    if let Some(reason) = &c.unconvertible {
        // A reference that does not even load is the better reason: its tests may be beyond repair because of it.
        let broken = c.reference.as_ref().map(|r| load_error(sandbox, r)).transpose()?.flatten();
        let not_calls = || Decision::rejected("tests_not_literal_calls", reason.clone());
        return Ok(broken.map_or_else(not_calls, |e| Decision::rejected("reference_fails", e)));
    }
    let Some(reference) = &c.reference else {
        return Ok(Decision::rejected("no_reference", "the source gives no solution to check the tests with".into()));
    };
    let suites = [("visible", Some(&c.visible_tests)), ("a", Some(&c.tests_a)), ("b", c.tests_b.as_ref())];
    let mut cases: Vec<(&str, Vec<Case>)> = Vec::new();
    for (name, json) in suites {
        match json.map(|j| parse_cases(j)) {
            None => (),
            Some(Ok(parsed)) => cases.push((name, parsed)),
            Some(Err(e)) => return Ok(Decision::rejected("bad_tests", format!("tests {name}: {e}"))),
        }
    }
    if let Some(shown) = shown_hidden_test(&cases) {
        return Ok(Decision::rejected("hidden_test_is_visible", shown));
    }
    let all: Vec<Case> = cases.iter().flat_map(|(_, c)| c.clone()).collect();
    let options =
        |seed| T0Options { per_call: Duration::from_secs_f64(config.call_seconds), seed, ..T0Options::default() };
    let reference = Solution::from_source(reference);
    let mut last = None;
    for repeat in 0..config.repeats.max(1) {
        let result = grade(sandbox, &reference, &c.entry_point, &all, &options(u64::from(repeat)))?;
        if result.passed < result.total {
            return Ok(reference_fails(&result, repeat));
        }
        last = Some(result);
    }
    for (reason, solution) in nothing(&c.entry_point) {
        for (name, cases) in cases.iter().filter(|(name, _)| *name != "visible") {
            let result = grade(sandbox, &solution, &c.entry_point, cases, &options(0))?;
            if result.passed > 0 && earns(&result) {
                return Ok(Decision::rejected(
                    reason,
                    format!("{} of {} tests {name} pass", result.passed, result.total),
                ));
            }
        }
    }
    let isolation = last.map(|r| r.isolation).unwrap_or_default();
    let counts: serde_json::Map<_, _> = cases.iter().map(|(n, c)| ((*n).to_string(), json!(c.len()))).collect();
    let verified = json!({ "repeats": config.repeats, "cases": counts, "isolation": isolation });
    Ok(Decision { reason: None, detail: String::new(), verified })
}

/// A hidden test whose arguments a policy would see, if there is one.
fn shown_hidden_test(cases: &[(&str, Vec<Case>)]) -> Option<String> {
    let visible: Vec<&Case> = cases.iter().filter(|(n, _)| *n == "visible").flat_map(|(_, c)| c).collect();
    cases.iter().filter(|(n, _)| *n != "visible").find_map(|(name, cases)| {
        let index = cases.iter().position(|c| visible.iter().any(|v| v.args == c.args))?;
        Some(format!("test {name} {index} has the arguments of a visible test"))
    })
}

/// Why a reference cannot be loaded, if so.
fn load_error(sandbox: &dyn Sandbox, reference: &str) -> Result<Option<String>, GradeError> {
    let any_call = [Case::exact(vec![], Value::None)];
    let result =
        grade(sandbox, &Solution::from_source(reference), "no_such_function", &any_call, &T0Options::default())?;
    let raised = |o: CaseOutcome| matches!(o, CaseOutcome::ImportError | CaseOutcome::SyntaxError);
    Ok(result.import_error.filter(|_| result.verdicts.iter().any(|v| raised(v.outcome))))
}

/// Whether a result of tests A or B alone would earn something under the pure preset.
fn earns(result: &SuiteResult) -> bool {
    let rate = pass_rate(result.passed, result.total);
    let components =
        Components { compiles: f64::from(u8::from(result.compiled)), tests_a: rate, tests_b: None, style: 0.0 };
    RewardConfig::default().total(&components) > 0.0
}

fn reference_fails(result: &SuiteResult, repeat: u32) -> Decision {
    let failing = result.verdicts.iter().find(|v| v.outcome != CaseOutcome::Passed);
    let reason = match failing.map(|v| v.outcome) {
        Some(CaseOutcome::Timeout) => "reference_hangs",
        _ if repeat > 0 => "reference_unstable",
        _ => "reference_fails",
    };
    let what = result.import_error.clone().or_else(|| failing.map(|v| format!("test {}: {}", v.index, v.detail)));
    let detail = format!("{} of {} tests pass; {}", result.passed, result.total, what.unwrap_or_default());
    Decision::rejected(reason, detail)
}
