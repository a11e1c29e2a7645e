//! Pauses between tries: exponential with full jitter, so that workers that failed together do not come back together.
//!
//! In: a seed. Out: durations. The seed makes a sequence repeatable: a run that is replayed pauses as it did before.
//! Source: M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015 ("full jitter").

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

/// The first pause is at most this long; the bound doubles with each.
const FIRST: Duration = Duration::from_millis(50);
/// No pause is longer.
const LONGEST: Duration = Duration::from_secs(5);

/// A sequence of pauses.
#[derive(Clone, Debug)]
pub struct Pauses {
    bound: Duration,
    state: u64,
}

impl Pauses {
    /// The sequence that follows from `seed`.
    pub fn new(seed: u64) -> Pauses {
        Pauses { bound: FIRST, state: seed }
    }

    /// The sequence that follows from some bytes, such as those a racer sends, which hold its nonce.
    pub fn of(bytes: &[u8]) -> Pauses {
        Pauses::new(Pauses::seed_of(bytes))
    }

    /// A seed that follows from bytes.
    pub fn seed_of(bytes: &[u8]) -> u64 {
        let mut hash = DefaultHasher::new();
        bytes.hash(&mut hash);
        hash.finish()
    }

    /// The next pause: between nothing and the bound, which then doubles.
    pub fn next_pause(&mut self) -> Duration {
        self.state = mix(self.state);
        // The top 53 bits as a fraction of one.
        let fraction = (self.state >> 11) as f64 / (1u64 << 53) as f64;
        let pause = self.bound.mul_f64(fraction);
        self.bound = (self.bound * 2).min(LONGEST);
        pause
    }
}

/// SplitMix64 (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014).
fn mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_stay_below_a_bound_that_doubles_and_differ_by_seed() {
        let sequence = |seed| {
            let mut pauses = Pauses::new(seed);
            std::iter::repeat_with(move || pauses.next_pause()).take(12).collect::<Vec<_>>()
        };
        for seed in 0..200 {
            for (n, pause) in sequence(seed).into_iter().enumerate() {
                assert!(pause <= (FIRST * 2u32.pow(n as u32)).min(LONGEST), "seed {seed}, pause {n}: {pause:?}");
            }
        }
        assert_eq!(sequence(7), sequence(7));
        assert_ne!(sequence(7), sequence(8));
        // Full jitter: the mean of the first pause is half its bound.
        let mean: f64 = (0..2000).map(|s| sequence(s)[0].as_secs_f64()).sum::<f64>() / 2000.0;
        assert!((mean - 0.025).abs() < 0.001, "{mean}");
    }
}
