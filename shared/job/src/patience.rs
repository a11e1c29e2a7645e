//! How long a worker waits for others before it asks again: from a thirtieth of a lease's time-to-live, doubling up to a third
//! of it, each time a third longer or shorter so that the waiting do not march in step.

use crate::Run;
use std::time::Duration;

/// The least pause, for leases of a few seconds.
const LEAST: Duration = Duration::from_millis(200);

/// One worker's patience.
pub(crate) struct Patience<'a> {
    run: &'a Run,
    first: Duration,
    next: Duration,
    most: Duration,
    spread: f64,
}

impl<'a> Patience<'a> {
    pub fn new(run: &'a Run) -> Patience<'a> {
        let ttl = Duration::from_secs(run.operations.lease_seconds);
        let first = LEAST.max(ttl / 30);
        // This attempt's own, so that a history replays.
        let spread = f64::from(run.attempt.as_str().bytes().map(u32::from).sum::<u32>() % 64) / 96.0;
        Patience { run, first, next: first, most: ttl.max(Duration::from_secs(3)) / 3, spread: 2.0 / 3.0 + spread }
    }

    /// Something went on: the next pause is the first again.
    pub fn renew(&mut self) {
        self.next = self.first;
    }

    /// Pauses, or returns at once when asked to leave.
    pub async fn wait(&mut self) {
        let pause = self.next.mul_f64(self.spread);
        tokio::select! { () = self.run.drain.raised() => (), () = tokio::time::sleep(pause) => () }
        self.next = (self.next * 2).min(self.most);
    }
}
