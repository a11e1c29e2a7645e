//! The helper process: holds one sandbox after the other for a caller, never two at once, and cleans up after each whatever
//! happens to the caller.
//!
//! In: descriptor 0, a socket to the caller, and on it a socket for each run, with one request. Out: replies on that. What
//! must hold: one thread, so that a clone may allocate; an empty environment, which init would show in /proc/1/environ; no
//! file of a run in this process's memory, which the next run's init has a copy of; nothing is left when it ends.
mod ahead;
mod bpf;
mod collect;
mod inside;
mod landlock;
mod seccomp;
mod status;
mod tree;
mod warm;
mod watch;

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::cgroup::Cgroup;
use crate::namespaces::User;
use crate::sys::{self, Cloned};
use crate::wire::{self, Reply, Request, Stdio};
use crate::{Collected, Facts};
use ahead::{Ahead, Ground, Waiting};
use landlock::RunFolder;
pub use landlock::{OLDEST as OLDEST_LANDLOCK, sweep as sweep_run_folders};
pub use seccomp::docker_profile;
use status::Status;
use warm::Zygote;
pub use watch::is_idle;

/// The first argument that makes a program the helper.
pub const ARGUMENT: &str = "__sandbox-helper";
/// The same for a helper whose programs are forked from a warm interpreter.
pub const WARM_ARGUMENT: &str = "__sandbox-warm";

/// The user and group a program has inside: no number that means something there, and never 0.
const SANDBOX_ID: u32 = 1000;

/// How long a set-up may take before the helper gives up.
const SETUP: Duration = Duration::from_secs(45);

/// Call this first thing in `main`: if this process was started as a sandbox helper it does that work and exits, otherwise
/// it returns at once.
pub fn helper_main_if_asked() {
    let Some(argument) = std::env::args_os().nth(1) else { return };
    let served = match argument.to_str() {
        Some(ARGUMENT) => caller().and_then(serve_cold),
        Some(WARM_ARGUMENT) => caller().and_then(warm::serve),
        _ => return,
    };
    // On an error the caller is gone, or sees the socket close.
    sys::exit_now(i32::from(served.is_err()))
}

/// The socket to the caller.
fn caller() -> io::Result<UnixStream> {
    // The caller ends this process by closing the socket; a signal to the whole job must not do it half-way.
    for number in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2, libc::SIGPIPE] {
        sys::signal(number, true);
    }
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    fs::File::open("/dev/null").and_then(|null| sys::put_at(&null.into(), 0))?;
    Ok(socket)
}

/// What a helper keeps from run to run.
struct Kept {
    filter: seccompiler::BpfProgram,
    zygote: Option<Zygote>,
    ahead: Ahead,
}

impl Kept {
    fn new() -> Kept {
        Kept { filter: seccomp::filter(), zygote: None, ahead: Ahead::default() }
    }
}

/// Runs that start their programs cold, until the caller closes its end.
fn serve_cold(caller: UnixStream) -> io::Result<()> {
    let kept = Kept::new();
    while let Ok([socket]) = sys::receive_fds(&caller) {
        serve_next(UnixStream::from(socket), &kept);
    }
    Ok(())
}

/// One run, and what can be done for the next before it comes.
fn serve_next(socket: UnixStream, kept: &Kept) {
    let served = serve(&socket, kept);
    drop(socket);
    // An error is that run's caller gone; the next run begins afresh.
    if let Ok(Some(ground)) = served {
        kept.ahead.make(ground, kept);
    }
}

