//! Where the kernel can limit a tree of processes on this machine, and one run's group there.
//!
//! In: /proc/self/cgroup and mountinfo. Out: a [`CgroupPlan`] (by the caller, once) and a [`Cgroup`] (by the helper, one a
//! run, removed after it). Groups are made below this process's own group, so what contains it also contains them.
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::Limits;

/// The group this process moves itself into where a delegated v2 group allows no processes beside child groups.
const OWN_LEAF: &str = "rollmill-worker";
const PREFIX: &str = "rollmill-run-";
const PROBE: &str = "rollmill-probe-";

/// Folders below which a group for a run can be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum CgroupPlan {
    /// Rlimits and the watcher only.
    None,
    /// One hierarchy a controller.
    V1 { memory: PathBuf, pids: PathBuf, cpuacct: Option<PathBuf> },
    /// The unified hierarchy, with memory and pids enabled for children of `base`.
    V2 { base: PathBuf },
}

impl CgroupPlan {
    /// The best this process may use; where none, why.
    pub fn detect() -> Result<CgroupPlan, String> {
        let groups = fs::read_to_string("/proc/self/cgroup").map_err(|e| format!("/proc/self/cgroup: {e}"))?;
        let mounts = fs::read_to_string("/proc/self/mountinfo").map_err(|e| format!("/proc/self/mountinfo: {e}"))?;
        Self::best_of(&groups, &mounts, std::env::var_os("ROLLMILL_CGROUP").map(PathBuf::from))
    }

    /// The same for these contents of /proc, and the delegated group if one was named.
    fn best_of(groups: &str, mounts: &str, named: Option<PathBuf>) -> Result<CgroupPlan, String> {
        let delegated = named.or_else(|| own_folder(groups, mounts, None));
        let v2 = delegated.ok_or_else(|| "no v2 mount".to_string()).and_then(|base| prepare_v2(&base));
        match v2 {
            Ok(base) => Ok(CgroupPlan::V2 { base }),
            Err(no_v2) => prepare_v1(groups, mounts).map_err(|no_v1| format!("cgroup v2: {no_v2}; v1: {no_v1}")),
        }
    }

    /// `v2`, `v1` or `none`, as recorded.
    pub fn name(&self) -> &'static str {
        match self {
            CgroupPlan::None => "none",
            CgroupPlan::V1 { .. } => "v1",
            CgroupPlan::V2 { .. } => "v2",
        }
    }

    fn bases(&self) -> Vec<&Path> {
        match self {
            CgroupPlan::None => vec![],
            CgroupPlan::V1 { memory, pids, cpuacct } => {
                [Some(memory), Some(pids), cpuacct.as_ref()].into_iter().flatten().map(PathBuf::as_path).collect()
            }
            CgroupPlan::V2 { base } => vec![base],
        }
    }

    /// Removes groups of helpers and probes that are gone (killed before they could clean up).
    pub fn sweep(&self) {
        for base in self.bases() {
            for entry in fs::read_dir(base).into_iter().flatten().flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                let rest = name.strip_prefix(PREFIX).or_else(|| name.strip_prefix(PROBE));
                let Some(pid) = rest.and_then(|rest| rest.split('-').next()) else { continue };
                if !Path::new("/proc").join(pid).exists() {
                    let _ = fs::remove_dir(entry.path()); // busy or already gone: not ours to remove
                }
            }
        }
    }
}

/// This process's folder in the hierarchy of `controller` (v1), or in the unified one.
fn own_folder(groups: &str, mounts: &str, controller: Option<&str>) -> Option<PathBuf> {
    let own = groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (id, names, path) = (parts.next()?, parts.next()?, parts.next()?);
        let hit = match controller {
            Some(c) => names.split(',').any(|n| n == c),
            None => id == "0" && names.is_empty(),
        };
        hit.then_some(path)
    })?;
    mounts.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let (left, right): (Vec<_>, Vec<_>) = (left.split(' ').collect(), right.split(' ').collect());
        let hit = match controller {
            Some(c) => right.first() == Some(&"cgroup") && right.get(2)?.split(',').any(|o| o == c),
            None => right.first() == Some(&"cgroup2"),
        };
        let (root, mount_point) = (*left.get(3)?, *left.get(4)?);
        let inner = own.strip_prefix(root.trim_end_matches('/')).unwrap_or("").trim_start_matches('/');
        hit.then(|| Path::new(mount_point).join(inner))
    })
}

