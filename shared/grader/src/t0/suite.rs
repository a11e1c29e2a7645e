//! The loop over a suite: which call is next, which worker answers it, what its answer means.
//!
//! What must hold: each case gets exactly one verdict; a call that ends its worker fails its own case only, unless the
//! solution cannot be loaded at all; the number of workers and the time are bounded.

use super::order::{shuffled, ticket};
use super::protocol::{Answer, Ask};
use super::verdict::{CaseOutcome, CaseVerdict, SuiteResult, clip};
use super::worker::{Life, MARGIN, Reply, Worker, overloaded};
use super::{GradeError, Solution, T0Options};
use crate::blame::{at_fault, spent_cpu};
use crate::cases::Case;
use crate::codec::{self, MAX_FRAME, Node};
use crate::compare::Comparator;
use rollmill_sandbox::{Facts, Sandbox};
use std::time::Duration;

/// Why a case, or all of them, did not pass.
#[derive(Clone, Debug)]
struct Failure {
    outcome: CaseOutcome,
    detail: String,
}

impl Failure {
    fn new(outcome: CaseOutcome, detail: impl Into<String>) -> Failure {
        Failure { outcome, detail: detail.into() }
    }
}

/// The solution cannot be loaded.
struct Refusal {
    compiled: bool,
    failure: Failure,
}

enum Load {
    Worker(Worker),
    Refused(Refusal),
    Starved(Facts),
}

/// What a call came to, and whether its worker can go on.
struct Step {
    result: Result<(), Failure>,
    worker: Option<Worker>,
    /// No more time for any call.
    over: bool,
}

struct Suite<'a> {
    sandbox: &'a dyn Sandbox,
    solution: &'a Solution,
    entry: &'a str,
    cases: &'a [Case],
    args: Vec<Vec<Node>>,
    opts: &'a T0Options,
    asked: u64,
    /// Time that workers now gone were waited for.
    spent: Duration,
}

/// Grades a solution: calls `entry_point` (`f`, or `Class.method` on a fresh instance) once or more for every case.
///
/// One verdict a case, in the order of `cases`. An error says that nothing is known about the solution.
pub fn grade(
    sandbox: &dyn Sandbox,
    solution: &Solution,
    entry_point: &str,
    cases: &[Case],
    opts: &T0Options,
) -> Result<SuiteResult, GradeError> {
    let args = cases.iter().enumerate().map(|(index, case)| flat_args(index, case)).collect::<Result<_, _>>()?;
    let mut suite = Suite { sandbox, solution, entry: entry_point, cases, args, opts, asked: 0, spent: Duration::ZERO };
    let mut failures: Vec<Option<Failure>> = vec![None; cases.len()];
    let refusal = if solution.files.iter().any(|(name, _)| *name == solution.main) {
        suite.run(&mut failures)?
    } else {
        let failure = Failure::new(CaseOutcome::NoFunction, format!("there is no file {}", clip(&solution.main, 80)));
        Some(Refusal { compiled: false, failure })
    };
    if let Some(refusal) = &refusal {
        failures.iter_mut().for_each(|f| *f = Some(refusal.failure.clone()));
    }
    Ok(SuiteResult {
        compiled: refusal.as_ref().is_none_or(|r| r.compiled),
        passed: failures.iter().filter(|f| f.is_none()).count() as u32,
        total: cases.len() as u32,
        verdicts: failures.into_iter().enumerate().map(|(index, failure)| verdict(index, failure)).collect(),
        import_error: refusal.map(|r| r.failure.detail),
        isolation: serde_json::to_value(sandbox.level()).unwrap_or(serde_json::Value::Null),
    })
}

/// A case's arguments as they are sent, checked so that no later send can fail for their size.
fn flat_args(index: usize, case: &Case) -> Result<Vec<Node>, GradeError> {
    let fail = |source| GradeError::Arguments { index, source };
    let nodes = codec::flatten(&crate::value::Value::Tuple(case.args.clone())).map_err(fail)?;
    let bytes = codec::frame(&nodes).map_err(fail)?.len();
    if bytes > MAX_FRAME / 2 { Err(fail(codec::CodecError::FrameTooLong(bytes))) } else { Ok(nodes) }
}

fn verdict(index: usize, failure: Option<Failure>) -> CaseVerdict {
    let failure = failure.unwrap_or(Failure::new(CaseOutcome::Passed, ""));
    CaseVerdict { index: index as u32, outcome: failure.outcome, detail: clip(&failure.detail, 300) }
}

