//! What a container used: from its cgroup where this process sees it, otherwise from the daemon, which tells less.
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bollard::query_parameters::StatsOptionsBuilder;
use futures::StreamExt;

use crate::container::Container;

/// Where to read.
pub enum Meter {
    /// The container's cgroup.
    Files(Files),
    /// The daemon's statistics.
    Daemon,
}

/// The files of a cgroup.
pub struct Files {
    cpu: PathBuf,
    oom: PathBuf,
    peak: PathBuf,
    threads: PathBuf,
}

/// At the end of a run.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub cpu: Option<Duration>,
    pub peak_memory_bytes: Option<u64>,
    pub oom: bool,
}

impl Meter {
    /// A process with the init's number that is in a group of the container's name: then the daemon's machine is ours.
    pub fn of(container: &Container) -> Meter {
        let groups = fs::read_to_string(format!("/proc/{}/cgroup", container.init)).unwrap_or_default();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        Files::find(&groups, &mounts, &container.id).filter(|f| f.cpu.exists()).map_or(Meter::Daemon, Meter::Files)
    }

    /// CPU time so far, the set-up's included.
    pub async fn cpu(&self, container: &Container) -> Option<Duration> {
        match self {
            Meter::Files(files) => files.cpu(),
            Meter::Daemon => daemon_usage(container).await.cpu,
        }
    }

    /// All there is to know. To be asked while the container is there.
    pub async fn usage(&self, container: &Container) -> Usage {
        let (mut usage, seen) = match self {
            Meter::Files(files) => (files.usage(), files.oom.exists()),
            Meter::Daemon => (daemon_usage(container).await, false),
        };
        if !seen {
            let about = container.client.inspect_container(&container.id, None).await;
            usage.oom |= about.is_ok_and(|a| a.state.and_then(|s| s.oom_killed).unwrap_or(false));
        }
        usage
    }

    /// Remembers how long threads stood runnable without a CPU; false where that cannot be seen.
    pub fn sample_waiting(&self, by_thread: &mut HashMap<i32, u64>) -> bool {
        let Meter::Files(files) = self else { return false };
        let threads = fs::read_to_string(&files.threads).unwrap_or_default();
        for thread in threads.lines().filter_map(|t| t.parse::<i32>().ok()) {
            let text = fs::read_to_string(format!("/proc/{thread}/schedstat")).unwrap_or_default();
            if let Some(delay) = text.split(' ').nth(1).and_then(|d| d.parse().ok()) {
                by_thread.insert(thread, delay);
            }
        }
        true
    }
}

async fn daemon_usage(container: &Container) -> Usage {
    let once = StatsOptionsBuilder::new().stream(false).one_shot(true).build();
    let mut answers = Box::pin(container.client.stats(&container.id, Some(once)));
    let Some(Ok(stats)) = answers.next().await else { return Usage::default() };
    let cpu = stats.cpu_stats.and_then(|c| c.cpu_usage).and_then(|c| c.total_usage);
    let peak_memory_bytes = stats.memory_stats.and_then(|m| m.max_usage).filter(|peak| *peak > 0);
    Usage { cpu: cpu.map(Duration::from_nanos), peak_memory_bytes, oom: false }
}

impl Files {
    fn find(groups: &str, mounts: &str, id: &str) -> Option<Files> {
        let folder = |controller: Option<&str>| {
            let group = groups.lines().find_map(|line| {
                let (_, rest) = line.split_once(':')?;
                let (names, path) = rest.split_once(':')?;
                let hit = controller.map_or(names.is_empty(), |c| names.split(',').any(|n| n == c));
                (hit && path.contains(id)).then_some(path)
            })?;
            mount_of(mounts, controller, group)
        };
        match (folder(Some("cpuacct")), folder(Some("memory"))) {
            (Some(cpu), Some(memory)) => Some(Files {
                cpu: cpu.join("cpuacct.usage"),
                oom: memory.join("memory.oom_control"),
                peak: memory.join("memory.max_usage_in_bytes"),
                threads: cpu.join("tasks"),
            }),
            _ => folder(None).map(|all| Files {
                cpu: all.join("cpu.stat"),
                oom: all.join("memory.events"),
                peak: all.join("memory.peak"),
                threads: all.join("cgroup.threads"),
            }),
        }
    }

    fn cpu(&self) -> Option<Duration> {
        let text = fs::read_to_string(&self.cpu).ok()?;
        match text.trim().parse() {
            Ok(nanoseconds) => Some(Duration::from_nanos(nanoseconds)),
            Err(_) => number_after(&text, "usage_usec").map(Duration::from_micros),
        }
    }

    fn usage(&self) -> Usage {
        let read = |path: &PathBuf| fs::read_to_string(path).unwrap_or_default();
        Usage {
            cpu: self.cpu(),
            peak_memory_bytes: read(&self.peak).trim().parse().ok(),
            oom: number_after(&read(&self.oom), "oom_kill").is_some_and(|n| n > 0),
        }
    }
}

fn number_after(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// The folder of `group` in the hierarchy of `controller`, or in the unified one.
fn mount_of(mounts: &str, controller: Option<&str>, group: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let (left, right): (Vec<_>, Vec<_>) = (left.split(' ').collect(), right.split(' ').collect());
        let hit = match controller {
            Some(c) => right.first() == Some(&"cgroup") && right.get(2)?.split(',').any(|o| o == c),
            None => right.first() == Some(&"cgroup2"),
        };
        let inner = group.strip_prefix(left.get(3)?.trim_end_matches('/'))?.trim_start_matches('/');
        hit.then(|| Path::new(left[4]).join(inner))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = "25 20 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct
26 20 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
27 20 0:40 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw";

    #[test]
    fn files_are_found_in_separate_and_in_unified_hierarchies() {
        let groups = "4:memory:/docker/abc\n2:cpu,cpuacct:/docker/abc\n0::/docker/abc\n";
        let found = Files::find(groups, V1, "abc").unwrap();
        assert_eq!(found.cpu, Path::new("/sys/fs/cgroup/cpu/docker/abc/cpuacct.usage"));
        assert_eq!(found.oom, Path::new("/sys/fs/cgroup/memory/docker/abc/memory.oom_control"));
        let v2 = "27 20 0:40 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw";
        let found = Files::find("0::/system.slice/docker-abc.scope\n", v2, "abc").unwrap();
        assert_eq!(found.cpu, Path::new("/sys/fs/cgroup/system.slice/docker-abc.scope/cpu.stat"));
        assert!(Files::find("0::/init.scope\n", v2, "abc").is_none(), "another machine's process");
    }

    #[test]
    fn numbers_are_read_by_their_whole_name() {
        assert_eq!(number_after("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", "oom_kill"), Some(3));
        assert_eq!(number_after("oom 1\noom_kill 0\n", "oom_kill"), Some(0));
    }
}
