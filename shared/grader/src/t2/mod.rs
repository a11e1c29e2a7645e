//! Tier T2: test suites of a repository, which run in one process with the code they test.
//!
//! In: the files to grade (a pristine copy with the allowed diff, see [`crate::diff`]), the task's own tests, the exact ids
//! that count. Out: an outcome an id. What must hold: tests and configuration come from the task and lie where nothing can
//! change them; every id is run in a process of its own by a runner that imported nothing of the solution before; an id
//! that is missing, skipped, expected to fail, deselected or reported twice has failed; nothing printed is read as a verdict.
//!
//! What it does not promise: that a report is true. Solution and test share a process, so the solution can read the test,
//! take what it wants out of a caller's frame, and lie about that test in ways that know of this runner. Twins (the same
//! tests with negated expectations, which must fail) catch what makes every test pass: hooks, patches, objects equal to
//! everything or to whatever they are asked about first. They lose to a solution that computes what a test wants from the
//! test itself. So a result is `proven` only where the task has tests B at tier T0 or T1 as well. Command suites
//! ([`grade_command`]) read a report that the tests' own tool wrote in the solution's sandbox, have no twins, and promise
//! less still.

mod command;
mod outcome;
mod python;
mod report;
mod runner;
mod twin;

pub use command::{CommandSuite, Source, grade_command};
pub use outcome::{RepositoryResult, T2Options, TestOutcome, TestVerdict};
pub use python::{Framework, PythonSuite, grade_repository};
pub use report::{Reported, cargo_test, go_test, junit, tap};
pub use runner::interpreter;
