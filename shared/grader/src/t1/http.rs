//! Servers over HTTP on the sandbox's own loopback: one fresh sandbox a session, a relay beside the server.
//!
//! In: a solution that listens on 127.0.0.1 at the port that the variable PORT names, sessions. Out: a verdict a session. What
//! must hold: requests go in one at a time, after the answer before was compared out here; wanted answers stay here. The relay
//! is trusted to do its work, not to be believed: a server that forged the relay's frames would say no more by them than by
//! answers of its own, since nothing in its sandbox knows what is wanted.

mod talk;

use super::exchange::Exchange;
use super::language::Language;
use super::run::{Executable, compile};
use crate::blame::{Failure, suite_result};
use crate::t0::{CaseOutcome, GradeError, Solution, SuiteResult, clip};
use rollmill_sandbox::{Limits, Sandbox};
use std::time::Duration;
use talk::{Ask, Broken, Talk};

/// The port that a server is told to listen on.
const PORT: u16 = 8080;

/// How much longer a session may take that was starved: by then a busy server has spent its CPU time.
const PATIENCE: u32 = 6;

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
    let failures = sessions.iter().map(|session| settle(sandbox, &program, session, opts)).collect::<Result<_, _>>()?;
    Ok(suite_result(failures, sandbox.level()))
}

/// Plays a session; once more and with more time where it was starved the first time.
fn settle(
    sandbox: &dyn Sandbox,
    program: &Executable,
    session: &[Exchange],
    opts: &ServerOptions,
) -> Result<Option<Failure>, GradeError> {
    match play(sandbox, program, session, opts) {
        Err(GradeError::Overloaded { .. }) => {
            let (start, per_request) = (PATIENCE * opts.start, PATIENCE * opts.per_request);
            play(sandbox, program, session, &ServerOptions { start, per_request, ..opts.clone() })
        }
        settled => settled,
    }
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
