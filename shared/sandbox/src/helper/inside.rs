//! The sandbox's init: pid 1 of the new namespaces, between the clone and the program.
//!
//! In: a socket and a pipe to the helper; over the socket, maybe much later, the request with the program's stdin, stdout,
//! stderr. Out: records on the status pipe. What
//! must hold: the program starts only after every step succeeded; nothing of the host stays mounted, open or set; init
//! itself cannot be looked into (it is not dumpable) and takes everything with it when it ends.
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use libc::{MS_BIND, MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_PRIVATE, MS_RDONLY, MS_REC, MS_REMOUNT, c_ulong};
use seccompiler::BpfProgram;

use super::status::Status;
use super::{SANDBOX_ID, seccomp};
use crate::cgroup::CgroupPlan;
use crate::namespaces::User;
use crate::sys::{self, Forked};
use crate::wire::{self, Request};

/// What init takes over from the helper.
pub struct Inside<'a> {
    /// One byte comes when ids are mapped and the group is entered, then the run; closed when the helper is gone.
    pub go: UnixStream,
    pub status: OwnedFd,
    /// Where the folder /work is handed over, if something is to be brought out of it, and the namespaces, if `warm`.
    pub handed: UnixStream,
    /// The program is not started here: a warm interpreter's child joins these namespaces.
    pub warm: bool,
    pub filter: &'a BpfProgram,
}

/// A step that failed, with the system's error.
pub type Step = Result<(), (&'static str, io::Error)>;

pub fn step(what: &'static str) -> impl FnOnce(io::Error) -> (&'static str, io::Error) {
    move |e| (what, e)
}

/// Never returns: ends with the program.
pub fn main(inside: Inside<'_>, rootfs: &Path, user: User) -> ! {
    let mut status = File::from(inside.status.try_clone().unwrap_or_else(|_| sys::exit_now(1)));
    let given = prepare(&inside, rootfs, user).and_then(|()| {
        let (request, stdio, source) = wire::take_passed_on(&inside.go).map_err(step("wait for a run"))?;
        furnish(&inside, &request, &source)?;
        Ok((request, stdio))
    });
    let (request, stdio) = match given {
        Ok(given) => given,
        Err((what, error)) => {
            let errno = error.raw_os_error().unwrap_or(0);
            let _ = status.write_all(&Status::Failed { what: what.into(), errno }.encode());
            sys::exit_now(1);
        }
    };
    if status.write_all(&Status::Ready.encode()).is_err() {
        sys::exit_now(1);
    }
    if inside.warm {
        drop(stdio);
        reap_for_ever();
    }
    let program = match sys::fork() {
        Ok(Forked::Child) => exec(&stdio, &request, &Place::root(Path::new("/"))),
        Ok(Forked::Parent { pid }) => pid,
        Err(e) => {
            let failed = Status::Failed { what: "fork".into(), errno: e.raw_os_error().unwrap_or(0) };
            let _ = status.write_all(&failed.encode());
            sys::exit_now(1)
        }
    };
    drop(stdio); // init must not keep the program's pipes open
    loop {
        match sys::wait(-1) {
            Ok((pid, code, _)) if pid == program => {
                let _ = status.write_all(&Status::Exited { code }.encode());
                sys::exit_now(0) // takes whatever the program left running
            }
            Ok(_) => {}
            Err(_) => sys::exit_now(1),
        }
    }
}

/// Takes in what loses its parent, until the helper ends everything.
fn reap_for_ever() -> ! {
    loop {
        if sys::wait(-1).is_err() {
            std::thread::sleep(Duration::from_millis(20)); // no children yet
        }
    }
}

/// What is the same for all runs.
fn prepare(inside: &Inside<'_>, rootfs: &Path, user: User) -> Step {
    die_with_helper().map_err(step("prctl"))?;
    wait_for_go(&inside.go).map_err(step("wait for the helper"))?;
    // when the whole machine runs out of memory, a sandbox goes before its worker; refused where it is higher already
    let _ = fs::write("/proc/self/oom_score_adj", "500");
    sys::unshare(libc::CLONE_NEWCGROUP).map_err(step("cgroup namespace"))?;
    sys::new_session().map_err(step("session"))?;
    sys::set_hostname("sandbox").map_err(step("host name"))?;
    sys::turn_on_loopback().map_err(step("loopback"))?; // a program's own servers and clients, and nobody else
    // still the caller's uid here, which may look into the cache folder; the sandbox's may not
    enter_root(rootfs, inside.warm).map_err(step("bind the root file system"))?;
    sys::become_user(SANDBOX_ID, user.root).map_err(step("change user"))?;
    die_with_helper().map_err(step("prctl"))?; // a change of user cleared it
    helper_is_alive(&inside.go).map_err(step("wait for the helper"))?;
    mount_proc().map_err(step("mount /proc"))?;
    mount_dev().map_err(step("mount /dev"))
}

/// What a run asks for.
fn furnish(inside: &Inside<'_>, request: &Request, source: &UnixStream) -> Step {
    mount_disk(request).map_err(step("mount /work and /tmp"))?;
    sys::pivot_to_current_folder().map_err(step("pivot_root"))?;
    std::env::set_current_dir("/work").map_err(step("enter /work"))?;
    write_files(source, &request.files).map_err(step("write the files of the spec"))?;
    mount_pristine(source, &request.pristine).map_err(step("mount /pristine"))?;
    hand_over(inside, request).map_err(step("hand over /work and namespaces"))?;
    set_limits(request).map_err(step("set limits"))?;
    sys::prctl(libc::PR_SET_NO_NEW_PRIVS, 1).map_err(step("no_new_privs"))?;
    sys::drop_capabilities().map_err(step("drop capabilities"))?;
    sys::prctl(libc::PR_SET_DUMPABLE, 0).map_err(step("prctl"))?;
    die_with_helper().map_err(step("prctl"))?;
    helper_is_alive(&inside.go).map_err(step("wait for the helper"))?;
    seccomp::apply(inside.filter).map_err(|e| ("seccomp", io::Error::other(e.to_string())))
}

fn die_with_helper() -> io::Result<()> {
    sys::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as c_ulong)
}

