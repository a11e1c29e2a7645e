//! Whose fault a passed time limit is: a solution is blamed only if it spent the CPU or was truly idle.

use crate::t0::{CaseOutcome, CaseVerdict, GradeError, SuiteResult, clip};
use rollmill_sandbox::{Facts, Isolation};
use std::time::Duration;

/// Why a case did not pass.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    pub outcome: CaseOutcome,
    pub detail: String,
}

impl Failure {
    pub fn new(outcome: CaseOutcome, detail: impl Into<String>) -> Failure {
        Failure { outcome, detail: detail.into() }
    }
}

/// One verdict a case, `None` for one that passed.
pub(crate) fn suite_result(failures: Vec<Option<Failure>>, isolation: &Isolation) -> SuiteResult {
    let passed = || Failure::new(CaseOutcome::Passed, "");
    let verdict = |(index, failure): (usize, Option<Failure>)| {
        let Failure { outcome, detail } = failure.unwrap_or_else(passed);
        CaseVerdict { index: index as u32, outcome, detail: clip(&detail, 300) }
    };
    SuiteResult {
        compiled: true,
        passed: failures.iter().filter(|f| f.is_none()).count() as u32,
        total: failures.len() as u32,
        verdicts: failures.into_iter().enumerate().map(verdict).collect(),
        import_error: None,
        isolation: serde_json::to_value(isolation).unwrap_or(serde_json::Value::Null),
    }
}

/// Why a run has ended, by what the kernel and the watcher saw; `allowed` is the CPU time it may take.
pub(crate) fn why_ended(facts: &Facts, allowed: Duration) -> Result<Failure, GradeError> {
    if facts.oom {
        return Ok(Failure::new(CaseOutcome::Oom, "the memory limit was exceeded"));
    }
    if facts.timed_out && at_fault(facts, allowed) {
        return Ok(Failure::new(CaseOutcome::Timeout, "the time limit passed"));
    }
    if facts.timed_out {
        return Err(overloaded(facts));
    }
    let how = match (facts.exit, facts.signal) {
        (Some(code), _) => format!("the process ended with exit code {code}"),
        (None, Some(signal)) => format!("the process was ended by signal {signal}"),
        (None, None) => "the process ended".to_owned(),
    };
    Ok(Failure::new(CaseOutcome::Died, how))
}

/// Whether most of the time that passed was CPU time of the solution.
pub(crate) fn spent_cpu(cpu: Duration, waited: Duration) -> bool {
    cpu * 2 >= waited
}

/// Whether the end of a worker by the sandbox's own limits is the solution's fault: it was asleep, or used most of the
/// time, or, on a busy machine and in more time, the CPU time it was `allowed` all the same.
pub(crate) fn at_fault(facts: &Facts, allowed: Duration) -> bool {
    facts.idle || spent_cpu(facts.cpu, facts.wall) || facts.cpu >= allowed
}

/// Whether a process that was waited for beyond its limit ended by its own doing.
pub(crate) fn ended_itself(facts: &Facts) -> bool {
    facts.oom || (!facts.timed_out && facts.exit.is_some())
}

/// The error for a limit that passed without the solution's fault.
pub(crate) fn overloaded(facts: &Facts) -> GradeError {
    let ms = |d: Duration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
    GradeError::Overloaded { cpu_ms: ms(facts.cpu), wall_ms: ms(facts.wall) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_or_idle_is_a_fault_and_starved_is_not() {
        let facts = |cpu, idle| Facts {
            timed_out: true,
            cpu: Duration::from_millis(cpu),
            wall: Duration::from_millis(1000),
            idle,
            ..Facts::default()
        };
        let allowed = Duration::from_millis(400);
        assert!(at_fault(&facts(900, false), allowed));
        assert!(at_fault(&facts(10, true), allowed));
        assert!(at_fault(&facts(400, false), allowed));
        assert!(!at_fault(&facts(100, false), allowed));
    }

    #[test]
    fn out_of_memory_and_an_exit_are_its_own_doing() {
        let facts = |oom, timed_out, exit| Facts { oom, timed_out, exit, ..Facts::default() };
        assert!(ended_itself(&facts(true, false, None)));
        assert!(ended_itself(&facts(false, false, Some(0))));
        assert!(!ended_itself(&facts(false, true, None)));
        assert!(
            !ended_itself(&facts(false, false, None)),
            "killed from outside, after a limit that was not kept in time"
        );
    }
}
