//! What an honest program gets: an interpreter, its files, its environment, an exit code, and a conversation.
mod support;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rollmill_sandbox::{Level, Namespaces, NamespacesOptions, Received, Sandbox, SandboxError, Session, Spec};
use support::{both, helper, limits, marker, open, python, run, running_with, text};

fn command(argv: &[&str]) -> Spec {
    Spec { argv: argv.iter().map(|a| a.to_string()).collect(), limits: limits(), ..Spec::default() }
}

#[test]
fn python_prints_one() {
    for (variant, sandbox) in both() {
        let done = run(&sandbox, &command(&["python3", "-c", "print(1)"]));
        assert_eq!(
            (text(&done.stdout).as_str(), text(&done.stderr).as_str()),
            ("1", ""),
            "{variant}: {:?}",
            done.facts
        );
        assert_eq!(done.facts.exit, Some(0), "{variant}");
        assert!(!done.facts.timed_out && !done.facts.oom && !done.facts.output_cut && !done.facts.idle, "{variant}");
        assert!(done.facts.cpu > Duration::ZERO, "{variant}");
    }
}

#[test]
fn ordinary_programs_work() {
    let source = r#"
import asyncio, bz2, ctypes, decimal, hashlib, json, lzma, math, multiprocessing, os, re, sqlite3, subprocess, sys
import tempfile, threading, unittest, zlib
with tempfile.TemporaryDirectory() as d:
    open(os.path.join(d, 'x'), 'w').write('x')
assert subprocess.run(['sh', '-c', 'echo hi | tr h H'], capture_output=True, text=True).stdout == 'Hi\n'
t = threading.Thread(target=lambda: None); t.start(); t.join()
assert asyncio.run(asyncio.sleep(0, 5)) == 5
lock = multiprocessing.get_context('fork').Lock()
with lock:
    pass
with multiprocessing.get_context('fork').Pool(2) as pool:
    assert pool.map(math.sqrt, [4, 9]) == [2, 3]
a, b = __import__('socket').socketpair()
open('/dev/null', 'w').write('x'); assert open('/dev/urandom', 'rb').read(4)
open('/dev/stdout', 'w').write('by device\n')
print(os.getcwd(), os.uname().nodename, sys.version_info[0], os.cpu_count() > 0)
"#;
    for (variant, sandbox) in both() {
        let mut spec = python(source, &[]);
        spec.limits.memory_bytes = 512 << 20;
        let done = run(&sandbox, &spec);
        assert_eq!(text(&done.stdout), "by device\n/work sandbox 3 True", "{variant}: {}", text(&done.stderr));
    }
}

#[test]
fn files_are_there_and_scripts_are_executable() {
    for (variant, sandbox) in both() {
        let mut spec = command(&["sh", "-c", "cat a/b/c.txt; ./run.sh; test -x a/b/c.txt || echo plain"]);
        spec.files = vec![
            ("a/b/c.txt".into(), b"deep\n".to_vec()),
            ("run.sh".into(), b"#!/bin/sh\necho script\n".to_vec()),
            ("package/__init__.py".into(), b"".to_vec()),
        ];
        let done = run(&sandbox, &spec);
        assert_eq!(text(&done.stdout), "deep\nscript\nplain", "{variant}: {}", text(&done.stderr));
    }
}

#[test]
fn ends_are_told_as_they_were() {
    for (variant, sandbox) in both() {
        let end = |argv: &[&str]| {
            let facts = run(&sandbox, &command(argv)).facts;
            (facts.exit, facts.signal)
        };
        assert_eq!(end(&["sh", "-c", "exit 7"]), (Some(7), None), "{variant}");
        assert_eq!(end(&["sh", "-c", "kill -TERM $$"]), (None, Some(15)), "{variant}");
        assert_eq!(end(&["sh", "-c", "kill -KILL $$"]), (None, Some(9)), "{variant}");
        assert_eq!(end(&["python3", "-c", "import os; os.abort()"]), (None, Some(6)), "{variant}");
        assert_eq!(end(&["no-such-program"]), (Some(127), None), "{variant}");
        assert_eq!(end(&["/etc/passwd"]), (Some(126), None), "{variant}");
        let asleep = run(&sandbox, &Spec { limits: short(), ..command(&["sleep", "60"]) }).facts;
        assert_eq!((asleep.timed_out, asleep.signal), (true, Some(9)), "{variant}");
        assert!(asleep.wall >= short().wall, "{variant}");
        assert!(asleep.idle, "{variant}: {asleep:?}");
        let read = run(&sandbox, &command(&["cat"]));
        assert_eq!((read.facts.exit, read.stdout.len()), (Some(0), 0), "stdin is empty, {variant}");
    }
}

fn short() -> rollmill_sandbox::Limits {
    rollmill_sandbox::Limits { wall: Duration::from_secs(3), ..limits() }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(30)
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
    for (variant, sandbox) in both() {
        let marker = marker("session");
        let mut session = sandbox.start(&python(ECHO, &[&marker])).expect("start");
        for word in ["one", "two"] {
            session.send(format!("{word}\n").as_bytes(), soon()).expect("send");
            assert_eq!(line(&mut *session), word.to_uppercase(), "{variant}");
        }
        assert_eq!(session.recv(10, Instant::now()).expect("recv"), Received::Deadline, "{variant}");
        let done = session.finish().expect("finish");
        assert!(text(&done.stderr).starts_with("seen"), "{variant}");
        assert_eq!((done.facts.signal, done.facts.timed_out), (Some(9), false), "{variant}");
        assert_eq!(running_with(&marker), Vec::<i32>::new(), "{variant}");
    }
}

