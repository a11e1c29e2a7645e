//! Grading: functions ([`t0`]), programs and servers ([`t1`]), suites of repositories ([`t2`]) over an agent's allowed changes
//! ([`diff`]), static checks ([`mod@check`]); rewards; the conversion of written asserts into calls.
//!
//! In: a solution's files, a [`Suite`] whose expected values stay on this side, a sandbox. Out: one verdict a case, and from rates
//! one reward. What must hold: verdicts are decided out here; nothing that a solution prints beside what was asked, exits
//! with or writes anywhere is one; a failure that the solution did not cause is an error of infrastructure
//! ([`t0::GradeError`]), never a verdict. Each tier's header says what it promises and what it does not.
//!
//! The tests in `tests/` need the sandbox's helper beside them: `cargo build -p rollmill-sandbox --bins` before
//! `cargo nextest run -p rollmill-grader`, and a `python3` on PATH.

pub mod asserts;
mod blame;
pub mod cases;
mod channel;
pub mod check;
pub mod codec;
pub mod compare;
pub mod diff;
pub mod int;
mod key;
pub mod literal;
pub mod reward;
mod script;
pub mod style;
pub mod suite;
pub mod t0;
pub mod t1;
pub mod t2;
pub mod value;

pub use cases::{Action, Case, CasesError, Message, Step, parse_cases, render_cases};
pub use compare::Comparator;
pub use literal::LiteralError;
pub use reward::{BadRewardConfig, Components, Preset, RewardConfig, pass_rate};
pub use suite::{Suite, SuiteError, Tier};
pub use t0::{
    Bearing, CaseOutcome, CaseVerdict, GradeError, Solution, SuiteResult, T0Options, TestSource, bearing, grade,
    grade_tests, visible_output,
};
pub use value::Value;
