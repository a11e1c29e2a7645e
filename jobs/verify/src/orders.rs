//! Which ways of asking a task bears, and that its reference passes every time in the strictest of them.
//!
//! In: a task's suites and its reference. Out: what each suite of functions bears, or why the task is rejected. What must
//! hold: what is recorded was run, alone in a process as a solution will be or together with the task's other calls; only a
//! reference with state between its calls (a counter, a cache that changes results) bears less than any order.

use crate::Decision;
use rollmill_grader::{Bearing, CaseOutcome, CaseVerdict, GradeError, Solution, Suite, SuiteResult, T0Options};
use rollmill_sandbox::Sandbox;
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// Suites by name: `visible`, `a`, `b`.
pub type Suites = [(&'static str, Suite)];

/// What was seen of a reference that passes.
#[derive(Debug, Default)]
pub struct Borne {
    /// By the suite's name; without those whose cases have a process each.
    pub bearings: BTreeMap<&'static str, Bearing>,
    /// Of the sandbox.
    pub isolation: Json,
}

/// A reference as it is asked.
pub struct Asked<'a> {
    pub sandbox: &'a dyn Sandbox,
    pub reference: &'a Solution,
    /// For one grade, with the seed 0.
    pub options: T0Options,
    /// How often it must pass, each time with another seed.
    pub repeats: u32,
}

impl Asked<'_> {
    /// Asks all suites. The usual reference has no state, and is run no more often than it must pass.
    pub fn all(&self, suites: &Suites) -> Result<Result<Borne, Decision>, GradeError> {
        let mut borne = Borne::default();
        let mut stateless = true;
        for suite in joined(suites) {
            match self.times(&suite, suite.widest())? {
                Ok(isolation) => borne.isolation = isolation,
                // Time is what a state between calls does not take: asking again would only cost it once more.
                Err(failed) if suite.widest().is_some() && !failed.hangs() => stateless = false,
                Err(failed) => return Ok(Err(failed.decision())),
            }
        }
        for (name, suite) in suites.iter().filter(|(_, suite)| suite.widest().is_some()) {
            if stateless {
                borne.bearings.extend(suite.widest().map(|bearing| (*name, bearing)));
                continue;
            }
            match self.alone(suite)? {
                Ok((bearing, isolation)) => {
                    borne.bearings.insert(name, bearing);
                    borne.isolation = isolation;
                }
                Err(decision) => return Ok(Err(decision)),
            }
        }
        Ok(Ok(borne))
    }

    /// What one suite bears: found out, then asked in that way as often as the reference must pass.
    fn alone(&self, suite: &Suite) -> Result<Result<(Bearing, Json), Decision>, GradeError> {
        let unstable = |detail: String| Decision::rejected("reference_unstable", detail);
        let once = Bearing { shuffled: false, repeated: false };
        let first = suite.grade(self.sandbox, self.reference, &once.options(&self.options))?;
        if first.passed < first.total {
            return Ok(Err(Failed { result: first, repeat: 0 }.decision()));
        }
        let Some(bearing) = suite.bearing(self.sandbox, self.reference, &self.options)? else {
            return Ok(Err(unstable("it passes once and fails when asked the same again".into())));
        };
        let times = self.times(suite, Some(bearing))?;
        Ok(times.map(|isolation| (bearing, isolation)).map_err(|failed| unstable(failed.decision().detail)))
    }

    /// Every time, in one way; the isolation of the last.
    fn times(&self, suite: &Suite, way: Option<Bearing>) -> Result<Result<Json, Failed>, GradeError> {
        let mut isolation = Json::Null;
        for repeat in 0..self.repeats.max(1) {
            let options = T0Options { seed: u64::from(repeat), ..self.options.clone() };
            let options = way.map_or_else(|| options.clone(), |way| way.options(&options));
            let result = suite.grade(self.sandbox, self.reference, &options)?;
            if result.passed < result.total {
                return Ok(Err(Failed { result, repeat }));
            }
            isolation = result.isolation;
        }
        Ok(Ok(isolation))
    }
}

/// The same tests in as few suites as they can be asked in.
fn joined(suites: &Suites) -> Vec<Suite> {
    let mut all: Vec<Suite> = Vec::new();
    for (_, suite) in suites {
        match (all.last_mut(), suite) {
            (Some(Suite::Calls { cases, .. }), Suite::Calls { cases: more, .. }) => cases.extend(more.iter().cloned()),
            _ => all.push(suite.clone()),
        }
    }
    all
}

/// A reference that does not pass, and the how manieth time that was.
struct Failed {
    result: SuiteResult,
    repeat: u32,
}

impl Failed {
    fn first(&self) -> Option<&CaseVerdict> {
        self.result.verdicts.iter().find(|v| v.outcome != CaseOutcome::Passed)
    }

    fn hangs(&self) -> bool {
        self.first().is_some_and(|v| v.outcome == CaseOutcome::Timeout)
    }

    fn decision(&self) -> Decision {
        let reason = match self.repeat {
            _ if self.hangs() => "reference_hangs",
            0 => "reference_fails",
            _ => "reference_unstable",
        };
        let result = &self.result;
        let test = || self.first().map(|v| format!("test {}: {}", v.index, v.detail));
        let what = result.import_error.clone().or_else(test).unwrap_or_default();
        Decision::rejected(reason, format!("{} of {} tests pass; {what}", result.passed, result.total))
    }
}
