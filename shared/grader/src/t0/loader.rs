//! Starting workers and loading the solution into them, and reading from facts why one ended.
//!
//! What must hold: a limit that passed without the solution's fault is an error of infrastructure, never a refusal.

use super::order::ticket;
use super::peer::Life;
use super::protocol::{Answer, Ask};
use super::verdict::{CaseOutcome, clip};
use super::worker::{Reply, Worker};
use super::{GradeError, Solution, T0Options};
use crate::blame::{Failure, at_fault, ended_itself, overloaded, spent_cpu, why_ended};
use rollmill_sandbox::{Facts, Sandbox};
use std::time::Duration;

/// How much longer loading may take on a busy machine, once it is known that it ends.
const PATIENCE: u32 = 4;

/// How many times its limit a repeated call may take: one that seems to sleep, one that seems to wait for the CPU.
pub(super) const ASLEEP: u32 = 3;
pub(super) const STARVED: u32 = 12;

/// The solution cannot be loaded.
pub(super) struct Refusal {
    pub compiled: bool,
    pub failure: Failure,
}

pub(super) enum Load {
    Worker(Worker),
    Refused(Refusal),
    Starved(Facts),
}

pub(super) struct Loader<'a> {
    pub sandbox: &'a dyn Sandbox,
    pub solution: &'a Solution,
    pub entry: &'a str,
    pub opts: &'a T0Options,
    pub asked: u64,
    /// Time that workers now gone were waited for.
    pub spent: Duration,
}

