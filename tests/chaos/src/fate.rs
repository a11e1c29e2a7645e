//! What is to become of a worker: drawn before it starts.

use crate::rng::Rng;
use std::time::Duration;

/// A worker's fate.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)] // the fields say it by their names
pub enum Fate {
    /// It may finish.
    Live,
    /// Killed with -9 so long after its start.
    KillAfter(Duration),
    /// Killed with -9 a moment after the store shows the n-th new object whose key holds this text.
    KillOn { event: &'static str, nth: usize, lag: Duration },
    /// Stopped (SIGSTOP) so long after its first claim, and let go again.
    Freeze { lag: Duration, thaw: Thaw },
}

/// When a frozen worker is let go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Thaw {
    /// So long after.
    After(Duration),
    /// When others have finished the stage.
    Finished,
}

/// Objects whose creation makes the next moments interesting: a plan, a claim, a chunk, a part, a projection, a seal.
const EVENTS: [&str; 8] =
    ["/plan.json", "/leases/", "/chunks/", "/part-", "/part-", "tables/tasks/", "tables/task_secrets/", "/sealed.json"];

/// Draws a fate. Half of the kills come at any time, evenly or with every order of magnitude as likely as the others; the
/// other half shortly after the first, second or third object of a kind appeared, because creates take milliseconds and
/// even times would hardly ever meet one.
pub fn draw(rng: &mut Rng, longest: Duration) -> Fate {
    let shortest = Duration::from_millis(2);
    match rng.unit() {
        p if p < 0.12 => Fate::Live,
        p if p < 0.32 => Fate::KillAfter(rng.log_between(shortest, longest)),
        p if p < 0.55 => Fate::KillAfter(rng.between(shortest, longest)),
        _ => {
            let (event, nth) = (EVENTS[rng.below(EVENTS.len())], 1 + rng.below(3));
            Fate::KillOn { event, nth, lag: rng.between(Duration::ZERO, Duration::from_millis(12)) }
        }
    }
}

/// Draws a freeze that outlasts a lease of `ttl`.
pub fn freeze(rng: &mut Rng, ttl: Duration) -> Fate {
    let beyond = ttl + rng.between(Duration::from_millis(500), Duration::from_millis(2500));
    let thaw = if rng.chance(0.5) { Thaw::After(beyond) } else { Thaw::Finished };
    Fate::Freeze { lag: rng.between(Duration::ZERO, Duration::from_millis(200)), thaw }
}
