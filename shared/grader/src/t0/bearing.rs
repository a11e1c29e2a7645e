//! Which ways of asking a task bears: its reference is run in both.

use super::{GradeError, Solution, T0Options, grade};
use crate::cases::Case;
use rollmill_sandbox::Sandbox;
use serde::{Deserialize, Serialize};

/// Under which ways of asking a reference still passes. Solutions are asked in the strictest of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bearing {
    /// In any order.
    pub shuffled: bool,
    /// Every case more than once in one process.
    pub repeated: bool,
}

/// How often each call is made at least, where that is borne.
const REPEATS: u32 = 2;

impl Bearing {
    /// In any order, more than once.
    pub const ANY: Bearing = Bearing { shuffled: true, repeated: true };

    /// The options with which a solution of this task is graded. The time for all calls grows with their number.
    pub fn options(&self, opts: &T0Options) -> T0Options {
        let repeat = if self.repeated { opts.repeat.max(REPEATS) } else { 1 };
        let total = repeat.div_ceil(opts.repeat.max(1)) * opts.total;
        T0Options { shuffle: opts.shuffle && self.shuffled, repeat, total, ..opts.clone() }
    }

    /// What verification saw of a suite of a task (`visible`, `a` or `b`), from the JSON that it left; none in older rows, whose
    /// suites are asked as ever.
    pub fn recorded(verified: &str, suite: &str) -> Option<Bearing> {
        let verified: serde_json::Value = serde_json::from_str(verified).ok()?;
        Bearing::deserialize(verified.get("bearing")?.get(suite)?).ok()
    }
}

/// Orders tried beside the written one.
const SEEDS: u64 = 3;

/// Runs the reference in the written order, shuffled, and with every case repeated; none if it fails even the first.
///
/// A task with state between its cases (a counter, a cache that changes results) bears less than others.
pub fn bearing(
    sandbox: &dyn Sandbox,
    reference: &Solution,
    entry_point: &str,
    cases: &[Case],
    opts: &T0Options,
) -> Result<Option<Bearing>, GradeError> {
    let passes = |shuffle, repeat, seed| -> Result<bool, GradeError> {
        let total = repeat * opts.total;
        let opts = T0Options { shuffle, repeat, seed, total, ..opts.clone() };
        let result = grade(sandbox, reference, entry_point, cases, &opts)?;
        Ok(result.passed == result.total)
    };
    if !passes(false, 1, opts.seed)? {
        return Ok(None);
    }
    let mut shuffled = true;
    for seed in (0..SEEDS).map(|n| opts.seed.wrapping_add(n)) {
        shuffled = shuffled && passes(true, 1, seed)?;
    }
    Ok(Some(Bearing { shuffled, repeated: passes(false, opts.repeat.max(REPEATS), opts.seed)? }))
}
