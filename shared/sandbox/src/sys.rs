//! The system calls this crate makes, each behind a safe signature that returns `io::Result`.
#![allow(unsafe_code)] // the kernel's interface: std offers none of clone3, pidfd, mount, descriptor passing, prctl
use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// Turns the kernel's -1 into the error it means.
fn check(r: libc::c_long) -> io::Result<libc::c_long> {
    if r < 0 { Err(io::Error::last_os_error()) } else { Ok(r) }
}

pub fn cstring(s: impl AsRef<OsStr>) -> io::Result<CString> {
    CString::new(s.as_ref().as_bytes()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

/// A pipe, close-on-exec on both ends: (read end, write end).
pub fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds = [0; 2];
    // SAFETY: `fds` has room for the two descriptors, which nobody else owns.
    unsafe {
        check(libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC).into())?;
        Ok((OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])))
    }
}

pub fn set_nonblocking(fd: &OwnedFd) -> io::Result<()> {
    // SAFETY: plain integers.
    unsafe {
        let flags = check(libc::fcntl(fd.as_raw_fd(), libc::F_GETFL).into())?;
        check(libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, flags as libc::c_int | libc::O_NONBLOCK).into())?;
    }
    Ok(())
}

pub fn chown_fd(fd: &OwnedFd, uid: u32, gid: u32) -> io::Result<()> {
    // SAFETY: plain integers.
    unsafe { check(libc::fchown(fd.as_raw_fd(), uid, gid).into()) }.map(drop)
}

pub fn read(fd: &OwnedFd, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the kernel writes at most `buffer.len()` bytes into `buffer`.
    let n = unsafe { libc::read(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
    check(n as libc::c_long).map(|n| n as usize)
}

pub fn write(fd: &OwnedFd, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: the kernel reads at most `bytes.len()` bytes of `bytes`.
    let n = unsafe { libc::write(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) };
    check(n as libc::c_long).map(|n| n as usize)
}

/// Opens `path` below the folder `at` for reading and nothing else: no link is followed, no mount crossed, no FIFO waited for.
/// `flags` are added.
pub fn open_beneath(at: RawFd, path: &OsStr, flags: libc::c_int) -> io::Result<OwnedFd> {
    let path = cstring(path)?;
    let always = libc::O_RDONLY | libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC | libc::O_NOCTTY;
    // SAFETY: a live C string and a struct of the size that is said; valid for zeroes, and the new descriptor is ours alone.
    unsafe {
        let mut how: libc::open_how = std::mem::zeroed();
        how.flags = (always | flags) as u64;
        how.resolve =
            libc::RESOLVE_BENEATH | libc::RESOLVE_NO_SYMLINKS | libc::RESOLVE_NO_MAGICLINKS | libc::RESOLVE_NO_XDEV;
        let fd = check(libc::syscall(libc::SYS_openat2, at, path.as_ptr(), &how, size_of_val(&how)))?;
        Ok(OwnedFd::from_raw_fd(fd as RawFd))
    }
}

/// Effective user and group of this process.
pub fn effective_ids() -> (u32, u32) {
    // SAFETY: these cannot fail.
    unsafe { (libc::geteuid(), libc::getegid()) }
}

/// An advisory lock on an open file; false when another open file has it.
pub fn try_lock(file: &std::fs::File, blocking: bool) -> io::Result<bool> {
    let how = libc::LOCK_EX | if blocking { 0 } else { libc::LOCK_NB };
    // SAFETY: plain integers.
    match unsafe { check(libc::flock(file.as_raw_fd(), how).into()) } {
        Ok(_) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(false),
        Err(e) => Err(e),
    }
}

/// What to wait for on a descriptor, and what came.
pub type PollFd = libc::pollfd;

pub fn poll_fd(fd: RawFd, events: libc::c_short) -> PollFd {
    PollFd { fd, events, revents: 0 }
}

/// Waits until something is ready or the deadline passes (then 0); interruptions are not seen.
pub fn poll(fds: &mut [PollFd], deadline: Instant) -> io::Result<usize> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let milliseconds = left.min(Duration::from_secs(3600)).as_micros().div_ceil(1000) as libc::c_int;
        // SAFETY: `fds` is a slice of pollfd of that length.
        match unsafe { check(libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, milliseconds).into()) } {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            other => return other.map(|n| n as usize),
        }
    }
}

/// Room for one control message with up to twelve descriptors, aligned for its header.
#[repr(C, align(8))]
struct Control([u8; 64]);

