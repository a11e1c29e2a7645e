//! The helper process: holds exactly one sandbox for a caller, and cleans up after it whatever happens to the caller.
//!
//! In: descriptor 0, a socket to the caller, with one request. Out: replies on it. What must hold: one thread, so that a
//! clone may allocate; an empty environment, which init would show in /proc/1/environ; nothing is left when it ends.
mod inside;
mod seccomp;
mod status;
mod tree;
mod watch;

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::cgroup::Cgroup;
use crate::sys::{self, Forked};
use crate::wire::{self, Reply, Request};
use status::Status;

/// The first argument that makes a program the helper.
pub const ARGUMENT: &str = "__sandbox-helper";

/// The user and group a program has inside: no number that means something there, and never 0.
const SANDBOX_ID: u32 = 1000;

/// How long a set-up may take before the helper gives up.
const SETUP: Duration = Duration::from_secs(45);

/// Call this first thing in `main`: if this process was started as a sandbox helper it does that work and exits, otherwise
/// it returns at once.
pub fn helper_main_if_asked() {
    if std::env::args_os().nth(1).is_some_and(|a| a == ARGUMENT) {
        let code = match serve() {
            Ok(()) => 0,
            Err(_) => 1, // the caller is gone, or sees the socket close
        };
        sys::exit_now(code)
    }
}

fn serve() -> io::Result<()> {
    // The caller ends this process by closing the socket; a signal to the whole job must not do it half-way.
    for number in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2, libc::SIGPIPE] {
        sys::signal(number, true);
    }
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    fs::File::open("/dev/null").and_then(|null| sys::put_at(&null.into(), 0))?;
    let (request, contents, stdio) = wire::receive_request(&socket)?;
    let reply = match hold(&socket, request, contents, stdio) {
        Ok(facts) => Reply::Done(facts),
        Err(Failed { what, error, cgroup }) => {
            Reply::Failed { what, errno: error.raw_os_error().unwrap_or(libc::EIO), cgroup }
        }
    };
    wire::write_message(&socket, &reply)
}

/// A set-up that failed, and whether the cgroup was the reason.
struct Failed {
    what: String,
    error: io::Error,
    cgroup: bool,
}

fn failed(what: &str) -> impl FnOnce(io::Error) -> Failed {
    move |error| Failed { what: what.into(), error, cgroup: false }
}

fn cgroup_failed(error: io::Error) -> Failed {
    Failed { what: "cgroup".into(), error, cgroup: true }
}

fn hold(
    socket: &UnixStream,
    request: Request,
    contents: Vec<Vec<u8>>,
    stdio: [OwnedFd; 3],
) -> Result<crate::Facts, Failed> {
    let (limits, plan) = (request.limits.clone(), request.cgroup.clone());
    let cgroup = Cgroup::create(&plan, std::process::id(), &limits).map_err(cgroup_failed)?;
    let started = start(socket, &cgroup, request, contents, stdio);
    let facts = started.and_then(|started| {
        let watch = watch::Watch {
            init: started.init,
            pidfd: &started.pidfd,
            status: &started.status,
            caller: socket,
            cgroup: &cgroup,
            plan: &plan,
            limits: &limits,
        };
        watch.to_end().map_err(failed("watch"))
    });
    cgroup.remove();
    facts
}

/// A sandbox whose program runs.
struct Started {
    init: i32,
    pidfd: OwnedFd,
    status: File,
    /// Open as long as this process lives: init looks at it to see that it does.
    _go: File,
}

fn start(
    socket: &UnixStream,
    cgroup: &Cgroup,
    request: Request,
    contents: Vec<Vec<u8>>,
    stdio: [OwnedFd; 3],
) -> Result<Started, Failed> {
    let filters = seccomp::filters().map_err(|e| failed("seccomp")(io::Error::other(e.to_string())))?;
    let (go_read, go_write) = sys::pipe().map_err(failed("pipe"))?;
    let (status_read, status_write) = sys::pipe().map_err(failed("pipe"))?;
    let (uid, gid, root) = (request.host_uid, request.host_gid, request.root);
    let (side, pidfd) = sys::clone_into_namespaces().map_err(failed("clone into namespaces"))?;
    let init = match side {
        Forked::Child => {
            drop((go_write, status_read));
            inside::main(inside::Inside { request, contents, stdio, go: go_read, status: status_write, filters })
        }
        Forked::Parent { pid } => pid,
    };
    drop((go_read, status_write, stdio, contents));
    let Some(pidfd) = pidfd else { return Err(failed("pidfd")(io::ErrorKind::NotFound.into())) };
    let mut started = Started { init, pidfd, status: status_read.into(), _go: go_write.into() };
    let outcome = map_ids(init, uid, gid, root)
        .map_err(failed("map the sandbox's user"))
        .and_then(|()| cgroup.attach(init).map_err(cgroup_failed))
        .and_then(|()| started._go.write_all(&[1]).map_err(failed("start init")))
        .and_then(|()| ready(&started))
        .and_then(|()| wire::write_message(socket, &Reply::Started).map_err(failed("answer the caller")));
    if let Err(e) = outcome {
        let _ = sys::kill_by_pidfd(&started.pidfd); // fails if init ended by itself
        let _ = sys::wait(init);
        return Err(e);
    }
    Ok(started)
}

fn map_ids(init: i32, uid: u32, gid: u32, root: bool) -> io::Result<()> {
    let write = |file: &str, text: String| fs::write(format!("/proc/{init}/{file}"), text);
    if !root {
        write("setgroups", "deny".into())?; // the kernel asks this of ordinary users
    }
    write("uid_map", format!("{SANDBOX_ID} {uid} 1"))?;
    write("gid_map", format!("{SANDBOX_ID} {gid} 1"))
}

/// Waits for init's word that all is set up.
fn ready(started: &Started) -> Result<(), Failed> {
    let mut fds = [sys::poll_fd(started.status.as_raw_fd(), libc::POLLIN)];
    if sys::poll(&mut fds, Instant::now() + SETUP).map_err(failed("wait for init"))? == 0 {
        return Err(failed("set up in time")(io::Error::from_raw_os_error(libc::EAGAIN)));
    }
    match Status::read(&started.status).map_err(failed("set-up of init"))? {
        Status::Ready => Ok(()),
        Status::Failed { what, errno } => Err(failed(&what)(io::Error::from_raw_os_error(errno))),
        Status::Exited { .. } => Err(failed("set-up of init")(io::ErrorKind::UnexpectedEof.into())),
    }
}
