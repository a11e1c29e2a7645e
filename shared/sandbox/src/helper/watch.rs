//! Watches one sandbox from outside until it ends or a limit ends it, then says what happened.
//!
//! What must hold: every way out ends init (by its pidfd, or, without namespaces, by asking it) and reaps it, which the
//! kernel answers only when the whole pid namespace is gone, and init only when all below it is.
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::status::Status;
use super::tree::{self, Waiting};
use crate::cgroup::{Cgroup, CgroupPlan};
use crate::{Facts, Limits, sys};

/// How often CPU time and waiting are read, and, without a cgroup, memory.
const TICK: Duration = Duration::from_millis(50);
const MEMORY_TICK: Duration = Duration::from_millis(5);
/// How long a program that is already ending may take to end by itself.
const ENDING: Duration = Duration::from_secs(2);

/// How long all processes must have been found stopped, look after look, until nobody is thought able to continue them. One
/// that is only stopped for a moment, or has somebody left who sleeps and then continues it, is not ended.
const STOPPED: Duration = Duration::from_secs(2);

/// A started sandbox.
pub struct Watch<'a> {
    pub init: i32,
    /// Init, and the program where it is no child of init.
    pub roots: &'a [i32],
    pub pidfd: &'a OwnedFd,
    pub status: &'a File,
    pub caller: &'a UnixStream,
    pub cgroup: &'a Cgroup,
    pub plan: &'a CgroupPlan,
    pub limits: &'a Limits,
    /// The program's host pid, where it is known.
    pub program: Option<i32>,
    /// Ends init.
    pub end: &'a dyn Fn(),
    /// Whether what the run has written is too much, where no file system bounds it.
    pub disk_is_full: &'a dyn Fn() -> bool,
}

/// What the loop found.
#[derive(Default)]
struct Seen {
    exited: Option<i32>,
    killed: Option<Why>,
    cpu: Duration,
    peak: u64,
    waiting: Waiting,
    stopped_since: Option<Instant>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Why {
    Wall,
    Cpu,
    Memory,
    Disk,
    Processes,
    Stopped,
    Asked,
}

impl Watch<'_> {
    /// Until the end of the sandbox.
    pub fn to_end(&self) -> io::Result<Facts> {
        let started = Instant::now();
        let mut seen = Seen::default();
        let watched = self.until_end(started, &mut seen);
        if watched.is_err() {
            seen.killed = Some(Why::Asked);
        }
        (self.end)();
        let wall = started.elapsed();
        let (_, init_status, reaped) = sys::wait(self.init)?;
        watched?;
        if seen.exited.is_none() && seen.killed.is_none() {
            // init fell without a word: the kernel chose it when memory ran out
            seen.exited = Some(init_status);
        }
        seen.cpu = self.cgroup.cpu().unwrap_or(reaped).max(seen.cpu);
        Ok(self.facts(&seen, wall))
    }

    fn until_end(&self, started: Instant, seen: &mut Seen) -> io::Result<()> {
        let tick = if *self.plan == CgroupPlan::None { MEMORY_TICK } else { TICK };
        let end = started + self.limits.wall;
        let (mut next_sample, mut next_look) = (started + tick, started + TICK);
        loop {
            let mut ready = [
                sys::poll_fd(self.status.as_raw_fd(), libc::POLLIN),
                sys::poll_fd(self.pidfd.as_raw_fd(), libc::POLLIN),
                sys::poll_fd(self.caller.as_raw_fd(), libc::POLLIN),
            ];
            sys::poll(&mut ready, end.min(next_sample))?;
            if ready[0].revents != 0 || ready[1].revents != 0 {
                self.note_exit(seen);
                return Ok(());
            }
            let now = Instant::now();
            if now >= next_look || now >= end {
                self.look(seen);
                next_look = now + TICK;
            }
            if now >= next_sample || now >= end {
                self.look_at_memory(seen);
                next_sample = now + tick;
            }
            if ready[2].revents != 0 {
                seen.killed = Some(Why::Asked); // closed, or shut down: the caller is done, or dead
                if tree::program_is_ending(self.roots, self.program) && self.exit_comes_soon()? {
                    self.note_exit(seen);
                }
            } else if now >= end {
                seen.killed = Some(Why::Wall);
            }
            if seen.killed.is_some() {
                return Ok(());
            }
        }
    }

