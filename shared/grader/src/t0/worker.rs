//! One worker in the sandbox: started, asked, ended.
//!
//! In: requests. Out: an answer, or that there was none. What must hold: waiting is bounded by the caller's deadline and
//! memory by the cap on frames, whatever the worker writes.

use super::protocol::{Answer, Ask, Request, read_answer};
use super::{GradeError, Solution, T0Options};
use crate::codec::{CodecError, FrameReader, frame};
use rollmill_sandbox::{Facts, Received, Sandbox, SandboxError, Session, Spec};
use std::time::{Duration, Instant};

const WORKER: &str = include_str!("../../runner/worker.py");
/// How long a worker may take until it speaks, with nothing of the solution read: a bound on a machine that is stuck.
const START: Duration = Duration::from_secs(30);
/// What the sandbox's own limits add to the life that the suite asks for.
pub(super) const MARGIN: Duration = Duration::from_secs(1);

pub(super) enum Reply {
    Answer(Answer),
    /// Something that is no answer.
    Protocol(&'static str),
    /// The worker's pipe was closed.
    Ended,
    /// The deadline passed.
    Late,
}

/// How long a worker may live.
#[derive(Clone, Copy)]
pub(super) struct Life {
    pub wall: Duration,
    pub cpu: Duration,
}

pub(super) struct Worker {
    session: Box<dyn Session>,
    reader: FrameReader,
    started: Instant,
    life: Life,
    /// Time spent waiting for answers.
    pub waited: Duration,
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
        // The flags are those of `-I` but for `-E`: the environment is ours, and it fixes the order of sets of strings.
        let argv = ["/usr/bin/python3", "-s", "-S", "-B", "-c", WORKER];
        let mut limits = opts.limits.clone();
        limits.wall = life.wall + MARGIN;
        limits.cpu = life.cpu + MARGIN;
        let spec = Spec {
            argv: argv.map(str::to_owned).to_vec(),
            env: vec![("PYTHONHASHSEED".to_owned(), "0".to_owned()), ("LC_ALL".to_owned(), "C.UTF-8".to_owned())],
            files: solution.files.clone(),
            limits,
            ..Spec::default()
        };
        let session = sandbox.start(&spec)?;
        let mut worker =
            Worker { session, reader: FrameReader::default(), started: Instant::now(), life, waited: Duration::ZERO };
        match worker.ask(Ask::Hello, seq, START)? {
            Reply::Answer(Answer::Ready) => Ok(worker),
            Reply::Late => Err(overloaded(&worker.finish()?)),
            Reply::Answer(_) | Reply::Protocol(_) | Reply::Ended => Err(no_start(worker.session)?),
        }
    }

    /// Asks, and waits until an answer has come or `limit` has passed.
    pub fn ask(&mut self, ask: Ask<'_>, seq: u64, limit: Duration) -> Result<Reply, SandboxError> {
        if self.reader.has_leftovers() {
            return Ok(Reply::Protocol("bytes that nobody asked for"));
        }
        let began = Instant::now();
        let reply = match frame(&Request { seq, ask }) {
            Ok(request) => {
                self.session.send(&request, began + limit)?;
                self.receive(seq, began + limit)
            }
            // Arguments were measured before the suite began, see `suite::grade`.
            Err(_) => Ok(Reply::Protocol("a request too large")),
        };
        self.waited += began.elapsed();
        reply
    }

    fn receive(&mut self, seq: u64, deadline: Instant) -> Result<Reply, SandboxError> {
        loop {
            match self.reader.take() {
                Ok(Some(body)) => return Ok(read_answer(&body, seq).map_or_else(Reply::Protocol, Reply::Answer)),
                Ok(None) => {}
                Err(CodecError::FrameTooLong(_)) => return Ok(Reply::Protocol("a frame over the limit")),
                Err(_) => return Ok(Reply::Protocol("a malformed frame")),
            }
            match self.session.recv(1 << 16, deadline)? {
                Received::Bytes(bytes) => self.reader.push(&bytes),
                Received::Eof => return Ok(Reply::Ended),
                Received::Deadline => return Ok(Reply::Late),
            }
        }
    }

    /// Time of its life in which it waited for this side.
    pub fn own_time(&self) -> Duration {
        self.started.elapsed().saturating_sub(self.waited)
    }

    /// Waits until the sandbox's own limit has ended the worker, so that the facts tell whether it was idle.
    pub fn outlast(mut self) -> Result<Facts, SandboxError> {
        let deadline = self.started + self.life.wall + 2 * MARGIN;
        while let Received::Bytes(_) = self.session.recv(1 << 16, deadline)? {}
        self.finish()
    }

    /// Kills the worker and reads the facts about it.
    pub fn finish(self) -> Result<Facts, SandboxError> {
        Ok(self.session.finish()?.facts)
    }
}

fn no_start(session: Box<dyn Session>) -> Result<GradeError, SandboxError> {
    let finished = session.finish()?;
    if finished.facts.timed_out {
        return Ok(overloaded(&finished.facts));
    }
    let stderr = String::from_utf8_lossy(&finished.stderr);
    let last = stderr.lines().last().unwrap_or("no message").chars().take(200).collect::<String>();
    Ok(GradeError::Worker(format!("exit {:?}, signal {:?}: {last}", finished.facts.exit, finished.facts.signal)))
}

/// The error for a limit that passed without the solution's fault.
pub(crate) fn overloaded(facts: &Facts) -> GradeError {
    let ms = |d: Duration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
    GradeError::Overloaded { cpu_ms: ms(facts.cpu), wall_ms: ms(facts.wall) }
}
