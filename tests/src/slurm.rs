//! A Slurm cluster of two nodes on this machine, for the time of a test: its own munge, controller and node daemons, in a
//! folder of its own, on loopback.
//!
//! What must hold: nothing of it outlives the test; daemons are started and killed by pid, never by name.

use crate::{said, skip};
use std::fs;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Limits of a test's patience, not of what it tests.
const PATIENCE: Duration = Duration::from_secs(60);

/// The cluster.
pub struct Cluster {
    folder: tempfile::TempDir,
    ports: [u16; 3],
    munged: Child,
    controller: Child,
    nodes: [Child; 2],
}

/// One line of the accounting file.
#[derive(Debug)]
pub struct Ended {
    /// Name of the job.
    pub name: String,
    /// `COMPLETED`, `FAILED`, `CANCELLED`, ...
    pub state: String,
    /// When it began, in seconds of some day.
    pub began: f64,
    /// When it ended.
    pub ended: f64,
}

impl Cluster {
    /// Starts it; none where Slurm is not installed or this is not root.
    pub fn start() -> Option<Cluster> {
        for program in ["slurmctld", "slurmd", "munged"] {
            if !Path::new("/usr/sbin").join(program).is_file() {
                return skip("slurm", &format!("/usr/sbin/{program} is not installed (`make test` sets it up)"));
            }
        }
        if !fs::read_to_string("/proc/self/status").is_ok_and(|s| s.contains("Uid:\t0\t0")) {
            return skip("slurm", "its daemons need root");
        }
        let folder = tempfile::tempdir().expect("a folder");
        let ports = free_ports();
        fs::write(folder.path().join("slurm.conf"), configuration(folder.path(), ports)).expect("slurm.conf");
        let munged = munge(folder.path());
        let controller = daemon(folder.path(), "slurmctld", &["-D", "-c"]);
        let nodes = ["n0", "n1"].map(|node| daemon(folder.path(), "slurmd", &["-D", "-N", node]));
        let cluster = Cluster { folder, ports, munged, controller, nodes };
        cluster.wait_for_nodes(2);
        Some(cluster)
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A command that talks to it.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env("SLURM_CONF", self.conf());
        command
    }

    fn conf(&self) -> PathBuf {
        self.folder().join("slurm.conf")
    }

    /// What a command of Slurm says.
    pub fn ask(&self, program: &str, arguments: &[&str]) -> String {
        let out = self.command(program).args(arguments).output().expect("it starts");
        said(&out)
    }

    /// Jobs that are not over: id, name and state.
    pub fn queue(&self) -> Vec<(String, String, String)> {
        let text = self.ask("squeue", &["--noheader", "--array", "--format", "%i|%j|%T"]);
        let mut jobs = Vec::new();
        for line in text.lines() {
            if let [id, name, state] = line.split('|').collect::<Vec<_>>()[..] {
                jobs.push((id.to_string(), name.to_string(), state.to_string()));
            }
        }
        jobs
    }

    /// How every job ended, in order.
    pub fn ended(&self) -> Vec<Ended> {
        let text = fs::read_to_string(self.folder().join("jobcomp")).unwrap_or_default();
        let field = |line: &str, name: &str| {
            let found = line.split_whitespace().find_map(|word| word.strip_prefix(&format!("{name}=")));
            found.unwrap_or_default().to_string()
        };
        let ended = |line: &str| {
            let (began, ended) = (seconds(&field(line, "StartTime")), seconds(&field(line, "EndTime")));
            let ended = if ended < began { ended + 86_400.0 } else { ended };
            Ended { name: field(line, "Name"), state: field(line, "JobState"), began, ended }
        };
        text.lines().map(ended).collect()
    }

    /// Waits until `nodes` take work.
    pub fn wait_for_nodes(&self, nodes: usize) {
        self.wait("the nodes", PATIENCE, || {
            let states = self.ask("sinfo", &["--noheader", "--Node", "--format", "%T"]);
            states.lines().filter(|s| ["idle", "mixed", "allocated"].contains(s)).count() == nodes
        });
    }

