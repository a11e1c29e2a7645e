//! Every limit: it holds for the whole tree, it is reported as a fact, and the same source goes beyond it without a sandbox.
mod support;

use std::time::Duration;

use support::{both, marker, python, run, running_with, text, unsafe_python};

/// Starts children one by one until refused or 64 live, then ends them. Bounded, so that it may run anywhere.
const MANY_CHILDREN: &str = "
import os, signal
children = []
try:
    while len(children) < 64:
        pid = os.fork()
        if pid == 0:
            signal.pause()
        children.append(pid)
except BlockingIOError:
    pass
print(len(children))
for pid in children:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
";

#[test]
fn processes_are_counted_over_the_tree() {
    assert_eq!(unsafe_python(MANY_CHILDREN, &[], &[]), "64");
    for (variant, sandbox) in both() {
        let done = run(&sandbox, &python(MANY_CHILDREN, &[]));
        assert_eq!(text(&done.stdout), "15", "{variant}: 16 with the program itself {}", text(&done.stderr));
    }
}

#[test]
fn a_fork_bomb_stays_within_its_limit_and_nothing_of_it_remains() {
    for (variant, sandbox) in both() {
        let proof = run(&sandbox, &python(MANY_CHILDREN, &[]));
        assert_eq!(text(&proof.stdout), "15", "no bomb without a proven limit, {variant}");
        let marker = marker("bomb");
        let mut bomb = python(
            "
import os
while True:
    try:
        os.fork()
    except OSError:
        pass",
            &[&marker],
        );
        bomb.limits.wall = Duration::from_secs(1);
        let done = run(&sandbox, &bomb);
        assert!(done.facts.timed_out, "{variant}: {:?}", done.facts);
        assert_eq!(running_with(&marker), Vec::<i32>::new(), "{variant}");
    }
}

#[test]
fn memory_beyond_the_limit_is_an_oom() {
    let hog = "
kept = []
for _ in range(60):
    kept.append(bytearray(b'x') * (4 << 20))
print('held', len(kept))";
    assert_eq!(unsafe_python(hog, &[], &[]), "held 60");
    for (variant, sandbox) in both() {
        let done = run(&sandbox, &python(hog, &[]));
        assert!(done.facts.oom, "{variant}: {:?} {}", done.facts, text(&done.stderr));
        assert_eq!((done.facts.exit, done.facts.signal, done.facts.timed_out), (None, Some(9), false), "{variant}");
        let mut enough = python(hog, &[]);
        enough.limits.memory_bytes = 512 << 20;
        let done = run(&sandbox, &enough);
        assert_eq!((text(&done.stdout).as_str(), done.facts.oom), ("held 60", false), "{variant}");
    }
}

#[test]
fn memory_is_counted_over_the_tree() {
    let hogs = "
import os, signal
for _ in range(6):
    if os.fork() == 0:
        kept = bytearray(b'x') * (40 << 20)
        signal.pause()
try:
    while True:
        os.wait()
except ChildProcessError:
    pass";
    for (variant, sandbox) in both() {
        let mut spec = python(hogs, &[]);
        spec.limits.wall = Duration::from_secs(5);
        let done = run(&sandbox, &spec);
        assert!(done.facts.oom, "{variant}: {:?}", done.facts);
    }
}

#[test]
fn disk_is_limited_over_all_folders_together() {
    let flood = "
import os, sys
folders, written = sys.argv[1:], 0
try:
    for i in range(48):
        with open(os.path.join(folders[i % len(folders)], str(i)), 'wb') as f:
            f.write(bytes(1 << 20))
        written += 1
except OSError as e:
    print(e.errno, written)
else:
    print('all', written)";
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(unsafe_python(flood, &[dir.path().to_str().unwrap()], &[]), "all 48");
    for (variant, sandbox) in both() {
        let mut spec = python(flood, &["/work", "/tmp", "/dev/shm"]);
        spec.files = vec![("given".into(), vec![7; 3 << 20])];
        let said = text(&run(&sandbox, &spec).stdout);
        assert!(said == "28 15" || said == "28 16", "ENOSPC at 16 MiB beside the file given, {variant}: {said}");
    }
}