/// Sends one byte with descriptors on it.
pub fn send_fds<const N: usize>(socket: &UnixStream, fds: [&OwnedFd; N]) -> io::Result<()> {
    const { assert!(N <= 12, "more than the control message holds") };
    let raw = fds.map(|f| f.as_raw_fd());
    let size = size_of_val(&raw) as libc::c_uint;
    let mut byte = [1u8];
    let mut part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    let mut control = Control([0; 64]);
    // SAFETY: the message points at live locals; 64 bytes hold CMSG_SPACE(48), and CMSG_FIRSTHDR points into them.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        (message.msg_iov, message.msg_iovlen) = (&mut part, 1);
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(size) as _;
        let header = libc::CMSG_FIRSTHDR(&message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(size) as _;
        std::ptr::copy_nonoverlapping(raw.as_ptr().cast::<u8>(), libc::CMSG_DATA(header), size as usize);
        check(libc::sendmsg(socket.as_raw_fd(), &message, libc::MSG_NOSIGNAL) as libc::c_long)?;
    }
    Ok(())
}

/// Receives what [`send_fds`] sent; the descriptors are close-on-exec.
pub fn receive_fds<const N: usize>(socket: &UnixStream) -> io::Result<[OwnedFd; N]> {
    const { assert!(N <= 12, "more than the control message holds") };
    let mut raw: [RawFd; N] = [-1; N];
    let size = size_of_val(&raw) as libc::c_uint;
    let mut byte = [0u8];
    let mut part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    let mut control = Control([0; 64]);
    // SAFETY: as in `send_fds`; the data is read only when its header says that it holds exactly N descriptors.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        (message.msg_iov, message.msg_iovlen) = (&mut part, 1);
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = control.0.len() as _;
        check(libc::recvmsg(socket.as_raw_fd(), &mut message, libc::MSG_CMSG_CLOEXEC) as libc::c_long)?;
        let header = libc::CMSG_FIRSTHDR(&message);
        let whole = libc::CMSG_LEN(size) as usize;
        if header.is_null() || (*header).cmsg_type != libc::SCM_RIGHTS || (*header).cmsg_len as usize != whole {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        std::ptr::copy_nonoverlapping(libc::CMSG_DATA(header), raw.as_mut_ptr().cast::<u8>(), size as usize);
        Ok(raw.map(|fd| OwnedFd::from_raw_fd(fd)))
    }
}

/// Which side of a [`fork`] this is.
pub enum Forked {
    Child,
    Parent { pid: i32 },
}

/// Which side of a [`clone_with`] this is.
pub enum Cloned {
    Child,
    Parent { pid: i32, pidfd: OwnedFd },
}

/// Clones this process into fresh user, pid, mount, net, ipc and uts namespaces. With CLONE_PARENT in `more` the child is
/// one of this process's parent.
pub fn clone_into_namespaces(more: libc::c_int) -> io::Result<Cloned> {
    const NEW: libc::c_int = libc::CLONE_NEWUSER
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWNET
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS;
    clone_with(NEW | more)
}

/// Clones this process with these flags. Only for a single-threaded process: the child goes on with a copy of this memory.
pub fn clone_with(flags: libc::c_int) -> io::Result<Cloned> {
    let mut pidfd: libc::c_int = -1;
    let flags = (flags | libc::CLONE_PIDFD | libc::SIGCHLD) as libc::c_ulong;
    // SAFETY: without a stack argument and without CLONE_VM this is a fork; the process has one thread, so no lock of
    // another is held in the copy. The kernel writes the pidfd, which nobody else owns. clone, not clone3: containers'
    // filters answer ENOSYS to clone3. The first three arguments are in the same order on x86-64 and arm64.
    unsafe {
        let zero: libc::c_ulong = 0;
        let pid = check(libc::syscall(libc::SYS_clone, flags, zero, &mut pidfd as *mut libc::c_int, zero, zero))?;
        if pid == 0 {
            return Ok(Cloned::Child);
        }
        Ok(Cloned::Parent { pid: pid as i32, pidfd: OwnedFd::from_raw_fd(pidfd) })
    }
}

/// Plain fork of a single-threaded process.
pub fn fork() -> io::Result<Forked> {
    // SAFETY: the process has one thread, so no lock of another is held in the copy.
    match unsafe { check(libc::fork().into())? } {
        0 => Ok(Forked::Child),
        pid => Ok(Forked::Parent { pid: pid as i32 }),
    }
}

/// Ends this process at once, without running anything of std's.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: does not return.
    unsafe { libc::_exit(code) }
}

pub fn kill_by_pidfd(pidfd: &OwnedFd) -> io::Result<()> {
    let none: *const libc::siginfo_t = std::ptr::null();
    // SAFETY: plain integers and a null pointer, which the call allows.
    unsafe { check(libc::syscall(libc::SYS_pidfd_send_signal, pidfd.as_raw_fd(), libc::SIGKILL, none, 0)) }.map(drop)
}

/// Kills one process by its number; only for descendants whose numbers cannot have been given to others yet.
pub fn kill(pid: i32) {
    // SAFETY: plain integers. One that is gone already is what was wanted.
    unsafe { libc::kill(pid, libc::SIGKILL) };
}

