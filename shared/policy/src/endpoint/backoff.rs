//! How long to wait before a retry: exponential, full jitter, never less than the server asked for.
//!
//! In: the number of failures so far, the server's Retry-After and a draw of the injected generator. Out: a wait below
//! the configured maximum. Full jitter: "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A source of draws in [0, 1).
pub struct Jitter(Mutex<Box<dyn FnMut() -> f64 + Send>>);

impl Jitter {
    /// Draws from `source`.
    pub fn new(source: impl FnMut() -> f64 + Send + 'static) -> Self {
        Self(Mutex::new(Box::new(source)))
    }

    /// Draws that differ between processes, so that workers that failed together do not come back together.
    pub fn of_process() -> Self {
        let state = RandomState::new();
        let counter = AtomicU64::new(0);
        Self::new(move || {
            let mut hasher = state.build_hasher();
            hasher.write_u64(counter.fetch_add(1, Ordering::Relaxed));
            (hasher.finish() >> 11) as f64 / (1_u64 << 53) as f64
        })
    }

    pub(super) fn draw(&self) -> f64 {
        let mut source = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        source().clamp(0.0, 1.0)
    }
}

/// The wait before retry number `retry` (from 0).
pub(super) fn wait(retry: u32, first: Duration, max: Duration, asked: Option<Duration>, draw: f64) -> Duration {
    let cap = first.saturating_mul(2_u32.saturating_pow(retry)).min(max);
    let jittered = cap.mul_f64(draw.clamp(0.0, 1.0));
    asked.map_or(jittered, |asked| asked.saturating_add(jittered)).min(max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_to_the_maximum_and_honours_the_server() {
        let ms = Duration::from_millis;
        let at = |retry, asked, draw| wait(retry, ms(100), ms(1000), asked, draw);
        assert_eq!([0, 1, 2, 3, 4, 60].map(|n| at(n, None, 1.0)), [100, 200, 400, 800, 1000, 1000].map(ms));
        assert_eq!(at(3, None, 0.0), ms(0));
        assert_eq!(at(3, None, 0.5), ms(400));
        assert_eq!(at(0, Some(ms(700)), 0.5), ms(750));
        assert_eq!(at(0, Some(ms(70_000)), 0.5), ms(1000));
    }

    #[test]
    fn draws_lie_in_the_unit_interval_and_differ() {
        let jitter = Jitter::of_process();
        let draws: Vec<f64> = (0..64).map(|_| jitter.draw()).collect();
        assert!(draws.iter().all(|d| (0.0..1.0).contains(d)));
        assert!(draws.iter().any(|d| *d != draws[0]));
    }
}
