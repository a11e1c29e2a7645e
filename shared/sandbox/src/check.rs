//! What this machine gives to sandboxes, as rows for people: what is there, why not, what to do.
//!
//! Facts only of this crate's backend; whoever has another (docker) adds its own rows.
use std::fs;
use std::path::Path;

use crate::cgroup::CgroupPlan;
use crate::namespaces::find_helper;
use crate::{Isolation, Level, Namespaces, NamespacesOptions, Sandbox, helper, machine, prepared, sys};

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// The thing looked at.
    pub name: &'static str,
    /// Whether it is there.
    pub state: State,
    /// What was seen, or why not.
    pub why: String,
    /// What would make it better; empty where nothing is to be done.
    pub todo: String,
}

/// Whether something is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// As wished.
    Yes,
    /// Sandboxes work with less.
    Limited,
    /// Not there.
    No,
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            State::Yes => "yes",
            State::Limited => "limited",
            State::No => "no",
        })
    }
}

fn row(name: &'static str, state: State, why: impl Into<String>, todo: impl Into<String>) -> Check {
    Check { name, state, why: why.into(), todo: todo.into() }
}

/// Looks at this machine, and opens a sandbox to see what it really reaches (seconds, the first time on a machine).
pub fn check(options: &NamespacesOptions) -> Vec<Check> {
    let opened = Namespaces::open(NamespacesOptions { floor: Level::Landlock, ..options.clone() });
    let reached = opened.as_ref().map(|sandbox| sandbox.level()).map_err(|error| error.to_string());
    let root = Path::new("/");
    let mut rows = vec![kernel(root), namespaces(root, &reached), seccomp(root), landlock(sys::landlock_version())];
    rows.extend([cgroups(), own_uids(&reached), roots(options, &reached), helper_program(options)]);
    rows.push(level(options, &reached));
    rows
}

type Reached<'a> = Result<&'a Isolation, String>;

fn kernel(root: &Path) -> Check {
    let release = fs::read_to_string(root.join("proc/sys/kernel/osrelease")).unwrap_or_default();
    let release = release.trim();
    let number = |part: usize| release.split(['.', '-']).nth(part).and_then(|p| p.parse::<u32>().ok());
    // openat2 is in 5.6: files come out of a sandbox by it
    match (number(0), number(1)) {
        (Some(major), Some(minor)) if (major, minor) >= (5, 6) => row("kernel", State::Yes, release, ""),
        _ => row("kernel", State::No, format!("{release:?}"), "Linux 5.6 or newer is needed"),
    }
}

fn namespaces(root: &Path, reached: &Reached) -> Check {
    let name = "user namespaces";
    let forbidden = machine::forbids_user_namespaces(root);
    match reached {
        Ok(isolation) if isolation.level > Level::Landlock => row(name, State::Yes, "a sandbox was made of them", ""),
        Ok(isolation) => row(name, State::No, isolation.notes.first().cloned().unwrap_or_default(), todo(forbidden)),
        Err(error) => row(name, State::No, error, todo(forbidden)),
    }
}

fn todo(forbidden: Option<String>) -> String {
    let otherwise =
        "a container's seccomp profile or a security module may forbid them: allow clone with CLONE_NEWUSER";
    forbidden.unwrap_or_else(|| otherwise.into())
}

fn seccomp(root: &Path) -> Check {
    let actions = fs::read_to_string(root.join("proc/sys/kernel/seccomp/actions_avail")).unwrap_or_default();
    match actions.split_whitespace().any(|a| a == "errno") {
        true => row("seccomp", State::Yes, "filters can answer with an error", ""),
        false => row("seccomp", State::No, "no filters", "a kernel with CONFIG_SECCOMP_FILTER is needed"),
    }
}

fn landlock(version: u32) -> Check {
    let turn_on = "add landlock to lsm= on the kernel's command line; needed only where there are no user namespaces";
    match version {
        0 => row("landlock", State::No, "off, or not in this kernel", turn_on),
        v if v < helper::OLDEST_LANDLOCK => {
            row("landlock", State::Limited, format!("version {v}"), "Linux 6.2 is needed")
        }
        v => row("landlock", State::Yes, format!("version {v}"), ""),
    }
}

