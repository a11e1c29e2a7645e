//! Framed talk with a trusted script that runs as the main program of a sandbox.
//!
//! In: requests, and bytes that may be hostile. Out: the bodies of frames. What must hold: every wait has a deadline, memory
//! is bounded by the cap on frames. What it does not know: what is asked, and what a body means; whoever asks checks that
//! a body carries the ticket of its request.

use crate::codec::{CodecError, FrameReader, frame};
use crate::t0::GradeError;
use rollmill_sandbox::{Finished, Received, Sandbox, SandboxError, Session, Spec};
use serde::Serialize;
use std::time::Instant;

/// Frames on descriptors of their own, and a process that its neighbours cannot look into; put before each script.
macro_rules! script {
    ($file:literal) => {
        concat!(
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/runner/frames.py")),
            "\n",
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/runner/", $file))
        )
    };
}
pub(crate) use script;

/// What came before a deadline.
#[derive(Debug, PartialEq)]
pub(crate) enum Heard {
    /// The body of one frame.
    Frame(Vec<u8>),
    /// Bytes that are no frame.
    Malformed(&'static str),
    /// The pipe was closed.
    Ended,
    /// Nothing in time.
    Late,
}

pub(crate) struct Channel {
    session: Box<dyn Session>,
    reader: FrameReader,
}

impl Channel {
    pub fn open(sandbox: &dyn Sandbox, spec: &Spec) -> Result<Channel, SandboxError> {
        Ok(Channel { session: sandbox.start(spec)?, reader: FrameReader::default() })
    }

    /// Sends one request; one over the cap on frames is a fault of the task.
    pub fn send<T: Serialize>(&mut self, request: &T, deadline: Instant) -> Result<(), GradeError> {
        let bytes = frame(request).map_err(|source| GradeError::Task(format!("a request to the sandbox: {source}")))?;
        Ok(self.session.send(&bytes, deadline)?)
    }

    /// The next frame.
    pub fn hear(&mut self, deadline: Instant) -> Result<Heard, SandboxError> {
        loop {
            match self.reader.take() {
                Ok(Some(body)) => return Ok(Heard::Frame(body)),
                Ok(None) => {}
                Err(CodecError::FrameTooLong(_)) => return Ok(Heard::Malformed("a frame over the limit")),
                Err(_) => return Ok(Heard::Malformed("a malformed frame")),
            }
            match self.session.recv(1 << 16, deadline)? {
                Received::Bytes(bytes) => self.reader.push(&bytes),
                Received::Eof => return Ok(Heard::Ended),
                Received::Deadline => return Ok(Heard::Late),
            }
        }
    }

    /// Kills everything in the sandbox and reads what is known about it.
    pub fn finish(self) -> Result<Finished, SandboxError> {
        self.session.finish()
    }

    /// Waits until the sandbox's own limits have ended it, so that the facts tell whether it was idle.
    pub fn outlast(mut self, deadline: Instant) -> Result<Finished, SandboxError> {
        while let Received::Bytes(_) = self.session.recv(1 << 16, deadline)? {}
        self.finish()
    }
}

/// The last line of a program's last words, short.
pub(crate) fn last_words(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let last = text.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or("no message");
    last.chars().filter(|c| !c.is_control()).take(200).collect()
}
