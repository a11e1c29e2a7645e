//! What a sandbox costs: CPU milliseconds a run, bare and in each sandbox that is here, in turn within one run so that a busy
//! machine troubles all alike; then runs a second with one and two workers.
//!
//! `speed [ROUNDS [PROGRAM ARGUMENT...]]`, by default `python3 -c 'print(1)'`; another program must print 1 too, as `echo 1`
//! does. Measure a release build. Figures are medians; CPU time is that of all processes below this one, user and system.
//! bubblewrap is measured where it is installed, docker where SPEED_IMAGE names an image (its daemon's CPU is not counted).
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rollmill_sandbox::{Level, Namespaces, NamespacesOptions, RootSource, Sandbox, Spec, prepare};

/// One way to run it.
struct Way {
    name: &'static str,
    run: Box<dyn Fn() + Sync>,
    cpu: Vec<f64>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    rollmill_sandbox::helper_main_if_asked();
    let mut args = std::env::args().skip(1);
    let rounds: usize = args.next().map_or(Ok(60), |n| n.parse())?;
    let program: Vec<String> = args.collect();
    let program = if program.is_empty() { ["python3", "-c", "print(1)"].map(String::from).to_vec() } else { program };
    let meter = Meter::start()?;
    let mut ways = ways(&program)?;
    for round in 0..rounds + 3 {
        for way in &mut ways {
            let before = meter.read();
            (way.run)();
            let used = meter.read() - before;
            if round >= 3 {
                way.cpu.push(used.as_secs_f64() * 1e3);
            }
        }
    }
    let bare = median(&mut ways[0].cpu);
    println!("{:<34}{:>10}{:>10}{:>12}{:>12}", program[0], "CPU ms", "x bare", "1 worker/s", "2 workers/s");
    for way in &mut ways {
        let cpu = median(&mut way.cpu);
        let (one, two) = (throughput(&*way.run, 1), throughput(&*way.run, 2));
        println!("{:<34}{cpu:>10.1}{:>10.2}{one:>12.1}{two:>12.1}", way.name, cpu / bare);
    }
    Ok(())
}

fn ways(program: &[String]) -> Result<Vec<Way>, Box<dyn std::error::Error>> {
    let helper = Some(std::env::current_exe()?);
    let options = NamespacesOptions { helper, floor: Level::Landlock, ..NamespacesOptions::default() };
    let tree = prepare("host", &RootSource::Host, &options.cache_dir)?.tree;
    // the files that sandboxes have, without what is installed beside the host's interpreter
    let libraries = tree.join("usr/lib").read_dir()?.flatten().map(|e| e.path()).find(|p| p.join("libc.so.6").exists());
    let libraries = format!("LD_LIBRARY_PATH={}", libraries.unwrap_or_default().display());
    let same = tree.join("usr/bin").join(&program[0]).display().to_string();
    let mut ways = vec![
        way("bare, the sandbox's files", command(&["env", "-i", &libraries, &same], &program[1..])),
        way("bare, the host's files", command(&[], program)),
    ];
    for (name, cgroups) in [("namespaces", true), ("namespaces, no cgroups", false)] {
        let sandbox = Namespaces::open(NamespacesOptions { cgroups, ..options.clone() })?;
        ways.push(way(name, sandboxed(sandbox, program)));
    }
    match Namespaces::open(NamespacesOptions { landlock: true, ..options }) {
        Ok(sandbox) => ways.push(way("landlock", sandboxed(sandbox, program))),
        Err(e) => println!("no landlock here: {e}"),
    }
    let tree = tree.display().to_string();
    let bwrap = ["bwrap", "--ro-bind", &tree, "/", "--proc", "/proc", "--dev", "/dev", "--unshare-all"];
    if Command::new("bwrap").arg("--version").stdout(Stdio::null()).status().is_ok() {
        ways.push(way("bubblewrap", command(&bwrap, program)));
    }
    if let Ok(image) = std::env::var("SPEED_IMAGE") {
        ways.push(way("docker run", command(&["docker", "run", "--rm", "--network", "none", &image], program)));
    }
    Ok(ways)
}

fn way(name: &'static str, run: impl Fn() + Sync + 'static) -> Way {
    Way { name, run: Box::new(run), cpu: Vec::new() }
}

fn command(before: &[&str], program: &[String]) -> impl Fn() + Sync + use<> {
    let argv: Vec<String> = before.iter().map(|a| a.to_string()).chain(program.iter().cloned()).collect();
    move || {
        let done = Command::new(&argv[0]).args(&argv[1..]).stdin(Stdio::null()).output();
        assert!(done.is_ok_and(|done| done.stdout == b"1\n"), "{argv:?} does not print 1");
    }
}

fn sandboxed(sandbox: Namespaces, program: &[String]) -> impl Fn() + Sync + use<> {
    let spec = Spec { argv: program.to_vec(), ..Spec::default() };
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

/// A group of this process and all it starts, which counts their CPU time; removed at the end.
struct Meter {
    group: PathBuf,
    file: &'static str,
}

impl Meter {
    /// Below the root of cpuacct (v1) or of the unified hierarchy, as root.
    fn start() -> std::io::Result<Meter> {
        let v1 = Path::new("/sys/fs/cgroup/cpuacct");
        let (base, file) = if v1.exists() { (v1, "cpuacct.usage") } else { (Path::new("/sys/fs/cgroup"), "cpu.stat") };
        let group = base.join(format!("rollmill-speed-{}", std::process::id()));
        std::fs::create_dir(&group)?;
        let meter = Meter { group, file };
        std::fs::write(meter.group.join("cgroup.procs"), std::process::id().to_string())?;
        Ok(meter)
    }

    fn read(&self) -> Duration {
        let text = std::fs::read_to_string(self.group.join(self.file)).unwrap_or_default();
        match text.strip_prefix("usage_usec ") {
            Some(rest) => Duration::from_micros(rest.lines().next().and_then(|n| n.parse().ok()).unwrap_or(0)),
            None => Duration::from_nanos(text.trim().parse().unwrap_or(0)),
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        let base = self.group.parent().unwrap_or(Path::new("/"));
        let _ = std::fs::write(base.join("cgroup.procs"), std::process::id().to_string());
        let _ = std::fs::remove_dir(&self.group);
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