pub fn parent_pid() -> i32 {
    // SAFETY: cannot fail.
    unsafe { libc::getppid() }
}

/// The version of Landlock that this kernel has on, 0 for none.
pub fn landlock_version() -> u32 {
    const VERSION: libc::c_uint = 1;
    let none: *const libc::c_void = std::ptr::null();
    // SAFETY: with this flag the call takes no attributes and makes nothing.
    unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, none, 0usize, VERSION) }.max(0) as u32
}

/// Gives a path to a user and group.
pub fn chown(path: &Path, uid: u32, gid: u32) -> io::Result<()> {
    let path = cstring(path)?;
    // SAFETY: a live C string.
    unsafe { check(libc::lchown(path.as_ptr(), uid, gid).into()) }.map(drop)
}

/// Waits for a child; pid -1 for any. Returns (pid, wait status, CPU time of it and what it reaped).
pub fn wait(pid: i32) -> io::Result<(i32, i32, Duration)> {
    let mut status = 0;
    loop {
        // SAFETY: the kernel fills `status` and `usage`, both valid for zeroes.
        let (got, usage) = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            (check(libc::wait4(pid, &mut status, 0, &mut usage).into()), usage)
        };
        match got {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
            Ok(got) => return Ok((got as i32, status, time(usage.ru_utime) + time(usage.ru_stime))),
        }
    }
}

fn time(t: libc::timeval) -> Duration {
    Duration::from_secs(t.tv_sec.max(0) as u64) + Duration::from_micros(t.tv_usec.max(0) as u64)
}

/// Clock ticks a second, the unit of times in /proc.
pub fn clock_ticks() -> u64 {
    // SAFETY: a plain integer.
    unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as u64
}

/// Size of a page in bytes.
pub fn page_size() -> u64 {
    // SAFETY: a plain integer.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.max(1) as u64
}

/// A descriptor of a child that has not been reaped.
pub fn pidfd_of(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: plain integers; the descriptor is ours alone, close-on-exec.
    unsafe { Ok(OwnedFd::from_raw_fd(check(libc::syscall(libc::SYS_pidfd_open, pid, 0))? as RawFd)) }
}

/// Joins the user namespace behind a descriptor.
pub fn join_user_namespace(fd: &OwnedFd) -> io::Result<()> {
    // SAFETY: plain integers.
    unsafe { check(libc::setns(fd.as_raw_fd(), libc::CLONE_NEWUSER).into()) }.map(drop)
}

/// Files made from now on have the modes they are given.
pub fn set_umask(mask: libc::mode_t) {
    // SAFETY: cannot fail.
    unsafe { libc::umask(mask) };
}

/// Leaves namespaces for fresh ones.
pub fn unshare(flags: libc::c_int) -> io::Result<()> {
    // SAFETY: a plain integer.
    unsafe { check(libc::unshare(flags).into()) }.map(drop)
}

/// Becomes `id`, user and group, real, effective and saved; drops supplementary groups if asked.
pub fn become_user(id: u32, drop_groups: bool) -> io::Result<()> {
    // SAFETY: plain integers, and a null list of length 0.
    unsafe {
        if drop_groups {
            check(libc::setgroups(0, std::ptr::null()).into())?;
        }
        check(libc::setresgid(id, id, id).into())?;
        check(libc::setresuid(id, id, id).into())?;
    }
    Ok(())
}

/// A `prctl` with one argument.
pub fn prctl(option: libc::c_int, argument: libc::c_ulong) -> io::Result<()> {
    let zero: libc::c_ulong = 0;
    // SAFETY: the options used here take integers.
    unsafe { check(libc::prctl(option, argument, zero, zero, zero).into()) }.map(drop)
}

/// Empties the bounding set, as far as this process may.
pub fn drop_bounding_set() {
    for capability in 0..64 {
        if prctl(libc::PR_CAPBSET_DROP, capability).is_err() {
            break; // past the last the kernel knows
        }
    }
}

/// Drops every capability, the bounding set first.
pub fn drop_capabilities() -> io::Result<()> {
    #[repr(C)]
    struct Header(u32, i32);
    const VERSION_3: u32 = 0x2008_0522;
    drop_bounding_set();
    let (header, none) = (Header(VERSION_3, 0), [0u32; 6]);
    // SAFETY: version 3 of the call reads a header and two triples of 32 bits.
    unsafe { check(libc::syscall(libc::SYS_capset, &header, none.as_ptr())) }.map(drop)
}

/// Sets a resource limit for good, soft and hard; a hard limit that is lower already stays.
pub fn set_limit(resource: impl TryInto<u32>, value: u64) -> io::Result<()> {
    let resource = resource.try_into().map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a live local. The type of the first argument differs between C libraries.
    unsafe {
        check(libc::getrlimit(resource as _, &mut limit).into())?;
        let value = (value as libc::rlim_t).min(limit.rlim_max);
        limit = libc::rlimit { rlim_cur: value, rlim_max: value };
        check(libc::setrlimit(resource as _, &limit).into())
    }
    .map(drop)
}

