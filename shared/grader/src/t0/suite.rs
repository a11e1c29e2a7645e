//! The loop over a suite: which call is next, which worker answers it, what its end means.
//!
//! What must hold: each case gets exactly one verdict; a call that ends its worker fails its own case only, unless the
//! solution cannot be loaded at all; the number of workers and the time are bounded.

use super::call::{Asked, Call};
use super::judge::Judge;
use super::loader::{Load, Loader, Refusal, late};
use super::order::order;
use super::verdict::{CaseOutcome, SuiteResult};
use super::worker::Worker;
use super::{GradeError, Solution, T0Options};
use crate::blame::{Failure, at_fault, ended_itself, overloaded, spent_cpu};
use crate::cases::Case;
use rollmill_sandbox::Sandbox;
use std::time::Duration;

/// What a call came to, and whether its worker can go on.
struct Step {
    result: Result<(), Failure>,
    worker: Option<Worker>,
    /// No more time for any call.
    over: bool,
}

impl Step {
    /// The worker is gone.
    fn last(result: Result<(), Failure>) -> Step {
        Step { result, worker: None, over: false }
    }
}

struct Suite<'a> {
    loader: Loader<'a>,
    calls: Vec<Call<'a>>,
    judge: Judge<'a>,
}

/// Grades a solution: calls `entry_point` (`f`, a class, or `Class.method` on a fresh instance) once or more for every case.
///
/// One verdict a case, in the order of `cases`. An error says that nothing is known about the solution.
pub fn grade(
    sandbox: &dyn Sandbox,
    solution: &Solution,
    entry_point: &str,
    cases: &[Case],
    opts: &T0Options,
) -> Result<SuiteResult, GradeError> {
    let calls = cases.iter().enumerate().map(|(index, case)| Call::new(index, case)).collect::<Result<_, _>>()?;
    let loader = Loader::new(sandbox, solution, entry_point, opts);
    let mut suite = Suite { loader, calls, judge: Judge::new(sandbox, opts) };
    let mut failures: Vec<Option<Failure>> = vec![None; cases.len()];
    let refusal = match suite.loader.without_main() {
        Some(refusal) => Some(refusal),
        None => suite.run(&mut failures)?,
    };
    suite.judge.finish()?;
    Ok(SuiteResult::of(failures, refusal, sandbox.level()))
}

impl Suite<'_> {
    /// Makes all calls; a refusal if the solution cannot be loaded the first time.
    fn run(&mut self, failures: &mut [Option<Failure>]) -> Result<Option<Refusal>, GradeError> {
        let mut worker = match self.loader.open()? {
            Ok(worker) => Some(worker),
            Err(refusal) => return Ok(Some(refusal)),
        };
        let mut restarts = self.loader.opts.restarts;
        let mut rest: Option<Failure> = None;
        for index in order(self.calls.len(), self.loader.opts) {
            if failures[index].is_some() {
                continue;
            }
            if rest.is_none() && worker.is_none() {
                match self.loader.reopen(&mut restarts)? {
                    Ok(opened) => worker = Some(opened),
                    Err(failure) => rest = Some(failure),
                }
            }
            let Some(current) = worker.take() else {
                failures[index] = rest.clone();
                continue;
            };
            let step = self.call(current, index)?;
            worker = step.worker;
            if step.over {
                rest = step.result.as_ref().err().cloned();
            }
            failures[index] = step.result.err();
        }
        if let Some(worker) = worker {
            worker.finish()?;
        }
        Ok(None)
    }

    /// One call and what it came to.
    fn call(&mut self, mut worker: Worker, index: usize) -> Result<Step, GradeError> {
        let asked = self.calls[index].ask(&mut self.loader, &mut self.judge, &mut worker, false)?;
        match asked {
            Asked::Judged(result) => Ok(Step { result, worker: Some(worker), over: false }),
            Asked::Protocol(what) => {
                self.loader.retire(worker)?;
                Ok(Step::last(Err(Failure::new(CaseOutcome::Protocol, what))))
            }
            Asked::Ended => {
                let (lost, allowed) = (worker.lost_time(), worker.allowance(Duration::ZERO, self.loader.opts.per_call));
                let facts = self.loader.retire(worker)?;
                if facts.timed_out && lost {
                    return self.again(index, Duration::ZERO, facts.cpu); // its life ran out meanwhile
                }
                Ok(Step::last(Err(self.loader.ended(&facts, allowed)?)))
            }
            Asked::Late { limit, .. } if limit < self.loader.opts.per_call => {
                self.loader.spent += worker.waited();
                let waited = self.loader.spent;
                let facts = worker.outlast()?;
                let fault = ended_itself(&facts) || at_fault(&facts, self.loader.opts.total);
                if !fault && !spent_cpu(facts.cpu, waited) {
                    return Err(overloaded(&facts));
                }
                let failure = Failure::new(CaseOutcome::Timeout, "the time for all calls was used up");
                Ok(Step { result: Err(failure), worker: None, over: true })
            }
            Asked::Late { limit, before, begun } => {
                // What was waited before may have been CPU too: only what is beyond it is certainly of this call.
                let facts = self.loader.retire(worker)?;
                let cpu = facts.cpu.saturating_sub(before);
                if spent_cpu(cpu, limit) {
                    return Ok(Step::last(Err(late())));
                }
                self.again(index, before.saturating_sub(begun), cpu)
            }
        }
    }

    /// A call once more in a worker of its own, which settles whose fault its passed limit is. `age` is how long the steps
    /// before it took, `cpu` what it got the first time.
    fn again(&mut self, index: usize, age: Duration, cpu: Duration) -> Result<Step, GradeError> {
        let mut worker = match self.loader.load(self.loader.short_life(age, cpu), self.loader.opts.per_call, true)? {
            Load::Worker(worker) => worker,
            Load::Refused(refusal) => return Ok(Step::last(Err(refusal.failure))),
            Load::Starved(facts) => return Err(overloaded(&facts)),
        };
        let asked = self.calls[index].ask(&mut self.loader, &mut self.judge, &mut worker, true)?;
        let result = match asked {
            Asked::Judged(result) => {
                self.loader.retire(worker)?;
                result
            }
            Asked::Protocol(what) => {
                self.loader.retire(worker)?;
                Err(Failure::new(CaseOutcome::Protocol, what))
            }
            Asked::Ended => {
                let allowed = worker.allowance(age, self.loader.opts.per_call);
                let facts = self.loader.retire(worker)?;
                Err(self.loader.ended(&facts, allowed)?)
            }
            Asked::Late { before, .. } => {
                let allowed = worker.allowance(before, self.loader.opts.per_call);
                self.loader.spent += worker.waited();
                let facts = worker.outlast()?;
                match ended_itself(&facts) {
                    true => Err(self.loader.ended(&facts, allowed)?),
                    false if at_fault(&facts, allowed) => Err(late()),
                    false => return Err(overloaded(&facts)),
                }
            }
        };
        Ok(Step::last(result))
    }
}
