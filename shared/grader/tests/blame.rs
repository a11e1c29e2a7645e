//! Whose fault a passed time limit is, against a sandbox that reports whatever facts the test wants: no real time passes.
//! Both for calls of cases and for calls of written tests, whose own process is scripted, too.

#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

use rollmill_grader::CaseOutcome::{Died, Oom, Passed, Timeout};
use rollmill_grader::{Case, CaseOutcome, GradeError, Solution, T0Options, TestSource, Value, grade, grade_tests};
use rollmill_sandbox::{Facts, Finished, Isolation, Level, Received, Sandbox, SandboxError, Session, Spec};
use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// What a session does when the function is called, and the facts it leaves.
#[derive(Clone)]
enum Call {
    Answers,
    Hangs(Facts),
    Ends(Facts),
}

struct Scripted {
    isolation: Isolation,
    /// What is left of a tests' process that does not go on after its call; without it, it does.
    tests: Option<Facts>,
    sessions: Mutex<VecDeque<Call>>,
}

struct Speaking {
    call: Call,
    out: Vec<u8>,
    calling: bool,
}

impl Sandbox for Scripted {
    fn level(&self) -> &Isolation {
        &self.isolation
    }

    fn run(&self, _: &Spec) -> Result<Finished, SandboxError> {
        Ok(Finished::default())
    }

    fn start(&self, spec: &Spec) -> Result<Box<dyn Session>, SandboxError> {
        if spec.argv.iter().any(|text| text.contains("stand_in_for_pytest")) {
            let hangs = self.tests.clone();
            return Ok(Box::new(Testing { hangs, out: vec![], testing: false }));
        }
        let call = self.sessions.lock().unwrap().pop_front().expect("more sessions than the script has");
        Ok(Box::new(Speaking { call, out: vec![], calling: false }))
    }
}

impl Session for Speaking {
    fn send(&mut self, bytes: &[u8], _: Instant) -> Result<(), SandboxError> {
        let request: serde_json::Value = serde_json::from_slice(&bytes[4..]).unwrap();
        let kind = match request["op"].as_str().unwrap() {
            "hello" => "ready",
            "compile" => "compiled",
            "import" => "loaded",
            _ => {
                self.calling = true;
                "value"
            }
        };
        if !self.calling || matches!(self.call, Call::Answers) {
            let mut answer = serde_json::json!({"seq": request["seq"], "kind": kind});
            if kind == "value" {
                answer["nodes"] = serde_json::json!([{"t": "int", "v": "1"}]);
            }
            put(&mut self.out, &answer);
        }
        Ok(())
    }

    fn recv(&mut self, _: usize, _: Instant) -> Result<Received, SandboxError> {
        if !self.out.is_empty() {
            return Ok(Received::Bytes(std::mem::take(&mut self.out)));
        }
        Ok(if matches!(self.call, Call::Ends(_)) { Received::Eof } else { Received::Deadline })
    }

    fn finish(self: Box<Self>) -> Result<Finished, SandboxError> {
        let facts = match self.call {
            Call::Answers => Facts::default(),
            Call::Hangs(facts) | Call::Ends(facts) => facts,
        };
        Ok(Finished { facts, ..Finished::default() })
    }
}

fn put(out: &mut Vec<u8>, message: &serde_json::Value) {
    let body = message.to_string();
    out.extend((body.len() as u32).to_be_bytes());
    out.extend(body.as_bytes());
}

/// One test, which makes one call and passes if it is told a value.
struct Testing {
    hangs: Option<Facts>,
    out: Vec<u8>,
    testing: bool,
}