pub fn new_session() -> io::Result<()> {
    // SAFETY: no arguments.
    unsafe { check(libc::setsid().into()) }.map(drop)
}

pub fn set_hostname(name: &str) -> io::Result<()> {
    // SAFETY: pointer and length of a live string.
    unsafe { check(libc::sethostname(name.as_ptr().cast(), name.len() as _).into()) }.map(drop)
}

/// Turns on the loopback device of this network namespace, the only one in it.
pub fn turn_on_loopback() -> io::Result<()> {
    // SAFETY: a new descriptor that nothing else owns; the request is a whole struct with a name that ends in NUL, and
    // outlives both calls.
    unsafe {
        let socket = check(libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0).into())?;
        let socket = OwnedFd::from_raw_fd(socket as RawFd);
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[0] = b'l' as libc::c_char;
        request.ifr_name[1] = b'o' as libc::c_char;
        check(libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFFLAGS as _, &mut request).into())?;
        request.ifr_ifru.ifru_flags |= libc::IFF_UP as libc::c_short;
        check(libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &request).into()).map(drop)
    }
}

/// Handling of a signal by the whole process.
pub fn signal(number: libc::c_int, ignore: bool) {
    // SAFETY: no handler of ours is installed; numbers that have none fail without effect.
    unsafe { libc::signal(number, if ignore { libc::SIG_IGN } else { libc::SIG_DFL }) };
}

/// Handles every signal as a fresh program does, and lets it through.
pub fn reset_signals() {
    for number in 1..=64 {
        signal(number, false);
    }
    // SAFETY: an empty set is a valid set.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
    }
}

/// `mount(2)`; an empty string stands for "none".
pub fn mount(source: &str, target: impl AsRef<OsStr>, kind: &str, flags: libc::c_ulong, data: &str) -> io::Result<()> {
    let (source, target, kind, data) = (cstring(source)?, cstring(target)?, cstring(kind)?, cstring(data)?);
    // SAFETY: four live C strings.
    unsafe { check(libc::mount(source.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, data.as_ptr().cast()).into()) }
        .map(drop)
}

/// Makes the current folder, a mount, the root, and lets go of the old root.
pub fn pivot_to_current_folder() -> io::Result<()> {
    let here = c".".as_ptr();
    // SAFETY: live C strings.
    unsafe {
        check(libc::syscall(libc::SYS_pivot_root, here, here))?;
        check(libc::umount2(here, libc::MNT_DETACH).into())?;
    }
    Ok(())
}

/// The flags of the mount a path lies on which an unprivileged remount must keep.
pub fn locked_mount_flags(path: &Path) -> io::Result<libc::c_ulong> {
    let path = cstring(path)?;
    // SAFETY: the kernel fills `stat`, valid for zeroes.
    let flags = unsafe {
        let mut stat: libc::statvfs = std::mem::zeroed();
        check(libc::statvfs(path.as_ptr(), &mut stat).into())?;
        stat.f_flag
    };
    let pairs = [
        (libc::ST_NOEXEC, libc::MS_NOEXEC),
        (libc::ST_NOATIME, libc::MS_NOATIME),
        (libc::ST_NODIRATIME, libc::MS_NODIRATIME),
        (libc::ST_RELATIME, libc::MS_RELATIME),
    ];
    Ok(pairs.iter().filter(|(have, _)| flags & have != 0).fold(0, |all, (_, keep)| all | keep))
}

/// Puts a descriptor at a fixed number, open across exec.
pub fn put_at(fd: &OwnedFd, number: RawFd) -> io::Result<()> {
    // SAFETY: plain integers; the numbers 0 to 2 are owned by nobody in the process about to exec.
    unsafe { check(libc::dup2(fd.as_raw_fd(), number).into()) }.map(drop)
}

/// Closes all descriptors from 3 on; where the kernel cannot, they are close-on-exec anyway.
pub fn close_all_from_3() {
    // SAFETY: the process is about to exec and uses none of them again.
    unsafe { libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, 0u32) };
}

/// Replaces the program; returns only the error.
pub fn exec(program: &CString, argv: &[CString], env: &[CString]) -> io::Error {
    let pointers =
        |list: &[CString]| list.iter().map(|s| s.as_ptr()).chain(std::iter::once(std::ptr::null())).collect::<Vec<_>>();
    let (argv, env) = (pointers(argv), pointers(env));
    // SAFETY: null-terminated arrays of live C strings.
    unsafe { libc::execve(program.as_ptr(), argv.as_ptr(), env.as_ptr()) };
    io::Error::last_os_error()
}
