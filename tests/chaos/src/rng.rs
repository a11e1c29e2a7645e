//! Numbers from a seed: SplitMix64 (Steele, Lea, Flood 2014), a dozen lines and the same on every machine.

use std::time::Duration;

/// A generator.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// From a seed.
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to below 1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// From 0 to below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        ((self.unit() * n as f64) as usize).min(n.saturating_sub(1))
    }

    /// True with probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// Evenly between two times.
    pub fn between(&mut self, low: Duration, high: Duration) -> Duration {
        low + high.saturating_sub(low).mul_f64(self.unit())
    }

    /// Between two times, every order of magnitude as likely as the others.
    pub fn log_between(&mut self, low: Duration, high: Duration) -> Duration {
        let (a, b) = (low.as_secs_f64().ln(), high.as_secs_f64().ln());
        Duration::from_secs_f64((a + (b - a) * self.unit()).exp())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_the_published_one() {
        // First outputs for seed 1234567, from the reference implementation by Vigna (prng.di.unimi.it/splitmix64.c).
        let mut rng = Rng::new(1_234_567);
        assert_eq!([rng.bits(), rng.bits()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }
}