impl Session for Testing {
    fn send(&mut self, bytes: &[u8], _: Instant) -> Result<(), SandboxError> {
        let order: serde_json::Value = serde_json::from_slice(&bytes[4..]).unwrap();
        let seq = if self.testing { 3.into() } else { order["seq"].clone() };
        let message = match order["op"].as_str() {
            Some("hello") => serde_json::json!({"seq": seq, "kind": "ready"}),
            Some("load") => serde_json::json!({"seq": seq, "kind": "tests", "ids": ["0"]}),
            Some(_) => {
                self.testing = true;
                let args = [serde_json::json!({"t": "tuple", "v": 0})];
                serde_json::json!({"seq": seq, "kind": "use", "how": "entry", "on": null, "name": "", "args": args})
            }
            None if self.hangs.is_some() => return Ok(()),
            None => serde_json::json!({"seq": seq, "kind": "done", "outcome": "passed", "message": ""}),
        };
        put(&mut self.out, &message);
        Ok(())
    }

    fn recv(&mut self, _: usize, _: Instant) -> Result<Received, SandboxError> {
        Ok(if self.out.is_empty() { Received::Deadline } else { Received::Bytes(std::mem::take(&mut self.out)) })
    }

    fn finish(self: Box<Self>) -> Result<Finished, SandboxError> {
        Ok(Finished { facts: self.hangs.unwrap_or_default(), ..Finished::default() })
    }
}

fn facts(cpu_ms: u64, wall_ms: u64, idle: bool) -> Facts {
    let ms = Duration::from_millis;
    Facts { cpu: ms(cpu_ms), wall: ms(wall_ms), idle, timed_out: true, signal: Some(9), ..Facts::default() }
}

fn scripted(sessions: &[Call], tests: Option<Facts>) -> Scripted {
    let isolation = Isolation {
        backend: "scripted".into(),
        level: Level::OwnUid,
        cgroup: String::new(),
        rootfs_digest: String::new(),
        notes: vec![],
    };
    Scripted { isolation, tests, sessions: Mutex::new(sessions.iter().cloned().collect()) }
}

fn opts(total: Duration) -> T0Options {
    T0Options { per_call: Duration::from_secs(1), total, ..T0Options::default() }
}

/// One case in the scripted sessions, with 1 s a call.
fn outcome(sessions: &[Call], total: Duration) -> Result<CaseOutcome, GradeError> {
    let sandbox = scripted(sessions, None);
    let cases = [Case::exact(vec![], Value::int(1))];
    let result = grade(&sandbox, &Solution::from_source("x"), "f", &cases, &opts(total))?;
    assert!(sandbox.sessions.lock().unwrap().is_empty(), "the whole script is played");
    Ok(result.verdicts[0].outcome)
}

/// One written test in the scripted sessions.
fn proxied(sessions: &[Call], tests: Option<Facts>, total: Duration) -> Result<CaseOutcome, GradeError> {
    let sandbox = scripted(sessions, tests);
    let source = TestSource { tests: vec!["assert f() == 1".into()], ..TestSource::default() };
    let result = grade_tests(&sandbox, &Solution::from_source("x"), "f", &source, &opts(total))?;
    assert!(sandbox.sessions.lock().unwrap().is_empty(), "the whole script is played");
    Ok(result.verdicts[0].outcome)
}

const TOTAL: Duration = Duration::from_secs(30);

#[test]
fn a_call_that_spent_the_cpu_is_a_timeout() {
    assert_eq!(outcome(&[Call::Hangs(facts(900, 1000, false))], TOTAL).unwrap(), Timeout);
}

#[test]
fn a_call_that_got_no_cpu_is_asked_again_alone() {
    let starved = Call::Hangs(facts(50, 1000, false));
    let again = |second: Call| outcome(&[starved.clone(), second], TOTAL);
    assert_eq!(again(Call::Answers).unwrap(), Passed);
    assert_eq!(again(Call::Hangs(facts(10, 4000, true))).unwrap(), Timeout, "asleep");
    assert_eq!(again(Call::Hangs(facts(1100, 4000, false))).unwrap(), Timeout, "slowly, but it got its second of cpu");
    let error = again(Call::Hangs(facts(500, 4000, false))).unwrap_err();
    assert!(matches!(error, GradeError::Overloaded { cpu_ms: 500, wall_ms: 4000 }) && error.is_transient());
    let itself = Facts { timed_out: false, signal: None, ..facts(500, 1800, false) };
    assert_eq!(
        again(Call::Hangs(Facts { oom: true, ..itself.clone() })).unwrap(),
        Oom,
        "slowly, but beyond its memory"
    );
    assert_eq!(again(Call::Hangs(Facts { exit: Some(0), ..itself })).unwrap(), Died);
}

