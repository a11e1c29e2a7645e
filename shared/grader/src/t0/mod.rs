//! Tier T0: functions, asked from outside one input at a time.
//!
//! In: a solution, the name of its function, cases, a sandbox. Out: a verdict a case. What must hold: expected values never
//! enter the sandbox and are compared here; a verdict is a function of returned data, never of an exit code or of output;
//! what the solution did not cause is a [`GradeError`], the third outcome, and never counts as failed.

mod bearing;
mod call;
mod judge;
mod loader;
mod order;
mod pass_on;
mod peer;
mod predicate;
mod protocol;
mod proxy;
mod solution;
mod suite;
mod tester;
mod verdict;
mod worker;

pub use bearing::{Bearing, bearing};
pub use proxy::{TestSource, grade_tests};
pub use solution::{Solution, SolutionError};
pub use suite::grade;
pub use verdict::{CaseOutcome, CaseVerdict, SuiteResult, visible_output};

pub(crate) use order::ticket;
pub(crate) use verdict::clip;

use crate::codec::CodecError;
use rollmill_sandbox::{Limits, SandboxError, WarmOptions};
use std::time::Duration;

/// How a suite is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct T0Options {
    /// Wall clock of one call, and of compiling or importing the solution.
    pub per_call: Duration,
    /// Wall clock of all calls together.
    pub total: Duration,
    /// Seed of the order of calls and of their tickets, and of `random` in written tests.
    pub seed: u64,
    /// Whether cases are called in an order that depends on the seed; otherwise as they stand.
    pub shuffle: bool,
    /// How often each call is made (at least once); a case passes if every call does.
    pub repeat: u32,
    /// How many workers may be started again after calls that ended one.
    pub restarts: u32,
    /// Memory, processes, disk and output of a worker; its wall clock and CPU are set from the fields above.
    pub limits: Limits,
}

impl Default for T0Options {
    fn default() -> T0Options {
        T0Options {
            per_call: Duration::from_secs(5),
            total: Duration::from_secs(30),
            seed: 0,
            shuffle: true,
            repeat: 1,
            restarts: 20,
            limits: Limits::default(),
        }
    }
}

/// The interpreter that workers begin in, for a sandbox that keeps interpreters loaded.
pub fn interpreter() -> WarmOptions {
    WarmOptions {
        argv: peer::INTERPRETER.map(str::to_owned).to_vec(),
        preload: "import fcntl, json".to_owned(),
        programs: [worker::WORKER, tester::TESTER].map(|text| ("<string>".to_owned(), text.to_owned())).to_vec(),
        env: peer::environment(),
    }
}

/// The third outcome: nothing is known about the solution.
#[derive(Debug, thiserror::Error)]
pub enum GradeError {
    /// The sandbox failed; ask [`SandboxError::is_transient`].
    #[error("sandbox: {0}")]
    Sandbox(#[from] SandboxError),
    /// A limit on the wall clock passed while the machine was too busy to let the solution run: try again later.
    #[error("time limit on an overloaded machine ({cpu_ms} ms of cpu in {wall_ms} ms): try again with less beside it")]
    Overloaded {
        /// CPU time that the solution got.
        cpu_ms: u64,
        /// Wall clock that passed.
        wall_ms: u64,
    },
    /// The worker did not even start to speak, before anything of the solution ran: stop the run.
    #[error("the worker did not start ({0}): is the sandbox's python3 at least 3.8?")]
    Worker(String),
    /// A program that grading needs is not there: stop the run.
    #[error("no {0} in the sandbox's root file system: choose one that has it")]
    NoTool(String),
    /// The arguments of a case cannot be sent: give up this task.
    #[error("arguments of test case {index}: {source}")]
    Arguments {
        /// The case, from 0.
        index: usize,
        /// Why.
        source: CodecError,
    },
    /// Something that came with the task (tests, a predicate, a checker) does not work, whatever the solution is: give up
    /// this task.
    #[error("the task cannot be graded: {0}: mend it or leave it out")]
    Task(String),
}

impl GradeError {
    /// Whether grading the same solution again may work.
    pub fn is_transient(&self) -> bool {
        match self {
            GradeError::Sandbox(e) => e.is_transient(),
            GradeError::Overloaded { .. } => true,
            GradeError::Worker(_) | GradeError::NoTool(_) | GradeError::Arguments { .. } | GradeError::Task(_) => false,
        }
    }
}
