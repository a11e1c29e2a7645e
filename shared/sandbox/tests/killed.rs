//! Whoever is killed, nothing stays: not when the worker is killed, not when the helper is, not after an ordinary run. And
//! the same crate works for an ordinary user.
mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rollmill_sandbox::{Level, Namespaces, NamespacesOptions, Received, Sandbox, SandboxError};
use support::{HELPER, as_user, both, cgroups_of, marker, open, parent_of, python, run, running_with, text, until};

const SLEEP: &str = "
import os, time
if os.fork() == 0:
    os.setsid()
print('up', flush=True)
time.sleep(600)";

/// Host pid of a helper, given a marker in the command line of a program in its sandbox: program, init, helper.
fn helper_of(marker: &str) -> i32 {
    let pids = running_with(marker);
    let above = |pid: i32| parent_of(parent_of(pid));
    let is_helper =
        |pid: &i32| fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|c| c.ends_with(b"__sandbox-helper\0"));
    // init is a copy of the helper: the helper is the one whose parent is not a copy too
    let helpers = pids.iter().map(|p| above(*p)).filter(is_helper).filter(|p| !is_helper(&parent_of(*p)));
    helpers.min().expect("a helper above the program")
}

/// Not a test of its own: the worker that `a_killed_worker_leaves_nothing` starts and kills.
#[test]
#[ignore = "started by another test"]
fn worker() {
    let Ok(marker) = std::env::var("WORKER_MARKER") else { return };
    let cgroups = std::env::var("WORKER_CGROUPS").is_ok_and(|v| v == "true");
    let mut session = open(cgroups).start(&python(SLEEP, &[&marker])).expect("start");
    assert!(matches!(session.recv(10, Instant::now() + Duration::from_secs(30)), Ok(Received::Bytes(_))));
    println!("\nready");
    let _ = session.recv(10, Instant::now() + Duration::from_secs(600));
    loop {
        std::thread::park();
    }
}

#[test]
fn a_killed_worker_leaves_nothing() {
    for cgroups in [true, false] {
        let marker = marker(&format!("worker-{cgroups}"));
        let mut worker = Command::new(std::env::current_exe().expect("own path"))
            .args(["--ignored", "--exact", "worker", "--nocapture"])
            .env("WORKER_MARKER", &marker)
            .env("WORKER_CGROUPS", cgroups.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .expect("start a worker");
        let output = BufReader::new(worker.stdout.take().expect("piped"));
        assert!(output.lines().map_while(Result::ok).any(|l| l == "ready"), "the worker did not start");
        until("the fork", || running_with(&marker).len() == 2);
        let helper = helper_of(&marker);
        assert_eq!(cgroups_of(helper).is_empty(), !cgroups || open(true).level().cgroup == "none");
        worker.kill().expect("kill -9");
        worker.wait().expect("reap");
        until("the end of the sandbox", || running_with(&marker).is_empty());
        until("the end of the helper", || !Path::new(&format!("/proc/{helper}")).exists());
        assert!(cgroups_of(helper).is_empty());
    }
}

#[test]
fn a_killed_helper_leaves_nothing_running_and_is_a_transient_error() {
    for (variant, sandbox) in both() {
        let marker = marker("helper");
        let mut session = sandbox.start(&python(SLEEP, &[&marker])).expect("start");
        session.recv(10, Instant::now() + Duration::from_secs(30)).expect("up");
        until("the fork", || running_with(&marker).len() == 2);
        let helper = helper_of(&marker);
        assert!(Command::new("kill").args(["-KILL", &helper.to_string()]).status().expect("kill").success());
        let error = session.finish().expect_err("no helper, no facts");
        assert!(matches!(error, SandboxError::HelperDied { .. }) && error.is_transient(), "{variant}: {error}");
        until("the end of the sandbox", || running_with(&marker).is_empty());
        // a killed helper cannot remove its cgroup: the next open does
        until("the sweep", || {
            drop(open(true));
            cgroups_of(helper).is_empty()
        });
    }
}

#[test]
fn the_cgroup_of_a_run_is_there_during_it_and_gone_after_it() {
    let sandbox = open(true);
    let marker = marker("cgroup");
    let mut session = sandbox.start(&python(SLEEP, &[&marker])).expect("start");
    session.recv(10, Instant::now() + Duration::from_secs(30)).expect("up");
    let helper = helper_of(&marker);
    let groups = cgroups_of(helper);
    assert_eq!(groups.is_empty(), sandbox.level().cgroup == "none");
    session.finish().expect("finish");
    assert!(groups.iter().all(|group| !group.exists()));
    drop(sandbox); // with what was made ready for the next run
    assert!(cgroups_of(helper).is_empty());
}

/// Not a test of its own: what `an_ordinary_user_can_sandbox` runs under another uid, with its own copy of everything.
#[test]
#[ignore = "started by another test"]
fn ordinary_user() {
    let Ok(cache) = std::env::var("USER_CACHE") else { return };
    let options = NamespacesOptions {
        cache_dir: cache.into(),
        helper: Some(std::env::var("USER_HELPER").expect("set with the other").into()),
        ..Default::default()
    };
    let sandbox = Namespaces::open(options).expect("opens for an ordinary user");
    assert!(sandbox.level().level <= Level::Limited);
    let done = run(&sandbox, &python("import os; print(os.getuid(), os.listdir('/work'))", &[]));
    assert_eq!(text(&done.stdout), "1000 []", "{}", text(&done.stderr));
    let bound = "
import os, signal
n = 0
try:
    while n < 64:
        if os.fork() == 0:
            signal.pause()
        n += 1
except BlockingIOError:
    pass
print(n)";
    assert_eq!(text(&run(&sandbox, &python(bound, &[])).stdout), "15");
    let mut spec = python("kept = [bytearray(b'x') * (4 << 20) for _ in range(60)]", &[]);
    assert!(run(&sandbox, &spec).facts.oom);
    spec = python("open('/proc/1/environ', 'rb').read(); print('read')", &[]);
    assert_eq!(text(&run(&sandbox, &spec).stdout), "", "init can be looked into");
}

#[test]
fn an_ordinary_user_can_sandbox() {
    let env = |helper: &Path, own: &Path| vec![("USER_CACHE", own.into()), ("USER_HELPER", helper.into())];
    let nobody = as_user(65_534, &[], &["--ignored", "--exact", "ordinary_user", "--nocapture"], env);
    if let Some((well, said)) = nobody {
        assert!(well && said.contains("1 passed"), "{said}");
    }
}

#[test]
fn several_builders_of_one_root_make_one() {
    let dir = tempfile::tempdir().expect("a folder");
    let open = || {
        let options = NamespacesOptions {
            cache_dir: dir.path().into(),
            helper: Some(HELPER.into()),
            ..NamespacesOptions::default()
        };
        Namespaces::open(options).expect("opens").level().rootfs_digest.clone()
    };
    let digests: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(open)).collect();
        threads.into_iter().map(|t| t.join().expect("thread")).collect()
    });
    assert!(digests.windows(2).all(|w| w[0] == w[1]), "{digests:?}");
    let built = fs::read_dir(dir.path().join("rootfs")).expect("rootfs").flatten();
    let names: Vec<_> = built.map(|e| e.file_name().to_string_lossy().into_owned()).filter(|n| n != "lock").collect();
    assert_eq!(names.len(), 1, "{names:?}");
    // the cache of this user, built another time, has the same contents
    assert_eq!(support::open(false).level().rootfs_digest, digests[0]);
}