    /// Waits for something; what the daemons last said is shown when it does not come.
    pub fn wait(&self, what: &str, patience: Duration, done: impl Fn() -> bool) {
        let end = Instant::now() + patience;
        while !done() {
            if Instant::now() > end {
                panic!("{what} did not come\nqueue: {:?}\n{}", self.queue(), self.said());
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// The end of every log.
    fn said(&self) -> String {
        let logs = fs::read_dir(self.folder()).into_iter().flatten().flatten();
        let logs = logs.filter(|e| e.path().extension().is_some_and(|x| x == "log"));
        logs.map(|e| {
            let text = fs::read_to_string(e.path()).unwrap_or_default();
            let from = text.len().saturating_sub(1500);
            format!("{}:\n{}\n", e.path().display(), String::from_utf8_lossy(&text.as_bytes()[from..]))
        })
        .collect()
    }

    /// Kills the controller with -9, once it has saved what it knows now, and starts another, which reads the state the first
    /// one left. What a controller has not saved yet no other can know: such jobs are submitted again.
    pub fn restart_controller(&mut self) {
        let saved = || fs::metadata(self.folder().join("state/job_state")).and_then(|m| m.modified()).ok();
        let before = saved();
        self.wait("the controller's state", PATIENCE, || saved() != before);
        kill(&mut self.controller);
        // Without -c: it keeps the jobs.
        self.controller = daemon(self.folder.path(), "slurmctld", &["-D"]);
    }

    /// Kills a node's daemon with -9. What it had started runs on.
    pub fn kill_node(&mut self, node: usize) {
        kill(&mut self.nodes[node]);
    }

    /// Starts the daemon of a node again.
    pub fn start_node(&mut self, node: usize) {
        self.nodes[node] = daemon(self.folder.path(), "slurmd", &["-D", "-N", &format!("n{node}")]);
    }

    /// Its ports, for people who look at a test that failed.
    pub fn ports(&self) -> [u16; 3] {
        self.ports
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Jobs first: a daemon that is killed leaves what it started.
        self.ask("scancel", &["--user", "root", "--signal", "KILL", "--full"]);
        self.ask("scancel", &["--user", "root"]);
        let end = Instant::now() + Duration::from_secs(20);
        while !self.queue().is_empty() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(200));
        }
        for child in self.nodes.iter_mut().chain([&mut self.controller, &mut self.munged]) {
            kill(child);
        }
        for pid in processes_of(self.folder.path()) {
            let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
        }
    }
}

/// Processes that were started for a job of this cluster: they have its configuration in their environment or its folder in
/// their command line.
fn processes_of(folder: &Path) -> Vec<u32> {
    let named = folder.display().to_string();
    let has = |pid: u32, file: &str| {
        let text = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        text.windows(named.len()).any(|window| window == named.as_bytes())
    };
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|&pid| pid != std::process::id() && (has(pid, "cmdline") || has(pid, "environ"))).collect()
}

/// Seconds of the day of `2026-11-30T14:24:31`.
fn seconds(time: &str) -> f64 {
    let clock = time.split('T').nth(1).unwrap_or_default().split(':').map(|part| part.parse().unwrap_or(0.0));
    clock.fold(0.0, |sum, part: f64| sum * 60.0 + part)
}

fn kill(child: &mut Child) {
    let _ = child.kill(); // ended already
    let _ = child.wait();
}

fn munge(folder: &Path) -> Child {
    let key: Vec<u8> = (0..1024).map(|i| (i * 7 % 251) as u8).collect(); // of a cluster that trusts nobody else
    let path = folder.join("munge.key");
    fs::write(&path, key).expect("the key");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    fs::set_permissions(&path, mode).expect("its mode");
    let option = |name: &str, file: &str| format!("--{name}={}", folder.join(file).display());
    let mut command = Command::new("/usr/sbin/munged");
    command.args(["--foreground", "--force", "--num-threads=2"]);
    command.args([option("key-file", "munge.key"), option("socket", "munge.socket"), option("pid-file", "munge.pid")]);
    command.args([option("log-file", "munge.log"), option("seed-file", "munge.seed")]);
    let child = apart(&mut command).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("munged starts");
    let end = Instant::now() + PATIENCE;
    while !folder.join("munge.socket").exists() {
        assert!(Instant::now() < end, "munged does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
    child
}

fn daemon(folder: &Path, program: &str, arguments: &[&str]) -> Child {
    let name =
        arguments.last().filter(|word| word.starts_with('n')).map_or(program.into(), |n| format!("{program}-{n}"));
    let log = fs::File::options().create(true).append(true).open(folder.join(format!("{name}.log"))).expect("a log");
    let mut command = Command::new(Path::new("/usr/sbin").join(program));
    command.args(arguments).arg("-f").arg(folder.join("slurm.conf")).stdin(Stdio::null());
    command.stdout(log.try_clone().expect("a log")).stderr(log);
    apart(&mut command).spawn().unwrap_or_else(|e| panic!("{program}: {e}"))
}

/// A terminal's signals are for the test.
fn apart(command: &mut Command) -> &mut Command {
    command.process_group(0)
}

fn free_ports() -> [u16; 3] {
    let listeners = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port"));
    listeners.map(|listener| listener.local_addr().expect("an address").port())
}

fn configuration(folder: &Path, [controller, first, second]: [u16; 3]) -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
    let (host, at) = (host.trim(), folder.display());
    format!(
        "ClusterName=rollmill-test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=cred_expire=5,socket={at}/munge.socket
StateSaveLocation={at}/state
SlurmdSpoolDir={at}/spool-%n
SlurmctldPidFile={at}/slurmctld.pid
SlurmdPidFile={at}/slurmd-%n.pid
SlurmctldPort={controller}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SlurmdTimeout=10
SlurmctldTimeout=10
KillWait=5
MinJobAge=600
SchedulerParameters=sched_interval=1,bf_interval=1
InactiveLimit=0
JobRequeue=1
RequeueExit=75
MaxArraySize=1001
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/filetxt
JobCompLoc={at}/jobcomp
SlurmdParameters=config_overrides
NodeName=n0 NodeHostname={host} NodeAddr=127.0.0.1 Port={first} CPUs=4 RealMemory=8000 State=UNKNOWN
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={second} CPUs=4 RealMemory=8000 State=UNKNOWN
PartitionName=main Nodes=n0,n1 Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
"
    )
}
