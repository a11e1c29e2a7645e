//! Signals, draining and exit codes of the real `rollmill`, which Slurm and Kubernetes act on.
#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

use rollmill_e2e::{Killed, expect, program, project, small_config};
use rollmill_schema::{Admission, Row, decode};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, Command, Stdio};
use std::time::Duration;

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A run of ten tasks, in the hands of no worker yet. One shard: whoever works holds all of it.
fn candidates(dir: &Path) -> PathBuf {
    let (config, run) = (small_config(dir, None, 2), dir.join("run"));
    expect(0, &["init", "--config", text(&config), "--run", text(&run)]);
    expect(0, &["synthesize", "-q", "--run", text(&run)]);
    run
}

/// `verify`, one candidate at once, a chunk an item.
fn verify(run: &Path) -> Vec<&str> {
    let run = text(run);
    vec!["verify", "-q", "--concurrency", "1", "--chunk-items", "1", "--lease-seconds", "3", "--run", run]
}

fn start(args: &[&str]) -> Killed {
    let mut command = Command::new(program("rollmill"));
    Killed(command.args(args).current_dir(project()).stderr(Stdio::piped()).spawn().unwrap())
}

#[allow(unsafe_code)] // kill(2) of a child that has not been waited for: the pid is ours
fn send(child: &Killed, signal: i32) {
    // SAFETY: plain numbers.
    assert_eq!(unsafe { libc::kill(i32::try_from(child.0.id()).unwrap(), signal) }, 0);
}

/// Waits for an event that the worker brings about; the bound only ends a failing test.
fn until(what: &str, mut happened: impl FnMut() -> bool) {
    let started = std::time::Instant::now();
    while !happened() {
        assert!(started.elapsed() < Duration::from_secs(100), "{what} did not happen");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder).into_iter().flatten().map(|e| e.unwrap().path()).collect();
    found.sort();
    found
}

fn chunks(run: &Path) -> Vec<PathBuf> {
    files(&run.join("control/verify/chunks/00000"))
}

fn leases(run: &Path) -> Vec<PathBuf> {
    files(&run.join("control/verify/leases/00000"))
}

fn rows(file: &Path) -> Vec<Admission> {
    decode::<Admission>(&bytes::Bytes::from(std::fs::read(file).unwrap())).unwrap().0
}

/// How it ended, and what it said.
fn end(mut child: Killed) -> (Option<i32>, String) {
    let mut stderr = String::new();
    child.0.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    (child.0.wait().unwrap().code(), stderr)
}

/// A worker that was asked to leave after its first chunk.
fn drained(run: &Path, signal: i32) {
    let worker = start(&verify(run));
    until("the first chunk", || !chunks(run).is_empty());
    send(&worker, signal);
    let (code, stderr) = end(worker);
    assert_eq!(code, Some(75), "signal {signal}: {stderr}");
    assert!(stderr.contains("draining"), "{stderr}");
}

/// Every task once, no item done twice, and what the first worker had done is kept.
fn carried_on(run: &Path, by_first: &[PathBuf]) {
    let all: Vec<Admission> = files(&run.join("tables/admissions")).iter().flat_map(|f| rows(f)).collect();
    let keys: BTreeSet<String> = all.iter().map(Row::key).collect();
    assert_eq!((all.len(), keys.len()), (10, 10));
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for row in chunks(run).iter().flat_map(|f| rows(f)) {
        *times.entry(row.key()).or_default() += 1;
    }
    assert!(times.values().all(|n| *n == 1), "items were done again: {times:?}");
    let first: Vec<Admission> = by_first.iter().flat_map(|f| rows(f)).collect();
    assert!(!first.is_empty() && first.iter().all(|row| all.contains(row)), "rows of the first worker are gone");
}

#[test]
fn each_signal_drains_and_the_same_command_carries_on() {
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGUSR1] {
        let dir = tempfile::tempdir().unwrap();
        let run = candidates(dir.path());
        drained(&run, signal);
        assert_eq!(
            files(&run.join("tables/admissions")),
            Vec::<PathBuf>::new(),
            "the worker was drained, not finished"
        );
        // It gave its shard back: the next one need not wait for the lease to expire.
        let last = std::fs::read_to_string(leases(&run).last().unwrap()).unwrap();
        let last: serde_json::Value = serde_json::from_str(&last).unwrap();
        assert_eq!(last["released"], true, "{last}");
        let by_first = chunks(&run);
        expect(0, &verify(&run));
        carried_on(&run, &by_first);
    }
}

/// A worker that cannot drain, because its store does not answer, leaves at the second Ctrl-C.
#[test]
fn a_second_interrupt_ends_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let run = candidates(dir.path());
    // The plan is a pipe that nobody writes to.
    let plan = run.join("control/verify/plan.json");
    std::fs::create_dir_all(plan.parent().unwrap()).unwrap();
    assert!(Command::new("mkfifo").arg(&plan).status().unwrap().success());
    let mut worker = start(&verify(&run));
    let stderr = worker.0.stderr.take().unwrap();
    // Signals are caught before the candidates are read, and the plan is read after them: only then it opens the pipe.
    let writer = std::fs::File::options().write(true).open(&plan).unwrap();
    send(&worker, libc::SIGINT);
    let lines = BufReader::new(stderr);
    assert!(said(lines, "draining"));
    assert_eq!(worker.0.try_wait().unwrap(), None, "it has not read its plan, so it cannot have left");
    // The handler for the second comes a moment after the first, on purpose: send until it is seen.
    let mut status = None;
    until("the end", || {
        status = worker.0.try_wait().unwrap();
        if status.is_none() {
            send(&worker, libc::SIGINT);
        }
        status.is_some()
    });
    assert_eq!(status.unwrap().code(), Some(130));
    drop(writer);
}

