//! A helper that keeps an interpreter warm and holds one sandbox after the other for it.
//!
//! In: descriptor 0, a socket to the caller: one [`Warm`] message, then a socket for each run. Out: on each of those what a
//! helper of one run says. What must hold: the interpreter runs nothing of a run, as a user that is the slot's and root over
//! nothing but this user namespace; each run has namespaces, limits and a root of its own, as from a cold start.
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

use serde_json::json;

use super::ahead::Ground;
use super::status::Status;
use super::{Failed, Kept, SANDBOX_ID, failed, inside, map_ids, ready, seccomp, word};
use crate::cgroup::Cgroup;
use crate::namespaces::User;
use crate::sys::{self, Cloned, Forked};
use crate::wire::{self, Reply, Request, Stdio, Warm};

const ZYGOTE: &str = include_str!("zygote.py");

/// A loaded interpreter.
pub struct Zygote {
    socket: UnixStream,
    /// The user namespace it is root in, which is the parent of those of its runs.
    users: OwnedFd,
}

/// A program that was forked from it and is set up.
pub struct ForkedProgram {
    pub pid: i32,
    pub status: File,
}

/// Until the caller closes its end.
pub fn serve(caller: UnixStream) -> io::Result<()> {
    let hello: Warm = wire::read_message(&caller)?;
    let kept = match load(&hello) {
        Ok(kept) => kept,
        Err(Failed { what, error, cgroup }) => {
            let errno = error.raw_os_error().unwrap_or(libc::EIO);
            return wire::write_message(&caller, &Reply::Failed { what, errno, cgroup });
        }
    };
    wire::write_message(&caller, &Reply::Started)?;
    while let Ok([socket]) = sys::receive_fds(&caller) {
        super::serve_next(UnixStream::from(socket), &kept);
        if !kept.zygote.as_ref().is_some_and(Zygote::is_alive) {
            break; // the caller finds the socket closed and loads another
        }
    }
    Ok(())
}

fn load(hello: &Warm) -> Result<Kept, Failed> {
    let kept = Kept::new();
    let zygote = Some(Zygote::start(hello, &kept.filter)?);
    Ok(Kept { zygote, ..kept })
}

impl Zygote {
    fn start(hello: &Warm, filter: &seccompiler::BpfProgram) -> Result<Zygote, Failed> {
        let (socket, theirs) = UnixStream::pair().map_err(failed("socket"))?;
        let null = File::options().read(true).write(true).open("/dev/null").map_err(failed("/dev/null"))?;
        let pid = match sys::fork().map_err(failed("fork"))? {
            Forked::Child => {
                drop(socket);
                let _ = become_interpreter(hello, &theirs, &null);
                sys::exit_now(126)
            }
            Forked::Parent { pid } => pid,
        };
        drop(theirs);
        let mut word = [0];
        (&socket).read_exact(&mut word).map_err(failed("namespaces of the warm interpreter"))?;
        map_ids(pid, 0, hello.user).map_err(failed("map the interpreter's user"))?;
        let users = File::open(format!("/proc/{pid}/ns/user")).map_err(failed("the interpreter's user namespace"))?;
        (&socket).write_all(&word).map_err(failed("start the warm interpreter"))?;
        let hello = json!({ "preload": hello.preload, "programs": hello.programs, "filter": seccomp::hex(filter) });
        wire::write_message(&socket, &hello).map_err(failed("start the warm interpreter"))?;
        let zygote = Zygote { socket, users: users.into() };
        let status = zygote.socket.as_fd().try_clone_to_owned().map_err(failed("socket"))?;
        ready(&status.into())?;
        Ok(zygote)
    }

    /// Clones init into fresh namespaces below the interpreter's, as a child of this process. A process in between does it,
    /// since this one must stay what it is to make groups.
    pub fn clone_into_namespaces(&self, ground: &Ground) -> Result<Cloned, Failed> {
        let (answer, theirs) = sys::pipe().map_err(failed("pipe"))?;
        let between = match sys::fork().map_err(failed("fork"))? {
            Forked::Child => {
                drop(answer);
                match self.clone_below(ground) {
                    Ok(Cloned::Child) => return Ok(Cloned::Child),
                    Ok(Cloned::Parent { pid, .. }) => tell(theirs, pid, 0),
                    Err(e) => tell(theirs, 0, e.raw_os_error().unwrap_or(libc::EIO)),
                }
            }
            Forked::Parent { pid } => pid,
        };
        drop(theirs);
        let mut words = [0; 8];
        let told = File::from(answer).read_exact(&mut words);
        sys::wait(between).map_err(failed("clone into namespaces"))?;
        told.map_err(failed("clone into namespaces"))?;
        let number = |at: usize| i32::from_ne_bytes([words[at], words[at + 1], words[at + 2], words[at + 3]]);
        let (pid, errno) = (number(0), number(4));
        if errno != 0 {
            return Err(failed("clone into namespaces")(io::Error::from_raw_os_error(errno)));
        }
        let pidfd = sys::pidfd_of(pid).map_err(failed("pidfd"))?;
        Ok(Cloned::Parent { pid, pidfd })
    }

