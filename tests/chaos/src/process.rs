//! Processes of the harness: started so that they die with it, signalled by pid, and looked for afterwards.
//!
//! The harness makes itself the reaper of its descendants (`PR_SET_CHILD_SUBREAPER`): whatever a killed worker leaves becomes
//! its child, so that what is left behind is known exactly, also beside other runs on the same machine.
#![allow(unsafe_code)] // prctl, kill(2), waitpid(2) and clock_gettime(2) have no safe wrapper in std

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Starts `command` so that it is killed when the thread that started it ends.
pub fn start(command: &mut Command) -> io::Result<Child> {
    // SAFETY: prctl with plain numbers is async-signal-safe and touches no memory.
    let die_with_parent = || match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    };
    // SAFETY: the closure only makes that call between fork and exec.
    unsafe { command.pre_exec(die_with_parent) };
    command.spawn()
}

/// Sends `signal` to a child that has not been waited for.
pub fn signal(child: &Child, signal: i32) -> io::Result<()> {
    let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
    // SAFETY: plain numbers; the pid is a child's that has not been reaped, so it is nobody else's.
    match unsafe { libc::kill(pid, signal) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Makes this process the parent of its orphaned descendants.
pub fn adopt_orphans() -> io::Result<()> {
    // SAFETY: plain numbers.
    match unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Reaps adopted children that have ended, and returns those that live. `own` are children that others wait for.
pub fn orphans(own: &BTreeSet<u32>) -> Vec<u32> {
    let mut living = Vec::new();
    for pid in children().into_iter().filter(|pid| !own.contains(pid)) {
        let Ok(number) = i32::try_from(pid) else { continue };
        // SAFETY: a null status is allowed; the pid is a child of this process that nobody else waits for.
        if unsafe { libc::waitpid(number, std::ptr::null_mut(), libc::WNOHANG) } == 0 {
            living.push(pid);
        }
    }
    living
}

/// Processor time this thread has used: what a measurement costs, whatever else runs on the machine.
pub fn thread_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a local of the right type.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Children of all threads of this process.
fn children() -> Vec<u32> {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let lists = tasks.filter_map(|t| fs::read_to_string(t.path().join("children")).ok());
    lists.flat_map(|l| l.split_whitespace().filter_map(|p| p.parse().ok()).collect::<Vec<u32>>()).collect()
}

/// Mounts and cgroups of sandboxes that are there now.
pub fn traces() -> BTreeSet<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mut found: BTreeSet<String> =
        mounts.lines().filter(|l| l.contains("rollmill")).map(|l| format!("mount {l}")).collect();
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (names, path) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let hierarchy = if names.is_empty() { "unified" } else { names.trim_start_matches("name=") };
        for base in [format!("/sys/fs/cgroup/{hierarchy}{path}"), format!("/sys/fs/cgroup{path}")] {
            let entries = fs::read_dir(&base).into_iter().flatten().flatten();
            let names = entries.map(|e| e.file_name().to_string_lossy().into_owned());
            found.extend(names.filter(|n| n.starts_with("rollmill-run-")).map(|n| format!("cgroup {base}/{n}")));
        }
    }
    found
}

/// What is left behind of this harness's workers once they had `patience` to go: living descendants, and mounts and
/// cgroups that were not there `before` and that no living process of another run owns.
pub fn leftovers(before: &BTreeSet<String>, own: &BTreeSet<u32>, patience: Duration) -> Vec<String> {
    let started = Instant::now();
    loop {
        let mut left: Vec<String> =
            orphans(own).into_iter().map(|pid| format!("process {pid} {}", named(pid))).collect();
        let owned_elsewhere = |t: &&String| {
            let pid = t.rsplit("rollmill-run-").next().and_then(|name| name.split('-').next()?.parse::<u32>().ok());
            t.starts_with("cgroup") && pid.is_some_and(|p| std::path::Path::new(&format!("/proc/{p}")).exists())
        };
        left.extend(traces().difference(before).filter(|t| !owned_elsewhere(t)).cloned());
        if left.is_empty() || started.elapsed() > patience {
            return left;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn named(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default().replace('\0', " ")
}
