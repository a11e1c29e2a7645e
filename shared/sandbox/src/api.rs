//! What callers say and hear: the command to run, its limits, what happened, and the two traits every backend answers.
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::SandboxError;

/// What one run may use. Each limit holds for the whole tree of processes of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Wall-clock time from the start of the program; then the whole tree is killed from outside.
    pub wall: Duration,
    /// CPU time, user and system, of all processes together.
    pub cpu: Duration,
    /// Memory in bytes, files in the sandbox included where a cgroup does the counting.
    pub memory_bytes: u64,
    /// Processes and threads alive at once.
    pub pids: u32,
    /// Bytes that may be written under /work, /tmp and /dev/shm together, beside the files of the spec.
    pub disk_bytes: u64,
    /// Bytes kept of stdout and of stderr, each. More is dropped, and sixteen times as much ends the run.
    pub output_bytes: u64,
    /// Bytes of files brought out after the end ([`Spec::collect`]), all together. A file beyond it is refused.
    pub collect_bytes: u64,
}

impl Limits {
    /// Output beyond this multiple of `output_bytes` ends the run.
    pub const FLOOD: u64 = 16;
}

impl Default for Limits {
    /// 10 s of wall clock and CPU, 512 MiB of memory, 32 processes, 64 MiB of disk, 1 MiB of output, 16 MiB brought out.
    fn default() -> Self {
        Limits {
            wall: Duration::from_secs(10),
            cpu: Duration::from_secs(10),
            memory_bytes: 512 << 20,
            pids: 32,
            disk_bytes: 64 << 20,
            output_bytes: 1 << 20,
            collect_bytes: 16 << 20,
        }
    }
}

/// One run: what to execute, with which files, under which limits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spec {
    /// Program and arguments; a program without `/` is looked up in /usr/local/bin, /usr/bin and /bin.
    pub argv: Vec<String>,
    /// The whole environment. PATH, HOME and LANG get defaults where absent; nothing comes from this process.
    pub env: Vec<(String, String)>,
    /// Files by relative path under /work (`/` separated, no `..`, not absolute). `#!` scripts and ELF files are executable.
    pub files: Vec<(String, Vec<u8>)>,
    /// Files by relative path under /pristine, which nothing inside can change: tests, configuration, a trusted runner.
    pub pristine: Vec<(String, Vec<u8>)>,
    /// Relative paths under /work to bring out when all processes are dead: files, or folders with everything below. An empty
    /// string is all of /work.
    pub collect: Vec<String>,
    /// Limits of the run.
    pub limits: Limits,
}

impl Spec {
    /// Whether this can be run at all; every backend asks first. What is refused here is a bug of the caller.
    pub fn check(&self) -> Result<(), SandboxError> {
        crate::namespaces::check(self)
    }
}

/// How a run ended, as the kernel and the watcher outside saw it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// Exit code of the program, if it exited by itself; 127 if there was no such program, 126 if it could not be executed.
    pub exit: Option<i32>,
    /// Signal that ended the program; 9 also when a limit or `finish` did. A container daemon tells only these two: there a
    /// program that a signal ended otherwise has the `exit` that the daemon says, 128 and the signal.
    pub signal: Option<i32>,
    /// The kernel (or, without a cgroup, the watcher) killed a process of this run for memory.
    pub oom: bool,
    /// The wall-clock or the CPU limit ended the run; `cpu` tells which.
    pub timed_out: bool,
    /// Output beyond `output_bytes` was dropped.
    pub output_cut: bool,
    /// CPU time of the whole tree.
    pub cpu: Duration,
    /// Wall-clock time from the start of the program to its end.
    pub wall: Duration,
    /// Most memory in use at once, where it can be measured.
    pub peak_memory_bytes: Option<u64>,
    /// Timed out while really idle: the time not spent on a CPU was spent asleep, not waiting for a busy machine.
    pub idle: bool,
}

/// What a run left: facts, and output capped by `output_bytes`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Finished {
    /// How it ended.
    pub facts: Facts,
    /// Standard output; of a [`Session`], what nobody received.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
    /// What [`Spec::collect`] named.
    pub collected: Collected,
}

/// Files a run left, read after its end. A path that is not there is in neither list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Collected {
    /// Regular files with one name, by path under /work, in the order of paths.
    pub files: Vec<(String, Vec<u8>)>,
    /// What was left behind, and why: links, special files, what is over a cap.
    pub refused: Vec<Refusal>,
}

/// Something in /work that is not brought out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Its path under /work.
    pub path: String,
    /// Why.
    pub reason: String,
}

/// What [`Session::recv`] found on stdout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// At least one byte.
    Bytes(Vec<u8>),
    /// Nothing more will come: the program ended, was killed by a limit, or closed its stdout.
    Eof,
    /// Nothing came before the deadline.
    Deadline,
}

/// A running sandboxed program spoken to over pipes. Dropping it kills the whole tree. The wall-clock limit runs from the
/// start and is enforced even while nobody calls. What is received is not capped: whoever receives bounds the frames.
pub trait Session: Send {
    /// Writes to its stdin until all is written or the deadline passes. A program that does not take the bytes (it ended,
    /// or does not read) is no error here: the next `recv` says `Eof` or `Deadline`, and later sends are dropped.
    fn send(&mut self, bytes: &[u8], deadline: Instant) -> Result<(), SandboxError>;
    /// Waits for output until the deadline and returns whatever is there on stdout, at most `max` bytes (at least 1).
    fn recv(&mut self, max: usize, deadline: Instant) -> Result<Received, SandboxError>;
    /// Kills the whole tree, reaps it, collects stderr and facts. Nothing of the run is left after it.
    fn finish(self: Box<Self>) -> Result<Finished, SandboxError>;
}

/// A backend that runs untrusted programs. Calls block: use a thread or `spawn_blocking`.
pub trait Sandbox: Send + Sync {
    /// The isolation reached on this machine; recorded with every result.
    fn level(&self) -> &Isolation;
    /// Runs a program to its end, with an empty stdin.
    fn run(&self, spec: &Spec) -> Result<Finished, SandboxError>;
    /// Starts a program to talk to.
    fn start(&self, spec: &Spec) -> Result<Box<dyn Session>, SandboxError>;
}

/// How strongly a run is held, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// No namespaces, because this machine forbids them: Landlock confines files, seccomp forbids sockets, and the program
    /// sees paths of this machine. See [`NamespacesOptions::floor`](crate::NamespacesOptions::floor) for what it lacks.
    Landlock,
    /// Namespaces, private root and seccomp; memory and processes held by rlimits and a watcher.
    Watched,
    /// As above, and the kernel holds memory and processes of the tree in a cgroup.
    Limited,
    /// As above, and each concurrent run has a host uid of its own that owns nothing else.
    OwnUid,
}

impl std::fmt::Display for Level {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Level::Landlock => "landlock",
            Level::Watched => "watched",
            Level::Limited => "limited",
            Level::OwnUid => "own_uid",
        })
    }
}

/// The isolation a backend reached, as recorded with results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Isolation {
    /// Backend: `namespaces`, `landlock` where there are none, or `docker`.
    pub backend: String,
    /// Level reached.
    pub level: Level,
    /// What limits memory and processes: `v2`, `v1` or `none`.
    pub cgroup: String,
    /// SHA-256 of the root file system the programs see (without compiled .pyc), in hex; of a container, the image's id.
    pub rootfs_digest: String,
    /// Why the level is not higher, and what the root file system is made of.
    pub notes: Vec<String>,
}
