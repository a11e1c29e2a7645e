//! The checks of one candidate, in the sandbox.

use crate::VerifyConfig;
use crate::orders::{Asked, Borne};
use rollmill_grader::reward::Components;
use rollmill_grader::{
    Case, CaseOutcome, GradeError, RewardConfig, Solution, Suite, SuiteResult, T0Options, Value, grade, pass_rate,
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

/// Decides about one candidate. An error is the machine's: try again or stop, but do not reject.
pub fn check(sandbox: &dyn Sandbox, c: &Candidate, config: &VerifyConfig) -> Result<Decision, GradeError> {
    if let Some(reason) = &c.unconvertible {
        return unless_broken(sandbox, c, Decision::rejected("tests_not_literal_calls", reason.clone()));
    }
    match decide(sandbox, c, config) {
        Err(e @ (GradeError::Arguments { .. } | GradeError::Task(_))) => {
            unless_broken(sandbox, c, Decision::rejected("bad_tests", e.to_string()))
        }
        decided => decided,
    }
}

/// A rejection for its tests, unless the reference does not even load: the better reason, for it may be why they fail.
fn unless_broken(sandbox: &dyn Sandbox, c: &Candidate, decision: Decision) -> Result<Decision, GradeError> {
    let reference = c.reference.as_ref().filter(|_| c.kind == "function");
    let broken = reference.map(|r| load_error(sandbox, r)).transpose()?.flatten();
    Ok(broken.map_or(decision, |e| Decision::rejected("reference_fails", e)))
}

fn decide(sandbox: &dyn Sandbox, c: &Candidate, config: &VerifyConfig) -> Result<Decision, GradeError> {
    let Some(reference) = &c.reference else {
        return Ok(Decision::rejected("no_reference", "the source gives no solution to check the tests with".into()));
    };
    let suites = match suites_of(c) {
        Ok(suites) => suites,
        Err(what) => return Ok(Decision::rejected("bad_tests", what)),
    };
    if let Some(shown) = shown_hidden_test(&suites) {
        return Ok(Decision::rejected("hidden_test_is_visible", shown));
    }
    let options = || T0Options { per_call: Duration::from_secs_f64(config.call_seconds), ..T0Options::default() };
    let Some(a) = suites.iter().find(|(name, _)| *name == "a").map(|(_, a)| a) else {
        return Ok(Decision::rejected("bad_tests", "tests a: there are none".into()));
    };
    // One solution, whatever asks it: tests B of a repository may be calls of a function in it.
    let reference = a.solution(reference);
    let asked = Asked { sandbox, reference: &reference, options: options(), repeats: config.repeats };
    let Borne { bearings, isolation } = match asked.all(&suites)? {
        Ok(borne) => borne,
        Err(decision) => return Ok(decision),
    };
    for (name, suite) in suites.iter().filter(|(name, _)| *name != "visible") {
        for (reason, solution) in suite.idle_solutions() {
            let result = suite.grade(sandbox, &solution, &options())?;
            if result.passed > 0 && earns(&result) {
                return Ok(Decision::rejected(
                    reason,
                    format!("{} of {} tests {name} pass", result.passed, result.total),
                ));
            }
        }
    }
    let counts: serde_json::Map<_, _> =
        suites.iter().map(|(n, suite)| ((*n).to_string(), json!(suite.inputs().len()))).collect();
    let tier = a.tier().name();
    let mut verified = json!({ "repeats": config.repeats, "cases": counts, "isolation": isolation, "tier": tier });
    if !bearings.is_empty() {
        verified["bearing"] = json!(bearings);
    }
    Ok(Decision { reason: None, detail: String::new(), verified })
}

/// The visible, A and B tests that the candidate has, or what is wrong with them.
fn suites_of(c: &Candidate) -> Result<Vec<(&'static str, Suite)>, String> {
    let texts = [("visible", Some(&c.visible_tests)), ("a", Some(&c.tests_a)), ("b", c.tests_b.as_ref())];
    let mut suites = Vec::new();
    for (name, json) in texts.into_iter().filter_map(|(name, json)| Some((name, json?))) {
        suites.push((name, Suite::parse(&c.entry_point, json).map_err(|e| format!("tests {name}: {e}"))?));
    }
    suites.retain(|(_, suite)| !suite.is_empty());
    Ok(suites)
}

/// A hidden test whose input a policy would see, if there is one.
fn shown_hidden_test(suites: &[(&'static str, Suite)]) -> Option<String> {
    let visible: Vec<String> =
        suites.iter().filter(|(n, _)| *n == "visible").flat_map(|(_, suite)| suite.inputs()).collect();
    suites.iter().filter(|(n, _)| *n != "visible").find_map(|(name, suite)| {
        let index = suite.inputs().iter().position(|input| visible.contains(input))?;
        Some(format!("test {name} {index} has the input of a visible test"))
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
