//! Tests written as code, run in a sandbox of their own against a solution in another one.
//!
//! In: Python texts and the names that they take from the solution. Out: one verdict a test. What must hold: between the two
//! sandboxes go data and numbers of objects, checked here; only built-in exceptions are raised again in a test; a time-out or
//! a dead worker ends the test from here and cannot be caught there; a test counts as passed only by its own end, told for
//! the order that this side gave, with nothing before it that this side had to refuse.

use super::loader::{Load, Loader, Refusal, late};
use super::pass_on::{Refused, answer_to, checked_use, request_of};
use super::peer::Life;
use super::tester::{Order, Said, Tester, Told, Use};
use super::verdict::{CaseOutcome, SuiteResult};
use super::worker::{Reply, Worker};
use super::{GradeError, Solution, T0Options};
use crate::blame::{Failure, at_fault, ended_itself, overloaded, spent_cpu};
use rollmill_sandbox::{Facts, Sandbox};
use std::time::Duration;

/// The most calls of one test.
const MAX_CALLS: u32 = 100_000;

/// Tests as they were written: HumanEval's `check(candidate)`, asserts one by one, `test_*` functions, classes of `unittest`
/// or of pytest's kind (`raises`, `approx`, `parametrize` and `fail` are there, fixtures are not).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TestSource {
    /// Statements before the tests.
    pub setup: String,
    /// Python texts. One that defines no test is a test itself.
    pub tests: Vec<String>,
    /// Names that tests may take from the solution beside the tested function: classes, other functions.
    pub names: Vec<String>,
    /// What a call makes of a list, dict or set that it was given is made of the test's own one, too. Only for tests of such
    /// functions: elsewhere it lets a solution spoil the inputs from which a test computes what it expects.
    pub mutates: bool,
}

/// The two processes of a suite.
struct Pair {
    worker: Worker,
    tester: Tester,
}

/// What a test came to.
enum End {
    /// It said so itself, and the pair can go on.
    Said(Result<(), Failure>, Box<Pair>),
    /// It was ended.
    Ended(Failure),
    /// No more time for any test.
    Over(Failure),
    /// A call took too long, but not for certain by the solution's fault.
    Unclear { age: Duration, cpu: Duration },
}

struct Suite<'a> {
    loader: Loader<'a>,
    tests: &'a TestSource,
    module: &'a str,
}

/// Grades a solution by written tests. One verdict a test, in their order; `entry_point` as in [`super::grade`].
///
/// An error says that nothing is known about the solution; [`GradeError::Task`] that the tests are to blame.
pub fn grade_tests(
    sandbox: &dyn Sandbox,
    solution: &Solution,
    entry_point: &str,
    tests: &TestSource,
    opts: &T0Options,
) -> Result<SuiteResult, GradeError> {
    let module = solution.main.rsplit('/').next().unwrap_or_default().trim_end_matches(".py");
    let mut suite = Suite { loader: Loader::new(sandbox, solution, entry_point, opts), tests, module };
    let (tester, count) = suite.tester()?;
    let mut failures: Vec<Option<Failure>> = vec![None; count];
    let refusal = match suite.loader.without_main() {
        Some(refusal) => Some(refusal),
        None => suite.run(tester, &mut failures)?,
    };
    Ok(SuiteResult::of(failures, refusal, sandbox.level()))
}