#[test]
fn the_limit_for_all_calls_follows_the_same_rule() {
    let late = |facts| outcome(&[Call::Hangs(facts)], Duration::ZERO);
    assert_eq!(late(facts(10, 2000, true)).unwrap(), Timeout);
    assert_eq!(late(facts(1900, 2000, false)).unwrap(), Timeout);
}

#[test]
fn the_end_of_a_worker_is_read_from_facts() {
    let ends = |facts| outcome(&[Call::Ends(facts)], TOTAL);
    assert_eq!(ends(Facts { exit: Some(0), ..Facts::default() }).unwrap(), Died);
    assert_eq!(ends(Facts { signal: Some(9), ..Facts::default() }).unwrap(), Died);
    assert_eq!(ends(Facts { oom: true, signal: Some(9), ..Facts::default() }).unwrap(), Oom);
    assert_eq!(ends(facts(1000, 1000, false)).unwrap(), Timeout);
    assert!(matches!(ends(facts(100, 9000, false)), Err(GradeError::Overloaded { .. })));
}

#[test]
fn calls_of_written_tests_follow_the_same_rules() {
    assert_eq!(proxied(&[Call::Answers], None, TOTAL).unwrap(), Passed);
    assert_eq!(proxied(&[Call::Hangs(facts(900, 1000, false))], None, TOTAL).unwrap(), Timeout);
    let starved = Call::Hangs(facts(50, 1000, false));
    let again = |second: Call| proxied(&[starved.clone(), second], None, TOTAL);
    assert_eq!(again(Call::Answers).unwrap(), Passed);
    assert_eq!(again(Call::Hangs(facts(10, 4000, true))).unwrap(), Timeout, "asleep");
    assert_eq!(again(Call::Hangs(facts(1100, 4000, false))).unwrap(), Timeout, "slowly, but it got its second of cpu");
    let error = again(Call::Hangs(facts(500, 4000, false))).unwrap_err();
    assert!(matches!(error, GradeError::Overloaded { cpu_ms: 500, wall_ms: 4000 }) && error.is_transient());
    let itself = Facts { timed_out: false, signal: None, ..facts(500, 1800, false) };
    assert_eq!(
        again(Call::Hangs(Facts { oom: true, ..itself.clone() })).unwrap(),
        Oom,
        "slowly, but beyond its memory"
    );
    assert_eq!(again(Call::Hangs(Facts { exit: Some(0), ..itself })).unwrap(), Died);
    let ends = |facts| proxied(&[Call::Ends(facts)], None, TOTAL);
    assert_eq!(ends(Facts { exit: Some(0), ..Facts::default() }).unwrap(), Died);
    assert_eq!(ends(Facts { oom: true, signal: Some(9), ..Facts::default() }).unwrap(), Oom);
    assert_eq!(ends(facts(1000, 1000, false)).unwrap(), Timeout);
    assert!(matches!(ends(facts(100, 9000, false)), Err(GradeError::Overloaded { .. })));
}

#[test]
fn tests_that_get_no_cpu_harm_nobody() {
    let tested = |tests: Facts| proxied(&[Call::Answers], Some(tests), TOTAL);
    assert!(matches!(tested(facts(100, 30_000, false)), Err(GradeError::Overloaded { .. })));
    // Busy or asleep with what the solution returned: the solution's.
    assert_eq!(tested(facts(29_000, 30_000, false)).unwrap(), Timeout);
    assert_eq!(tested(facts(100, 30_000, true)).unwrap(), Timeout);
}
