//! Slots: one host uid for each sandbox alive on this machine, held by a lock that ends with its holder.
//!
//! As root, slot n is host uid and gid 100000 + n, never 0 and never another sandbox's. An ordinary user has only its own.
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};

use crate::{SandboxError, sys};

/// First host uid of the slots.
const FIRST_UID: u32 = 100_000;
/// `nobody`, for a root whose own user namespace has no uids from 100000 on.
const NOBODY: u32 = 65_534;

/// The slots of this machine.
#[derive(Debug)]
pub struct Slots {
    folder: PathBuf,
    count: u32,
    next: AtomicU32,
    ids: Ids,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ids {
    Own { uid: u32, gid: u32 },
    PerSlot,
    Nobody,
}

/// One slot; free again when dropped or when this process dies.
#[derive(Debug)]
pub struct Slot {
    /// Whoever runs in it.
    pub user: User,
    _lock: Option<File>,
}

/// Who runs in a slot, as the host knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    pub host_uid: u32,
    pub host_gid: u32,
    /// Whether the caller, as root, gives the run to this user, which is not its own; then supplementary groups are dropped.
    pub root: bool,
}

impl Slot {
    fn new((host_uid, host_gid): (u32, u32), root: bool, lock: Option<File>) -> Slot {
        Slot { user: User { host_uid, host_gid, root }, _lock: lock }
    }
}

impl Slots {
    /// Slots for users that somebody else becomes, a container daemon: one uid each, whoever this process is.
    pub fn of_daemon(cache_dir: &Path, count: u32) -> Result<Slots, SandboxError> {
        Slots::with(cache_dir, count, Ids::PerSlot)
    }

    fn with(cache_dir: &Path, count: u32, ids: Ids) -> Result<Slots, SandboxError> {
        let folder = cache_dir.join("slots");
        std::fs::create_dir_all(&folder).map_err(SandboxError::io(format!("cannot make {}", folder.display())))?;
        Ok(Slots { folder, count, next: AtomicU32::new(std::process::id()), ids })
    }

    /// Slots for users that this process becomes, as far as it can.
    pub fn open(cache_dir: &Path, count: u32) -> Result<Slots, SandboxError> {
        let ids = match sys::effective_ids() {
            (0, _) if maps(FIRST_UID, count) => Ids::PerSlot,
            (0, _) if maps(NOBODY, 1) => Ids::Nobody,
            (0, _) => return Err(SandboxError::Unavailable { reason: "no host uid but 0 is mapped here".into() }),
            (uid, gid) => Ids::Own { uid, gid },
        };
        Slots::with(cache_dir, count, ids)
    }

    /// Whether concurrent sandboxes differ in host uid.
    pub fn own_uid(&self) -> bool {
        self.ids == Ids::PerSlot
    }

    /// Whether runs have another uid than this process.
    pub fn drops_root(&self) -> bool {
        !matches!(self.ids, Ids::Own { .. })
    }

    /// A free one.
    pub fn take(&self) -> Result<Slot, SandboxError> {
        match self.ids {
            Ids::Own { uid, gid } => Ok(Slot::new((uid, gid), false, None)),
            Ids::Nobody => Ok(Slot::new((NOBODY, NOBODY), true, None)),
            Ids::PerSlot => self.take_uid(),
        }
    }

    fn take_uid(&self) -> Result<Slot, SandboxError> {
        for _ in 0..self.count {
            let index = self.next.fetch_add(1, Ordering::Relaxed) % self.count;
            let path = self.folder.join(index.to_string());
            let what = || format!("cannot lock {}", path.display());
            let file = OpenOptions::new().create(true).append(true).open(&path).map_err(SandboxError::io(what()))?;
            if sys::try_lock(&file, false).map_err(SandboxError::io(what()))? {
                let id = FIRST_UID + index;
                return Ok(Slot::new((id, id), true, Some(file)));
            }
        }
        Err(SandboxError::NoSlot { slots: self.count })
    }
}

/// Whether this process's user namespace has the ids `first..first + count`, for users and for groups.
fn maps(first: u32, count: u32) -> bool {
    let covers = |text: &str| {
        text.lines().any(|line| {
            let n: Vec<u64> = line.split_whitespace().filter_map(|f| f.parse().ok()).collect();
            matches!(n[..], [inside, _, length]
                if inside <= u64::from(first) && u64::from(first) + u64::from(count) <= inside + length)
        })
    };
    ["/proc/self/uid_map", "/proc/self/gid_map"].iter().all(|p| std::fs::read_to_string(p).is_ok_and(|t| covers(&t)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_held_once_and_free_again_when_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let slots = Slots { folder: dir.path().into(), count: 2, next: AtomicU32::new(7), ids: Ids::PerSlot };
        let (a, b) = (slots.take().unwrap(), slots.take().unwrap());
        assert_ne!(a.user.host_uid, b.user.host_uid);
        assert!(a.user.host_uid >= FIRST_UID && b.user.host_uid >= FIRST_UID);
        assert!(matches!(slots.take(), Err(SandboxError::NoSlot { slots: 2 })));
        drop(a);
        assert!(slots.take().is_ok());
    }
}
