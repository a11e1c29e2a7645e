//! The worker in the solution's sandbox: asked, and its answers read as the hostile bytes they are.

use super::peer::{Heard, Life, MARGIN, Peer, START};
use super::protocol::{Answer, Ask, Request, read_answer};
use super::{GradeError, Solution, T0Options};
use crate::blame::overloaded;
use rollmill_sandbox::{Facts, Sandbox, SandboxError};
use std::time::Duration;

pub(super) const WORKER: &str =
    concat!(include_str!("../../runner/wire.py"), "\n", include_str!("../../runner/worker.py"));

pub(super) enum Reply {
    Answer(Answer),
    /// Something that is no answer.
    Protocol(&'static str),
    /// The worker's pipe was closed.
    Ended,
    /// The deadline passed.
    Late,
}

pub(super) struct Worker {
    peer: Peer,
}

impl Worker {
    /// Starts a worker and waits for its first word.
    pub fn start(
        sandbox: &dyn Sandbox,
        solution: &Solution,
        opts: &T0Options,
        life: Life,
        seq: u64,
    ) -> Result<Worker, GradeError> {
        let peer = Peer::start(sandbox, WORKER, &solution.files, &opts.limits, life)?;
        let mut worker = Worker { peer };
        match worker.ask(Ask::Hello, seq, START)? {
            Reply::Answer(Answer::Ready) => Ok(worker),
            Reply::Late => Err(overloaded(&worker.finish()?)),
            Reply::Answer(_) | Reply::Protocol(_) | Reply::Ended => Err(worker.peer.no_start()?),
        }
    }

    /// Asks, and waits until an answer has come or `limit` has passed.
    pub fn ask(&mut self, ask: Ask<'_>, seq: u64, limit: Duration) -> Result<Reply, SandboxError> {
        Ok(match self.peer.ask(&Request { seq, ask }, limit)? {
            Heard::Frame(body) => read_answer(&body, seq).map_or_else(Reply::Protocol, Reply::Answer),
            Heard::Protocol(what) => Reply::Protocol(what),
            Heard::Ended => Reply::Ended,
            Heard::Late => Reply::Late,
        })
    }

    /// Time spent waiting for answers.
    pub fn waited(&self) -> Duration {
        self.peer.waited
    }

    /// See [`Peer::loaded`].
    pub fn loaded(&mut self) {
        self.peer.loaded();
    }

    /// Time of its life.
    pub fn age(&self) -> Duration {
        self.peer.age()
    }

    /// Time of its life in which it waited for this side.
    pub fn own_time(&self) -> Duration {
        self.peer.own_time()
    }

    /// Whether its life may have run out by this side's fault or by a slow start: more passed beside the calls than it was
    /// given for that.
    pub fn lost_time(&self) -> bool {
        self.own_time() + self.peer.loading() > MARGIN / 2
    }

    /// The CPU time that a call may use, with what the process used before: starting and loading, which counts up to the
    /// time of one call, and earlier calls.
    pub fn allowance(&self, earlier: Duration, call: Duration) -> Duration {
        self.peer.loading().min(call) + earlier + call
    }

    /// See [`Peer::outlast`].
    pub fn outlast(self) -> Result<Facts, SandboxError> {
        self.peer.outlast()
    }

    /// Kills the worker and reads the facts about it.
    pub fn finish(self) -> Result<Facts, SandboxError> {
        self.peer.finish()
    }
}
