//! What came of a suite, and the short text a policy sees of it.

use super::loader::Refusal;
use crate::blame::{Failure, suite_result};
use crate::cases::Case;
use crate::compare::Comparator;
use rollmill_sandbox::Isolation;
use serde::{Deserialize, Serialize};

/// What came of one case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaseOutcome {
    /// Every call returned what was expected.
    Passed,
    /// A call returned something else, or returned where an exception was expected.
    Wrong,
    /// A call raised.
    Exception,
    /// A limit on time passed, and the solution had spent the CPU or was truly idle.
    Timeout,
    /// The memory limit ended the worker.
    Oom,
    /// The worker ended: an exit, a signal, a closed pipe; or too many calls before this one had ended it.
    Died,
    /// The worker wrote something that is no answer to what was asked.
    Protocol,
    /// The source does not compile.
    SyntaxError,
    /// The source raised when it was imported.
    ImportError,
    /// The function is not there or cannot be called.
    NoFunction,
    /// The returned value is too large, too deep or cyclic.
    Unreturnable,
}

/// The verdict on one case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaseVerdict {
    /// Position in the list of cases, from 0.
    pub index: u32,
    /// What came of it.
    pub outcome: CaseOutcome,
    /// What the solution did (`got 3`, `ValueError: ...`), at most 300 characters; never the expected value.
    pub detail: String,
}

/// The verdicts on all cases, in their order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SuiteResult {
    /// Whether Python compiles the main file. Decided before anything of it runs.
    pub compiled: bool,
    /// Cases passed.
    pub passed: u32,
    /// Cases in all.
    pub total: u32,
    /// One a case.
    pub verdicts: Vec<CaseVerdict>,
    /// Why the solution could not be loaded, if so.
    pub import_error: Option<String>,
    /// [`rollmill_sandbox::Isolation`] under which this was measured.
    pub isolation: serde_json::Value,
}

impl SuiteResult {
    /// One verdict a case, a refusal of the solution being the verdict on all.
    pub(super) fn of(
        mut failures: Vec<Option<Failure>>,
        refusal: Option<Refusal>,
        isolation: &Isolation,
    ) -> SuiteResult {
        if let Some(refusal) = &refusal {
            failures.iter_mut().for_each(|f| *f = Some(refusal.failure.clone()));
        }
        let compiled = refusal.as_ref().is_none_or(|r| r.compiled);
        let import_error = refusal.map(|r| r.failure.detail);
        SuiteResult { compiled, import_error, ..suite_result(failures, isolation) }
    }
}

const SHOWN: usize = 300;

/// What a policy sees after an attempt at the visible tests: how many passed, and of the first that did not, the arguments,
/// what was expected and what came. Deterministic, at most 300 characters.
pub fn visible_output(result: &SuiteResult, cases: &[Case]) -> String {
    if let Some(error) = &result.import_error {
        let stage = if result.compiled { "the solution cannot be loaded" } else { "the solution does not compile" };
        return clip(&format!("{stage}: {error}"), SHOWN);
    }
    let head = format!("{} of {} visible tests passed.", result.passed, result.total);
    let Some(verdict) = result.verdicts.iter().find(|v| v.outcome != CaseOutcome::Passed) else { return head };
    let Some(case) = cases.get(verdict.index as usize) else { return head };
    let named = case.kwargs.iter().map(|(name, value)| format!("{name}={}", value.to_literal()));
    let args: Vec<String> = case.args.iter().map(|a| a.to_literal()).chain(named).collect();
    let args = clip(&args.join(", "), 70);
    let wanted = clip(&wanted(case), 70);
    let detail = match verdict.outcome {
        CaseOutcome::Timeout => "the time limit passed".to_owned(),
        CaseOutcome::Oom => "the memory limit was exceeded".to_owned(),
        CaseOutcome::NoFunction => "the function is not defined".to_owned(),
        _ => verdict.detail.clone(),
    };
    clip(&format!("{head} Test {} with ({args}): expected {wanted}, but {detail}", verdict.index + 1), SHOWN)
}

fn wanted(case: &Case) -> String {
    match (&case.expect_exception, case.comparator) {
        (Some(name), _) => format!("{name} to be raised"),
        (None, Comparator::Truthy) => "a true value".to_owned(),
        (None, Comparator::Falsy) => "a false value".to_owned(),
        (None, Comparator::Predicate) => "a value that the task's predicate accepts".to_owned(),
        (None, _) if !case.steps.is_empty() => "an object that holds in every step".to_owned(),
        (None, Comparator::Exact | Comparator::Identical) => case.expected.to_literal(),
        (None, other) => format!("{} ({other})", case.expected.to_literal()),
    }
}

/// At most `max` characters, with an ellipsis where something was cut.
pub(crate) fn clip(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        return text.to_owned();
    }
    text.chars().take(max - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    fn result(outcome: CaseOutcome, detail: &str) -> SuiteResult {
        let verdicts = vec![
            CaseVerdict { index: 0, outcome: CaseOutcome::Passed, detail: String::new() },
            CaseVerdict { index: 1, outcome, detail: detail.to_owned() },
        ];
        SuiteResult {
            compiled: true,
            passed: 1,
            total: 2,
            verdicts,
            import_error: None,
            isolation: serde_json::Value::Null,
        }
    }

    #[test]
    fn short_text() {
        let cases =
            vec![Case::exact(vec![], Value::None), Case::exact(vec![Value::int(1), Value::str("a")], Value::int(3))];
        assert_eq!(
            visible_output(&result(CaseOutcome::Wrong, "got 4"), &cases),
            "1 of 2 visible tests passed. Test 2 with (1, 'a'): expected 3, but got 4"
        );
        assert_eq!(visible_output(&result(CaseOutcome::Passed, ""), &cases), "1 of 2 visible tests passed.");
        let long =
            vec![cases[0].clone(), Case::exact(vec![Value::str(&"é".repeat(500))], Value::str(&"x".repeat(500)))];
        assert!(visible_output(&result(CaseOutcome::Wrong, &"y".repeat(300)), &long).chars().count() <= SHOWN);
        let broken = SuiteResult {
            compiled: false,
            import_error: Some("SyntaxError: bad".into()),
            ..result(CaseOutcome::Passed, "")
        };
        assert_eq!(visible_output(&broken, &cases), "the solution does not compile: SyntaxError: bad");
    }
}
