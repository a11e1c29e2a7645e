//! The server under the store while runs go on: up, down after a kill, starting again.

use crate::weed::Weed;
use std::time::{Duration, Instant};

/// How long it may answer nothing while it runs.
const OUTAGE: Duration = Duration::from_secs(60);

/// A server and its state.
pub struct Server {
    weed: Weed,
    state: State,
    silent_since: Option<Instant>,
    settled_at: Option<Instant>,
}

/// How long after it gives everything again calls may still fail: its parts register with each other one by one.
const SETTLES: Duration = Duration::from_secs(15);

enum State {
    Up,
    Down(Instant),
    Starting,
}

impl Server {
    /// A server that runs.
    pub fn new(weed: Weed) -> Server {
        Server { weed, state: State::Up, silent_since: None, settled_at: None }
    }

    /// The server itself.
    pub fn weed(&self) -> &Weed {
        &self.weed
    }

    /// Whether it is meant to answer now.
    pub fn is_up(&self) -> bool {
        matches!(self.state, State::Up)
    }

    /// Whether calls may fail now.
    pub fn may_fail(&self) -> bool {
        !self.is_up() || self.settled_at.is_some_and(|at| Instant::now() < at)
    }

    /// Kills it with -9; it is started again after `down`.
    pub fn kill(&mut self, down: Duration) -> anyhow::Result<()> {
        self.weed.kill()?;
        self.state = State::Down(Instant::now() + down);
        Ok(())
    }

    /// Does what is due. True: it has been started again and answers; whether it gives its objects is for others to see.
    pub fn advance(&mut self) -> anyhow::Result<bool> {
        match self.state {
            State::Down(until) if Instant::now() >= until => {
                self.weed.begin()?;
                self.state = State::Starting;
                Ok(false)
            }
            State::Starting => self.weed.ready(),
            State::Up | State::Down(_) => Ok(false),
        }
    }

    /// It gives everything it had.
    pub fn recovered(&mut self) {
        self.state = State::Up;
        self.silent_since = None;
        self.settled_at = Some(Instant::now() + SETTLES);
    }

    /// It answered.
    pub fn answered(&mut self) {
        self.silent_since = None;
    }

    /// It did not, though it runs; an error if that lasts.
    pub fn silent(&mut self) -> anyhow::Result<()> {
        let since = *self.silent_since.get_or_insert_with(Instant::now);
        anyhow::ensure!(since.elapsed() < OUTAGE, "the server runs and has answered nothing for {OUTAGE:?}");
        Ok(())
    }
}