#[test]
fn output_beyond_the_limit_is_dropped_and_a_flood_ends_the_run() {
    for (variant, sandbox) in both() {
        let done = run(&sandbox, &python("import sys; sys.stdout.write('x' * 100000); sys.stderr.write('y')", &[]));
        assert_eq!((done.stdout.len(), done.stderr.len()), (64 << 10, 1), "{variant}");
        assert_eq!((done.facts.output_cut, done.facts.exit), (true, Some(0)), "{variant}");
        let flood = "
import os
while True:
    os.write(2, b'x' * 65536)";
        let done = run(&sandbox, &python(flood, &[]));
        assert_eq!(done.stderr.len(), 64 << 10, "{variant}");
        assert!(done.facts.output_cut && !done.facts.timed_out, "{variant}: {:?}", done.facts);
        assert_eq!(done.facts.signal, Some(9), "{variant}");
    }
}

#[test]
fn a_timeout_takes_daemons_that_ignore_signals() {
    let stubborn = "
import os, signal, time
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
for _ in range(4):
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        break
print('up', flush=True)
while True:
    time.sleep(60)";
    for (variant, sandbox) in both() {
        let marker = marker("daemon");
        let mut spec = python(stubborn, &[&marker]);
        spec.limits.wall = Duration::from_secs(2);
        let done = run(&sandbox, &spec);
        assert!(done.facts.timed_out, "{variant}: {:?}", done.facts);
        assert_eq!((done.facts.exit, done.facts.signal), (None, Some(9)), "{variant}");
        assert!(text(&done.stdout).contains("up"), "{variant}");
        assert_eq!(running_with(&marker), Vec::<i32>::new(), "{variant}");
    }
}

#[test]
fn daemons_end_with_the_program() {
    let source = "
import os, time
if os.fork() == 0:
    os.setsid()
    time.sleep(600)
print('over')";
    for (variant, sandbox) in both() {
        let marker = marker("left-behind");
        let done = run(&sandbox, &python(source, &[&marker]));
        assert_eq!((done.facts.exit, text(&done.stdout).as_str()), (Some(0), "over"), "{variant}");
        assert_eq!(running_with(&marker), Vec::<i32>::new(), "{variant}");
    }
}

#[test]
fn cpu_time_is_limited_over_the_tree() {
    let spin = "
import os
os.fork()
while True:
    pass";
    for (variant, sandbox) in both() {
        let mut spec = python(spin, &[]);
        spec.limits.cpu = Duration::from_secs(1);
        let done = run(&sandbox, &spec);
        assert!(done.facts.timed_out && !done.facts.idle, "{variant}: {:?}", done.facts);
        assert!(done.facts.cpu >= spec.limits.cpu && done.facts.wall < spec.limits.wall, "{variant}: {:?}", done.facts);
    }
}

#[test]
fn open_files_core_dumps_and_queues_are_limited() {
    let source = "
import resource as r
print(*[r.getrlimit(x) for x in (r.RLIMIT_CORE, r.RLIMIT_NOFILE, r.RLIMIT_MEMLOCK)])";
    for (variant, sandbox) in both() {
        let said = text(&run(&sandbox, &python(source, &[])).stdout);
        assert_eq!(said, "(0, 0) (256, 256) (0, 0)", "{variant}");
        let adjusted = run(&sandbox, &python("print(open('/proc/self/oom_score_adj').read())", &[]));
        assert!(text(&adjusted.stdout).parse::<i32>().is_ok_and(|n| n >= 500), "{variant}");
    }
}

#[test]
fn all_of_it_for_an_ordinary_user() {
    support::all_again_as_an_ordinary_user("all_of_it_for_an_ordinary_user");
}
