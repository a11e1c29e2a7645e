//! Runs actors to the end of a case: one thread, paused time.

use crate::Line;
use crate::line::State;
use rollmill_job::Clock;
use std::pin::pin;
use std::time::Duration;
use tokio::time::Instant;

/// How an actor ended.
#[derive(Clone, Debug)]
pub enum Ending<T> {
    /// It returned.
    Returned(T),
    /// It died.
    Crashed,
}

/// Runs `case` with paused time: whenever everything waits, the clock jumps to the next timer.
pub fn simulate<T>(case: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    // Without I/O there is nothing that could fail.
    let runtime = builder.enable_time().start_paused(true).build().expect("a runtime of one thread");
    runtime.block_on(case)
}

/// Runs an actor on `line`. When it is frozen, `meanwhile` happens, and then it goes on.
pub async fn drive<T>(line: &Line, actor: impl Future<Output = T>, meanwhile: impl Future<Output = ()>) -> Ending<T> {
    let mut actor = pin!(actor);
    tokio::select! {
        biased;
        out = &mut actor => return Ending::Returned(out),
        state = line.stopped() => if state == State::Crashed { return Ending::Crashed },
    }
    meanwhile.await;
    line.resume();
    Ending::Returned(actor.await)
}

/// Lets every write that is still under way land.
pub async fn settle() {
    tokio::time::sleep(Duration::from_secs(7200)).await;
}

/// A machine's clocks in simulated time. `off` shifts its wall clock.
pub struct SimulatedClock {
    start: Instant,
    off: f64,
}

impl SimulatedClock {
    /// Clocks of a process that starts now, its wall clock `off` seconds wrong.
    pub fn new(off: f64) -> SimulatedClock {
        SimulatedClock { start: Instant::now(), off }
    }
}

impl Clock for SimulatedClock {
    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }

    fn wall(&self) -> Duration {
        // Some day in 2026; only differences would matter, and nothing takes any.
        Duration::from_secs_f64(1_796_000_000.0 + self.off + self.start.elapsed().as_secs_f64())
    }
}
