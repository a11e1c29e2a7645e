//! The `namespaces` backend: opening it probes the machine once; a helper process holds one run at a time.
mod fallback;
mod holder;
mod run;
mod slot;
mod spec;
mod warm;

use std::path::{Path, PathBuf};

use crate::cgroup::CgroupPlan;
use crate::{Finished, Isolation, Level, Limits, Root, RootFs, Sandbox, SandboxError, Session, Spec, machine};
use holder::Idle;
use run::Running;
pub use slot::{Slot, Slots, User};
pub use spec::check;

pub use warm::{Warm, WarmOptions};

/// How to open the [`Namespaces`] backend.
#[derive(Debug, Clone)]
pub struct NamespacesOptions {
    /// Where root file systems are built and kept (`$XDG_CACHE_HOME/rollmill`, else `~/.cache/rollmill`).
    pub cache_dir: PathBuf,
    /// What becomes `/` of the sandboxes (the host's interpreter).
    pub root: Root,
    /// The helper program; by default ROLLMILL_SANDBOX_HELPER, this program if it is `rollmill`, or one beside it.
    pub helper: Option<PathBuf>,
    /// The weakest level a run may start at ([`Level::Watched`]). Only where it is [`Level::Landlock`], a machine that forbids
    /// namespaces is made do with: then the host's interpreter is the only root, programs and libraries lie at paths of
    /// this machine (found by PATH and LD_LIBRARY_PATH), there is no /proc and no socket, `/work`, `/pristine` and `/tmp` are
    /// understood only at the beginning of an argument or a variable, modes and times of files cannot be changed by an
    /// ordinary user's runs, and bytes on disk are bounded by a watcher, which ends a run that goes beyond.
    pub floor: Level,
    /// Takes [`Level::Landlock`] though namespaces may work here, to see how programs fare with it.
    pub landlock: bool,
    /// Sandboxes alive at once on this machine, over all its processes (1024).
    pub slots: u32,
    /// Whether to use cgroups where this process may; without them rlimits and a watcher hold memory and processes. Groups
    /// are made below this process's own, or below the delegated v2 group that ROLLMILL_CGROUP names.
    pub cgroups: bool,
}

impl Default for NamespacesOptions {
    fn default() -> Self {
        let base = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|p| p.is_absolute());
        let home = || std::env::var_os("HOME").map(|h| Path::new(&h).join(".cache"));
        let cache_dir = base.or_else(home).unwrap_or_else(std::env::temp_dir).join("rollmill");
        NamespacesOptions {
            cache_dir,
            root: Root::Host,
            helper: None,
            floor: Level::Watched,
            landlock: false,
            slots: 1024,
            cgroups: true,
        }
    }
}

/// Sandboxes made of Linux namespaces, without a daemon and without root.
#[derive(Debug)]
pub struct Namespaces {
    helper: PathBuf,
    rootfs: RootFs,
    cgroup: CgroupPlan,
    slots: Slots,
    isolation: Isolation,
    /// Where runs have their folders if there are no namespaces.
    landlock: Option<PathBuf>,
    idle: Idle,
}

impl Namespaces {
    /// Builds the host's root file system if it is not there yet (seconds, once a machine), finds what this machine can do, proves
    /// it with one run, and refuses a level below the floor.
    pub fn open(opts: NamespacesOptions) -> Result<Namespaces, SandboxError> {
        let helper = find_helper(opts.helper.as_deref())?;
        let rootfs = RootFs::open(&opts.root, &opts.cache_dir)?;
        let wanted = if opts.cgroups { CgroupPlan::detect() } else { Err("cgroups are turned off".into()) };
        let (cgroup, mut notes) = match wanted {
            Ok(plan) => (plan, vec![]),
            Err(why) => (CgroupPlan::None, vec![why]),
        };
        cgroup.sweep();
        notes.push(rootfs.made_of.clone());
        let slots = Slots::open(&opts.cache_dir, opts.slots)?;
        let isolation = Isolation {
            backend: "namespaces".into(),
            level: Level::Watched,
            cgroup: String::new(),
            rootfs_digest: rootfs.digest.clone(),
            notes,
        };
        let mut this = Namespaces { helper, rootfs, cgroup, slots, isolation, landlock: None, idle: Idle::default() };
        match if opts.landlock { Err(fallback::asked_for()) } else { this.prove() } {
            Err(SandboxError::Unavailable { reason }) if opts.landlock || opts.floor == Level::Landlock => {
                this.fall_back(&opts, &reason)?
            }
            other => other?,
        }
        this.settle();
        this.check_floor(opts.floor)?;
        Ok(this)
    }

