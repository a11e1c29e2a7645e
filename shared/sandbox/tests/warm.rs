//! Runs forked from a loaded interpreter: what a cold run gives, and nothing of the runs before.
mod support;

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rollmill_sandbox::{Finished, Received, Sandbox, SandboxError, Spec, Warm, WarmOptions};
use support::{limits, marker, open, parent_of, python, run, running_with, text, until};

fn options(preload: &str) -> WarmOptions {
    let argv = ["python3", "-I", "-S"].map(String::from).to_vec();
    WarmOptions { argv, preload: preload.into(), programs: vec![], env: vec![("PYTHONHASHSEED".into(), "0".into())] }
}

fn both() -> Vec<(&'static str, Warm)> {
    let warm = |cgroups| Warm::new(Arc::new(open(cgroups)), vec![options("import json, unittest")]);
    vec![("cgroups", warm(true)), ("no cgroups", warm(false))]
}

fn out(done: &Finished) -> String {
    text(&done.stdout)
}

#[test]
fn a_warm_run_is_like_a_cold_one() {
    for (name, warm) in both() {
        let done =
            run(&warm, &python("import sys; print(sys.argv, 'unittest' in sys.modules); sys.exit(5)", &["a", "b"]));
        assert_eq!((out(&done).as_str(), done.facts.exit), ("['-c', 'a', 'b'] True", Some(5)), "{name}");
        let done = run(&warm, &python("def f(): raise ValueError('no')\nf()", &[]));
        let stderr = text(&done.stderr);
        assert_eq!(done.facts.exit, Some(1), "{name}");
        assert!(stderr.starts_with("Traceback") && stderr.ends_with("ValueError: no"), "{name}: {stderr}");
        assert!(!stderr.contains("zygote") && !stderr.contains("exec("), "{name}: {stderr}");
        let done = run(&warm, &python("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", &[]));
        assert_eq!(done.facts.signal, Some(15), "{name}");
        let done = run(&warm, &python("import atexit; atexit.register(print, 'bye'); print('hi')", &[]));
        assert_eq!(out(&done), "hi\nbye", "{name}");
        let mut spec = python("", &[]);
        spec.argv = ["python3", "-I", "-S", "main.py", "x"].map(String::from).to_vec();
        spec.files = vec![("main.py".into(), b"import sys; print(__name__, sys.argv, open('in').read())".to_vec())];
        spec.files.push(("in".into(), b"data".to_vec()));
        spec.env = vec![("OURS".into(), "1".into())];
        let done = run(&warm, &spec);
        assert_eq!(out(&done), "__main__ ['main.py', 'x'] data", "{name}: {}", text(&done.stderr));
        spec.argv = ["python3", "-I", "-S", "-c", "import os; print(sorted(os.environ))"].map(String::from).to_vec();
        assert_eq!(out(&run(&warm, &spec)), "['HOME', 'LANG', 'OURS', 'PATH']", "{name}");
    }
}

/// What a run could find of its neighbours, of the interpreter it came from, and of the host.
const LOOK: &str = r#"
import ctypes, os, sys
def allowed(f):
    try:
        return repr(f())
    except BaseException as e:
        return 'DENIED'
