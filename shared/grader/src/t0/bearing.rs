//! Which ways of asking a task bears: its reference is run in both.

use super::{GradeError, Solution, T0Options, grade};
use crate::cases::Case;
use rollmill_sandbox::Sandbox;

/// Under which ways of asking a reference still passes. Solutions are asked in the strictest of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bearing {
    /// In any order.
    pub shuffled: bool,
    /// Every case more than once in one process.
    pub repeated: bool,
}

impl Bearing {
    /// The options with which a solution of this task is graded.
    pub fn options(&self, opts: &T0Options) -> T0Options {
        let repeat = if self.repeated { opts.repeat } else { 1 };
        T0Options { shuffle: opts.shuffle && self.shuffled, repeat, ..opts.clone() }
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
        let opts = T0Options { shuffle, repeat, seed, ..opts.clone() };
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
    Ok(Some(Bearing { shuffled, repeated: passes(false, opts.repeat.max(2), opts.seed)? }))
}
