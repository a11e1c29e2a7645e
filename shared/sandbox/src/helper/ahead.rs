//! An init that is set up ahead of its run, while nobody waits: entering a group takes the kernel milliseconds where groups are
//! old (v1), and namespaces and mounts take their time everywhere.
//!
//! In: what all runs of one sandbox have in common. Out: an init in its own group and namespaces, below a root with /proc
//! and /dev, which waits for a request. What must hold: it is one run's alone, as if cloned for it; without a run it goes
//! when the helper does, and its group with it.
use std::cell::Cell;
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use super::warm::Zygote;
use super::{Failed, Kept, SANDBOX_ID, cgroup_failed, failed, inside, map_ids};
use crate::cgroup::{Cgroup, CgroupPlan};
use crate::namespaces::User;
use crate::sys::{self, Cloned};
use crate::wire::Request;

/// What is known of a run before it comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ground {
    pub rootfs: PathBuf,
    pub user: User,
    pub cgroup: CgroupPlan,
}

impl Ground {
    pub fn of(request: &Request) -> Ground {
        Ground { rootfs: request.rootfs.clone(), user: request.user, cgroup: request.cgroup.clone() }
    }
}

/// An init that waits for its run.
pub struct Waiting {
    pub init: i32,
    pub pidfd: OwnedFd,
    pub status: File,
    /// Where it waits; it ends when this closes.
    pub go: UnixStream,
    /// Where it hands over what it makes.
    pub taken: UnixStream,
}

/// The one that is set up ahead.
#[derive(Default)]
pub struct Ahead {
    ready: Cell<Option<(Ground, Cgroup, Waiting)>>,
    /// How many groups were made: a name is used once.
    groups: Cell<u32>,
}

impl Ahead {
    /// The init for a run: this one if it was made for such a run, or a new one.
    pub fn take(&self, ground: Ground, kept: &Kept) -> Result<(Cgroup, Waiting), Failed> {
        match self.ready.take() {
            Some((made_for, cgroup, waiting)) if made_for == ground => Ok((cgroup, waiting)),
            other => {
                other.into_iter().for_each(|(_, cgroup, waiting)| give_up(&cgroup, &waiting));
                self.set_up(&ground, kept)
            }
        }
    }

    /// Makes one for a run like the last. If that fails, the run itself will say so.
    pub fn make(&self, ground: Ground, kept: &Kept) {
        if let Ok((cgroup, waiting)) = self.set_up(&ground, kept) {
            self.ready.set(Some((ground, cgroup, waiting)));
        }
    }

    /// A group for a run.
    pub fn group(&self, plan: &CgroupPlan) -> Result<Cgroup, Failed> {
        self.groups.set(self.groups.get().wrapping_add(1));
        Cgroup::create(plan, std::process::id(), self.groups.get()).map_err(cgroup_failed)
    }

    fn set_up(&self, ground: &Ground, kept: &Kept) -> Result<(Cgroup, Waiting), Failed> {
        let cgroup = self.group(&ground.cgroup)?;
        let waiting = clone_in(ground, kept, &cgroup).inspect_err(|_| cgroup.remove())?;
        Ok((cgroup, waiting))
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.ready.take().into_iter().for_each(|(_, cgroup, waiting)| give_up(&cgroup, &waiting));
    }
}

impl Waiting {
    /// Ends it: it gets no run.
    pub fn end(&self) {
        let _ = sys::kill_by_pidfd(&self.pidfd); // ended by itself
        let _ = sys::wait(self.init);
    }
}

fn give_up(cgroup: &Cgroup, waiting: &Waiting) {
    waiting.end();
    cgroup.remove();
}

fn clone_in(ground: &Ground, kept: &Kept, cgroup: &Cgroup) -> Result<Waiting, Failed> {
    let (go, theirs) = UnixStream::pair().map_err(failed("socket"))?;
    let (taken, handed) = UnixStream::pair().map_err(failed("socket"))?;
    let (our_status, status) = sys::pipe().map_err(failed("pipe"))?;
    let zygote = kept.zygote.as_ref();
    let (init, pidfd) = match clone(ground, zygote)? {
        Cloned::Child => {
            drop((go, our_status, taken));
            let inside = inside::Inside { go: theirs, status, handed, warm: zygote.is_some(), filter: &kept.filter };
            inside::main(inside, &ground.rootfs, ground.user)
        }
        Cloned::Parent { pid, pidfd } => (pid, pidfd),
    };
    let waiting = Waiting { init, pidfd, status: our_status.into(), go, taken };
    let mapped = if zygote.is_some() { Ok(()) } else { map_ids(init, SANDBOX_ID, ground.user) };
    let begun = mapped.map_err(failed("map the sandbox's user")).and_then(|()| {
        cgroup.attach(init).map_err(cgroup_failed)?;
        (&waiting.go).write_all(&[1]).map_err(failed("start init"))
    });
    begun.inspect_err(|_| waiting.end())?;
    Ok(waiting)
}

fn clone(ground: &Ground, zygote: Option<&Zygote>) -> Result<Cloned, Failed> {
    match zygote {
        None => sys::clone_into_namespaces(0).map_err(failed("clone into namespaces")),
        Some(zygote) => zygote.clone_into_namespaces(ground),
    }
}