    fn note_exit(&self, seen: &mut Seen) {
        if let Ok(Status::Exited { code }) = Status::read(self.status) {
            seen.exited = Some(code);
        }
    }

    /// Waits for the status of a program that is ending; not for ever, since its threads may take their time.
    fn exit_comes_soon(&self) -> io::Result<bool> {
        let mut ready = [sys::poll_fd(self.status.as_raw_fd(), libc::POLLIN)];
        Ok(sys::poll(&mut ready, Instant::now() + ENDING)? > 0)
    }

    fn look(&self, seen: &mut Seen) {
        seen.cpu = self.cgroup.cpu().unwrap_or_else(|| tree::cpu(self.roots)).max(seen.cpu);
        seen.waiting.sample(self.roots);
        if seen.cpu >= self.limits.cpu {
            seen.killed = Some(Why::Cpu);
        }
        let since = seen.stopped_since.unwrap_or_else(Instant::now);
        seen.stopped_since = self.all_are_stopped().then_some(since);
        if seen.stopped_since.is_some() && since.elapsed() >= STOPPED {
            seen.killed = Some(Why::Stopped);
        }
        if (self.disk_is_full)() {
            seen.killed = Some(Why::Disk);
        }
        // the rlimit is exact only where the run's user has no other process
        if *self.plan == CgroupPlan::None && tree::tasks(self.roots) > u64::from(self.limits.pids) + 1 {
            seen.killed = Some(Why::Processes);
        }
    }

    /// Whether a signal has stopped every process but init, which continues nobody.
    fn all_are_stopped(&self) -> bool {
        let others = tree::pids(self.roots).into_iter().filter(|pid| *pid != self.init);
        let mut states = others.filter_map(state).filter(|state| !matches!(state, 'Z' | 'X')).peekable();
        states.peek().is_some() && states.all(|state| state == 'T')
    }

    fn look_at_memory(&self, seen: &mut Seen) {
        if *self.plan != CgroupPlan::None {
            return; // the kernel does
        }
        let memory = tree::memory(self.roots, self.limits.memory_bytes);
        seen.peak = seen.peak.max(memory);
        if memory > self.limits.memory_bytes {
            seen.killed = Some(Why::Memory);
        }
    }

    fn facts(&self, seen: &Seen, wall: Duration) -> Facts {
        let (exit, signal) = match seen.exited {
            Some(status) if libc::WIFEXITED(status) => (Some(libc::WEXITSTATUS(status)), None),
            Some(status) => (None, Some(libc::WTERMSIG(status))),
            None => (None, Some(libc::SIGKILL)),
        };
        let killed = seen.killed.filter(|_| seen.exited.is_none());
        let cpu_signal = signal.is_some() && seen.cpu >= self.limits.cpu;
        let timed_out = matches!(killed, Some(Why::Wall | Why::Cpu | Why::Stopped)) || cpu_signal;
        Facts {
            exit,
            signal,
            oom: killed == Some(Why::Memory) || self.cgroup.oom_kills() > 0,
            timed_out,
            output_cut: false, // the caller moves the output and knows
            cpu: seen.cpu,
            wall,
            peak_memory_bytes: self.cgroup.peak().or_else(|| (seen.peak > 0).then_some(seen.peak)),
            idle: killed == Some(Why::Stopped)
                || killed == Some(Why::Wall) && is_idle(wall, seen.cpu, seen.waiting.total()),
        }
    }
}

/// The letter of proc(5): `T` is stopped by a signal, `Z` and `X` are dead.
fn state(pid: i32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// Whether a run that took `wall` and used `cpu` was asleep for the rest: at most a tenth of the wall-clock time was spent
/// runnable without a CPU, and at least a tenth was not spent on one.
pub fn is_idle(wall: Duration, cpu: Duration, waiting: Duration) -> bool {
    waiting <= wall / 10 && cpu < wall * 9 / 10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_means_asleep_and_neither_busy_nor_starved() {
        let seconds = Duration::from_secs;
        assert!(is_idle(seconds(10), seconds(0), seconds(0)));
        assert!(is_idle(seconds(10), seconds(3), seconds(1)));
        assert!(!is_idle(seconds(10), seconds(10), seconds(0)), "busy");
        assert!(!is_idle(seconds(10), seconds(3), seconds(6)), "starved");
    }
}