fn prepare_v1(groups: &str, mounts: &str) -> Result<CgroupPlan, String> {
    let writable = |controller: &str| {
        let folder = own_folder(groups, mounts, Some(controller)).ok_or(format!("{controller} is not mounted"))?;
        probe(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        Ok::<_, String>(folder)
    };
    Ok(CgroupPlan::V1 { memory: writable("memory")?, pids: writable("pids")?, cpuacct: writable("cpuacct").ok() })
}

/// Enables memory and pids for children of `base`, moving this process into a leaf if it is alone in the way.
fn prepare_v2(base: &Path) -> Result<PathBuf, String> {
    let base = if base.ends_with(OWN_LEAF) { base.parent().unwrap_or(base) } else { base };
    let text =
        |file: &str| fs::read_to_string(base.join(file)).map_err(|e| format!("{}: {e}", base.join(file).display()));
    let has_both = |names: &str| ["memory", "pids"].iter().all(|c| names.split_whitespace().any(|n| n == *c));
    if !has_both(&text("cgroup.controllers")?) {
        return Err("memory and pids are not delegated".into());
    }
    if !has_both(&text("cgroup.subtree_control")?) {
        let enable = || fs::write(base.join("cgroup.subtree_control"), "+memory +pids");
        if enable().is_err() {
            let own = std::process::id().to_string();
            if text("cgroup.procs")?.split_whitespace().any(|pid| pid != own) {
                return Err("other processes are in this group".into());
            }
            let leaf = base.join(OWN_LEAF);
            let moved = fs::create_dir_all(&leaf).and_then(|()| fs::write(leaf.join("cgroup.procs"), own));
            moved.and_then(|()| enable()).map_err(|e| format!("{}: {e}", base.display()))?;
        }
    }
    probe(base).map_err(|e| format!("{}: {e}", base.display()))?;
    Ok(base.to_path_buf())
}

fn probe(folder: &Path) -> io::Result<()> {
    let name = folder.join(format!("{PROBE}{}-{:?}", std::process::id(), std::thread::current().id()));
    fs::create_dir(&name)?;
    fs::remove_dir(&name)
}

/// The group of one run.
pub struct Cgroup {
    plan: CgroupPlan,
    folders: Vec<PathBuf>,
}

impl Cgroup {
    /// Makes the group of a helper's run: `pid` and `run` name it, and it is the helper's as long as that lives.
    pub fn create(plan: &CgroupPlan, pid: u32, run: u32) -> io::Result<Cgroup> {
        let mut group = Cgroup { plan: plan.clone(), folders: Vec::new() };
        for base in plan.bases() {
            let folder = base.join(format!("{PREFIX}{pid}-{run}"));
            if !group.folders.contains(&folder) {
                let _ = fs::remove_dir(&folder); // left by a killed helper that had our pid, or busy for long
                fs::create_dir(&folder).map_err(|e| named(e, &folder))?;
                group.folders.push(folder);
            }
        }
        Ok(group)
    }

    fn folder(&self, index: usize) -> &Path {
        &self.folders[index.min(self.folders.len() - 1)]
    }

    /// Sets its limits.
    pub fn limit(&self, limits: &Limits) -> io::Result<()> {
        let set = |index: usize, file: &str, value: u64| {
            let path = self.folder(index).join(file);
            fs::write(&path, value.to_string()).map_err(|e| named(e, &path))
        };
        let pids = u64::from(limits.pids) + 1; // the sandbox's init
        match self.plan {
            CgroupPlan::None => Ok(()),
            CgroupPlan::V1 { .. } => {
                set(0, "memory.limit_in_bytes", limits.memory_bytes)?;
                let _ = set(0, "memory.memsw.limit_in_bytes", limits.memory_bytes); // absent without swap accounting
                set(1, "pids.max", pids)
            }
            CgroupPlan::V2 { .. } => {
                set(0, "memory.max", limits.memory_bytes)?;
                let _ = set(0, "memory.swap.max", 0); // absent without swap accounting
                let _ = set(0, "memory.oom.group", 0);
                set(0, "pids.max", pids)
            }
        }
    }

    /// Moves a process, and what it will start, into the group.
    pub fn attach(&self, pid: i32) -> io::Result<()> {
        self.folders.iter().try_for_each(|folder| {
            let path = folder.join("cgroup.procs");
            fs::write(&path, pid.to_string()).map_err(|e| named(e, &path))
        })
    }

    /// CPU time the tree has used, where the kernel counts it.
    pub fn cpu(&self) -> Option<Duration> {
        match &self.plan {
            CgroupPlan::V1 { cpuacct: Some(_), .. } => {
                Some(Duration::from_nanos(number(&self.folder(2).join("cpuacct.usage"))?))
            }
            CgroupPlan::V2 { .. } => {
                Some(Duration::from_micros(field(&self.folder(0).join("cpu.stat"), "usage_usec")?))
            }
            _ => None,
        }
    }

    /// How often the kernel killed for memory in this group.
    pub fn oom_kills(&self) -> u64 {
        match &self.plan {
            CgroupPlan::None => 0,
            CgroupPlan::V1 { .. } => field(&self.folder(0).join("memory.oom_control"), "oom_kill").unwrap_or(0),
            CgroupPlan::V2 { .. } => field(&self.folder(0).join("memory.events"), "oom_kill").unwrap_or(0),
        }
    }

    /// Most memory the group held.
    pub fn peak(&self) -> Option<u64> {
        match &self.plan {
            CgroupPlan::None => None,
            CgroupPlan::V1 { .. } => number(&self.folder(0).join("memory.max_usage_in_bytes")),
            CgroupPlan::V2 { .. } => number(&self.folder(0).join("memory.peak")),
        }
    }

    /// Removes the group; its processes are dead and reaped, which the kernel may take a moment to notice.
    pub fn remove(&self) {
        let until = Instant::now() + Duration::from_secs(2);
        for folder in &self.folders {
            while let Err(e) = fs::remove_dir(folder) {
                if e.raw_os_error() != Some(libc::EBUSY) || Instant::now() > until {
                    break; // the next sweep takes it
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

fn named(e: io::Error, path: &Path) -> io::Error {
    // Keeps the number, which callers act on; the path goes to the message of the caller.
    e.raw_os_error().map_or_else(|| io::Error::other(format!("{}: {e}", path.display())), io::Error::from_raw_os_error)
}

fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn field(path: &Path, name: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID_GROUPS: &str = "8:pids:/\n4:memory:/outer/inner\n3:cpu,cpuacct:/x\n0::/\n";
    const HYBRID_MOUNTS: &str = "\
        30 25 0:27 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
        31 25 0:28 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n\
        32 25 0:29 /x /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct\n\
        33 25 0:30 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

    #[test]
    fn own_folder_joins_mount_and_group() {
        let find = |c| own_folder(HYBRID_GROUPS, HYBRID_MOUNTS, c);
        assert_eq!(find(Some("memory")), Some("/sys/fs/cgroup/memory/outer/inner".into()));
        assert_eq!(find(Some("pids")), Some("/sys/fs/cgroup/pids".into()));
        assert_eq!(find(Some("cpuacct")), Some("/sys/fs/cgroup/cpu".into()));
        assert_eq!(find(None), Some("/sys/fs/cgroup/unified".into()));
        assert_eq!(find(Some("hugetlb")), None);
    }

    #[test]
    fn v2_without_memory_and_pids_is_refused_and_with_them_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
        put("cgroup.controllers", "cpuset cpu io\n");
        put("cgroup.subtree_control", "\n");
        put("cgroup.procs", "1\n");
        assert!(prepare_v2(dir.path()).is_err());
        put("cgroup.controllers", "cpu memory pids\n");
        put("cgroup.subtree_control", "memory pids\n");
        assert_eq!(prepare_v2(dir.path()).unwrap(), dir.path());
        assert_eq!(prepare_v2(&dir.path().join(OWN_LEAF)).unwrap(), dir.path());
    }

    #[test]
    fn facts_of_a_v2_group_are_read_from_its_files() {
        let dir = tempfile::tempdir().unwrap();
        let plan = CgroupPlan::V2 { base: dir.path().to_path_buf() };
        let group = Cgroup::create(&plan, 42, 7).unwrap();
        group.limit(&Limits::default()).unwrap();
        let folder = dir.path().join("rollmill-run-42-7");
        assert_eq!(fs::read_to_string(folder.join("memory.max")).unwrap(), (512u64 << 20).to_string());
        assert_eq!(fs::read_to_string(folder.join("pids.max")).unwrap(), "33");
        fs::write(folder.join("memory.events"), "low 0\noom 3\noom_kill 2\noom_group_kill 0\n").unwrap();
        fs::write(folder.join("cpu.stat"), "usage_usec 1500000\nuser_usec 1\n").unwrap();
        assert_eq!(group.oom_kills(), 2);
        assert_eq!(group.cpu(), Some(Duration::from_millis(1500)));
        assert_eq!(group.peak(), None);
    }

    /// A machine as recorded: lines of /proc/self/cgroup, and of mountinfo with `@` for where the tree lies, and its files.
    struct Recorded {
        dir: tempfile::TempDir,
    }

    impl Recorded {
        fn new(files: &[(&str, &str)]) -> Recorded {
            let dir = tempfile::tempdir().unwrap();
            for (path, text) in files {
                let path = dir.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            Recorded { dir }
        }

        fn plan(&self, groups: &str, mounts: &str) -> Result<CgroupPlan, String> {
            CgroupPlan::best_of(groups, &mounts.replace('@', self.dir.path().to_str().unwrap()), None)
        }

        fn at(&self, path: &str) -> PathBuf {
            self.dir.path().join(path)
        }
    }

    const V2_MOUNT: &str = "30 24 0:26 / @ rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn a_unit_with_delegation_gives_v2() {
        let group = "system.slice/rollmill.service";
        let machine = Recorded::new(&[
            (&format!("{group}/cgroup.controllers"), "cpu memory pids\n"),
            (&format!("{group}/cgroup.subtree_control"), "memory pids\n"),
        ]);
        let plan = machine.plan(&format!("0::/{group}\n"), V2_MOUNT);
        assert_eq!(plan, Ok(CgroupPlan::V2 { base: machine.at(group) }));
    }

    #[test]
    fn a_user_session_without_delegation_gives_a_reason() {
        let group = "user.slice/user-1000.slice/session-2.scope";
        let machine = Recorded::new(&[(&format!("{group}/cgroup.controllers"), "\n")]);
        let why = machine.plan(&format!("0::/{group}\n"), V2_MOUNT).unwrap_err();
        assert!(why.contains("not delegated") && why.contains("memory is not mounted"), "{why}");
    }

    #[test]
    fn a_container_with_its_own_view_of_v2_and_processes_in_it_gives_a_reason() {
        // in a cgroup namespace the own group is /; docker puts the shell and this process into it
        let machine = Recorded::new(&[
            ("cgroup.controllers", "cpuset cpu io memory hugetlb pids\n"),
            ("cgroup.subtree_control/x", ""), // cannot be written, as in a read-only mount
            ("cgroup.procs", "1\n7\n"),
        ]);
        assert!(machine.plan("0::/\n", V2_MOUNT).is_err());
    }

    #[test]
    fn a_root_shell_on_v1_or_hybrid_gives_v1() {
        let machine = Recorded::new(&[("memory/user.slice/x", ""), ("pids/user.slice/x", ""), ("unified/x", "")]);
        let v1 = "34 31 0:30 / @/memory rw - cgroup cgroup rw,memory\n35 31 0:31 / @/pids rw - cgroup cgroup rw,pids\n";
        let groups = "9:memory:/user.slice\n8:pids:/user.slice\n1:name=systemd:/user.slice\n";
        let (memory, pids) = (machine.at("memory/user.slice"), machine.at("pids/user.slice"));
        let want = Ok(CgroupPlan::V1 { memory, pids, cpuacct: None });
        assert_eq!(machine.plan(groups, v1), want);
        let hybrid = format!("{v1}41 31 0:38 / @/unified rw - cgroup2 cgroup2 rw\n");
        assert_eq!(machine.plan(&format!("{groups}0::/\n"), &hybrid), want);
    }

    #[test]
    fn a_machine_without_cgroups_gives_a_reason() {
        let why = Recorded::new(&[]).plan("", "22 1 0:5 / /proc rw - proc proc rw\n").unwrap_err();
        assert!(why.contains("no v2 mount"), "{why}");
    }
}
