//! Ways to run a program, bare and in each sandbox that is here, and what all of it costs. Shared by the bench and `speed`.
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rollmill_sandbox::{Level, Namespaces, NamespacesOptions, RootSource, Sandbox, Spec, prepare};

/// One way to run it.
pub struct Way {
    pub name: &'static str,
    pub run: Box<dyn Fn() + Sync>,
}

/// All that are here; bare first.
pub fn ways(program: &[String]) -> Result<Vec<Way>, Box<dyn std::error::Error>> {
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
    Way { name, run: Box::new(run) }
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
        assert!(matches!(&done, Ok(done) if done.stdout == b"1\n"), "the sandbox does not print 1: {done:?}");
    }
}

/// A group of this process and all it starts, which counts their CPU time; removed at the end.
pub struct Meter {
    group: PathBuf,
    file: &'static str,
}

impl Meter {
    /// Below the root of cpuacct (v1) or of the unified hierarchy, as root.
    pub fn start() -> std::io::Result<Meter> {
        let v1 = Path::new("/sys/fs/cgroup/cpuacct");
        let (base, file) = if v1.exists() { (v1, "cpuacct.usage") } else { (Path::new("/sys/fs/cgroup"), "cpu.stat") };
        let group = base.join(format!("rollmill-speed-{}", std::process::id()));
        std::fs::create_dir(&group)?;
        let meter = Meter { group, file };
        std::fs::write(meter.group.join("cgroup.procs"), std::process::id().to_string())?;
        Ok(meter)
    }

    /// CPU time since the start.
    pub fn read(&self) -> Duration {
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
