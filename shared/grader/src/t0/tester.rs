//! The process that runs tests and predicates of a task, in a sandbox of its own.
//!
//! In: orders. Out: what it says, which is a call of the solution, the end of a test, or an answer. What must hold: only data
//! of the solution enters that sandbox; an answer counts only with the number of the order that it belongs to.

use super::GradeError;
use super::peer::{Heard, Life, Peer, START};
use super::protocol::How;
use crate::blame::overloaded;
use crate::codec::Node;
use rollmill_sandbox::{Facts, Limits, Sandbox, SandboxError};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The stand-in for pytest is a text in the program, compiled only for tests that use it.
pub(super) const TESTER: &str = concat!(
    include_str!("../../runner/wire.py"),
    "\nPYTEST = r\"\"\"\n",
    include_str!("../../runner/pytest.py"),
    "\"\"\"\n",
    include_str!("../../runner/tester.py")
);

#[derive(Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub(super) enum Order<'a> {
    /// Whether it runs.
    Hello,
    /// Read the tests; the answer tells which there are.
    Load {
        setup: &'a str,
        tests: &'a [String],
        entry: &'a str,
        names: &'a [String],
        module: &'a str,
        back: bool,
        seed: u64,
    },
    /// Run one of them.
    Test { index: usize },
    /// Ask a predicate.
    Accept { source: &'a str, args: &'a [Node], got: &'a [Node] },
}

/// What the solution did, as it is told to a test.
#[derive(Default, Serialize)]
pub(super) struct Told {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Vec<Node>>,
    /// The name of a built-in exception to raise, with `message`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raise: Option<&'static str>,
    pub message: String,
    /// The test is over, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
}

#[derive(Serialize)]
struct Numbered<T> {
    seq: u64,
    #[serde(flatten)]
    message: T,
}

/// Something that a test does with the solution.
#[derive(Debug)]
pub(super) struct Use {
    pub how: How,
    pub on: Option<u64>,
    pub name: String,
    pub args: Vec<Node>,
    pub kwargs: Option<Vec<Node>>,
}

#[derive(Debug)]
pub(super) enum Said {
    Ready,
    Tests(Vec<String>),
    BadTests(String),
    Use(Use),
    Done {
        outcome: String,
        message: String,
    },
    Accepted,
    Refused(String),
    /// Nothing of that.
    Nonsense(&'static str),
    /// The pipe was closed.
    Ended,
    /// The deadline passed.
    Late,
}

/// One flat object, so that serde streams it.
#[derive(Deserialize)]
struct Envelope {
    seq: u64,
    kind: String,
    #[serde(default)]
    ids: Vec<String>,
    #[serde(default)]
    outcome: String,
    #[serde(default)]
    message: String,
    how: Option<How>,
    on: Option<u64>,
    name: Option<String>,
    args: Option<Vec<Node>>,
    kwargs: Option<Vec<Node>>,
}

pub(super) struct Tester {
    peer: Peer,
    seq: u64,
}

impl Tester {
    /// Starts one and waits for its first word. `limits` says all but the wall clock and the CPU.
    pub fn start(sandbox: &dyn Sandbox, limits: &Limits, life: Life) -> Result<Tester, GradeError> {
        let mut tester = Tester { peer: Peer::start(sandbox, TESTER, &[], limits, life)?, seq: 0 };
        match tester.order(Order::Hello, START)? {
            Said::Ready => {
                tester.peer.loaded();
                Ok(tester)
            }
            Said::Late => Err(overloaded(&tester.finish()?)),
            _ => Err(tester.peer.no_start()?),
        }
    }

    /// Gives an order, and waits for the first thing that is said.
    pub fn order(&mut self, order: Order<'_>, limit: Duration) -> Result<Said, SandboxError> {
        self.seq += 1;
        let message = Numbered { seq: self.seq, message: order };
        let heard = self.peer.ask(&message, limit)?;
        Ok(self.read(heard))
    }

    /// Answers a call, and waits for the next thing that is said.
    pub fn tell(&mut self, told: Told, limit: Duration) -> Result<Said, SandboxError> {
        let heard = self.peer.ask(&told, limit)?;
        Ok(self.read(heard))
    }

    fn read(&self, heard: Heard) -> Said {
        match heard {
            Heard::Frame(body) => read_said(&body, self.seq).unwrap_or_else(Said::Nonsense),
            Heard::Protocol(what) => Said::Nonsense(what),
            Heard::Ended => Said::Ended,
            Heard::Late => Said::Late,
        }
    }

    /// Time spent waiting for it since it started.
    pub fn waited(&self) -> Duration {
        self.peer.waited
    }

    /// See [`Peer::loaded`].
    pub fn loaded(&mut self) {
        self.peer.loaded();
    }

    /// See [`Peer::outlast`].
    pub fn outlast(self) -> Result<Facts, SandboxError> {
        self.peer.outlast()
    }

    /// Kills it and reads the facts about it.
    pub fn finish(self) -> Result<Facts, SandboxError> {
        self.peer.finish()
    }
}

fn read_said(body: &[u8], seq: u64) -> Result<Said, &'static str> {
    let said: Envelope = serde_json::from_slice(body).map_err(|_| "a frame of no agreed shape")?;
    if said.seq != seq {
        return Err("an answer to another order");
    }
    Ok(match (said.kind.as_str(), said.how, said.args) {
        ("use", Some(how), Some(args)) => {
            Said::Use(Use { how, on: said.on, name: said.name.unwrap_or_default(), args, kwargs: said.kwargs })
        }
        ("ready", ..) => Said::Ready,
        ("tests", ..) => Said::Tests(said.ids),
        ("bad_tests", ..) => Said::BadTests(said.message),
        ("done", ..) => Said::Done { outcome: said.outcome, message: said.message },
        ("accepted", ..) => Said::Accepted,
        ("refused", ..) => Said::Refused(said.message),
        _ => return Err("an answer of no known kind"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_belongs_to_the_last_order() {
        let said = |body: &str| read_said(body.as_bytes(), 5);
        assert!(matches!(said(r#"{"seq":5,"kind":"accepted"}"#), Ok(Said::Accepted)));
        let call =
            r#"{"seq":5,"kind":"use","how":"set_item","on":3,"name":"","args":[{"t":"tuple","v":0}],"kwargs":null}"#;
        assert!(matches!(said(call), Ok(Said::Use(Use { how: How::SetItem, on: Some(3), .. }))));
        for bad in [
            r#"{"seq":4,"kind":"accepted"}"#,
            r#"{"seq":5,"kind":"passed"}"#,
            r#"{"seq":5,"kind":"use"}"#,
            r#"{"seq":5,"kind":"use","how":"exec","args":[]}"#,
            "[]",
            "",
        ] {
            assert!(said(bad).is_err(), "{bad}");
        }
    }
}