fn said(lines: BufReader<ChildStderr>, word: &str) -> bool {
    lines.lines().map_while(Result::ok).any(|line| line.contains(word))
}

#[test]
fn complete_is_0_also_when_there_is_nothing_left() {
    let dir = tempfile::tempdir().unwrap();
    let run = candidates(dir.path());
    expect(0, &verify(&run));
    let before = chunks(&run);
    expect(0, &verify(&run));
    assert_eq!(chunks(&run), before);
}

#[test]
fn what_running_again_cannot_mend_is_2() {
    let dir = tempfile::tempdir().unwrap();
    expect(2, &["verify", "--no-such-flag"]);
    expect(2, &["no-such-job"]);
    expect(2, &["verify", "--run", text(&dir.path().join("nowhere"))]);
    let own = dir.path().join("own.jsonl");
    std::fs::copy(project().join("examples/tasks/list_sums.jsonl"), &own).unwrap();
    let config = dir.path().join("c.toml");
    let source = format!("[[synthesize.sources]]\nkind = \"jsonl\"\npath = {:?}\n", text(&own));
    std::fs::write(&config, &source).unwrap();
    let run = dir.path().join("run");
    let init = ["init", "--config", text(&config), "--run", text(&run)];
    expect(0, &init);
    // A stage whose input was never planned.
    let (_, stderr) = expect(2, &["verify", "--run", text(&run)]);
    assert!(stderr.contains("synthesize has not been planned"), "{stderr}");
    expect(0, &["synthesize", "--run", text(&run)]);
    // Another configuration, and operational settings, which may change.
    std::fs::write(&config, format!("[verify]\nheldout = 0.5\n{source}")).unwrap();
    let (_, stderr) = expect(2, &init);
    assert!(stderr.contains("verify.heldout: (absent) -> 0.5"), "{stderr}");
    std::fs::write(&config, format!("[operations]\nchunk_items = 3\n{source}")).unwrap();
    expect(0, &init);
    // The sources changed under a frozen plan.
    std::fs::copy(project().join("examples/tasks/reversal.jsonl"), &own).unwrap();
    let (_, stderr) = expect(2, &["synthesize", "--run", text(&run)]);
    assert!(stderr.contains("plan is frozen and differs"), "{stderr}");
}

/// Damage by hand: the shard fails for good, and carries on once the object is restored.
#[test]
fn a_damaged_object_is_10() {
    let dir = tempfile::tempdir().unwrap();
    let run = candidates(dir.path());
    drained(&run, libc::SIGTERM);
    let by_first = chunks(&run);
    let whole = std::fs::read(&by_first[0]).unwrap();
    for damage in [whole[..whole.len() - 7].to_vec(), b"no Parquet".to_vec()] {
        std::fs::write(&by_first[0], damage).unwrap();
        let (_, stderr) = expect(10, &verify(&run));
        assert!(stderr.contains("error: "), "{stderr}");
    }
    std::fs::write(&by_first[0], whole).unwrap();
    // A sealed part that is not what was sealed.
    let part = files(&run.join("tables/candidates")).remove(0);
    let sealed = std::fs::read(&part).unwrap();
    std::fs::write(&part, &sealed[1..]).unwrap();
    let (_, stderr) = expect(10, &verify(&run));
    assert!(stderr.contains("not the sealed ones"), "{stderr}");
    std::fs::write(&part, sealed).unwrap();
    expect(0, &verify(&run));
    carried_on(&run, &by_first);
}

#[test]
fn work_that_another_holds_is_11_with_no_wait() {
    let dir = tempfile::tempdir().unwrap();
    let run = candidates(dir.path());
    let holder = start(&verify(&run));
    until("the claim", || !leases(&run).is_empty());
    // Stopped, so that it cannot finish before the other one looks.
    send(&holder, libc::SIGSTOP);
    let run_text = text(&run);
    expect(11, &["verify", "-q", "--no-wait", "--lease-seconds", "600", "--run", run_text]);
    send(&holder, libc::SIGCONT);
    assert_eq!(end(holder).0, Some(0));
}

#[test]
fn what_passes_is_75() {
    let dir = tempfile::tempdir().unwrap();
    // The stage before is not finished: one of its shards is.
    let (config, run) = (small_config(dir.path(), None, 2), dir.path().join("run"));
    let small =
        std::fs::read_to_string(&config).unwrap().replacen("[[synth", "[synthesize]\nshard_size = 4\n[[synth", 1);
    std::fs::write(&config, small).unwrap();
    expect(0, &["init", "--config", text(&config), "--run", text(&run)]);
    expect(0, &["synthesize", "--shard", "0", "--run", text(&run)]);
    let (_, stderr) = expect(75, &verify(&run));
    assert!(stderr.contains("is not finished: 1 of 3 parts"), "{stderr}");
    expect(0, &["synthesize", "--run", text(&run)]);
    expect(0, &verify(&run));
    // Nobody listens: a port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let out = Command::new(program("rollmill"))
        .args(["synthesize", "--run", "s3://bucket/run"])
        .env("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{port}"))
        .envs([("AWS_ACCESS_KEY_ID", "k"), ("AWS_SECRET_ACCESS_KEY", "s")])
        .current_dir(project())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(75), "{stderr}");
    assert!(stderr.contains("s3://bucket/run"), "{stderr}");
}