    fn clone_below(&self, ground: &Ground) -> io::Result<Cloned> {
        // The slot's user may not look into the folders above; init goes on from here.
        std::env::set_current_dir(&ground.rootfs)?;
        sys::join_user_namespace(&self.users)?;
        sys::become_user(0, ground.user.root)?;
        sys::prctl(libc::PR_SET_DUMPABLE, 1)?; // so that init's files under /proc are its own
        let cloned = sys::clone_into_namespaces(libc::CLONE_PARENT)?;
        if let Cloned::Parent { pid, .. } = &cloned {
            map_ids(*pid, SANDBOX_ID, User { host_uid: 0, host_gid: 0, ..ground.user })?;
        }
        Ok(cloned)
    }

    /// It says nothing between runs: something to read is the end of its socket.
    fn is_alive(&self) -> bool {
        let mut fds = [sys::poll_fd(self.socket.as_raw_fd(), libc::POLLIN)];
        matches!(sys::poll(&mut fds, Instant::now()), Ok(0))
    }

    /// Has a program forked into the namespaces of a sandbox that is set up, and into its group.
    pub fn fork(
        &self,
        request: &Request,
        stdio: &Stdio,
        namespaces: [OwnedFd; 7],
        group: &Cgroup,
    ) -> Result<ForkedProgram, Failed> {
        let (report, theirs) = UnixStream::pair().map_err(failed("socket"))?;
        let env = inside::Place::root(&request.rootfs).environment(&request.env);
        let env: serde_json::Map<_, _> = env.into_iter().map(|(name, value)| (name, value.into())).collect();
        let limits = inside::resource_limits(request, u64::from(request.limits.pids) + 1);
        let job = json!({ "argv": request.argv, "env": env, "limits": limits });
        let theirs: OwnedFd = theirs.into();
        let ([stdin, stdout, stderr], [user, pid, net, ipc, uts, cgroup, mnt]) = (stdio, &namespaces);
        let all = [stdin, stdout, stderr, &theirs, user, pid, net, ipc, uts, cgroup, mnt];
        sys::send_fds(&self.socket, all)
            .and_then(|()| wire::write_message(&self.socket, &job))
            .map_err(failed("ask the warm interpreter"))?;
        drop(theirs);
        let status = report.as_fd().try_clone_to_owned().map(File::from).map_err(failed("socket"))?;
        let pid = match word(&status)? {
            Status::Forked { pid } => pid,
            Status::Failed { what, errno } => return Err(failed(&what)(io::Error::from_raw_os_error(errno))),
            Status::Ready | Status::Exited { .. } => return Err(failed("fork")(io::ErrorKind::InvalidData.into())),
        };
        group.attach(pid).map_err(super::cgroup_failed)?;
        (&report).write_all(&[1]).map_err(failed("start the program"))?;
        ready(&status)?;
        Ok(ForkedProgram { pid, status })
    }
}

/// Says a pid, or why there is none, and ends.
fn tell(to: OwnedFd, pid: i32, errno: i32) -> ! {
    let words: Vec<u8> = pid.to_ne_bytes().into_iter().chain(errno.to_ne_bytes()).collect();
    sys::exit_now(i32::from(File::from(to).write_all(&words).is_err()))
}

/// Becomes the interpreter, which sees nothing but the root file system, read-only. Returns only an error.
fn become_interpreter(hello: &Warm, socket: &UnixStream, null: &File) -> io::Result<()> {
    sys::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong)?;
    let flags = libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWNET | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;
    sys::unshare(flags)?;
    // The helper says who is who here.
    let mut word = [1];
    let mut talk = socket;
    talk.write_all(&word)?;
    talk.read_exact(&mut word)?;
    inside::enter_root(&hello.rootfs, false)?;
    sys::pivot_to_current_folder()?;
    sys::become_user(0, hello.user.root)?;
    sys::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong)?; // a change of user cleared it
    sys::put_at(&socket.as_fd().try_clone_to_owned()?, 0)?;
    let null = OwnedFd::from(null.try_clone()?);
    sys::put_at(&null, 1)?;
    sys::put_at(&null, 2)?;
    sys::close_all_from_3();
    sys::reset_signals();
    let mut argv = hello.argv.clone();
    argv.extend(["-c".into(), ZYGOTE.into()]);
    let program = sys::cstring(if argv[0].contains('/') { argv[0].clone() } else { format!("/usr/bin/{}", argv[0]) })?;
    let argv = argv.iter().map(sys::cstring).collect::<io::Result<Vec<_>>>()?;
    // An interpreter finds its own library by its name and PATH.
    let env = inside::Place::root(Path::new("/")).environment(&hello.env);
    let env = env.iter().map(|(n, v)| sys::cstring(format!("{n}={v}"))).collect::<io::Result<Vec<_>>>()?;
    Err(sys::exec(&program, &argv, &env))
}
