//! What the sandbox tests share: opening a backend, running Python inside and outside, finding what is left running.
#![allow(dead_code)] // each test program uses a part
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rollmill_sandbox::{Finished, Limits, Namespaces, NamespacesOptions, Sandbox, Spec};

pub const HELPER: &str = env!("CARGO_BIN_EXE_rollmill-sandbox-helper");

/// The variants under test: with cgroups where this machine gives them, and without.
pub fn both() -> Vec<(&'static str, Namespaces)> {
    vec![("cgroups", open(true)), ("no cgroups", open(false))]
}

/// The helper, or a copy: another user's tests cannot look into this one's target folder.
pub fn helper() -> PathBuf {
    std::env::var_os("ROLLMILL_SANDBOX_HELPER").map_or_else(|| HELPER.into(), PathBuf::from)
}

/// Runs this test program as another user, with copies of all it needs in a folder that everyone may enter. `before` is a command
/// in front of it; `env` is told where the helper and a folder of the user's own lie. What it said, and whether it ended well; none, and
/// said so, where this user is not root.
pub fn as_user<'a>(
    uid: u32,
    before: &[&str],
    args: &[&str],
    env: impl FnOnce(&Path, &Path) -> Vec<(&'a str, PathBuf)>,
) -> Option<(bool, String)> {
    if !fs::read_to_string("/proc/self/status").expect("status").contains("Uid:\t0\t0") {
        eprintln!("skipped: this test changes user and needs root; for an ordinary user all other tests are this test");
        return None;
    }
    let dir = tempfile::tempdir().expect("a folder");
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("mode");
    let copy = |from: &Path, name: &str| {
        fs::copy(from, dir.path().join(name)).expect("copy");
        dir.path().join(name)
    };
    let program = copy(&std::env::current_exe().expect("own path"), "tests");
    let helper = copy(Path::new(HELPER), "rollmill-sandbox-helper");
    let own = dir.path().join("own");
    fs::create_dir(&own).expect("a folder");
    std::os::unix::fs::chown(&own, Some(uid), Some(uid)).expect("chown");
    let argv = [before, &[program.to_str().expect("text")], args].concat();
    let done = Command::new(argv[0])
        .args(&argv[1..])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .envs(env(&helper, &own))
        .current_dir("/")
        .uid(uid)
        .gid(uid)
        .output()
        .expect("run as somebody");
    Some((done.status.success(), format!("{}{}", text(&done.stdout), text(&done.stderr))))
}

/// Runs every other test of this program as an ordinary user. `name` is the calling test.
pub fn all_again_as_an_ordinary_user(name: &str) {
    if std::env::var_os("ROLLMILL_SANDBOX_HELPER").is_some() {
        return; // this is that run
    }
    let env = |helper: &Path, own: &Path| {
        vec![("ROLLMILL_SANDBOX_HELPER", helper.into()), ("XDG_CACHE_HOME", own.into()), ("TMPDIR", own.into())]
    };
    if let Some((well, said)) = as_user(64_322, &[], &["--test-threads", "2", "--skip", name], env) {
        assert!(well && said.contains("test result: ok"), "{said}");
    }
}

pub fn open(cgroups: bool) -> Namespaces {
    let options = NamespacesOptions { helper: Some(helper()), cgroups, ..NamespacesOptions::default() };
    Namespaces::open(options).expect("the sandbox opens on this machine")
}

/// Limits small enough that a test of them is quick.
pub fn limits() -> Limits {
    Limits {
        wall: Duration::from_secs(30),
        cpu: Duration::from_secs(20),
        memory_bytes: 128 << 20,
        pids: 16,
        disk_bytes: 16 << 20,
        output_bytes: 64 << 10,
        collect_bytes: 1 << 20,
    }
}

pub fn python(source: &str, args: &[&str]) -> Spec {
    let mut argv = vec!["python3".to_string(), "-I".into(), "-S".into(), "-c".into(), source.into()];
    argv.extend(args.iter().map(|a| a.to_string()));
    Spec { argv, limits: limits(), ..Spec::default() }
}

pub fn run(sandbox: &dyn Sandbox, spec: &Spec) -> Finished {
    sandbox.run(spec).expect("infrastructure works")
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_string()
}

/// The unsafe control: the same source in a plain process of this host.
pub fn unsafe_python(source: &str, args: &[&str], env: &[(&str, &str)]) -> String {
    let mut command = Command::new("python3");
    command.args(["-I", "-S", "-c", source]).args(args).envs(env.iter().copied()).stdin(Stdio::null());
    text(&command.output().expect("python3 runs").stdout)
}

/// Pids of processes, not zombies, that have this word in their command line.
pub fn running_with(marker: &str) -> Vec<i32> {
    let entries = fs::read_dir("/proc").expect("proc").flatten();
    let pids = entries.filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| *pid != std::process::id() as i32)
        .filter(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.windows(marker.len()).any(|w| w == marker.as_bytes())
        })
        .collect()
}

/// A word no other test or run uses.
pub fn marker(name: &str) -> String {
    format!("marker-{name}-{}", std::process::id())
}

/// Folders of runs still to be found in any cgroup hierarchy, by the pid of the helper that made them.
pub fn cgroups_of(helper: i32) -> Vec<PathBuf> {
    fn visit(folder: &Path, name: &str, depth: usize, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(name) {
                found.push(entry.path());
            } else if depth < 8 && entry.file_type().is_ok_and(|t| t.is_dir()) {
                visit(&entry.path(), name, depth + 1, found);
            }
        }
    }
    let mut found = Vec::new();
    visit(Path::new("/sys/fs/cgroup"), &format!("rollmill-run-{helper}-"), 0, &mut found);
    found
}

/// The parent of a process.
pub fn parent_of(pid: i32) -> i32 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process lives");
    let line = status.lines().find_map(|l| l.strip_prefix("PPid:")).expect("PPid");
    line.trim().parse().expect("a pid")
}

/// Waits for a condition that an event elsewhere brings about; the bound only ends a failing test.
pub fn until(what: &str, condition: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < end, "{what} did not happen");
        std::thread::yield_now();
    }
}