    /// Runs `sh -c :`; without the cgroup if that is what fails.
    fn prove(&mut self) -> Result<(), SandboxError> {
        let mut outcome = self.run_probe();
        if let Err(run::Refused { cgroup: true, error }) = &outcome {
            self.isolation.notes.insert(0, format!("cgroup {} unusable: {error}", self.cgroup.name()));
            self.cgroup = CgroupPlan::None;
            outcome = self.run_probe();
        }
        match outcome {
            Ok(done) if done.facts.exit == Some(0) => Ok(()),
            Ok(done) => Err(SandboxError::RootFs {
                what: format!("its shell does not run: {:?} {}", done.facts, String::from_utf8_lossy(&done.stderr)),
            }),
            Err(run::Refused { error: error @ SandboxError::Setup { .. }, .. }) => {
                match machine::forbids_user_namespaces(Path::new("/")) {
                    // a limit of zero looks like a shortage
                    Some(why) => Err(SandboxError::Unavailable { reason: format!("{error}: {why}") }),
                    None if error.is_transient() => Err(error),
                    None => Err(SandboxError::Unavailable { reason: error.to_string() }),
                }
            }
            Err(run::Refused { error, .. }) => Err(error),
        }
    }

    fn run_probe(&self) -> Result<Finished, run::Refused> {
        let argv = ["sh", "-c", ":"].map(String::from).to_vec();
        let limits = Limits { wall: std::time::Duration::from_secs(60), ..Limits::default() };
        let spec = Spec { argv, limits, ..Spec::default() };
        Running::begin(self, &spec, false)?.wait_for_end().map_err(run::Refused::from)
    }

    fn settle(&mut self) {
        self.isolation.cgroup = self.cgroup.name().into();
        self.isolation.level = match (&self.landlock, &self.cgroup, self.slots.own_uid()) {
            (Some(_), ..) => Level::Landlock,
            (None, CgroupPlan::None, _) => Level::Watched,
            (None, _, false) => Level::Limited,
            (None, _, true) => Level::OwnUid,
        };
        if !self.slots.own_uid() {
            self.isolation.notes.insert(0, ONE_UID.into());
        }
    }

    fn check_floor(&self, floor: Level) -> Result<(), SandboxError> {
        let level = self.isolation.level;
        if level >= floor {
            return Ok(());
        }
        Err(SandboxError::BelowFloor { level, floor, why: self.isolation.notes.join("; ") })
    }
}

impl Sandbox for Namespaces {
    fn level(&self) -> &Isolation {
        &self.isolation
    }

    fn run(&self, spec: &Spec) -> Result<Finished, SandboxError> {
        Running::begin(self, spec, false).map_err(|r| r.error)?.wait_for_end()
    }

    fn start(&self, spec: &Spec) -> Result<Box<dyn Session>, SandboxError> {
        Ok(Box::new(Running::begin(self, spec, true).map_err(|r| r.error)?))
    }
}

/// The note of a machine where sandboxes share a host uid.
pub(crate) const ONE_UID: &str = "all sandboxes have one host uid";

const HELPER_NAME: &str = "rollmill-sandbox-helper";

/// The option, the variable, this program if it is `rollmill`, then either program beside it or one folder up (where cargo
/// puts programs beside its test binaries' folder).
pub(crate) fn find_helper(option: Option<&Path>) -> Result<PathBuf, SandboxError> {
    let variable = || std::env::var_os("ROLLMILL_SANDBOX_HELPER").map(PathBuf::from);
    let exe = std::env::current_exe().map_err(SandboxError::io("cannot find this program's own path"))?;
    let candidates = match option.map(PathBuf::from).or_else(variable) {
        Some(path) => vec![path],
        None if exe.file_name().is_some_and(|n| n == "rollmill") => return Ok("/proc/self/exe".into()),
        None => {
            let folders = exe.ancestors().skip(1).take(2);
            folders.flat_map(|f| [f.join(HELPER_NAME), f.join("rollmill")]).collect()
        }
    };
    if let Some(found) = candidates.iter().find(|p| p.is_file()) {
        return Ok(found.clone());
    }
    let looked: Vec<_> = candidates.iter().map(|p| p.display().to_string()).collect();
    Err(SandboxError::HelperMissing { looked: looked.join(", ") })
}
