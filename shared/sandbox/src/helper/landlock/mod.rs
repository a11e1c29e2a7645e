//! A sandbox on a machine that forbids namespaces: what holds the program is Landlock, seccomp and rlimits.
//!
//! In: the request, the program's stdin, stdout, stderr, a folder of the run's own. Out: records on the status pipe. What must
//! hold: the program is confined before it starts; init, which is not, is the subreaper of everything below it and ends
//! only when nothing of it lives; if the helper is killed, init ends the tree and removes the folder by itself.
//!
//! What it cannot do: there is no root of its own, so the program sees this machine's names of files that it can guess
//! (`stat` says whether they exist), this machine's host name and its uids; /proc and /tmp are closed to it; processes
//! are counted together with others of the same user; bytes on disk are bounded by looking, not by a file system.
mod calls;
mod folder;
mod rules;

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use super::inside::{self, Place, Step, step};
use super::status::Status;
use super::{seccomp, tree};
use crate::sys::{self, Forked};
use crate::wire::{Request, Stdio};
pub use folder::{RunFolder, sweep};

/// The oldest Landlock that is enough: before version 3 files outside could be truncated.
pub const OLDEST: u32 = 3;

/// What init takes over from the helper.
pub struct Inside<'a> {
    pub request: &'a Request,
    pub stdio: Stdio,
    /// The socket to the caller, from which the contents of the files come.
    pub source: &'a UnixStream,
    /// One byte comes when the group is entered; closed when the helper is gone.
    pub go: UnixStream,
    pub status: OwnedFd,
    pub filter: &'a seccompiler::BpfProgram,
}

/// Never returns: ends when nothing of the run lives.
pub fn main(inside: Inside<'_>, folder: &RunFolder) -> ! {
    let Inside { request, stdio, source, go, status, filter } = inside;
    let mut status = File::from(status);
    let helper = sys::parent_pid();
    let started = sys::prctl(libc::PR_SET_CHILD_SUBREAPER, 1).and_then(|()| inside::wait_for_go(&go));
    let program = started.and_then(|()| sys::fork()).and_then(|side| match side {
        Forked::Child => start((request, &stdio), source, folder, &mut status, filter),
        Forked::Parent { pid } => Ok((pid, sys::pidfd_of(pid)?)),
    });
    let mut orphaned = false;
    let ended = match program {
        Ok((pid, pidfd)) => {
            drop(stdio); // init must not keep the program's pipes open
            let far = Duration::from_secs(86_400 * 365);
            let mut ready = [sys::poll_fd(pidfd.as_raw_fd(), libc::POLLIN), sys::poll_fd(go.as_raw_fd(), libc::POLLIN)];
            let _ = sys::poll(&mut ready, Instant::now() + far); // an error ends the tree as well
            // A helper that asks for the end says a byte; one that was killed closes its files without a word, a moment before
            // its children get another parent.
            orphaned = ready[1].revents != 0 && !matches!((&go).read(&mut [0]), Ok(1));
            if ready[0].revents != 0 { sys::wait(pid).ok().map(|(_, code, _)| Status::Exited { code }) } else { None }
        }
        Err(e) => Some(Status::Failed { what: "start".into(), errno: e.raw_os_error().unwrap_or(0) }),
    };
    kill_descendants();
    if orphaned || sys::parent_pid() != helper {
        folder.remove(); // nobody else will
    }
    if let Some(ended) = ended {
        let _ = status.write_all(&ended.encode()); // the helper is gone
    }
    sys::exit_now(0)
}

/// Kills and reaps until this process has no child. What ends as an orphan becomes its child, so nothing is missed; numbers
/// are used the moment they were read, long before the kernel comes round to giving them out again.
pub fn kill_descendants() {
    let own = std::process::id() as i32;
    loop {
        tree::pids(&[own]).into_iter().filter(|pid| *pid != own).for_each(sys::kill);
        if sys::wait(-1).is_err() {
            return;
        }
    }
}

/// In the child: never returns.
fn start<T>(
    (request, stdio): (&Request, &Stdio),
    source: &UnixStream,
    folder: &RunFolder,
    status: &mut File,
    filter: &seccompiler::BpfProgram,
) -> io::Result<T> {
    let own = Status::Forked { pid: std::process::id() as i32 };
    let told = match status
        .write_all(&own.encode())
        .map_err(step("say the pid"))
        .and_then(|()| confine(request, source, folder, filter))
    {
        Ok(()) => Status::Ready,
        Err((what, error)) => Status::Failed { what: what.into(), errno: error.raw_os_error().unwrap_or(0) },
    };
    if status.write_all(&told.encode()).is_err() || matches!(told, Status::Failed { .. }) {
        sys::exit_now(1);
    }
    inside::exec(stdio, request, &place(request, folder))
}

fn confine(request: &Request, source: &UnixStream, folder: &RunFolder, filter: &seccompiler::BpfProgram) -> Step {
    let _ = fs::write("/proc/self/oom_score_adj", "500"); // as in a namespace
    sys::set_umask(0o022);
    sys::new_session().map_err(step("session"))?;
    if request.user.root {
        sys::drop_bounding_set();
        sys::become_user(request.user.host_uid, true).map_err(step("change user"))?;
    }
    for (at, files) in [(folder.work(), &request.files), (folder.pristine(), &request.pristine)] {
        std::env::set_current_dir(at).map_err(step("enter the run's folder"))?;
        inside::write_files(source, files).map_err(step("write the files of the spec"))?;
    }
    std::env::set_current_dir(folder.work()).map_err(step("enter the run's folder"))?;
    // a user of its own has no other task; otherwise what runs already is added
    let others = tree::tasks_of(request.user.host_uid);
    inside::limit_all(request, others + u64::from(request.limits.pids) - 1).map_err(step("set limits"))?;
    sys::prctl(libc::PR_SET_NO_NEW_PRIVS, 1).map_err(step("no_new_privs"))?;
    sys::drop_capabilities().map_err(step("drop capabilities"))?;
    rules::apply(&request.rootfs, folder).map_err(step("landlock"))?;
    let refused = |e: seccompiler::Error| ("seccomp", io::Error::other(e.to_string()));
    let own = calls::filter(request.user.root, sys::landlock_version() >= 6).map_err(refused)?;
    seccompiler::apply_filter(&own).map_err(refused)?;
    seccomp::apply(filter).map_err(refused)
}

/// The tree's programs and libraries, by their paths here. `/work`, `/pristine` and `/tmp` at the beginning of an argument or
/// a variable stand for the run's own folders.
fn place(request: &Request, folder: &RunFolder) -> Place {
    let text = |path: &Path| path.display().to_string();
    let programs = text(&request.rootfs.join("usr/bin"));
    let moved = [("/work", folder.work()), ("/pristine", folder.pristine()), ("/tmp", folder.tmp())];
    Place {
        env: vec![
            ("PATH", programs.clone()),
            ("HOME", text(&folder.tmp())),
            ("TMPDIR", text(&folder.tmp())),
            ("LD_LIBRARY_PATH", rules::library_folders(&request.rootfs).join(":")),
        ],
        programs: vec![programs],
        moved: moved.into_iter().map(|(from, to)| (from, text(&to))).collect(),
    }
}
