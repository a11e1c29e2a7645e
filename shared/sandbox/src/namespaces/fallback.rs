//! The level for machines that forbid namespaces: whether Landlock is there, enough, and reaches what it must.
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::{Namespaces, NamespacesOptions};
use crate::{Root, SandboxError, helper, sys};

/// The reason for this level where it was wished.
pub fn asked_for() -> SandboxError {
    unavailable("it was asked not to make namespaces")
}

fn unavailable(reason: impl Into<String>) -> SandboxError {
    SandboxError::Unavailable { reason: reason.into() }
}

impl Namespaces {
    /// Goes on with Landlock, or says why that does not work either.
    pub(super) fn fall_back(&mut self, opts: &NamespacesOptions, no_namespaces: &str) -> Result<(), SandboxError> {
        let version = sys::landlock_version();
        if version < helper::OLDEST_LANDLOCK {
            let known = if version == 0 { "none".into() } else { format!("version {version}") };
            let needed = helper::OLDEST_LANDLOCK;
            return Err(unavailable(format!(
                "{no_namespaces}; Landlock: {known}, version {needed} (Linux 6.2) is needed"
            )));
        }
        if opts.root != Root::Host {
            return Err(unavailable(format!("{no_namespaces}; a prepared root file system needs namespaces")));
        }
        let runs = opts.cache_dir.join("runs");
        fs::create_dir_all(&runs).map_err(SandboxError::io(format!("cannot make {}", runs.display())))?;
        let runs = fs::canonicalize(&runs).map_err(SandboxError::io(format!("cannot find {}", runs.display())))?;
        if self.slots.drops_root()
            && let Some(closed) = runs.ancestors().chain(self.rootfs.tree.ancestors()).find(|f| !may_be_entered(f))
        {
            let what = format!("{no_namespaces}; Landlock: {} can be entered by root only", closed.display());
            return Err(unavailable(format!("{what}: set XDG_CACHE_HOME to a folder that all may enter")));
        }
        helper::sweep_run_folders(&runs);
        self.landlock = Some(runs);
        self.isolation.backend = "landlock".into();
        self.isolation.notes.insert(0, format!("no namespaces ({no_namespaces}); Landlock version {version}"));
        self.isolation
            .notes
            .insert(1, "names of this machine's files can be guessed; disk is bounded by looking".into());
        self.prove()
    }
}

/// Whether any user may go through a folder.
fn may_be_entered(folder: &Path) -> bool {
    fs::metadata(folder).is_ok_and(|about| about.permissions().mode() & 0o001 != 0)
}
