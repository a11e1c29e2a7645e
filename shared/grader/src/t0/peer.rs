//! One process in a sandbox that is spoken to in frames: started, sent to, heard, ended.
//!
//! In: messages. Out: a frame's body, or that there was none. What must hold: waiting is bounded by the caller's deadline and
//! memory by the cap on frames, whatever the process writes. What the frames mean is not known here.

use super::GradeError;
use crate::blame::overloaded;
use crate::codec::{CodecError, FrameReader, frame};
use rollmill_sandbox::{Facts, Limits, Received, Sandbox, SandboxError, Session, Spec};
use serde::Serialize;
use std::time::{Duration, Instant};

/// How long a process may take until it speaks, with nothing foreign read: a bound on a machine that is stuck.
pub(super) const START: Duration = Duration::from_secs(30);
/// What the sandbox's own limits add to the life that is asked for.
pub(super) const MARGIN: Duration = Duration::from_secs(1);

/// The flags are those of `-I` but for `-E`: the environment is ours, and it fixes the order of sets of strings.
pub(super) const INTERPRETER: [&str; 4] = ["/usr/bin/python3", "-s", "-S", "-B"];

pub(super) fn environment() -> Vec<(String, String)> {
    vec![("PYTHONHASHSEED".to_owned(), "0".to_owned()), ("LC_ALL".to_owned(), "C.UTF-8".to_owned())]
}

/// What came of waiting for a frame.
pub(super) enum Heard {
    /// The body of a frame.
    Frame(Vec<u8>),
    /// Something that is no frame.
    Protocol(&'static str),
    /// The pipe was closed.
    Ended,
    /// The deadline passed.
    Late,
}

/// How long a process may live.
#[derive(Clone, Copy)]
pub(super) struct Life {
    pub wall: Duration,
    pub cpu: Duration,
}

pub(super) struct Peer {
    session: Box<dyn Session>,
    reader: FrameReader,
    started: Instant,
    life: Life,
    /// Time spent waiting for it since [`Peer::loaded`].
    pub waited: Duration,
    /// Time spent waiting for it until then.
    loading: Duration,
}

impl Peer {
    /// Starts Python on a program's text. `limits` says all but the wall clock and the CPU.
    pub fn start(
        sandbox: &dyn Sandbox,
        program: &str,
        files: &[(String, Vec<u8>)],
        limits: &Limits,
        life: Life,
    ) -> Result<Peer, SandboxError> {
        let argv = INTERPRETER.into_iter().chain(["-c", program]);
        let spec = Spec {
            argv: argv.map(str::to_owned).collect(),
            env: environment(),
            files: files.to_vec(),
            limits: Limits { wall: life.wall + MARGIN, cpu: life.cpu + MARGIN, ..limits.clone() },
            ..Spec::default()
        };
        let session = sandbox.start(&spec)?;
        let (reader, waited) = (FrameReader::default(), Duration::ZERO);
        Ok(Peer { session, reader, started: Instant::now(), life, waited, loading: Duration::ZERO })
    }

    /// From here on its waiting is counted anew: loading is no call.
    pub fn loaded(&mut self) {
        self.loading += std::mem::take(&mut self.waited);
    }

    /// Sends a message, and waits until a frame has come or `limit` has passed.
    pub fn ask(&mut self, message: &impl Serialize, limit: Duration) -> Result<Heard, SandboxError> {
        if self.reader.has_leftovers() {
            return Ok(Heard::Protocol("bytes that nobody asked for"));
        }
        let began = Instant::now();
        let heard = match frame(message) {
            Ok(request) => {
                self.session.send(&request, began + limit)?;
                self.receive(began + limit)
            }
            // What is sent was measured before, where it can be large.
            Err(_) => Ok(Heard::Protocol("a request too large")),
        };
        self.waited += began.elapsed();
        heard
    }

    fn receive(&mut self, deadline: Instant) -> Result<Heard, SandboxError> {
        loop {
            match self.reader.take() {
                Ok(Some(body)) => return Ok(Heard::Frame(body)),
                Ok(None) => {}
                Err(CodecError::FrameTooLong(_)) => return Ok(Heard::Protocol("a frame over the limit")),
                Err(_) => return Ok(Heard::Protocol("a malformed frame")),
            }
            match self.session.recv(1 << 16, deadline)? {
                Received::Bytes(bytes) => self.reader.push(&bytes),
                Received::Eof => return Ok(Heard::Ended),
                Received::Deadline => return Ok(Heard::Late),
            }
        }
    }

    /// Time of its life.
    pub fn age(&self) -> Duration {
        self.started.elapsed()
    }

    /// Time spent waiting for it until [`Peer::loaded`].
    pub fn loading(&self) -> Duration {
        self.loading
    }

    /// Time of its life in which it waited for this side.
    pub fn own_time(&self) -> Duration {
        self.age().saturating_sub(self.waited + self.loading)
    }

    /// Waits until the sandbox's own limit has ended the process, so that the facts tell whether it was idle.
    pub fn outlast(mut self) -> Result<Facts, SandboxError> {
        let deadline = self.started + self.life.wall + 2 * MARGIN;
        while let Received::Bytes(_) = self.session.recv(1 << 16, deadline)? {}
        self.finish()
    }

    /// Kills the process and reads the facts about it.
    pub fn finish(self) -> Result<Facts, SandboxError> {
        Ok(self.session.finish()?.facts)
    }

    /// The error for a process that did not say its first word.
    pub fn no_start(self) -> Result<GradeError, SandboxError> {
        let finished = self.session.finish()?;
        if finished.facts.timed_out {
            return Ok(overloaded(&finished.facts));
        }
        let stderr = String::from_utf8_lossy(&finished.stderr);
        let last = stderr.lines().last().unwrap_or("no message").chars().take(200).collect::<String>();
        Ok(GradeError::Worker(format!("exit {:?}, signal {:?}: {last}", finished.facts.exit, finished.facts.signal)))
    }
}