fn cgroups() -> Check {
    let todo = "start rollmill in a delegated group (systemd-run --user --scope -p Delegate=yes rollmill …), or name one in ROLLMILL_CGROUP";
    match CgroupPlan::detect() {
        Ok(plan @ CgroupPlan::V2 { .. }) => row("cgroup", State::Yes, format!("{}, delegated", plan.name()), ""),
        Ok(plan) => row("cgroup", State::Yes, plan.name(), ""),
        Err(why) => {
            row("cgroup", State::Limited, format!("rlimits and a watcher hold memory and processes: {why}"), todo)
        }
    }
}

fn own_uids(reached: &Reached) -> Check {
    let shared = |isolation: &&Isolation| isolation.notes.iter().any(|note| note == crate::namespaces::ONE_UID);
    match reached {
        Ok(isolation) if !shared(isolation) => {
            row("own uids", State::Yes, "each sandbox has a host uid of its own", "")
        }
        Ok(_) => row("own uids", State::Limited, crate::namespaces::ONE_UID, "only root can give each its own"),
        Err(_) => row("own uids", State::No, "no sandbox was made", ""),
    }
}

fn roots(options: &NamespacesOptions, reached: &Reached) -> Check {
    let mut found: Vec<String> = prepared(&options.cache_dir).into_iter().map(|(name, _)| name).collect();
    if let Ok(isolation) = reached {
        found.insert(0, format!("this one, {}…", &isolation.rootfs_digest[..12.min(isolation.rootfs_digest.len())]));
    }
    let state = if found.is_empty() { State::No } else { State::Yes };
    row("root file systems", state, found.join(", "), "make more with `rollmill sandbox prepare`")
}

fn helper_program(options: &NamespacesOptions) -> Check {
    match find_helper(options.helper.as_deref()) {
        Ok(path) => row("helper", State::Yes, path.display().to_string(), ""),
        Err(error) => row("helper", State::No, error.to_string(), "make build"),
    }
}

fn level(options: &NamespacesOptions, reached: &Reached) -> Check {
    match reached {
        Ok(isolation) if isolation.level >= options.floor => {
            row("level", State::Yes, format!("{}: {}", isolation.level, isolation.notes.join("; ")), "")
        }
        Ok(isolation) => {
            let todo = format!("the floor is {}: see the rows above, or lower it", options.floor);
            row("level", State::No, format!("{} only", isolation.level), todo)
        }
        Err(error) => row("level", State::No, error, "see the rows above"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn isolation(level: Level, notes: &[&str]) -> Isolation {
        let notes = notes.iter().map(|n| n.to_string()).collect();
        Isolation { backend: "x".into(), level, cgroup: "none".into(), rootfs_digest: "ab".into(), notes }
    }

    #[test]
    fn rows_of_recorded_machines() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = dir.path().join("proc/sys").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        assert_eq!(kernel(dir.path()).state, State::No);
        for (release, state) in
            [("6.8.0-45-generic\n", State::Yes), ("5.6.0\n", State::Yes), ("4.19.0-27-amd64\n", State::No)]
        {
            put("kernel/osrelease", release);
            assert_eq!(kernel(dir.path()).state, state, "{release}");
        }
        assert_eq!(seccomp(dir.path()).state, State::No);
        put("kernel/seccomp/actions_avail", "kill_process kill_thread trap errno user_notif trace log allow\n");
        assert_eq!(seccomp(dir.path()).state, State::Yes);
        put("kernel/apparmor_restrict_unprivileged_userns", "1\n");
        let fallen = isolation(Level::Landlock, &["no namespaces (EACCES)", crate::namespaces::ONE_UID]);
        let found = namespaces(dir.path(), &Ok(&fallen));
        assert!(found.state == State::No && found.todo.contains("apparmor_restrict"), "{found:?}");
        assert_eq!(own_uids(&Ok(&fallen)).state, State::Limited);
        assert_eq!([0, 1, 3, 7].map(|v| landlock(v).state), [State::No, State::Limited, State::Yes, State::Yes]);
    }

    #[test]
    fn the_level_is_measured_against_the_floor() {
        let options = NamespacesOptions::default();
        let of = |reached: Reached| level(&options, &reached).state;
        assert_eq!(of(Ok(&isolation(Level::Watched, &[]))), State::Yes);
        assert_eq!(of(Ok(&isolation(Level::Landlock, &[]))), State::No);
        assert_eq!(of(Err("nothing works".into())), State::No);
    }
}
