//! Whose fault a passed time limit is: a solution is blamed only if it spent the CPU or was truly idle.

use super::GradeError;
use rollmill_sandbox::Facts;
use std::time::Duration;

/// Whether most of the time that passed was CPU time of the solution.
pub(super) fn spent_cpu(cpu: Duration, waited: Duration) -> bool {
    cpu * 2 >= waited
}

/// Whether the end of a worker by the sandbox's own limits is the solution's fault: it was asleep, or used most of the
/// time, or, on a busy machine and in more time, the CPU time it was `allowed` all the same.
pub(super) fn at_fault(facts: &Facts, allowed: Duration) -> bool {
    facts.idle || spent_cpu(facts.cpu, facts.wall) || facts.cpu >= allowed
}

/// The error for a limit that passed without the solution's fault.
pub(super) fn overloaded(facts: &Facts) -> GradeError {
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
}