/// One run, from its request to its facts. If it went well, and in namespaces, what it stood on.
fn serve(socket: &UnixStream, kept: &Kept) -> io::Result<Option<Ground>> {
    let (request, stdio) = wire::receive_request(socket)?;
    let (reply, files) = match hold(socket, &request, stdio, kept) {
        Ok((facts, Collected { files, refused })) => {
            let lengths = files.iter().map(|(path, bytes)| (path.clone(), bytes.len() as u64)).collect();
            (Reply::Done { facts, files: lengths, refused }, files)
        }
        Err(Failed { what, error, cgroup }) => {
            (Reply::Failed { what, errno: error.raw_os_error().unwrap_or(libc::EIO), cgroup }, vec![])
        }
    };
    wire::write_message(socket, &reply)?;
    wire::write_contents(socket, &files)?;
    if matches!(reply, Reply::Failed { .. }) {
        // The caller may still be writing files: closing now could cost it the answer.
        socket.shutdown(std::net::Shutdown::Write)?;
        io::copy(&mut &*socket, &mut io::sink())?;
        return Ok(None);
    }
    Ok(request.landlock.is_none().then(|| Ground::of(&request)))
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

fn hold(socket: &UnixStream, request: &Request, stdio: Stdio, kept: &Kept) -> Result<(Facts, Collected), Failed> {
    if let Some(runs) = &request.landlock {
        return hold_with_landlock(socket, request, stdio, runs, kept);
    }
    let (cgroup, waiting) = kept.ahead.take(Ground::of(request), kept)?;
    let limited = cgroup.limit(&request.limits).map_err(cgroup_failed).inspect_err(|_| waiting.end());
    let started = limited.and_then(|()| start(socket, &cgroup, waiting, request, stdio, kept));
    let ended = started.and_then(|started| watch(socket, &cgroup, &started, request, &|| false));
    cgroup.remove();
    ended
}

fn hold_with_landlock(
    socket: &UnixStream,
    request: &Request,
    stdio: Stdio,
    runs: &Path,
    kept: &Kept,
) -> Result<(Facts, Collected), Failed> {
    let folder = RunFolder::create(runs, request.user.host_uid, request.user.host_gid);
    let folder = folder.map_err(failed("make the run's folder"))?;
    let ended = kept.ahead.group(&request.cgroup).and_then(|cgroup| {
        let started = cgroup.limit(&request.limits).map_err(cgroup_failed);
        let started = started.and_then(|()| start_with_landlock(socket, &cgroup, &folder, request, stdio, kept));
        let ended = started.and_then(|started| {
            let disk = inside::disk_size(request);
            watch(socket, &cgroup, &started, request, &|| folder.is_over(disk, started.init))
        });
        landlock::kill_descendants(); // of an init that somebody killed
        cgroup.remove();
        ended
    });
    folder.remove();
    ended
}

/// Until the end of a started sandbox.
fn watch(
    socket: &UnixStream,
    cgroup: &Cgroup,
    started: &Started,
    request: &Request,
    disk_is_full: &dyn Fn() -> bool,
) -> Result<(Facts, Collected), Failed> {
    let watch = watch::Watch {
        init: started.init,
        roots: &started.roots,
        pidfd: &started.pidfd,
        status: &started.status,
        caller: socket,
        cgroup,
        plan: &request.cgroup,
        limits: &request.limits,
        program: started.program,
        end: &|| started.end(),
        disk_is_full,
    };
    let facts = watch.to_end().map_err(failed("watch"))?;
    // Nothing of the run lives any more: what is read now stays as it is.
    let read = |work| collect::read(work, &request.collect, request.limits.collect_bytes);
    Ok((facts, started.work.as_ref().map(read).unwrap_or_default()))
}

/// A sandbox whose program runs.
struct Started {
    init: i32,
    /// Init, and the program where it is no child of init.
    roots: Vec<i32>,
    pidfd: OwnedFd,
    status: File,
    /// Open as long as this process lives: init looks at it to see that it does.
    go: UnixStream,
    /// Whether init goes with all below it when it is killed: the kernel does that in a pid namespace, otherwise init does
    /// it when it is asked.
    kill: bool,
    /// The program's host pid, where it is known.
    program: Option<i32>,
    /// The folder /work, where something is to be brought out of it.
    work: Option<OwnedFd>,
}

impl Started {
    fn end(&self) {
        if self.kill {
            let _ = sys::kill_by_pidfd(&self.pidfd); // fails if init ended by itself
        }
        // Both fail if init ended by itself.
        let _ = (&self.go).write_all(&[1]);
        let _ = self.go.shutdown(std::net::Shutdown::Both);
    }
}

fn start(
    socket: &UnixStream,
    cgroup: &Cgroup,
    waiting: Waiting,
    request: &Request,
    stdio: Stdio,
    kept: &Kept,
) -> Result<Started, Failed> {
    let Waiting { init, pidfd, status, go, taken } = waiting;
    let mut started = Started { init, roots: vec![init], pidfd, status, go, kill: true, program: None, work: None };
    let sent = wire::pass_on(&started.go, socket, request, &stdio);
    // What went wrong in the set-up says more than a broken pipe.
    let outcome = ready(&started.status)
        .and_then(|()| sent.map_err(failed("hand init its run")))
        .and_then(|()| take_over(&mut started, &taken, kept.zygote.as_ref(), request, &stdio, cgroup));
    answer(socket, started, outcome)
}

fn start_with_landlock(
    socket: &UnixStream,
    cgroup: &Cgroup,
    folder: &RunFolder,
    request: &Request,
    stdio: Stdio,
    kept: &Kept,
) -> Result<Started, Failed> {
    sys::prctl(libc::PR_SET_CHILD_SUBREAPER, 1).map_err(failed("prctl"))?;
    let (our_go, go) = UnixStream::pair().map_err(failed("socket"))?;
    let (our_status, status) = sys::pipe().map_err(failed("pipe"))?;
    let work = File::open(folder.work()).map_err(failed("open the work folder"))?;
    let (init, pidfd) = match sys::clone_with(0).map_err(failed("clone"))? {
        Cloned::Child => {
            drop((our_go, our_status));
            landlock::main(
                landlock::Inside { request, stdio, source: socket, go, status, filter: &kept.filter },
                folder,
            )
        }
        Cloned::Parent { pid, pidfd } => (pid, pidfd),
    };
    drop((go, status, stdio));
    let (roots, status, work) = (vec![init], our_status.into(), Some(work.into()));
    let mut started = Started { init, roots, pidfd, status, go: our_go, kill: false, program: None, work };
    let outcome = begin(&mut started, cgroup).and_then(|()| match word(&started.status)? {
        Status::Forked { pid } => {
            started.program = Some(pid);
            ready(&started.status)
        }
        Status::Failed { what, errno } => Err(failed(&what)(io::Error::from_raw_os_error(errno))),
        Status::Ready | Status::Exited { .. } => Err(failed("set-up")(io::ErrorKind::UnexpectedEof.into())),
    });
    answer(socket, started, outcome)
}

/// Lets init go on, inside its cgroup.
fn begin(started: &mut Started, cgroup: &Cgroup) -> Result<(), Failed> {
    cgroup.attach(started.init).map_err(cgroup_failed)?;
    started.go.write_all(&[1]).map_err(failed("start init"))
}

/// Tells the caller, and leaves nothing if something went wrong.
fn answer(socket: &UnixStream, started: Started, outcome: Result<(), Failed>) -> Result<Started, Failed> {
    let told = outcome.and_then(|()| wire::write_message(socket, &Reply::Started).map_err(failed("answer the caller")));
    if let Err(e) = told {
        started.end();
        let _ = sys::wait(started.init);
        return Err(e);
    }
    Ok(started)
}

/// Takes what init handed over before it said that it was ready, and has the program forked where that is not init's work.
fn take_over(
    started: &mut Started,
    socket: &UnixStream,
    zygote: Option<&Zygote>,
    request: &Request,
    stdio: &Stdio,
    cgroup: &Cgroup,
) -> Result<(), Failed> {
    if !request.collect.is_empty() {
        let [work] = sys::receive_fds(socket).map_err(failed("take the work folder"))?;
        started.work = Some(work);
    }
    let Some(zygote) = zygote else { return Ok(()) };
    let namespaces = sys::receive_fds(socket).map_err(failed("take the namespaces"))?;
    let forked = zygote.fork(request, stdio, namespaces, cgroup)?;
    started.roots.push(forked.pid);
    started.status = forked.status;
    Ok(())
}

/// Says which user and group outside `inner` is within a process's user namespace.
fn map_ids(pid: i32, inner: u32, user: User) -> io::Result<()> {
    let write = |file: &str, text: String| fs::write(format!("/proc/{pid}/{file}"), text);
    if !user.root {
        write("setgroups", "deny".into())?; // the kernel asks this of ordinary users
    }
    write("uid_map", format!("{inner} {} 1", user.host_uid))?;
    write("gid_map", format!("{inner} {} 1", user.host_gid))
}

/// Waits for the word that all is set up.
fn ready(status: &File) -> Result<(), Failed> {
    match word(status)? {
        Status::Ready => Ok(()),
        Status::Failed { what, errno } => Err(failed(&what)(io::Error::from_raw_os_error(errno))),
        Status::Forked { .. } | Status::Exited { .. } => Err(failed("set-up")(io::ErrorKind::UnexpectedEof.into())),
    }
}

/// The next word on a status pipe, waited for as long as a set-up may take.
fn word(status: &File) -> Result<Status, Failed> {
    let mut fds = [sys::poll_fd(status.as_raw_fd(), libc::POLLIN)];
    if sys::poll(&mut fds, Instant::now() + SETUP).map_err(failed("wait for the set-up"))? == 0 {
        return Err(failed("set up in time")(io::Error::from_raw_os_error(libc::EAGAIN)));
    }
    Status::read(status).map_err(|e| match e.kind() {
        // Whoever was to say it was killed: the next try has another.
        io::ErrorKind::UnexpectedEof => failed("set-up")(io::Error::from_raw_os_error(libc::EPIPE)),
        _ => failed("set-up")(e),
    })
}
