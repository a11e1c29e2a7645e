//! The processes of a sandbox seen from outside: CPU, memory, and time spent waiting for a CPU.
//!
//! In: host pids of the sandbox's roots: its init, and the program where it was forked from a warm interpreter. Everything
//! living in the pid namespace descends from them.
use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use crate::sys;

/// The host pids of the roots and all their descendants.
pub fn pids(roots: &[i32]) -> Vec<i32> {
    let mut all = roots.to_vec();
    let mut next = 0;
    while let Some(pid) = all.get(next).copied() {
        next += 1;
        for thread in threads(pid) {
            let children = fs::read_to_string(format!("/proc/{pid}/task/{thread}/children")).unwrap_or_default();
            all.extend(children.split_whitespace().filter_map(|c| c.parse::<i32>().ok()));
        }
    }
    all
}

fn threads(pid: i32) -> Vec<i32> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    entries.filter_map(|e| e.file_name().to_str()?.parse().ok()).collect()
}

/// CPU time of the living and of those they reaped, from `/proc/pid/stat` (utime, stime, cutime, cstime).
pub fn cpu(roots: &[i32]) -> Duration {
    let ticks: u64 = pids(roots).into_iter().filter_map(ticks_of).sum();
    Duration::from_millis(ticks * 1000 / sys::clock_ticks())
}

fn ticks_of(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat_ticks(&stat)
}

fn stat_ticks(stat: &str) -> Option<u64> {
    let after_name = stat.rsplit_once(") ")?.1; // a name may contain anything, parentheses too
    // fields 14 to 17 of proc(5), the state being the third
    Some(after_name.split(' ').skip(11).take(4).filter_map(|f| f.parse::<u64>().ok()).sum())
}

/// Memory of the tree: first resident pages, which count shared ones once a process; only when these exceed `limit`, the
/// proportional share, which is dear to compute.
pub fn memory(roots: &[i32], limit: u64) -> u64 {
    let pids = pids(roots);
    let resident: u64 = pids.iter().filter_map(|pid| resident_bytes(*pid)).sum();
    if resident <= limit {
        return resident;
    }
    pids.iter().filter_map(|pid| proportional(*pid).or_else(|| resident_bytes(*pid))).sum()
}

fn resident_bytes(pid: i32) -> Option<u64> {
    let statm = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    Some(statm.split(' ').nth(1)?.parse::<u64>().ok()? * sys::page_size())
}

fn proportional(pid: i32) -> Option<u64> {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = rollup.lines().find_map(|l| l.strip_prefix("Pss:"))?;
    Some(line.trim().trim_end_matches(" kB").trim().parse::<u64>().ok()? * 1024)
}

/// Whether the program, pid 2 of the sandbox where its host pid is not known, is on its way out or gone: then its own end is
/// what happened to it, though its pipes closed a moment before its exit status is there.
pub fn program_is_ending(roots: &[i32], program: Option<i32>) -> bool {
    /// PF_EXITING of the kernel, in field 9 of `/proc/pid/stat`.
    const EXITING: u64 = 4;
    let program = program.or_else(|| pids(roots).into_iter().skip(1).find(|pid| inner_pid(*pid) == Some(2)));
    let Some(stat) = program.and_then(|pid| fs::read_to_string(format!("/proc/{pid}/stat")).ok()) else { return true };
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    fields.split(' ').nth(6).and_then(|f| f.parse::<u64>().ok()).is_none_or(|flags| flags & EXITING != 0)
}

/// A process's number in its own pid namespace.
fn inner_pid(pid: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("NSpid:"))?;
    line.split_whitespace().last()?.parse().ok()
}

/// Processes and threads of the tree.
pub fn tasks(roots: &[i32]) -> u64 {
    pids(roots).into_iter().map(|pid| threads(pid).len() as u64).sum()
}

/// Tasks alive that belong to a user, which RLIMIT_NPROC counts.
pub fn tasks_of(uid: u32) -> u64 {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok());
    let owned = |pid: &i32| fs::metadata(format!("/proc/{pid}")).is_ok_and(|about| about.uid() == uid);
    pids.filter(owned).map(|pid| threads(pid).len() as u64).sum()
}

/// Time threads stood runnable without a CPU, remembered for those that ended since.
#[derive(Default)]
pub struct Waiting {
    by_thread: HashMap<i32, u64>,
}

impl Waiting {
    pub fn sample(&mut self, roots: &[i32]) {
        for pid in pids(roots) {
            for thread in threads(pid) {
                let path = format!("/proc/{pid}/task/{thread}/schedstat");
                let text = fs::read_to_string(path).unwrap_or_default();
                if let Some(delay) = text.split(' ').nth(1).and_then(|d| d.parse().ok()) {
                    self.by_thread.insert(thread, delay);
                }
            }
        }
    }

    pub fn total(&self) -> Duration {
        Duration::from_nanos(self.by_thread.values().sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_found_behind_a_hostile_name() {
        let stat = "7 (a) R 1 2) S 1 7 7 0 -1 4194560 100 0 0 0 3 4 5 6 20 0 1 0";
        assert_eq!(stat_ticks(stat), Some(18));
    }

    #[test]
    fn this_process_has_memory_and_cpu() {
        let pid = std::process::id() as i32;
        assert!(pids(&[pid]).contains(&pid));
        assert!(memory(&[pid], u64::MAX) > 0);
    }
}
