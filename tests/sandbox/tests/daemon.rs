//! The container daemon: what a killed worker leaves is gone after the next opening, and what is missing is said as it is.
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rollmill_docker::{Docker, DockerOptions};
use rollmill_sandbox::{Received, Sandbox, SandboxError};
use rollmill_sandbox_suite::{Bait, docker, python, running_with};

/// How many containers a process made, by the label that says so.
fn containers_of(pid: u32) -> usize {
    let socket = std::env::var("DOCKER_HOST").expect("set");
    let listed = Command::new("curl")
        .args(["-sf", "--unix-socket", socket.trim_start_matches("unix://"), "http://docker/containers/json?all=1"])
        .output()
        .expect("curl runs");
    assert!(listed.status.success());
    let text = String::from_utf8(listed.stdout).expect("text");
    text.split("\"Id\":\"").skip(1).filter(|about| about.contains(&format!("] {pid} "))).count()
}

/// Not a test of its own: the worker that the next one starts and kills.
#[test]
#[ignore = "started by another test"]
fn worker() {
    let Ok(marker) = std::env::var("WORKER_MARKER") else { return };
    let docker = docker(1).expect("the other test has it");
    let source = "print('up', flush=True); import time; time.sleep(600)";
    let mut session = docker.start(&python(source, &[&marker])).expect("start");
    assert!(matches!(session.recv(10, Instant::now() + Duration::from_secs(60)), Ok(Received::Bytes(_))));
    println!("\nready");
    loop {
        std::thread::park();
    }
}

/// Killed however the test ends.
struct Worker(Child);

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_killed_worker_leaves_no_container_after_the_next_opening() {
    if docker(0).is_none() {
        return;
    }
    let marker = Bait::new().expect("bait").marker();
    let started = Command::new(std::env::current_exe().expect("own path"))
        .args(["--ignored", "--exact", "worker", "--nocapture"])
        .env("WORKER_MARKER", &marker)
        .stdout(Stdio::piped())
        .spawn();
    let mut worker = Worker(started.expect("start a worker"));
    let pid = worker.0.id();
    let mut lines = BufReader::new(worker.0.stdout.take().expect("piped")).lines().map_while(Result::ok);
    assert!(lines.any(|l| l == "ready"), "the worker did not start");
    assert!(!running_with(&marker).is_empty(), "its program runs");
    drop(docker(0).expect("opened beside a living worker"));
    assert!(containers_of(pid) >= 1, "the control: a living worker's containers stay");
    drop(worker);
    drop(docker(0).expect("opened again"));
    assert_eq!(containers_of(pid), 0);
    assert_eq!(running_with(&marker), Vec::<i32>::new());
}

#[test]
fn what_is_missing_is_said() {
    if docker(0).is_none() {
        return;
    }
    let open = |options: DockerOptions| Docker::open(options).expect_err("must not open");
    let none = open(DockerOptions { image: "no-such-image:1".into(), ..DockerOptions::default() });
    assert!(matches!(none, SandboxError::NoImage { .. }) && !none.is_transient(), "{none}");
    let away = open(DockerOptions { socket: Some("/nowhere/docker.sock".into()), ..DockerOptions::default() });
    assert!(matches!(away, SandboxError::NoDaemon { .. }) && !away.is_transient(), "{away}");
    let dir = tempfile::tempdir().expect("a folder");
    let socket = dir.path().join("docker.sock");
    drop(std::os::unix::net::UnixListener::bind(&socket).expect("bind"));
    let gone = open(DockerOptions { socket: Some(socket), ..DockerOptions::default() });
    assert!(matches!(gone, SandboxError::DaemonFailed { .. }) && gone.is_transient(), "{gone}");
    for error in [none, away, gone] {
        let said = error.to_string();
        assert!(!said.contains('\n') && said.starts_with(char::is_lowercase), "{said}");
    }
}
