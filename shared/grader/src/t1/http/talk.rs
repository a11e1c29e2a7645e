//! One session with the relay: its sandbox, questions and answers, and whose fault it is when it breaks.
//!
//! What must hold: each answer carries the ticket of its question; waiting is bounded here as well as by the relay.

use super::super::run::Executable;
use super::ServerOptions;
use crate::blame::{Failure, at_fault, overloaded, why_ended};
use crate::channel::{Channel, Heard, last_words, script};
use crate::t0::{CaseOutcome, GradeError, ticket};
use rollmill_sandbox::{Limits, Sandbox, Spec};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

const RELAY: &str = script!("relay.py");
/// What the sandbox's own limit adds, and an answer's way.
const MARGIN: Duration = Duration::from_secs(1);

#[derive(Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub(super) enum Ask<'a> {
    Start { argv: &'a [String], port: u16, limit: f64 },
    Request { method: &'a str, path: &'a str, headers: &'a [(String, String)], body: String, limit: f64 },
}

#[derive(Serialize)]
struct Asked<'a> {
    seq: u64,
    #[serde(flatten)]
    ask: Ask<'a>,
}

/// One flat object, so that serde streams it instead of buffering a hostile tree.
#[derive(Deserialize)]
pub(super) struct Told {
    seq: u64,
    pub kind: String,
    #[serde(default)]
    pub status: u16,
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// One character a byte.
    #[serde(default)]
    pub body: String,
    #[serde(default)]
    pub what: String,
}

/// Why a session cannot go on.
pub(super) enum Broken {
    /// A limit on time passed; whose fault it is, is still to be settled.
    Late,
    /// The sandbox ended.
    Ended,
    Died(String),
    Malformed(&'static str),
}

pub(super) struct Talk<'a> {
    channel: Channel,
    opts: &'a ServerOptions,
    asked: u64,
    /// When the sandbox's own limit ends it.
    end: Instant,
}

impl Talk<'_> {
    pub fn open<'a>(
        sandbox: &dyn Sandbox,
        program: &Executable,
        requests: usize,
        opts: &'a ServerOptions,
    ) -> Result<Talk<'a>, GradeError> {
        // Short enough that a starved start or request is a large part of it: by that part it is told from sleep.
        let wall = opts.start + opts.per_request * u32::try_from(requests.min(4)).unwrap_or(4) + 3 * MARGIN;
        let spec = Spec {
            argv: ["python3", "-I", "-B", "/pristine/relay.py"].map(str::to_owned).to_vec(),
            env: program.env.clone(),
            files: program.files.iter().map(|(name, bytes)| (name.clone(), bytes.clone())).collect(),
            pristine: vec![("relay.py".to_owned(), RELAY.as_bytes().to_vec())],
            limits: Limits { wall, cpu: opts.cpu, ..opts.limits.clone().unwrap_or_else(|| program.limits.clone()) },
            ..Spec::default()
        };
        let channel = Channel::open(sandbox, &spec)?;
        Ok(Talk { channel, opts, asked: 0, end: Instant::now() + wall + MARGIN })
    }

    pub fn ask(&mut self, ask: Ask<'_>, limit: Duration) -> Result<Result<Told, Broken>, GradeError> {
        self.asked += 1;
        let seq = ticket(self.opts.seed, self.asked);
        // The relay says when its limit has passed; this side waits longer, for a relay that says nothing.
        let deadline = Instant::now() + limit + 2 * MARGIN;
        self.channel.send(&Asked { seq, ask }, deadline)?;
        Ok(match self.channel.hear(deadline)? {
            Heard::Frame(body) => match serde_json::from_slice::<Told>(&body) {
                Ok(told) if told.seq == seq => Ok(told),
                _ => Err(Broken::Malformed("a frame of no agreed shape")),
            },
            Heard::Malformed(what) => Err(Broken::Malformed(what)),
            Heard::Ended => Err(Broken::Ended),
            Heard::Late => Err(Broken::Late),
        })
    }

    /// Ends the session and says whose fault its breaking is.
    pub fn settle(self, broken: Broken) -> Result<Failure, GradeError> {
        let allowed = self.opts.cpu;
        match broken {
            Broken::Late => {
                let facts = self.channel.outlast(self.end)?.facts;
                if facts.oom || facts.timed_out && at_fault(&facts, allowed) || facts.exit.is_some() {
                    return Ok(Failure::new(CaseOutcome::Timeout, "the server took too long"));
                }
                Err(overloaded(&facts))
            }
            Broken::Ended => why_ended(&self.channel.finish()?.facts, allowed),
            Broken::Died(how) => {
                let done = self.channel.finish()?;
                let words =
                    if done.stderr.is_empty() { String::new() } else { format!(": {}", last_words(&done.stderr)) };
                Ok(Failure::new(CaseOutcome::Died, format!("{how}{words}")))
            }
            Broken::Malformed(what) => {
                self.channel.finish()?;
                Ok(Failure::new(CaseOutcome::Protocol, what))
            }
        }
    }

    pub fn close(self) -> Result<(), GradeError> {
        self.channel.finish()?;
        Ok(())
    }
}