impl<'a> Loader<'a> {
    pub fn new(sandbox: &'a dyn Sandbox, solution: &'a Solution, entry: &'a str, opts: &'a T0Options) -> Loader<'a> {
        Loader { sandbox, solution, entry, opts, asked: 0, spent: Duration::ZERO }
    }

    /// Why there is nothing to load at all.
    pub fn without_main(&self) -> Option<Refusal> {
        let there = self.solution.files.iter().any(|(name, _)| *name == self.solution.main);
        let missing =
            || Failure::new(CaseOutcome::NoFunction, format!("there is no file {}", clip(&self.solution.main, 80)));
        (!there).then(|| Refusal { compiled: false, failure: missing() })
    }

    /// A worker with the solution loaded, in place of one that ended; `restarts` is how many more there may be.
    pub fn reopen(&mut self, restarts: &mut u32) -> Result<Result<Worker, Failure>, GradeError> {
        let Some(left) = restarts.checked_sub(1) else {
            let why = "not called: too many calls before ended the process";
            return Ok(Err(Failure::new(CaseOutcome::Died, why)));
        };
        *restarts = left;
        Ok(self.open()?.map_err(|refusal| refusal.failure))
    }

    /// The number of the next request.
    pub fn seq(&mut self) -> u64 {
        self.asked += 1;
        ticket(self.opts.seed, self.asked)
    }

    /// What is left of the time for all calls, less what a living worker was waited for.
    pub fn remaining(&self, worker: Option<&Worker>) -> Duration {
        self.opts.total.saturating_sub(self.spent).saturating_sub(worker.map_or(Duration::ZERO, Worker::waited))
    }

    /// A worker that a whole suite can use.
    pub fn life(&self) -> Life {
        // Loading may take its own limit beside the calls.
        let wall = self.remaining(None) + 2 * self.opts.per_call;
        Life { wall, cpu: wall }
    }

    /// A worker of its own to repeat one thing that took too long: how the sandbox's limits end it tells whose fault it is.
    /// Before that it may have to do what took `age`. One that got `cpu` the first time, though little, is not asleep: it
    /// is given the time to use up what it may on a busy machine.
    pub fn short_life(&self, age: Duration, cpu: Duration) -> Life {
        let times = if cpu >= self.opts.per_call / 20 { STARVED } else { ASLEEP };
        Life { wall: 2 * age + times * self.opts.per_call, cpu: 2 * age + 2 * self.opts.per_call }
    }

    /// A worker with the solution loaded.
    pub fn open(&mut self) -> Result<Result<Worker, Refusal>, GradeError> {
        let limit = self.opts.per_call;
        let cpu = match self.load(self.life(), limit, false)? {
            Load::Worker(worker) => return Ok(Ok(worker)),
            Load::Refused(refusal) => return Ok(Err(refusal)),
            Load::Starved(facts) => facts.cpu,
        };
        match self.load(self.short_life(Duration::ZERO, cpu), limit, true)? {
            Load::Worker(worker) => worker.finish()?,
            Load::Refused(refusal) => return Ok(Err(refusal)),
            Load::Starved(facts) => return Err(overloaded(&facts)),
        };
        // It loads, and the machine is busy.
        let life = self.life();
        let life = Life { wall: life.wall + PATIENCE * limit, ..life };
        match self.load(life, PATIENCE * limit, false)? {
            Load::Worker(worker) => Ok(Ok(worker)),
            Load::Refused(refusal) => Ok(Err(refusal)),
            Load::Starved(facts) => Err(overloaded(&facts)),
        }
    }

    /// Compiles and imports, each within `limit`. `outlast` settles a passed limit by waiting for the sandbox's own.
    pub fn load(&mut self, life: Life, limit: Duration, outlast: bool) -> Result<Load, GradeError> {
        let seq = self.seq();
        let mut worker = Worker::start(self.sandbox, self.solution, self.opts, life, seq)?;
        let mut compiled = false;
        for ask in [Ask::Compile { main: &self.solution.main }, Ask::Import { entry: self.entry }] {
            let before = worker.waited();
            let seq = self.seq();
            let failure = match worker.ask(ask, seq, limit)? {
                Reply::Answer(Answer::Compiled) if !compiled => {
                    compiled = true;
                    continue;
                }
                Reply::Answer(Answer::Loaded) if compiled => {
                    // Loading is no call: it has its own limit.
                    worker.loaded();
                    return Ok(Load::Worker(worker));
                }
                Reply::Answer(Answer::SyntaxError(line)) if !compiled => Failure::new(CaseOutcome::SyntaxError, line),
                Reply::Answer(Answer::ImportError(line)) if compiled => Failure::new(CaseOutcome::ImportError, line),
                Reply::Answer(Answer::NoFunction) if compiled => {
                    Failure::new(CaseOutcome::NoFunction, format!("{} is not defined", clip(self.entry, 80)))
                }
                Reply::Answer(_) => Failure::new(CaseOutcome::Protocol, "an answer to another question"),
                Reply::Protocol(what) => Failure::new(CaseOutcome::Protocol, what),
                Reply::Ended => self.ended(&worker.finish()?, limit)?,
                Reply::Late => {
                    let facts = if outlast { worker.outlast()? } else { worker.finish()? };
                    let busy = spent_cpu(facts.cpu.saturating_sub(before), limit);
                    match outlast && ended_itself(&facts) {
                        true => self.ended(&facts, limit)?,
                        false if busy || (outlast && at_fault(&facts, limit)) => {
                            Failure::new(CaseOutcome::Timeout, "loading took too long")
                        }
                        false => return Ok(Load::Starved(facts)),
                    }
                }
            };
            return Ok(Load::Refused(Refusal { compiled, failure }));
        }
        Ok(Load::Refused(Refusal {
            compiled,
            failure: Failure::new(CaseOutcome::Protocol, "an answer to another question"),
        }))
    }

    /// Why a worker's pipe was closed, from the facts of the sandbox; `allowed` is the CPU time it had.
    pub fn ended(&self, facts: &Facts, allowed: Duration) -> Result<Failure, GradeError> {
        let failure = why_ended(facts, allowed)?;
        Ok(if failure.outcome == CaseOutcome::Timeout { late() } else { failure })
    }

    /// Ends a worker; what it was waited for stays spent.
    pub fn retire(&mut self, worker: Worker) -> Result<Facts, GradeError> {
        self.spent += worker.waited();
        Ok(worker.finish()?)
    }
}

pub(super) fn late() -> Failure {
    Failure::new(CaseOutcome::Timeout, "the call took too long")
}
