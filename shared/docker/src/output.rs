//! What a program writes, between the task that hears it from the daemon and the thread that waits for it.
//!
//! What must hold: what is kept is bounded, by the limit of the run or, while somebody receives, by waiting with reading.
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bollard::container::LogOutput;
use bollard::errors::Error;
use futures::{Stream, StreamExt};
use rollmill_sandbox::{Limits, Received, SandboxError};
use tokio::sync::Notify;

use crate::error::failed;

/// Both outputs of an exec, as the daemon sends them.
pub type Outputs = Pin<Box<dyn Stream<Item = Result<LogOutput, Error>> + Send>>;

/// How long a script of ours may take to say that it is ready.
const SETUP: Duration = Duration::from_secs(60);
/// Bytes of stdout that wait for a receiver before reading stops.
const WAITING: usize = 1 << 20;

/// Waits for the one byte by which a script says that it did its part.
pub async fn until_ready(output: &mut Outputs, what: &str) -> Result<(), SandboxError> {
    let heard = async {
        let mut said = Vec::new();
        loop {
            match output.next().await {
                Some(Ok(LogOutput::StdOut { message })) if message.as_ref() == b"." => return Ok(()),
                Some(Ok(other)) => said.extend_from_slice(&other.into_bytes()),
                Some(Err(e)) => return Err(failed(what, &e.to_string())),
                None => return Err(failed(what, &String::from_utf8_lossy(&said))),
            }
        }
    };
    tokio::time::timeout(SETUP, heard).await.unwrap_or_else(|_| Err(failed(what, "not ready in time")))
}

/// One output: what is kept of it, and how much came.
#[derive(Default)]
struct Kept {
    bytes: VecDeque<u8>,
    seen: u64,
    cut: bool,
}

impl Kept {
    fn absorb(&mut self, bytes: &[u8], limit: u64) {
        let room = limit.saturating_sub(self.bytes.len() as u64).min(bytes.len() as u64) as usize;
        self.bytes.extend(&bytes[..room]);
        self.cut |= room < bytes.len();
        self.seen += bytes.len() as u64;
    }
}

#[derive(Default)]
struct State {
    stdout: Kept,
    stderr: Kept,
    /// Somebody calls `recv`: stdout has no limit, but waits.
    receiving: bool,
    closed: bool,
}

/// What was heard so far.
pub struct Heard {
    limit: u64,
    state: Mutex<State>,
    changed: Condvar,
    room: Notify,
}

impl Heard {
    pub fn new(limit: u64, receiving: bool) -> Heard {
        let state = Mutex::new(State { receiving, ..State::default() });
        Heard { limit, state, changed: Condvar::new(), room: Notify::new() }
    }

    /// Takes what the daemon sent.
    pub fn absorb(&self, item: LogOutput) {
        let mut state = self.state();
        match item {
            LogOutput::StdOut { message } => {
                let limit = if state.receiving { u64::MAX } else { self.limit };
                state.stdout.absorb(&message, limit);
            }
            other => state.stderr.absorb(&other.into_bytes(), self.limit),
        }
        self.changed.notify_all();
    }

    /// Nothing more will come.
    pub fn close(&self) {
        self.state().closed = true;
        self.changed.notify_all();
    }

    /// Whether more can be taken now; [`Heard::made_room`] tells when that may have changed.
    pub fn has_room(&self) -> bool {
        let state = self.state();
        !state.receiving || state.stdout.bytes.len() < WAITING
    }

    pub async fn made_room(&self) {
        self.room.notified().await;
    }

    /// Whether so much was written that the run must end.
    pub fn flooded(&self) -> bool {
        let state = self.state();
        let most = self.limit.saturating_mul(Limits::FLOOD);
        state.stderr.seen > most || (!state.receiving && state.stdout.seen > most)
    }

    pub fn recv(&self, max: usize, deadline: Instant) -> Received {
        let mut state = self.state();
        loop {
            if !state.stdout.bytes.is_empty() {
                let n = max.clamp(1, state.stdout.bytes.len().max(1)).min(state.stdout.bytes.len());
                let bytes = state.stdout.bytes.drain(..n).collect();
                self.room.notify_one();
                return Received::Bytes(bytes);
            }
            if state.closed {
                return Received::Eof;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Received::Deadline;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Nobody receives any more: what is there is cut to the limit.
    pub fn stop_receiving(&self) {
        let mut state = self.state();
        state.receiving = false;
        let limit = self.limit.min(usize::MAX as u64) as usize;
        state.stdout.seen = 0; // what was received was no flood
        if state.stdout.bytes.len() > limit {
            state.stdout.bytes.truncate(limit);
            state.stdout.cut = true;
        }
        self.room.notify_one();
    }

    /// Stdout, stderr, and whether something of them was dropped.
    pub fn take(&self) -> (Vec<u8>, Vec<u8>, bool) {
        let mut state = self.state();
        let (stdout, stderr) = (std::mem::take(&mut state.stdout), std::mem::take(&mut state.stderr));
        (stdout.bytes.into(), stderr.bytes.into(), stdout.cut || stderr.cut)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn out(bytes: &[u8]) -> LogOutput {
        LogOutput::StdOut { message: bytes.to_vec().into() }
    }

    #[test]
    fn a_run_keeps_its_limit_and_notices_a_flood() {
        let heard = Heard::new(4, false);
        heard.absorb(out(b"abcdef"));
        assert!(!heard.flooded() && heard.has_room());
        heard.absorb(out(&[b'x'; 64]));
        assert!(heard.flooded());
        assert_eq!(heard.take(), (b"abcd".to_vec(), vec![], true));
    }

    #[test]
    fn a_session_receives_everything_and_reading_waits_for_it() {
        let heard = Heard::new(4, true);
        heard.absorb(out(&vec![b'x'; WAITING]));
        assert!(!heard.has_room() && !heard.flooded());
        assert_eq!(heard.recv(10, Instant::now()), Received::Bytes(vec![b'x'; 10]));
        assert!(heard.has_room());
        while heard.recv(1 << 16, Instant::now()) != Received::Deadline {}
        heard.absorb(out(b"late rest"));
        heard.close();
        heard.stop_receiving();
        assert_eq!(heard.take(), (b"late".to_vec(), vec![], true));
        assert_eq!(heard.recv(1, Instant::now()), Received::Eof);
    }
}
