//! Helpers are kept from run to run: one a run at a time, nothing of a run stays in it, and a dead one is replaced.
mod support;

use std::fs;
use std::io::{Read, Seek, SeekFrom};

use rollmill_sandbox::{Namespaces, NamespacesOptions, Sandbox, Spec};
use support::{python, text, until};

fn children() -> Vec<u32> {
    let own = std::process::id();
    let threads = fs::read_dir(format!("/proc/{own}/task")).expect("threads").flatten();
    let lists = threads.map(|t| fs::read_to_string(t.path().join("children")).unwrap_or_default());
    lists.flat_map(|l| l.split_whitespace().map(|p| p.parse().expect("a pid")).collect::<Vec<_>>()).collect()
}

/// Kills it and waits until it is dead.
fn kill(pid: u32) {
    let status = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status();
    assert!(status.expect("kill").success());
    let is_dead = || fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "));
    until("the end of the helper", is_dead);
}

/// Whether these bytes stand anywhere in what a process can write to.
fn remembers(pid: u32, bytes: &[u8]) -> bool {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).expect("maps");
    let mut memory = fs::File::open(format!("/proc/{pid}/mem")).expect("memory");
    let regions = maps.lines().filter(|line| line.split(' ').nth(1).is_some_and(|rights| rights.starts_with("rw")));
    regions.into_iter().any(|line| {
        let (from, to) = line.split(' ').next().and_then(|range| range.split_once('-')).expect("a range");
        let [from, to] = [from, to].map(|number| u64::from_str_radix(number, 16).expect("hexadecimal"));
        let mut region = vec![0; (to - from) as usize];
        memory.seek(SeekFrom::Start(from)).expect("seek");
        memory.read_exact(&mut region).is_ok() && region.windows(bytes.len()).any(|window| window == bytes)
    })
}

#[test]
fn one_helper_serves_runs_in_turn_and_runs_at_once_have_one_each() {
    let sandbox = Namespaces::open(NamespacesOptions::default()).expect("a sandbox");
    let spec = python("import os; print(os.getpid())", &[]);
    for _ in 0..3 {
        assert_eq!(text(&sandbox.run(&spec).expect("a run").stdout), "2");
    }
    let first = children();
    assert_eq!(first.len(), 1, "{first:?}");
    let (a, b) = (sandbox.start(&spec).expect("a run"), sandbox.start(&spec).expect("a run"));
    assert_eq!(children().len(), 2);
    drop((a, b));
    sandbox.run(&spec).expect("a run");
    assert_eq!(children().len(), 2);
    drop(sandbox);
    assert_eq!(children(), Vec::<u32>::new());
}

#[test]
fn a_helper_that_died_while_it_was_idle_is_replaced() {
    let sandbox = Namespaces::open(NamespacesOptions::default()).expect("a sandbox");
    for _ in 0..3 {
        children().into_iter().for_each(kill);
        let done = sandbox.run(&python("print(7)", &[])).expect("a run");
        assert_eq!(text(&done.stdout), "7");
    }
}

#[test]
fn what_one_run_was_given_is_not_in_the_memory_of_the_next_ones_init() {
    let sandbox = Namespaces::open(NamespacesOptions::default()).expect("a sandbox");
    // spelled backwards here, so that only the run's files have it as it is
    let secret: Vec<u8> = b"4171-srewsna-neddih-eht".iter().rev().copied().collect();
    let file = |folder: &str| (format!("{folder}.txt"), [&b"x".repeat(5000), &secret[..], b"y"].concat());
    let source = "print(len(open('/pristine/b.txt').read() + open('/work/a.txt').read()))";
    let spec = Spec { files: vec![file("a")], pristine: vec![file("b")], ..python(source, &[]) };
    let done = sandbox.run(&spec).expect("a run");
    assert_eq!(text(&done.stdout), "10048", "{}", text(&done.stderr));
    let helpers = children();
    assert_eq!(helpers.len(), 1);
    assert!(!remembers(helpers[0], &secret));
    assert!(remembers(std::process::id(), &secret), "a control");
}