status = dict(l.split(':', 1) for l in open('/proc/self/status').read().splitlines())
print('uid', os.getuid(), os.geteuid(), os.getgid(), os.getgroups())
print('caps', {status[k].strip() for k in ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb')})
print('sealed', status['NoNewPrivs'].strip(), status['Seccomp'].strip())
print('pids', sorted(int(p) for p in os.listdir('/proc') if p.isdigit()), os.getpid())
print('fds', sorted(os.listdir('/proc/self/fd')))
print('net', sorted(os.listdir('/sys')) if os.path.isdir('/sys') else None, allowed(lambda: open('/proc/net/dev').read().count(':')))
print('env', allowed(lambda: open('/proc/self/environ').read().replace(chr(0), ' ').strip()))
print('root', allowed(lambda: open('/usr/bin/x', 'w')), allowed(lambda: os.chmod('/proc/self/exe', 0o777)))
libc = ctypes.CDLL(None, use_errno=True)
print('setns', libc.setns(0, 0), libc.unshare(0), ctypes.get_errno())
print('cwd', os.getcwd(), sorted(os.listdir('.')), sorted(os.listdir('/tmp')))
print('limits', __import__('resource').getrlimit(7), __import__('resource').getrlimit(4))
"#;

#[test]
fn nothing_is_kept_and_nothing_is_seen() {
    for (name, warm) in both() {
        let cold = out(&run(&open(name == "cgroups"), &python(LOOK, &[])));
        let spoil = "
import json, os, sys, builtins, unittest
json.loads = None; builtins.print = None; unittest.TestCase.run = None; sys.modules['evil'] = json
open('/tmp/left', 'w').write('x'); open('/work/left', 'w').write('x'); open('/dev/shm/left', 'w').write('x')
os.environ['LEFT'] = '1'
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        import time
        time.sleep(100)
os._exit(0)
";
        let first = out(&run(&warm, &python(LOOK, &[])));
        assert_eq!(run(&warm, &python(spoil, &[])).facts.exit, Some(0), "{name}");
        let check = format!(
            "import sys, json, unittest\nassert json.loads and unittest.TestCase.run and 'evil' not in sys.modules{LOOK}"
        );
        let second = run(&warm, &python(&check, &[]));
        assert_eq!(out(&second), first, "{name}: {}", text(&second.stderr));
        // The environment the interpreter itself was started with is the one difference.
        let lines = |text: &str| text.lines().filter(|l| !l.starts_with("env")).map(String::from).collect::<Vec<_>>();
        assert_eq!(lines(&first), lines(&cold), "{name}");
        assert!(first.contains("env 'PYTHONHASHSEED=0") && !first.contains("SECRET"), "{name}: {first}");
        assert!(first.contains("root DENIED DENIED") && first.contains("sealed 1 2"), "{name}: {first}");
    }
}

#[test]
fn limits_and_facts_hold() {
    for (name, warm) in both() {
        let mut spec = python("while True: pass", &[]);
        spec.limits.cpu = Duration::from_millis(700);
        let facts = run(&warm, &spec).facts;
        assert!(facts.timed_out && facts.cpu >= Duration::from_millis(700), "{name}: {facts:?}");
        let mut spec = python("import time; time.sleep(60)", &[]);
        spec.limits.wall = Duration::from_millis(700);
        let facts = run(&warm, &spec).facts;
        assert!(facts.timed_out && facts.signal == Some(9), "{name}: {facts:?}");
        let facts = run(&warm, &python("x = []\nwhile True: x.append(bytearray(1 << 20))", &[])).facts;
        assert!(facts.oom || facts.exit == Some(1), "{name}: {facts:?}");
        assert_eq!(facts.oom, name == "cgroups" || facts.signal == Some(9), "{name}: {facts:?}");
        let bomb = "
import os
made = 0
try:
    for _ in range(200):
        if os.fork() == 0:
            import time
            time.sleep(20)
            os._exit(0)
        made += 1
except OSError:
    pass
print(made)
";
        let made: u32 = out(&run(&warm, &python(bomb, &[]))).parse().unwrap();
        assert!(made < limits().pids, "{name}: {made} processes under a limit of {}", limits().pids);
        let done = run(&warm, &python("open('/work/big', 'wb').write(b'x' * (64 << 20))", &[]));
        assert_eq!(done.facts.exit, Some(1), "{name}");
        let mut spec = Spec { collect: vec!["out".into()], ..python("open('out', 'w').write('here')", &[]) };
        spec.pristine = vec![("a".into(), b"b".to_vec())];
        assert_eq!(run(&warm, &spec).collected.files, [("out".to_string(), b"here".to_vec())], "{name}");
    }
}

#[test]
fn sessions_talk_and_several_runs_live_at_once() {
    for (name, warm) in both() {
        let source = "import os, sys\nprint(os.getuid(), flush=True)\nfor line in sys.stdin: print(line.upper(), end='', flush=True)";
        let mut sessions: Vec<_> = (0..3).map(|_| warm.start(&python(source, &[])).expect("it starts")).collect();
        let deadline = Instant::now() + Duration::from_secs(30);
        for (n, session) in sessions.iter_mut().enumerate() {
            session.send(format!("hello {n}\n").as_bytes(), deadline).unwrap();
            let mut got = String::new();
            while !got.ends_with(&format!("HELLO {n}\n")) {
                match session.recv(1000, deadline).unwrap() {
                    Received::Bytes(bytes) => got.push_str(&String::from_utf8_lossy(&bytes)),
                    other => panic!("{name}: {other:?} after {got:?}"),
                }
            }
        }
        for session in sessions {
            let facts = session.finish().unwrap().facts;
            assert_eq!(facts.signal, Some(9), "{name}: {facts:?}");
        }
    }
}

#[test]
fn what_does_not_load_is_refused_and_what_begins_otherwise_starts_cold() {
    let sandbox = Arc::new(open(true));
    let broken = Warm::new(sandbox.clone(), vec![options("import no_such_module")]);
    let error = broken.run(&python("print(1)", &[])).unwrap_err();
    assert!(matches!(&error, SandboxError::Setup { what, .. } if what.contains("no_such_module")), "{error}");
    let warm = Warm::new(sandbox, vec![options("import unittest")]);
    let show = "import sys; print('unittest' in sys.modules)";
    for (argv, want) in [
        (vec!["python3", "-I", "-S", "-c", show], "True"),
        (vec!["python3", "-I", "-S", "-B", "-c", show], "False"),
        (vec!["python3", "-S", "-c", show], "False"),
        (vec!["sh", "-c", "echo False"], "False"),
    ] {
        let spec = Spec { argv: argv.iter().map(|a| a.to_string()).collect(), limits: limits(), ..Spec::default() };
        assert_eq!(out(&run(&warm, &spec)), want, "{argv:?}");
    }
}

/// An interpreter that carries a word in its command line, and the command with which its runs begin.
fn marked(word: &str) -> (Warm, Vec<String>) {
    let argv: Vec<String> = ["python3", "-I", "-S", "-X", word].map(String::from).to_vec();
    let options = WarmOptions { argv: argv.clone(), ..options("pass") };
    (Warm::new(Arc::new(open(true)), vec![options]), argv)
}

fn marked_spec(argv: &[String], source: &str) -> Spec {
    let argv = argv.iter().cloned().chain(["-c".into(), source.into()]).collect();
    Spec { argv, limits: limits(), ..Spec::default() }
}

/// The interpreter with that word, and its helper.
fn interpreter_and_helper(word: &str) -> (i32, i32) {
    let found = running_with(word).into_iter().map(|pid| (pid, parent_of(pid)));
    let helpers = running_with("__sandbox-warm");
    found
        .clone()
        .find(|(_, parent)| helpers.contains(parent))
        .unwrap_or_else(|| panic!("{:?}", found.collect::<Vec<_>>()))
}

fn kill(pid: i32) {
    assert!(Command::new("kill").args(["-9", &pid.to_string()]).status().expect("kill").success());
}

#[test]
fn nothing_outlives_a_killed_helper() {
    let word = marker("warm-orphan");
    let (warm, argv) = marked(&word);
    let source = "
import subprocess, time
subprocess.Popen(['sh', '-c', 'sleep 1000; : WORD'], start_new_session=True)
print('started', flush=True)
time.sleep(1000)";
    let mut session = warm.start(&marked_spec(&argv, &source.replace("WORD", &word))).unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    assert!(matches!(session.recv(100, deadline).unwrap(), Received::Bytes(_)));
    // The interpreter, the process in the middle, the program and its daemon.
    // Popen returns a moment before the daemon's command line can be read.
    until("the start of all four", || running_with(&word).len() >= 4);
    kill(interpreter_and_helper(&word).1);
    assert_eq!(session.recv(100, deadline).unwrap(), Received::Eof);
    assert!(session.finish().is_err(), "without the helper nothing is known");
    while !running_with(&word).is_empty() {
        assert!(Instant::now() < deadline, "{:?} outlived the helper", running_with(&word));
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn an_interpreter_that_was_killed_is_replaced_and_none_is_left() {
    let word = marker("warm-replaced");
    let (warm, argv) = marked(&word);
    let spec = marked_spec(&argv, "print(1)");
    let fine =
        |o: &Result<Finished, SandboxError>| o.as_ref().map_or_else(SandboxError::is_transient, |d| out(d) == "1");
    // It may die before, while or after it takes the next run. That run fails at once: were the helper waited for until it is
    // given up, these twelve would take twelve minutes.
    for _ in 0..12 {
        assert_eq!(out(&run(&warm, &spec)), "1");
        kill(interpreter_and_helper(&word).0);
        let outcomes: Vec<_> = (0..3).map(|_| warm.run(&spec)).collect();
        assert!(outcomes.iter().all(fine), "{outcomes:?}");
        assert!(outcomes.last().is_some_and(Result::is_ok), "{outcomes:?}");
    }
    drop(warm);
    // The helpers have ended; the kernel kills their interpreters.
    until("the end of all interpreters", || running_with(&word).is_empty());
}

#[test]
fn a_program_that_was_compiled_beforehand_runs_as_any_other() {
    let text = "import sys\nprint(__name__, sys.argv, __import__('inspect').currentframe().f_code.co_filename)";
    let base = options("pass");
    let programs = ["<string>", "/work/p.py"].map(|name| (name.to_string(), text.to_string())).to_vec();
    let warm = Warm::new(Arc::new(open(true)), vec![WarmOptions { programs, ..base.clone() }]);
    let cold = open(true);
    let spec = |rest: &[&str], file: &str| {
        let argv = base.argv.iter().cloned().chain(rest.iter().map(|word| word.to_string())).collect();
        Spec { argv, files: vec![("p.py".into(), file.into())], limits: limits(), ..Spec::default() }
    };
    let other = text.replace("print", "print(1);print");
    for spec in [
        spec(&["-c", text, "a"], ""),
        spec(&["/work/p.py", "a"], text),
        spec(&["/work/p.py"], &other), // the same name, another text
        spec(&["-c", &other], ""),
    ] {
        assert_eq!(out(&run(&warm, &spec)), out(&run(&cold, &spec)), "{:?}", spec.argv);
    }
}
