//! Log-probs of one prompt at two temperatures.
//!
//! In: draws at both. Out: whether one set of logits explains them. With logits z the log-prob of token a at
//! temperature T is z_a/T − c_T, so T·log-prob at one temperature minus the same at another is one constant for all
//! tokens.

use super::draws::{Draws, mean};

#[derive(Debug, PartialEq)]
pub(super) enum Compared {
    /// One set of logits explains both, and the temperature was seen to matter.
    Divided,
    /// The log-probs are the same at both.
    Same { tokens: usize },
    /// Neither. `off`: root mean square of what is left, in logits.
    Neither { tokens: usize, off: f64 },
    /// Too few tokens were drawn at both, or too similar ones.
    Unclear,
}

/// Compares; `tolerance` in logits is what noise and rounding may do.
pub(super) fn compare(one: &Draws, two: &Draws, tolerance: f64) -> Compared {
    let there = two.by_token();
    let both: Vec<(f64, f64)> =
        one.by_token().iter().filter_map(|(token, here)| Some((mean(here), mean(there.get(token)?)))).collect();
    let tokens = both.len();
    if tokens < 2 {
        return Compared::Unclear;
    }
    let logits: Vec<f64> = both.iter().map(|(a, b)| a * one.temperature - b * two.temperature).collect();
    let constant = mean(&logits);
    let off = (logits.iter().map(|l| (l - constant).powi(2)).sum::<f64>() / (tokens - 1) as f64).sqrt();
    // Log-probs that no temperature has touched are logits as they are.
    let apart = (both.iter().map(|(a, b)| (a - b).powi(2)).sum::<f64>() / tokens as f64).sqrt();
    match (off <= tolerance, apart <= tolerance) {
        (true, true) => Compared::Unclear,
        (true, false) => Compared::Divided,
        (false, true) => Compared::Same { tokens },
        (false, false) => Compared::Neither { tokens, off },
    }
}
