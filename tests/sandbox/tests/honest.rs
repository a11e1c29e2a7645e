//! What an honest program gets from every backend: an interpreter, its files, its environment, its end told as it was, and a
//! conversation.
use std::time::{Duration, Instant};

use rollmill_sandbox::{Limits, Received, SandboxError, Session, Spec};
use rollmill_sandbox_suite::{Bait, backends, docker, limits, python, run, running_with, text};

fn command(argv: &[&str]) -> Spec {
    Spec { argv: argv.iter().map(|a| a.to_string()).collect(), limits: limits(), ..Spec::default() }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

#[test]
fn ordinary_programs_work() {
    let source = r#"
import asyncio, json, math, multiprocessing, os, subprocess, sys, tempfile, threading, unittest, zlib
with tempfile.TemporaryDirectory() as d:
    open(os.path.join(d, 'x'), 'w').write('x')
for folder in ['/work', '/tmp', '/dev/shm']:
    open(folder + '/x', 'w').write('x')
assert subprocess.run(['sh', '-c', 'echo hi | tr h H'], capture_output=True, text=True).stdout == 'Hi\n'
t = threading.Thread(target=lambda: None); t.start(); t.join()
assert asyncio.run(asyncio.sleep(0, 5)) == 5
with multiprocessing.get_context('fork').Pool(2) as pool:
    assert pool.map(math.sqrt, [4, 9]) == [2, 3]
a, b = __import__('socket').socketpair()
open('/dev/null', 'w').write('x'); assert open('/dev/urandom', 'rb').read(4)
print(os.getcwd(), os.uname().nodename, sys.version_info[0], sys.stdin.read() == '', sorted(os.environ))
"#;
    for backend in backends() {
        let mut spec = python(source, &[]);
        spec.limits.memory_bytes = 512 << 20;
        let done = run(&*backend.sandbox, &spec);
        let want = "/work sandbox 3 True ['HOME', 'LANG', 'PATH']";
        assert_eq!(text(&done.stdout), want, "{}: {}", backend.name, text(&done.stderr));
        assert!(done.facts.cpu > Duration::ZERO && done.facts.peak_memory_bytes != Some(0), "{:?}", done.facts);
    }
}

#[test]
fn files_come_in_as_given_and_out_as_left() {
    let source =
        "cat a/b/c.txt; ./run.sh; test -x a/b/c.txt || echo plain; cat /pristine/conf; mkdir out; echo new > out/n";
    for backend in backends() {
        let mut spec = command(&["sh", "-c", source]);
        spec.files = vec![
            ("a/b/c.txt".into(), b"deep\n".to_vec()),
            ("run.sh".into(), b"#!/bin/sh\necho script\n".to_vec()),
            (format!("{}/long name.py", "d".repeat(120)), vec![b'x'; 100_000]),
        ];
        spec.pristine = vec![("conf".into(), b"pristine\n".to_vec())];
        spec.collect = vec!["out".into(), "a".into(), "none".into(), "d".repeat(120)];
        let done = run(&*backend.sandbox, &spec);
        let name = &backend.name;
        assert_eq!(text(&done.stdout), "deep\nscript\nplain\npristine", "{name}: {}", text(&done.stderr));
        let sizes: Vec<_> = done.collected.files.iter().map(|(p, b)| (p.rsplit('/').next(), b.len())).collect();
        assert_eq!(sizes, [(Some("c.txt"), 5), (Some("long name.py"), 100_000), (Some("n"), 4)], "{name}");
        assert_eq!(done.collected.refused, vec![], "{name}");
    }
}

#[test]
fn ends_are_told_as_they_were() {
    for backend in backends() {
        let name = &backend.name;
        let end = |argv: &[&str]| {
            let facts = run(&*backend.sandbox, &command(argv)).facts;
            (facts.exit, facts.signal)
        };
        assert_eq!(end(&["sh", "-c", "exit 7"]), (Some(7), None), "{name}");
        assert_eq!(end(&["no-such-program"]), (Some(127), None), "{name}");
        assert_eq!(end(&["/etc/passwd"]), (Some(126), None), "{name}");
        // a container daemon gives 128 and the signal, which a program may also exit with: it is passed on, not guessed
        let is_docker = backend.sandbox.level().backend == "docker";
        let by_signal = if is_docker { (Some(143), None) } else { (None, Some(15)) };
        assert_eq!(end(&["sh", "-c", "kill -TERM $$"]), by_signal, "{name}");
        let asleep = Spec { limits: Limits { wall: Duration::from_secs(3), ..limits() }, ..command(&["sleep", "600"]) };
        let facts = run(&*backend.sandbox, &asleep).facts;
        assert!(facts.timed_out && facts.signal == Some(9) && facts.exit.is_none(), "{name}: {facts:?}");
        assert!(facts.idle && facts.wall >= asleep.limits.wall, "{name}: {facts:?}");
    }
}

/// Receives until a newline.
fn line(session: &mut dyn Session) -> String {
    let mut all = Vec::new();
    while !all.ends_with(b"\n") {
        match session.recv(1024, soon()).expect("recv") {
            Received::Bytes(bytes) => all.extend(bytes),
            other => panic!("{other:?} after {:?}", text(&all)),
        }
    }
    text(&all)
}

const ECHO: &str = "
import sys
for line in sys.stdin:
    print(line.strip().upper(), flush=True)
    print('seen', file=sys.stderr, flush=True)";

#[test]
fn a_session_answers_and_ends_on_request() {
    let bait = Bait::new().expect("bait");
    for backend in backends() {
        let (name, marker) = (&backend.name, bait.marker());
        let mut spec = python(ECHO, &[&marker]);
        spec.files = vec![("given".into(), b"x".to_vec())];
        spec.collect = vec!["given".into()];
        let mut session = backend.sandbox.start(&spec).expect("start");
        for word in ["one", "two"] {
            session.send(format!("{word}\n").as_bytes(), soon()).expect("send");
            assert_eq!(line(&mut *session), word.to_uppercase(), "{name}");
        }
        assert_eq!(session.recv(10, Instant::now()).expect("recv"), Received::Deadline, "{name}");
        let done = session.finish().expect("finish");
        assert!(text(&done.stderr).starts_with("seen"), "{name}");
        assert_eq!((done.facts.signal, done.facts.timed_out), (Some(9), false), "{name}: {:?}", done.facts);
        assert_eq!(done.collected.files, [("given".to_string(), b"x".to_vec())], "{name}");
        assert_eq!(running_with(&marker), Vec::<i32>::new(), "{name}");
    }
}

#[test]
fn a_session_that_is_dropped_leaves_nothing() {
    let bait = Bait::new().expect("bait");
    for backend in backends() {
        let marker = bait.marker();
        let mut session = backend.sandbox.start(&python(ECHO, &[&marker])).expect("start");
        session.send(b"x\n", soon()).expect("send");
        line(&mut *session);
        assert!(!running_with(&marker).is_empty(), "{}", backend.name);
        drop(session);
        assert_eq!(running_with(&marker), Vec::<i32>::new(), "{}", backend.name);
    }
}

#[test]
fn a_program_that_does_not_take_its_input_is_no_error_of_ours() {
    for backend in backends() {
        let name = &backend.name;
        let mut deaf = backend.sandbox.start(&python("import time; time.sleep(600)", &[])).expect("start");
        let soon_over = Instant::now() + Duration::from_millis(300);
        deaf.send(&vec![b'x'; 8 << 20], soon_over).expect("send");
        assert_eq!(deaf.recv(10, soon_over).expect("recv"), Received::Deadline, "{name}");
        deaf.finish().expect("finish");
        let mut gone = backend.sandbox.start(&python("pass", &[])).expect("start");
        assert_eq!(gone.recv(10, soon()).expect("recv"), Received::Eof, "{name}");
        gone.send(&vec![b'x'; 1 << 20], soon()).expect("send");
        assert_eq!(gone.finish().expect("finish").facts.exit, Some(0), "{name}");
    }
}

#[test]
fn a_session_ends_at_its_wall_clock_limit_though_nobody_calls() {
    for backend in backends() {
        let mut spec = python("import time; print('up', flush=True); time.sleep(600)", &[]);
        spec.limits.wall = Duration::from_secs(2);
        let mut session = backend.sandbox.start(&spec).expect("start");
        assert_eq!(line(&mut *session), "up", "{}", backend.name);
        assert_eq!(session.recv(10, soon()).expect("recv"), Received::Eof, "{}", backend.name);
        let facts = session.finish().expect("finish").facts;
        assert!(facts.timed_out && facts.signal == Some(9), "{}: {facts:?}", backend.name);
    }
}

#[test]
fn a_long_output_is_received_whole() {
    let source = "import sys; sys.stdout.write('x' * (5 << 20)); sys.stdout.flush(); sys.stdin.read()";
    for backend in backends() {
        let mut session = backend.sandbox.start(&python(source, &[])).expect("start");
        let mut got = 0;
        while got < 5 << 20 {
            match session.recv(1 << 16, soon()).expect("recv") {
                Received::Bytes(bytes) => got += bytes.len(),
                other => panic!("{}: {other:?} after {got}", backend.name),
            }
        }
        assert_eq!(got, 5 << 20, "{}", backend.name);
    }
}

#[test]
fn containers_that_wait_are_used_once_and_many_runs_at_once_do_not_mix() {
    let Some(docker) = docker(2) else { return };
    let specs: Vec<_> = (0..6).map(|i| python(&format!("import os; print({i}, os.listdir())"), &[])).collect();
    for _ in 0..2 {
        let said: Vec<String> = std::thread::scope(|scope| {
            let threads: Vec<_> = specs.iter().map(|spec| scope.spawn(|| text(&run(&docker, spec).stdout))).collect();
            threads.into_iter().map(|t| t.join().expect("thread")).collect()
        });
        assert_eq!(said, (0..6).map(|i| format!("{i} []")).collect::<Vec<_>>());
    }
}

#[test]
fn what_cannot_be_run_is_refused() {
    for backend in backends() {
        let mut spec = command(&["sh"]);
        spec.files = vec![("../x".into(), vec![])];
        assert!(matches!(backend.sandbox.run(&spec), Err(SandboxError::BadSpec { .. })), "{}", backend.name);
        assert!(matches!(backend.sandbox.start(&command(&[])), Err(SandboxError::BadSpec { .. })), "{}", backend.name);
    }
}
