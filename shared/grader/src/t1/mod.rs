//! Tier T1: programs over stdin and stdout ([`grade_programs`]) and servers over HTTP ([`grade_servers`]).
//!
//! In: a solution's files, its language, cases, a sandbox. Out: a verdict a case. What must hold: expected outputs never
//! enter the sandbox; each case, or session of a server, has a sandbox of its own, so nothing is carried from one to the
//! next; the verdict is what the solution wrote, compared here. An exit code other than the wanted one fails a case, but
//! none ever passes one: a suite in which empty output would pass is refused when it is read. A time limit counts against
//! the solution only if it spent the CPU time or was idle.
//!
//! What it does not promise: that the program computes. Inputs can be known to it beforehand only if the task shows them;
//! tables of visible cases are caught by hidden ones and by tests B.

mod case;
mod checker;
mod custom;
mod exchange;
mod http;
mod language;
mod program;
mod run;

pub use case::{ProgramCase, parse_programs, render_programs};
pub use checker::{Checker, UnknownChecker};
pub use exchange::{Answer, Exchange, parse_sessions};
pub use http::{ServerOptions, grade_servers};
pub use language::{Language, UnknownLanguage};
pub use program::{Programs, T1Options, grade_programs, visible_program_output};
