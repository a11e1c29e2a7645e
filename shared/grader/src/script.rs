//! A trusted script that came with a task, asked one question in a sandbox in which nothing of a solution runs.
//!
//! In: Python text that defines `check(...)`, files as read-only data, their paths. Out: yes, no with a remark, or that it
//! broke. What must hold: the answer is what `check` returned, over a descriptor that its prints do not reach, under the
//! ticket of this question; output of the solution that the script repeats is never an answer.

use crate::blame::{at_fault, overloaded};
use crate::channel::{Channel, Heard, last_words, script};
use crate::t0::{GradeError, ticket};
use rollmill_sandbox::{Limits, Sandbox, Spec};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

const DRIVER: &str = script!("check.py");
/// CPU time that a script may take; three times as much wall clock.
const ALLOWED: Duration = Duration::from_secs(20);

pub(crate) struct Script<'a> {
    /// Defines `check`.
    pub text: &'a str,
    /// Under /pristine.
    pub files: Vec<(String, Vec<u8>)>,
    /// What `check` is called with.
    pub arguments: Vec<String>,
    pub seed: u64,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Told {
    Yes,
    /// With a remark.
    No(String),
    /// It raised, ended, or took too long; with its last words.
    Broken(String),
}

#[derive(Serialize)]
struct Question<'a> {
    seq: u64,
    arguments: &'a [String],
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reply {
    seq: u64,
    ok: Option<bool>,
    remark: String,
}

/// Asks. An error is of the sandbox or the machine.
pub(crate) fn ask(sandbox: &dyn Sandbox, script: &Script<'_>) -> Result<Told, GradeError> {
    let mut pristine = script.files.clone();
    pristine.push(("check.py".to_owned(), script.text.as_bytes().to_vec()));
    let limits = Limits { wall: 3 * ALLOWED, cpu: ALLOWED, ..Limits::default() };
    let deadline = Instant::now() + limits.wall + Duration::from_secs(30);
    let argv = ["python3", "-I", "-B", "-c", DRIVER].map(str::to_owned).to_vec();
    let mut channel = Channel::open(sandbox, &Spec { argv, pristine, limits, ..Spec::default() })?;
    let seq = ticket(script.seed, 1);
    channel.send(&Question { seq, arguments: &script.arguments }, deadline)?;
    let heard = channel.hear(deadline)?;
    let done = channel.finish()?;
    if let Heard::Frame(body) = heard {
        return Ok(read(&body, seq));
    }
    if done.facts.timed_out && !at_fault(&done.facts, ALLOWED) {
        return Err(overloaded(&done.facts));
    }
    Ok(Told::Broken(last_words(&done.stderr)))
}

fn read(body: &[u8], seq: u64) -> Told {
    match serde_json::from_slice::<Reply>(body) {
        Ok(Reply { seq: got, ok, remark }) if got == seq => match ok {
            Some(true) => Told::Yes,
            Some(false) => Told::No(remark),
            None => Told::Broken(remark),
        },
        _ => Told::Broken("an answer of no agreed shape".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_need_their_ticket() {
        assert_eq!(read(br#"{"seq":5,"ok":true,"remark":""}"#, 5), Told::Yes);
        assert_eq!(read(br#"{"seq":5,"ok":false,"remark":"x"}"#, 5), Told::No("x".into()));
        for bad in [&br#"{"seq":4,"ok":true,"remark":""}"#[..], br#"{"seq":5,"ok":1,"remark":""}"#, b"ok", b""] {
            assert!(matches!(read(bad, 5), Told::Broken(_)));
        }
    }
}
