//! Clocks, injected so that runs replay. Nothing compares two machines' clocks.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What a worker may know about time.
pub trait Clock: Send + Sync {
    /// Monotonic time since some start of this process.
    fn monotonic(&self) -> Duration;
    /// Wall-clock time since 1970, for people to read.
    fn wall(&self) -> Duration;
}

/// The machine's clocks.
pub struct SystemClock(Instant);

impl Default for SystemClock {
    fn default() -> SystemClock {
        SystemClock(Instant::now())
    }
}

impl Clock for SystemClock {
    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }

    // The one place that reads the wall clock; everything else takes this trait.
    #[allow(clippy::disallowed_methods)]
    fn wall(&self) -> Duration {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }
}

/// RFC 3339 text in UTC, to the second, of a time since 1970.
pub fn rfc3339(wall: Duration) -> String {
    let seconds = wall.as_secs();
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Civil date from days since 1970: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", civil_from_days.
    let z = days as i64 + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let day = doy - (153 * mp + 2) / 5 + 1;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    let year = yoe + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", rest / 3600, rest / 60 % 60, rest % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_civil() {
        // `date -u -d @N` of GNU coreutils.
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_796_000_000, "2026-11-30T00:53:20Z"),
        ] {
            assert_eq!(rfc3339(Duration::from_secs(seconds)), text);
        }
    }
}