impl Suite<'_> {
    /// A process with the tests loaded, and how many there are.
    fn tester(&self) -> Result<(Tester, usize), GradeError> {
        let opts = self.loader.opts;
        let wall = 3 * opts.total + 4 * opts.per_call;
        let mut tester = Tester::start(self.loader.sandbox, &opts.limits, Life { wall, cpu: opts.total })?;
        let order = Order::Load {
            setup: &self.tests.setup,
            tests: &self.tests.tests,
            entry: self.loader.entry,
            names: &self.tests.names,
            module: self.module,
            back: self.tests.mutates,
            seed: opts.seed,
        };
        match tester.order(order, opts.total)? {
            Said::Tests(ids) if ids.is_empty() => Err(GradeError::Task("there is no test".to_owned())),
            Said::Tests(ids) => {
                tester.loaded();
                Ok((tester, ids.len()))
            }
            Said::BadTests(why) => Err(GradeError::Task(format!("they cannot be loaded: {why}"))),
            Said::Late => {
                let facts = tester.outlast()?;
                let fault = at_fault(&facts, opts.total);
                Err(if fault { GradeError::Task("loading takes too long".to_owned()) } else { overloaded(&facts) })
            }
            _ => Err(GradeError::Task("loading ended their process".to_owned())),
        }
    }

    /// Runs all tests; a refusal if the solution cannot be loaded the first time.
    fn run(&mut self, tester: Tester, failures: &mut [Option<Failure>]) -> Result<Option<Refusal>, GradeError> {
        let worker = match self.loader.open()? {
            Ok(worker) => worker,
            Err(refusal) => return Ok(Some(refusal)),
        };
        let mut pair = Some(Pair { worker, tester });
        let mut restarts = self.loader.opts.restarts;
        let mut rest: Option<Failure> = None;
        let count = failures.len();
        for index in (0..self.loader.opts.repeat.max(1)).flat_map(|_| 0..count) {
            if failures[index].is_some() {
                continue;
            }
            if rest.is_none() && pair.is_none() {
                match self.loader.reopen(&mut restarts)? {
                    Ok(worker) => pair = Some(Pair { worker, tester: self.tester()?.0 }),
                    Err(failure) => rest = Some(failure),
                }
            }
            let Some(current) = pair.take() else {
                failures[index] = rest.clone();
                continue;
            };
            match self.test(current, index, false)? {
                End::Said(result, back) => {
                    failures[index] = result.err();
                    pair = Some(*back);
                }
                End::Ended(failure) => failures[index] = Some(failure),
                End::Over(failure) => {
                    failures[index] = Some(failure.clone());
                    rest = Some(failure);
                }
                End::Unclear { age, cpu } => failures[index] = self.again(index, age, cpu)?.err(),
            }
        }
        if let Some(pair) = pair {
            pair.tester.finish()?;
            pair.worker.finish()?;
        }
        Ok(None)
    }

    /// A test once more with a worker of its own, whose end settles whose fault a passed limit is.
    fn again(&mut self, index: usize, age: Duration, cpu: Duration) -> Result<Result<(), Failure>, GradeError> {
        let worker = match self.loader.load(self.loader.short_life(age, cpu), self.loader.opts.per_call, true)? {
            Load::Worker(worker) => worker,
            Load::Refused(refusal) => return Ok(Err(refusal.failure)),
            Load::Starved(facts) => return Err(overloaded(&facts)),
        };
        let pair = Pair { worker, tester: self.tester()?.0 };
        Ok(match self.test(pair, index, true)? {
            End::Said(result, pair) => {
                pair.tester.finish()?;
                self.loader.retire(pair.worker)?;
                result
            }
            End::Ended(failure) | End::Over(failure) => Err(failure),
            End::Unclear { .. } => Err(late()), // the repeated run settles it: this does not come
        })
    }

    fn left(&self, pair: &Pair) -> Duration {
        self.loader.remaining(Some(&pair.worker)).saturating_sub(pair.tester.waited())
    }

    /// One test. A `repeated` one has the time of each call for itself and settles a passed limit.
    fn test(&mut self, mut pair: Pair, index: usize, repeated: bool) -> Result<End, GradeError> {
        let total = self.loader.opts.total;
        let mut refused: Option<Failure> = None;
        let limit = if repeated { total } else { self.left(&pair) };
        let mut said = pair.tester.order(Order::Test { index }, limit)?;
        for calls in 0.. {
            let call = match said {
                Said::Use(call) if calls < MAX_CALLS => checked_use(call)?,
                Said::Use(_) => {
                    return self.ended(pair, Failure::new(CaseOutcome::Timeout, "the test makes too many calls"));
                }
                Said::Done { outcome, message } => {
                    let result = refused.map_or_else(|| verdict(&outcome, message), Err);
                    return Ok(End::Said(result, Box::new(pair)));
                }
                other => return self.tester_gone(pair, &other, calls > 0),
            };
            let limit = self.loader.opts.per_call.min(if repeated { total } else { self.left(&pair) });
            let before = pair.worker.waited();
            let told = match self.pass_on(&mut pair, &call, limit)? {
                Ok(Ok(told)) => told,
                Ok(Err(Refused { told, failure })) => {
                    refused = refused.or(Some(failure));
                    told
                }
                Err(Reply::Late) => return self.late(pair, limit, before, repeated),
                Err(Reply::Protocol(what)) => return self.ended(pair, Failure::new(CaseOutcome::Protocol, what)),
                Err(_) => return self.worker_gone(pair, repeated),
            };
            let limit = if repeated { total } else { self.left(&pair) };
            said = pair.tester.tell(told, limit)?;
        }
        self.ended(pair, late()) // not reached: the loop has no end but its returns
    }

    /// Asks the worker what a test asks of the solution; outside, why there was no answer.
    #[allow(clippy::type_complexity)] // an answer, a refused one, or none: the three ways a call can go on
    fn pass_on(
        &mut self,
        pair: &mut Pair,
        call: &Use,
        limit: Duration,
    ) -> Result<Result<Result<Told, Refused>, Reply>, GradeError> {
        if limit.is_zero() {
            return Ok(Err(Reply::Late));
        }
        let ask = request_of(call, self.loader.entry, self.tests.mutates);
        let seq = self.loader.seq();
        Ok(match pair.worker.ask(ask, seq, limit)? {
            Reply::Answer(answer) => match answer_to(answer) {
                Ok(told) => Ok(told),
                Err(what) => Err(Reply::Protocol(what)),
            },
            none => Err(none),
        })
    }

    /// The test is ended from here.
    fn ended(&mut self, pair: Pair, failure: Failure) -> Result<End, GradeError> {
        self.loader.spent += pair.tester.waited();
        pair.tester.finish()?;
        self.loader.retire(pair.worker)?;
        Ok(End::Ended(failure))
    }

    /// The worker ended while it was asked.
    fn worker_gone(&mut self, pair: Pair, repeated: bool) -> Result<End, GradeError> {
        let (lost, allowed) =
            (pair.worker.lost_time(), pair.worker.allowance(pair.worker.waited(), self.loader.opts.per_call));
        let age = pair.worker.age();
        self.loader.spent += pair.tester.waited();
        pair.tester.finish()?;
        let facts = self.loader.retire(pair.worker)?;
        if facts.timed_out && lost && !repeated {
            return Ok(End::Unclear { age, cpu: facts.cpu }); // the tests or this side were slow, and the worker's life ran out meanwhile
        }
        Ok(End::Ended(self.loader.ended(&facts, allowed)?))
    }

    /// A call took too long.
    fn late(&mut self, pair: Pair, limit: Duration, before: Duration, repeated: bool) -> Result<End, GradeError> {
        let opts = self.loader.opts;
        let age = pair.worker.age().saturating_sub(limit);
        let (own, single) = (pair.worker.own_time(), pair.worker.allowance(before, opts.per_call));
        self.loader.spent += pair.tester.waited();
        pair.tester.finish()?;
        if repeated || limit < opts.per_call {
            self.loader.spent += pair.worker.waited();
            let waited = self.loader.spent;
            let facts = pair.worker.outlast()?;
            if repeated && ended_itself(&facts) {
                return Ok(End::Ended(self.loader.ended(&facts, single)?));
            }
            // A worker that mostly waited for the tests was not idle by itself.
            let facts = Facts { idle: facts.idle && own * 2 < facts.wall, ..facts };
            let allowed = if repeated { single } else { opts.total };
            let fault = ended_itself(&facts) || at_fault(&facts, allowed);
            if !fault && (repeated || !spent_cpu(facts.cpu, waited)) {
                return Err(overloaded(&facts));
            }
            let used_up = || Failure::new(CaseOutcome::Timeout, "the time for all calls was used up");
            return Ok(if repeated { End::Ended(late()) } else { End::Over(used_up()) });
        }
        let facts = self.loader.retire(pair.worker)?;
        let cpu = facts.cpu.saturating_sub(before);
        Ok(if spent_cpu(cpu, limit) { End::Ended(late()) } else { End::Unclear { age, cpu } })
    }

    /// The tests' own process ended, took too long, or wrote something else. What the solution returned may have done that.
    fn tester_gone(&mut self, pair: Pair, said: &Said, called: bool) -> Result<End, GradeError> {
        self.loader.spent += pair.tester.waited();
        let facts = if matches!(said, Said::Late) { pair.tester.outlast()? } else { pair.tester.finish()? };
        self.loader.retire(pair.worker)?;
        let late = matches!(said, Said::Late) || facts.timed_out;
        if late && !at_fault(&facts, self.loader.opts.total) {
            return Err(overloaded(&facts));
        }
        let failure = match said {
            _ if late => Failure::new(CaseOutcome::Timeout, "the test took too long"),
            Said::Nonsense(what) => Failure::new(CaseOutcome::Protocol, format!("the test wrote {what}")),
            _ if facts.oom => Failure::new(CaseOutcome::Oom, "the test needed too much memory"),
            _ => Failure::new(CaseOutcome::Died, "the test ended its process"),
        };
        if !called {
            return Err(GradeError::Task(format!("{} before it called the solution", failure.detail)));
        }
        Ok(if late { End::Over(failure) } else { End::Ended(failure) })
    }
}

/// What a test said of its own end.
fn verdict(outcome: &str, message: String) -> Result<(), Failure> {
    match outcome {
        "passed" => Ok(()),
        "raised" => Err(Failure::new(CaseOutcome::Exception, message)),
        _ => Err(Failure::new(CaseOutcome::Wrong, message)),
    }
}
