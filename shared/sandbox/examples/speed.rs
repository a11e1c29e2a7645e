//! What a sandbox costs: CPU milliseconds a run of `python3 -c 'print(1)'`, bare and in each sandbox that is here, in turn
//! within one run so that a busy machine troubles all alike; then runs a second with one and two workers.
//!
//! `speed [ROUNDS]`; measure a release build. Each figure is the median over all rounds; CPU time is that of all children,
//! user and system, as the kernel counts it for this process.
#![allow(unsafe_code)] // getrusage: std says nothing about the time of children
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rollmill_sandbox::{Level, Namespaces, NamespacesOptions, Sandbox, Spec};

/// One way to run it.
struct Way {
    name: String,
    run: Box<dyn Fn() + Sync>,
    cpu: Vec<f64>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    rollmill_sandbox::helper_main_if_asked();
    let rounds: usize = std::env::args().nth(1).map_or(Ok(60), |n| n.parse())?;
    let mut ways = ways()?;
    for round in 0..rounds + 3 {
        for way in &mut ways {
            let before = children_cpu();
            (way.run)();
            if round >= 3 {
                way.cpu.push((children_cpu() - before).as_secs_f64() * 1e3);
            }
        }
    }
    let bare = median(&mut ways[0].cpu);
    println!("{:<34}{:>10}{:>10}{:>12}{:>12}", "", "CPU ms", "x bare", "1 worker/s", "2 workers/s");
    for way in &mut ways {
        let cpu = median(&mut way.cpu);
        let (one, two) = (throughput(&*way.run, 1), throughput(&*way.run, 2));
        println!("{:<34}{cpu:>10.1}{:>10.2}{one:>12.1}{two:>12.1}", way.name, cpu / bare);
    }
    Ok(())
}

fn ways() -> Result<Vec<Way>, Box<dyn std::error::Error>> {
    let this = std::env::current_exe()?;
    let options = NamespacesOptions { helper: Some(this), floor: Level::Landlock, ..NamespacesOptions::default() };
    let tree = rollmill_sandbox::prepare("host", &rollmill_sandbox::RootSource::Host, &options.cache_dir)?.tree;
    // the real interpreter, not a version manager's shim
    let real = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output()?.stdout;
    let real = String::from_utf8(real)?.trim().to_string();
    let mut ways = vec![way("bare", command(&[&real, "-c", "print(1)"]))];
    for (name, cgroups) in [("namespaces", true), ("namespaces, no cgroups", false)] {
        ways.push(way(name, sandboxed(Namespaces::open(NamespacesOptions { cgroups, ..options.clone() })?)));
    }
    match Namespaces::open(NamespacesOptions { landlock: true, ..options }) {
        Ok(sandbox) => ways.push(way("landlock", sandboxed(sandbox))),
        Err(e) => println!("no landlock here: {e}"),
    }
    let tree = tree.display().to_string();
    let bwrap = [
        "bwrap",
        "--ro-bind",
        &tree,
        "/",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "--unshare-all",
        "python3",
        "-c",
        "print(1)",
    ];
    if Command::new("bwrap").arg("--version").stdout(Stdio::null()).status().is_ok() {
        ways.push(way("bubblewrap", command(&bwrap)));
    }
    Ok(ways)
}

fn way(name: &str, run: impl Fn() + Sync + 'static) -> Way {
    Way { name: name.into(), run: Box::new(run), cpu: Vec::new() }
}

fn command(argv: &[&str]) -> impl Fn() + Sync + use<> {
    let argv: Vec<String> = argv.iter().map(|a| a.to_string()).collect();
    move || {
        let done = Command::new(&argv[0]).args(&argv[1..]).stdin(Stdio::null()).output();
        assert!(done.is_ok_and(|done| done.stdout == b"1\n"), "{argv:?} does not print 1");
    }
}

fn sandboxed(sandbox: Namespaces) -> impl Fn() + Sync {
    let spec = Spec { argv: ["python3", "-c", "print(1)"].map(String::from).to_vec(), ..Spec::default() };
    move || {
        let done = sandbox.run(&spec);
        assert!(done.is_ok_and(|done| done.stdout == b"1\n"), "the sandbox does not print 1");
    }
}

fn throughput(run: &(dyn Fn() + Sync), workers: usize) -> f64 {
    let (started, length) = (Instant::now(), Duration::from_secs(3));
    let count = |_| {
        let mut runs = 0;
        while started.elapsed() < length {
            run();
            runs += 1;
        }
        runs
    };
    let runs: u32 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|n| scope.spawn(move || count(n))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or(0)).sum()
    });
    f64::from(runs) / started.elapsed().as_secs_f64()
}

/// CPU time of all children that were waited for, theirs included.
fn children_cpu() -> Duration {
    // SAFETY: the kernel fills the struct, which is valid for zeroes.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage);
        usage
    };
    let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1000);
    time(usage.ru_utime) + time(usage.ru_stime)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