#[test]
fn a_session_that_is_dropped_leaves_nothing() {
    for (variant, sandbox) in both() {
        let marker = marker("dropped");
        let mut session = sandbox.start(&python(ECHO, &[&marker])).expect("start");
        session.send(b"x\n", soon()).expect("send");
        line(&mut *session);
        assert_eq!(running_with(&marker).len(), 1, "{variant}");
        drop(session);
        assert_eq!(running_with(&marker), Vec::<i32>::new(), "{variant}");
    }
}

#[test]
fn a_program_that_does_not_take_its_input_is_no_error_of_ours() {
    for (variant, sandbox) in both() {
        let mut deaf = sandbox.start(&python("import time; time.sleep(600)", &[])).expect("start");
        let soon_over = Instant::now() + Duration::from_millis(100);
        deaf.send(&vec![b'x'; 1 << 20], soon_over).expect("send");
        assert_eq!(deaf.recv(10, soon_over).expect("recv"), Received::Deadline, "{variant}");
        deaf.finish().expect("finish");
        let mut gone = sandbox.start(&python("pass", &[])).expect("start");
        assert_eq!(gone.recv(10, soon()).expect("recv"), Received::Eof, "{variant}");
        gone.send(&vec![b'x'; 1 << 20], soon()).expect("send");
        assert_eq!(gone.finish().expect("finish").facts.exit, Some(0), "{variant}");
    }
}

#[test]
fn a_session_ends_at_its_wall_clock_limit_though_nobody_calls() {
    for (variant, sandbox) in both() {
        let mut spec = python("import time; print('up', flush=True); time.sleep(600)", &[]);
        spec.limits.wall = Duration::from_secs(1);
        let mut session = sandbox.start(&spec).expect("start");
        assert_eq!(line(&mut *session), "up", "{variant}");
        assert_eq!(session.recv(10, soon()).expect("recv"), Received::Eof, "{variant}");
        let facts = session.finish().expect("finish").facts;
        assert!(facts.timed_out && facts.signal == Some(9), "{variant}: {facts:?}");
    }
}

#[test]
fn many_at_once_do_not_disturb_each_other() {
    let sandbox = open(true);
    let runs: Vec<_> = (0..12).map(|i| python(&format!("print({i} * {i})"), &[])).collect();
    let said: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = runs.iter().map(|spec| scope.spawn(|| text(&run(&sandbox, spec).stdout))).collect();
        threads.into_iter().map(|t| t.join().expect("thread")).collect()
    });
    assert_eq!(said, (0..12).map(|i| (i * i).to_string()).collect::<Vec<_>>());
}

#[test]
fn specs_that_cannot_be_run_are_refused() {
    let sandbox = open(true);
    let mut spec = command(&["sh"]);
    spec.files = vec![("../x".into(), vec![])];
    assert!(matches!(sandbox.run(&spec), Err(SandboxError::BadSpec { .. })));
    assert!(matches!(sandbox.start(&command(&[])), Err(SandboxError::BadSpec { .. })));
}

#[test]
fn opening_refuses_below_the_floor_and_without_a_helper() {
    let options = |floor| NamespacesOptions { helper: Some(helper()), floor, cgroups: false, ..Default::default() };
    let error = Namespaces::open(options(Level::Limited)).expect_err("below the floor");
    assert!(matches!(error, SandboxError::BelowFloor { level: Level::Watched, floor: Level::Limited, .. }), "{error}");
    assert_eq!(Namespaces::open(options(Level::Watched)).expect("at the floor").level().level, Level::Watched);
    let missing = NamespacesOptions { helper: Some(PathBuf::from("/nowhere/helper")), ..Default::default() };
    assert!(matches!(Namespaces::open(missing), Err(SandboxError::HelperMissing { .. })));
}

#[test]
fn the_helper_is_found_from_a_test_program() {
    let found = Namespaces::open(NamespacesOptions::default()).expect("found beside the folder of this program");
    assert_eq!(found.level().backend, "namespaces");
    assert_eq!(found.level().rootfs_digest.len(), 64);
}

#[test]
fn a_program_reaches_its_own_servers_and_nothing_else() {
    let source = "
import socket
s = socket.create_server(('127.0.0.1', 8080))
c = socket.create_connection(('127.0.0.1', 8080), 5)
s.accept()[0].sendall(b'hello')
print(c.recv(5), open('/proc/net/dev').read().count(':'))
";
    for (name, sandbox) in both() {
        let done = run(&sandbox, &python(source, &[]));
        assert_eq!(text(&done.stdout), "b'hello' 1", "{name}: {}", text(&done.stderr));
    }
}

#[test]
fn all_of_it_for_an_ordinary_user() {
    support::all_again_as_an_ordinary_user("all_of_it_for_an_ordinary_user");
}