impl Suite<'_> {
    /// Makes all calls; a refusal if the solution cannot be loaded the first time.
    fn run(&mut self, failures: &mut [Option<Failure>]) -> Result<Option<Refusal>, GradeError> {
        let mut worker = match self.open()? {
            Ok(worker) => Some(worker),
            Err(refusal) => return Ok(Some(refusal)),
        };
        let mut restarts = self.opts.restarts;
        let mut rest: Option<Failure> = None;
        for index in shuffled(self.cases.len(), self.opts.repeat, self.opts.seed) {
            if failures[index].is_some() {
                continue;
            }
            if rest.is_none() && worker.is_none() {
                (worker, rest) = self.reopen(&mut restarts)?;
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

    /// Another worker in place of one that ended, or why no more calls are made.
    fn reopen(&mut self, restarts: &mut u32) -> Result<(Option<Worker>, Option<Failure>), GradeError> {
        let Some(left) = restarts.checked_sub(1) else {
            return Ok((
                None,
                Some(Failure::new(CaseOutcome::Died, "not called: too many calls before ended the process")),
            ));
        };
        *restarts = left;
        Ok(match self.open()? {
            Ok(worker) => (Some(worker), None),
            Err(refusal) => (None, Some(refusal.failure)),
        })
    }

    fn seq(&mut self) -> u64 {
        self.asked += 1;
        ticket(self.opts.seed, self.asked)
    }

    fn remaining(&self, worker: Option<&Worker>) -> Duration {
        self.opts.total.saturating_sub(self.spent).saturating_sub(worker.map_or(Duration::ZERO, |w| w.waited))
    }

    /// A worker that a whole suite can use.
    fn life(&self) -> Life {
        // Loading may take its own limit beside the calls.
        let wall = self.remaining(None) + 2 * self.opts.per_call;
        Life { wall, cpu: wall }
    }

    /// A worker of its own to repeat one thing that took too long: how the sandbox's limits end it tells whose fault it is.
    fn short_life(&self) -> Life {
        Life { wall: 3 * self.opts.per_call, cpu: 2 * self.opts.per_call }
    }

    /// A worker with the solution loaded.
    fn open(&mut self) -> Result<Result<Worker, Refusal>, GradeError> {
        match self.load(self.life(), false)? {
            Load::Worker(worker) => return Ok(Ok(worker)),
            Load::Refused(refusal) => return Ok(Err(refusal)),
            Load::Starved(_) => {}
        }
        match self.load(self.short_life(), true)? {
            Load::Worker(worker) => worker.finish()?,
            Load::Refused(refusal) => return Ok(Err(refusal)),
            Load::Starved(facts) => return Err(overloaded(&facts)),
        };
        match self.load(self.life(), false)? {
            Load::Worker(worker) => Ok(Ok(worker)),
            Load::Refused(refusal) => Ok(Err(refusal)),
            Load::Starved(facts) => Err(overloaded(&facts)),
        }
    }

    /// Compiles and imports. `outlast` settles a passed limit by waiting for the sandbox's own.
    fn load(&mut self, life: Life, outlast: bool) -> Result<Load, GradeError> {
        let seq = self.seq();
        let mut worker = Worker::start(self.sandbox, self.solution, self.opts, life, seq)?;
        let mut compiled = false;
        for ask in [Ask::Compile { main: &self.solution.main }, Ask::Import { entry: self.entry }] {
            let before = worker.waited;
            let seq = self.seq();
            let failure = match worker.ask(ask, seq, self.opts.per_call)? {
                Reply::Answer(Answer::Compiled) if !compiled => {
                    compiled = true;
                    continue;
                }
                Reply::Answer(Answer::Loaded) if compiled => {
                    // Loading is no call: it has its own limit.
                    worker.waited = Duration::ZERO;
                    return Ok(Load::Worker(worker));
                }
                Reply::Answer(Answer::SyntaxError(line)) if !compiled => Failure::new(CaseOutcome::SyntaxError, line),
                Reply::Answer(Answer::ImportError(line)) if compiled => Failure::new(CaseOutcome::ImportError, line),
                Reply::Answer(Answer::NoFunction) if compiled => {
                    Failure::new(CaseOutcome::NoFunction, format!("{} is not defined", clip(self.entry, 80)))
                }
                Reply::Answer(_) => Failure::new(CaseOutcome::Protocol, "an answer to another question"),
                Reply::Protocol(what) => Failure::new(CaseOutcome::Protocol, what),
                Reply::Ended => self.ended(&worker.finish()?)?,
                Reply::Late => {
                    let facts = if outlast { worker.outlast()? } else { worker.finish()? };
                    let busy = spent_cpu(facts.cpu.saturating_sub(before), self.opts.per_call);
                    let at_fault = busy || (outlast && at_fault(&facts, self.opts.per_call));
                    if !at_fault {
                        return Ok(Load::Starved(facts));
                    }
                    Failure::new(CaseOutcome::Timeout, "loading took too long")
                }
            };
            return Ok(Load::Refused(Refusal { compiled, failure }));
        }
        Ok(Load::Refused(Refusal {
            compiled,
            failure: Failure::new(CaseOutcome::Protocol, "an answer to another question"),
        }))
    }

    /// One call and what it came to.
    fn call(&mut self, mut worker: Worker, index: usize) -> Result<Step, GradeError> {
        let remaining = self.remaining(Some(&worker));
        let limit = self.opts.per_call.min(remaining);
        let before = worker.waited;
        let reply = if limit.is_zero() { Reply::Late } else { self.ask(&mut worker, index, limit)? };
        match reply {
            Reply::Answer(answer) => {
                let result = self.judge(index, answer);
                Ok(Step { result, worker: Some(worker), over: false })
            }
            Reply::Protocol(what) => {
                self.retire(worker)?;
                Ok(Step { result: Err(Failure::new(CaseOutcome::Protocol, what)), worker: None, over: false })
            }
            Reply::Ended => {
                let ours = worker.own_time() > MARGIN / 2;
                let facts = self.retire(worker)?;
                if facts.timed_out && ours {
                    return self.again(index); // this side was slow, and the worker's life ran out meanwhile
                }
                Ok(Step { result: Err(self.ended(&facts)?), worker: None, over: false })
            }
            Reply::Late if limit < self.opts.per_call => {
                self.spent += worker.waited;
                let waited = self.spent;
                let facts = worker.outlast()?;
                if !at_fault(&facts, self.opts.total) && !spent_cpu(facts.cpu, waited) {
                    return Err(overloaded(&facts));
                }
                let failure = Failure::new(CaseOutcome::Timeout, "the time for all calls was used up");
                Ok(Step { result: Err(failure), worker: None, over: true })
            }
            Reply::Late => {
                // What was waited before may have been CPU too: only what is beyond it is certainly of this call.
                let facts = self.retire(worker)?;
                if spent_cpu(facts.cpu.saturating_sub(before), limit) {
                    return Ok(Step { result: Err(late()), worker: None, over: false });
                }
                self.again(index)
            }
        }
    }

    fn ask(&mut self, worker: &mut Worker, index: usize, limit: Duration) -> Result<Reply, GradeError> {
        let seq = self.seq();
        let collect =
            matches!(self.cases[index].comparator, Comparator::Sequence | Comparator::Unordered | Comparator::SetEq);
        Ok(worker.ask(Ask::Call { entry: self.entry, args: self.args[index].clone(), collect }, seq, limit)?)
    }

    fn retire(&mut self, worker: Worker) -> Result<Facts, GradeError> {
        self.spent += worker.waited;
        Ok(worker.finish()?)
    }

    /// A call once more in a worker of its own, which settles whose fault its passed limit is.
    fn again(&mut self, index: usize) -> Result<Step, GradeError> {
        let life = self.short_life();
        let mut worker = match self.load(life, true)? {
            Load::Worker(worker) => worker,
            Load::Refused(refusal) => return Ok(Step { result: Err(refusal.failure), worker: None, over: false }),
            Load::Starved(facts) => return Err(overloaded(&facts)),
        };
        let result = match self.ask(&mut worker, index, self.opts.per_call)? {
            Reply::Answer(answer) => {
                let result = self.judge(index, answer);
                self.retire(worker)?;
                result
            }
            Reply::Protocol(what) => {
                self.retire(worker)?;
                Err(Failure::new(CaseOutcome::Protocol, what))
            }
            Reply::Ended => {
                let facts = self.retire(worker)?;
                Err(self.ended(&facts)?)
            }
            Reply::Late => {
                self.spent += worker.waited;
                let facts = worker.outlast()?;
                if !at_fault(&facts, self.opts.per_call) {
                    return Err(overloaded(&facts));
                }
                Err(late())
            }
        };
        Ok(Step { result, worker: None, over: false })
    }

    fn judge(&self, index: usize, answer: Answer) -> Result<(), Failure> {
        let case = &self.cases[index];
        match (answer, &case.expect_exception) {
            (Answer::Value(nodes), wanted) => {
                let got = codec::assemble(nodes).map_err(|e| Failure::new(CaseOutcome::Protocol, e.to_string()))?;
                if wanted.is_none() && case.comparator.accepts(&case.expected, &got) {
                    return Ok(());
                }
                Err(Failure::new(CaseOutcome::Wrong, format!("got {}", clip(&got.to_literal(), 120))))
            }
            (Answer::Exception { mro, .. }, Some(wanted)) if mro.contains(wanted) => Ok(()),
            (Answer::Exception { line, .. }, _) => Err(Failure::new(CaseOutcome::Exception, line)),
            (Answer::Unreturnable(why), _) => Err(Failure::new(CaseOutcome::Unreturnable, why)),
            (Answer::NoFunction, _) => Err(Failure::new(CaseOutcome::NoFunction, "the function is gone")),
            _ => Err(Failure::new(CaseOutcome::Protocol, "an answer to another question")),
        }
    }

    /// Why a worker's pipe was closed, from the facts of the sandbox.
    fn ended(&self, facts: &Facts) -> Result<Failure, GradeError> {
        if facts.oom {
            return Ok(Failure::new(CaseOutcome::Oom, "the memory limit was exceeded"));
        }
        if facts.timed_out {
            return if at_fault(facts, self.opts.per_call) { Ok(late()) } else { Err(overloaded(facts)) };
        }
        let how = match (facts.exit, facts.signal) {
            (Some(code), _) => format!("the process ended with exit code {code}"),
            (None, Some(signal)) => format!("the process was ended by signal {signal}"),
            (None, None) => "the process ended".to_owned(),
        };
        Ok(Failure::new(CaseOutcome::Died, how))
    }
}

fn late() -> Failure {
    Failure::new(CaseOutcome::Timeout, "the call took too long")
}
