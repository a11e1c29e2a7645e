//! Servers over HTTP on the sandbox's own loopback: one fresh sandbox a session, a relay beside the server.
//!
//! In: a solution that listens on 127.0.0.1 at the port that the variable PORT names, sessions. Out: a verdict a session. What
//! must hold: requests go in one at a time, after the answer before was compared out here; wanted answers stay here. The relay
//! is trusted to do its work, not to be believed: a server that forged the relay's frames would say no more by them than by
//! answers of its own, since nothing in its sandbox knows what is wanted.

use super::exchange::Exchange;
use super::language::Language;
use super::run::{Executable, compile};
use crate::blame::{Failure, at_fault, overloaded, suite_result, why_ended};
use crate::channel::{Channel, Heard, last_words, script};
use crate::t0::{CaseOutcome, GradeError, Solution, SuiteResult, clip, ticket};
use rollmill_sandbox::{Limits, Sandbox, Spec};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

const RELAY: &str = script!("relay.py");
/// The port that a server is told to listen on.
const PORT: u16 = 8080;
/// What the sandbox's own limit adds, and an answer's way.
const MARGIN: Duration = Duration::from_secs(1);

/// How a server is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerOptions {
    /// Wall clock from its start until it accepts a connection.
    pub start: Duration,
    /// Wall clock of one request.
    pub per_request: Duration,
    /// CPU time of one session.
    pub cpu: Duration,
    /// Memory, processes, disk and output, instead of the language's own; its wall clock and CPU are set from the fields above.
    pub limits: Option<Limits>,
    /// Seed of tickets.
    pub seed: u64,
}

impl Default for ServerOptions {
    /// 10 s to start, 5 s a request, 20 s of CPU a session.
    fn default() -> ServerOptions {
        let seconds = Duration::from_secs;
        ServerOptions { start: seconds(10), per_request: seconds(5), cpu: seconds(20), limits: None, seed: 0 }
    }
}

#[derive(Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
enum Ask<'a> {
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
struct Told {
    seq: u64,
    kind: String,
    #[serde(default)]
    status: u16,
    #[serde(default)]
    headers: Vec<(String, String)>,
    /// One character a byte.
    #[serde(default)]
    body: String,
    #[serde(default)]
    what: String,
}

/// Grades a server: compiles it once, then plays every session in a sandbox of its own.
///
/// One verdict a session, in their order. An error says that nothing is known about the solution.
pub fn grade_servers(
    sandbox: &dyn Sandbox,
    solution: &Solution,
    language: Language,
    sessions: &[Vec<Exchange>],
    opts: &ServerOptions,
) -> Result<SuiteResult, GradeError> {
    let program = match compile(sandbox, language, solution)? {
        Ok(program) => program,
        Err(failure) => {
            let failures = sessions.iter().map(|_| Some(failure.clone())).collect();
            let refused = suite_result(failures, sandbox.level());
            return Ok(SuiteResult { compiled: false, import_error: Some(failure.detail), ..refused });
        }
    };
    let failures = sessions.iter().map(|session| play(sandbox, &program, session, opts)).collect::<Result<_, _>>()?;
    Ok(suite_result(failures, sandbox.level()))
}

fn play(
    sandbox: &dyn Sandbox,
    program: &Executable,
    session: &[Exchange],
    opts: &ServerOptions,
) -> Result<Option<Failure>, GradeError> {
    let mut talk = Talk::open(sandbox, program, session.len(), opts)?;
    let start = Ask::Start { argv: &program.argv, port: PORT, limit: opts.start.as_secs_f64() };
    let told = match talk.ask(start, opts.start)? {
        Ok(told) => told,
        Err(broken) => return talk.settle(broken).map(Some),
    };
    match told.kind.as_str() {
        "up" => {}
        "ended" => return talk.settle(Broken::Died(format!("the server {}", told.what))).map(Some),
        _ => return talk.settle(Broken::Late).map(Some),
    }
    for (at, exchange) in session.iter().enumerate() {
        let told = match talk.ask(request(exchange, opts), opts.per_request)? {
            Ok(told) => told,
            Err(broken) => return talk.settle(broken).map(Some),
        };
        let wrong = match told.kind.as_str() {
            "response" => exchange.answer.refuses(told.status, &told.headers, &bytes(&told.body)),
            "late" => return talk.settle(Broken::Late).map(Some),
            _ => Some(format!("gave no answer: {}", told.what)),
        };
        if let Some(wrong) = wrong {
            talk.close()?;
            let detail = format!("request {}, {} {}: {}", at + 1, exchange.method, exchange.path, clip(&wrong, 160));
            return Ok(Some(Failure::new(CaseOutcome::Wrong, detail)));
        }
    }
    talk.close()?;
    Ok(None)
}

fn request<'a>(exchange: &'a Exchange, opts: &ServerOptions) -> Ask<'a> {
    Ask::Request {
        method: &exchange.method,
        path: &exchange.path,
        headers: &exchange.headers,
        body: exchange.body.bytes().map(char::from).collect(),
        limit: opts.per_request.as_secs_f64(),
    }
}

/// Each character is a byte; others come from a forger and are no answer's.
fn bytes(body: &str) -> Vec<u8> {
    body.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?')).collect()
}

/// Why a session cannot go on.
enum Broken {
    /// A limit on time passed; whose fault it is, is still to be settled.
    Late,
    /// The sandbox ended.
    Ended,
    Died(String),
    Malformed(&'static str),
}

struct Talk<'a> {
    channel: Channel,
    opts: &'a ServerOptions,
    asked: u64,
    /// When the sandbox's own limit ends it.
    end: Instant,
}

impl Talk<'_> {
    fn open<'a>(
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

    fn ask(&mut self, ask: Ask<'_>, limit: Duration) -> Result<Result<Told, Broken>, GradeError> {
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
    fn settle(self, broken: Broken) -> Result<Failure, GradeError> {
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

    fn close(self) -> Result<(), GradeError> {
        self.channel.finish()?;
        Ok(())
    }
}