pub fn wait_for_go(mut go: &UnixStream) -> io::Result<()> {
    go.read_exact(&mut [0])
}

/// The helper may have died before the death signal was armed; then its end of the pipe is closed.
fn helper_is_alive(go: &UnixStream) -> io::Result<()> {
    let mut ready = [sys::poll_fd(go.as_raw_fd(), 0)]; // its hanging up is told unasked
    match sys::poll(&mut ready, Instant::now())? {
        0 => Ok(()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Binds the root file system onto itself, read-only, and makes it the current folder. `there` already, a user who may not
/// look into the folders above it gets in by its name.
pub fn enter_root(rootfs: &Path, there: bool) -> io::Result<()> {
    sys::mount("", "/", "", MS_REC | MS_PRIVATE, "")?;
    let name = rootfs.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let (source, again) = if there { (Path::new("."), Path::new("..").join(name)) } else { (rootfs, rootfs.into()) };
    sys::mount(source.to_str().ok_or(io::ErrorKind::InvalidInput)?, source, "", MS_BIND, "")?;
    std::env::set_current_dir(again)?;
    let keep = sys::locked_mount_flags(Path::new("."))?;
    read_only(".", MS_NOSUID | MS_NODEV | keep)
}

fn read_only(path: &str, flags: c_ulong) -> io::Result<()> {
    sys::mount("", path, "", MS_BIND | MS_REMOUNT | MS_RDONLY | flags, "")
}

fn mount_proc() -> io::Result<()> {
    sys::mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "")?;
    for path in ["proc/sys", "proc/irq", "proc/bus", "proc/fs", "proc/sysrq-trigger"] {
        if Path::new(path).exists() {
            sys::mount(path, path, "", MS_BIND | MS_REC, "")?;
            read_only(path, MS_NOSUID | MS_NODEV | MS_NOEXEC)?;
        }
    }
    Ok(())
}

fn mount_dev() -> io::Result<()> {
    sys::mount("tmpfs", "dev", "tmpfs", MS_NOSUID | MS_NOEXEC, "size=64k,mode=755")?;
    for device in ["null", "zero", "full", "random", "urandom"] {
        let target = format!("dev/{device}");
        File::create(&target)?;
        sys::mount(&format!("/dev/{device}"), &target, "", MS_BIND, "")?;
    }
    fs::create_dir("dev/shm")?;
    symlink("/proc/self/fd", "dev/fd")?;
    for (name, number) in [("stdin", 0), ("stdout", 1), ("stderr", 2)] {
        symlink(format!("/proc/self/fd/{number}"), format!("dev/{name}"))?;
    }
    read_only("dev", MS_NOSUID | MS_NOEXEC)
}

/// One tmpfs, so that one size holds for all that can be written, seen as /work, /tmp and /dev/shm.
fn mount_disk(request: &Request) -> io::Result<()> {
    let flags = MS_NOSUID | MS_NODEV;
    let size = disk_size(request);
    let inodes = 16_384 + 2 * request.files.len();
    sys::mount("tmpfs", "work", "tmpfs", flags, &format!("size={size},nr_inodes={inodes},mode=755"))?;
    for (folder, target) in [("work/.tmp", "tmp"), ("work/.shm", "dev/shm"), ("work/.work", "work")] {
        fs::create_dir(folder)?;
        let mode = if target == "work" { 0o755 } else { 0o1777 };
        fs::set_permissions(folder, fs::Permissions::from_mode(mode))?;
        sys::mount(folder, target, "", MS_BIND, "")?;
    }
    Ok(())
}

/// Bytes of the writable file system: the limit, and the spec's own files in whole pages.
pub fn disk_size(request: &Request) -> u64 {
    let page = sys::page_size();
    request.limits.disk_bytes.div_ceil(page) * page + pages(request.files.iter().map(|(_, length)| *length))
}

/// Room for files of these lengths: whole pages, and one for each name.
fn pages(lengths: impl Iterator<Item = u64>) -> u64 {
    let page = sys::page_size();
    lengths.map(|length| length.div_ceil(page) * page + page).sum()
}

/// Files of a tmpfs of their own, which is read-only before the program starts.
fn mount_pristine(source: &UnixStream, files: &[(String, u64)]) -> io::Result<()> {
    if files.is_empty() {
        return Ok(());
    }
    let flags = MS_NOSUID | MS_NODEV;
    let size = pages(files.iter().map(|(_, length)| *length)) + sys::page_size();
    let inodes = 64 + 8 * files.len();
    sys::mount("tmpfs", "/pristine", "tmpfs", flags, &format!("size={size},nr_inodes={inodes},mode=755"))?;
    std::env::set_current_dir("/pristine")?;
    write_files(source, files)?;
    std::env::set_current_dir("/work")?;
    read_only("/pristine", flags)
}

/// The namespaces of a sandbox in the order in which they are joined.
pub const NAMESPACES: [&str; 7] = ["user", "pid", "net", "ipc", "uts", "cgroup", "mnt"];

fn hand_over(inside: &Inside<'_>, request: &Request) -> io::Result<()> {
    let socket = &inside.handed;
    if !request.collect.is_empty() {
        let work = OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY).open("/work")?;
        sys::send_fds(socket, [&work.into()])?;
    }
    if inside.warm {
        // Only this process may open them: nobody else may look into it.
        let mut open = Vec::new();
        for name in NAMESPACES {
            open.push(OwnedFd::from(File::open(format!("/proc/self/ns/{name}"))?));
        }
        let all: [&OwnedFd; NAMESPACES.len()] = std::array::from_fn(|n| &open[n]);
        sys::send_fds(socket, all)?;
    }
    Ok(())
}

/// Writes files of these lengths into the current folder, as they come from the caller.
pub fn write_files(source: &UnixStream, files: &[(String, u64)]) -> io::Result<()> {
    for (path, length) in files {
        let bytes = wire::read_content(source, *length)?;
        if let Some(folder) = Path::new(path).parent() {
            fs::create_dir_all(folder)?;
        }
        let executable = bytes.starts_with(b"#!") || bytes.starts_with(b"\x7fELF");
        let mode = if executable { 0o755 } else { 0o644 };
        OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?.write_all(&bytes)?;
    }
    Ok(())
}

fn set_limits(request: &Request) -> io::Result<()> {
    // counted in this user namespace alone: init, the program, and what it starts
    limit_all(request, u64::from(request.limits.pids) + 1)
}

/// Sets the limits of a process and what it will start; see [`resource_limits`].
pub fn limit_all(request: &Request, processes: u64) -> io::Result<()> {
    resource_limits(request, processes).into_iter().try_for_each(|(resource, value)| sys::set_limit(resource, value))
}

/// Resource limits of a program, as numbers of the kernel and values; `processes` of its user where no group counts them.
pub fn resource_limits(request: &Request, processes: u64) -> Vec<(u32, u64)> {
    let limits = &request.limits;
    let mut all = vec![
        (libc::RLIMIT_CORE, 0),
        (libc::RLIMIT_NOFILE, 256),
        (libc::RLIMIT_FSIZE, disk_size(request)),
        (libc::RLIMIT_MEMLOCK, 0),
        (libc::RLIMIT_MSGQUEUE, 0),
        // the helper ends the tree at the limit; this only catches a helper that cannot keep up
        (libc::RLIMIT_CPU, limits.cpu.as_secs() + 2),
    ];
    if request.cgroup == CgroupPlan::None {
        all.push((libc::RLIMIT_NPROC, processes));
        all.push((libc::RLIMIT_AS, limits.memory_bytes.saturating_mul(2) + (256 << 20)));
    }
    // The type of the numbers differs between C libraries; they are below 16.
    #[allow(clippy::unnecessary_cast)]
    all.into_iter().map(|(resource, value)| (resource as u32, value)).collect()
}

/// Becomes the program. What goes wrong from here is said as a shell says it: a message and 126 or 127.
pub fn exec(stdio: &[OwnedFd; 3], request: &Request, place: &Place) -> ! {
    sys::reset_signals();
    let _ = sys::new_session();
    for (number, fd) in stdio.iter().enumerate() {
        if sys::put_at(fd, number as i32).is_err() {
            sys::exit_now(126);
        }
    }
    sys::close_all_from_3();
    let Err(error) = exec_program(request, place);
    let code = if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
    let _ = writeln!(io::stderr(), "sandbox: cannot execute {}: {error}", request.argv[0]);
    sys::exit_now(code)
}

/// Where a program finds things.
pub struct Place {
    /// Folders of programs.
    pub programs: Vec<String>,
    /// Variables that have a value unless the spec gives them one.
    pub env: Vec<(&'static str, String)>,
    /// What stands for a folder of the sandbox, where it lies elsewhere.
    pub moved: Vec<(&'static str, String)>,
}

impl Place {
    /// The sandbox's own root, seen from inside as `/`: programs in /usr/bin, and in what images have beside it.
    pub fn root(root: &Path) -> Place {
        let is_folder = |path: &str| fs::symlink_metadata(root.join(&path[1..])).is_ok_and(|about| about.is_dir());
        let others = |path: &'static str| Some(path).filter(|path| is_folder(path));
        let folders = [others("/usr/local/bin"), Some("/usr/bin"), others("/bin")];
        let programs: Vec<String> = folders.into_iter().flatten().map(String::from).collect();
        let env = vec![("PATH", programs.join(":")), ("HOME", "/tmp".into())];
        Place { programs, env, moved: vec![] }
    }

    fn program(&self, name: &str) -> String {
        let paths: Vec<String> = self.programs.iter().map(|folder| format!("{folder}/{name}")).collect();
        paths.iter().find(|p| Path::new(p).exists()).or(paths.last()).cloned().unwrap_or_default()
    }

    /// A path that begins with a folder of the sandbox, as it is here.
    fn here(&self, text: &str) -> String {
        let moved = self.moved.iter().find_map(|(from, to)| {
            let rest = text.strip_prefix(from).filter(|rest| rest.is_empty() || rest.starts_with('/'))?;
            Some(format!("{to}{rest}"))
        });
        moved.unwrap_or_else(|| text.into())
    }

    /// The whole environment of a program.
    pub fn environment(&self, asked: &[(String, String)]) -> Vec<(String, String)> {
        let mut env: Vec<(String, String)> = asked.iter().map(|(n, v)| (n.clone(), self.here(v))).collect();
        for (name, value) in self.env.iter().cloned().chain([("LANG", "C.UTF-8".into())]) {
            if !env.iter().any(|(n, _)| n == name) {
                env.push((name.into(), value));
            }
        }
        env
    }
}

/// Returns only an error.
fn exec_program(request: &Request, place: &Place) -> Result<std::convert::Infallible, io::Error> {
    let program = match request.argv[0].as_str() {
        path if path.contains('/') => place.here(path),
        name => place.program(name),
    };
    let argv = request.argv.iter().map(|a| sys::cstring(place.here(a))).collect::<io::Result<Vec<_>>>()?;
    let env = place.environment(&request.env);
    let env = env.iter().map(|(n, v)| sys::cstring(format!("{n}={v}"))).collect::<io::Result<Vec<_>>>()?;
    Err(sys::exec(&sys::cstring(program)?, &argv, &env))
}
