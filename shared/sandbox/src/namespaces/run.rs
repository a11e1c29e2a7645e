//! One run, on the caller's side: hands a helper the spec, moves output, and takes the facts.
//!
//! What must hold: every wait is bounded; dropping a run at any point ends the whole tree.
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::holder::{Holder, Lent};
use super::{Namespaces, spec};
use crate::wire::{self, Reply, Request};
use crate::{Collected, Facts, Finished, Limits, Received, SandboxError, Session, Spec, sys};

/// How long a set-up, and the end after a limit, may take on an overloaded machine before the helper is given up.
pub const GRACE: Duration = Duration::from_secs(60);

/// A run that could not begin, and whether its cgroup was the reason.
pub struct Refused {
    pub cgroup: bool,
    pub error: SandboxError,
}

impl From<SandboxError> for Refused {
    fn from(error: SandboxError) -> Self {
        Refused { cgroup: false, error }
    }
}

/// A helper holding a sandbox, and the caller's ends of its pipes.
pub struct Running {
    lent: Lent,
    socket: UnixStream,
    stdin: Option<OwnedFd>,
    stdout: Stream,
    stderr: Stream,
    limits: Limits,
    started: Instant,
}

impl Running {
    pub fn begin(sandbox: &Namespaces, spec: &Spec, with_stdin: bool) -> Result<Running, Refused> {
        spec::check(spec)?;
        let start = || Holder::start(&sandbox.helper, crate::helper::ARGUMENT, sandbox.slots.take()?);
        let (socket, lent) = sandbox.idle.lend(start)?;
        Running::with(sandbox, spec, with_stdin, socket, lent)
    }

    /// Hands a checked spec to whoever listens at the other end of the socket.
    pub fn with(
        sandbox: &Namespaces,
        spec: &Spec,
        with_stdin: bool,
        socket: UnixStream,
        lent: Lent,
    ) -> Result<Running, Refused> {
        let user = lent.user();
        let request = Request {
            argv: spec.argv.clone(),
            env: spec.env.clone(),
            files: lengths(&spec.files),
            pristine: lengths(&spec.pristine),
            collect: spec.collect.clone(),
            limits: spec.limits.clone(),
            rootfs: sandbox.rootfs.tree.clone(),
            user,
            cgroup: sandbox.cgroup.clone(),
            landlock: sandbox.landlock.clone(),
        };
        let pipe = || sys::pipe().map_err(SandboxError::io("cannot make a pipe"));
        let ((stdin_out, stdin), (stdout, stdout_in), (stderr, stderr_in)) = (pipe()?, pipe()?, pipe()?);
        for fd in [&stdin, &stdout, &stderr] {
            sys::set_nonblocking(fd).map_err(SandboxError::io("cannot set up a pipe"))?;
        }
        if user.root {
            // so that /dev/stdout and /dev/stderr can be opened inside, as anywhere else
            for fd in [&stdin_out, &stdout_in, &stderr_in] {
                sys::chown_fd(fd, user.host_uid, user.host_gid).map_err(SandboxError::io("cannot set up a pipe"))?;
            }
        }
        let mut run = Running {
            lent,
            socket,
            stdin: with_stdin.then_some(stdin),
            stdout: Stream::new(stdout, spec.limits.output_bytes),
            stderr: Stream::new(stderr, spec.limits.output_bytes),
            limits: spec.limits.clone(),
            started: Instant::now(),
        };
        let handed = wire::send_request(&run.socket, &request, spec, [&stdin_out, &stdout_in, &stderr_in]);
        drop((stdin_out, stdout_in, stderr_in));
        // A helper that fails early answers and closes: its answer says more than our broken pipe.
        let answer = run.reply(Instant::now() + GRACE);
        if !matches!(answer, Ok(Reply::Started)) {
            run.end(); // a helper that failed reads until then, and would be waited for
            run.lent.discard();
        }
        match answer {
            Ok(Reply::Started) => {}
            Ok(Reply::Failed { what, errno, cgroup }) => {
                let source = io::Error::from_raw_os_error(errno);
                return Err(Refused { cgroup, error: SandboxError::Setup { what, source } });
            }
            Ok(Reply::Done { .. }) => return Err(SandboxError::HelperDied { what: "start".into() }.into()),
            Err(e) => return Err(handed.err().map_or(e, SandboxError::io("cannot hand a run to the helper")).into()),
        }
        run.started = Instant::now();
        Ok(run)
    }

    /// Waits for the helper's next message.
    fn reply(&mut self, deadline: Instant) -> Result<Reply, SandboxError> {
        let died = |what: &str| SandboxError::HelperDied { what: what.into() };
        let mut ready = [sys::poll_fd(self.socket.as_raw_fd(), libc::POLLIN)];
        if sys::poll(&mut ready, deadline).map_err(SandboxError::io("cannot wait for the helper"))? == 0 {
            return Err(died("no answer in time"));
        }
        wire::read_message(&self.socket).map_err(|e| died(&e.to_string()))
    }

    /// Moves output until the helper reports the end, then what is left in the pipes.
    pub fn wait_for_end(mut self) -> Result<Finished, SandboxError> {
        let give_up = self.started + self.limits.wall + GRACE;
        loop {
            let mut ready = [
                sys::poll_fd(self.stdout.raw(), libc::POLLIN),
                sys::poll_fd(self.stderr.raw(), libc::POLLIN),
                sys::poll_fd(self.socket.as_raw_fd(), libc::POLLIN),
            ];
            if sys::poll(&mut ready, give_up).map_err(SandboxError::io("cannot wait for a sandbox"))? == 0 {
                return Err(SandboxError::HelperDied { what: "its limits did not end the run".into() });
            }
            if ready[0].revents != 0 {
                self.stdout.absorb()?;
            }
            if ready[1].revents != 0 {
                self.stderr.absorb()?;
            }
            if ready[2].revents != 0 {
                break;
            }
            if self.stdout.flooded() || self.stderr.flooded() {
                self.end();
            }
        }
        let (facts, collected) = match self.reply(give_up)? {
            Reply::Done { facts, files, refused } => {
                let files = wire::read_contents(&self.socket, files);
                let files = files.map_err(|e| SandboxError::HelperDied { what: e.to_string() })?;
                (facts, Collected { files, refused })
            }
            Reply::Failed { what, errno, .. } => {
                return Err(SandboxError::Setup { what, source: io::Error::from_raw_os_error(errno) });
            }
            Reply::Started => return Err(SandboxError::HelperDied { what: "end".into() }),
        };
        while self.stdout.absorb()? {}
        while self.stderr.absorb()? {}
        Ok(self.finished(facts, collected))
    }

    fn finished(&mut self, facts: Facts, collected: Collected) -> Finished {
        let output_cut = self.stdout.cut() || self.stderr.cut();
        let (stdout, stderr) = (std::mem::take(&mut self.stdout.kept), std::mem::take(&mut self.stderr.kept));
        Finished { facts: Facts { output_cut, ..facts }, stdout, stderr, collected }
    }

    /// Asks the helper to kill the tree.
    fn end(&self) {
        let _ = self.socket.shutdown(Shutdown::Write); // not connected any more: the helper is gone
    }
}

fn lengths(files: &[(String, Vec<u8>)]) -> Vec<(String, u64)> {
    files.iter().map(|(path, bytes)| (path.clone(), bytes.len() as u64)).collect()
}

impl Session for Running {
    fn send(&mut self, mut bytes: &[u8], deadline: Instant) -> Result<(), SandboxError> {
        while let (Some(stdin), false) = (&self.stdin, bytes.is_empty()) {
            match sys::write(stdin, bytes) {
                Ok(n) => bytes = &bytes[n..],
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    let (stdin, stderr) = (stdin.as_raw_fd(), self.stderr.raw());
                    let mut ready = [sys::poll_fd(stdin, libc::POLLOUT), sys::poll_fd(stderr, libc::POLLIN)];
                    if sys::poll(&mut ready, deadline).map_err(SandboxError::io("cannot wait for a sandbox"))? == 0 {
                        self.stdin = None; // half a message was taken: nothing sensible can follow
                    }
                    if ready[1].revents != 0 {
                        self.stderr.absorb()?;
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::BrokenPipe => self.stdin = None,
                Err(e) => return Err(SandboxError::io("cannot write to a sandbox")(e)),
            }
        }
        Ok(())
    }

    fn recv(&mut self, max: usize, deadline: Instant) -> Result<Received, SandboxError> {
        let mut buffer = vec![0; max.clamp(1, 1 << 20)];
        loop {
            let Some(stdout) = &self.stdout.fd else { return Ok(Received::Eof) };
            match sys::read(stdout, &mut buffer) {
                Ok(0) => self.stdout.fd = None,
                Ok(n) => {
                    buffer.truncate(n);
                    return Ok(Received::Bytes(buffer));
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    let mut ready =
                        [sys::poll_fd(self.stdout.raw(), libc::POLLIN), sys::poll_fd(self.stderr.raw(), libc::POLLIN)];
                    if sys::poll(&mut ready, deadline).map_err(SandboxError::io("cannot wait for a sandbox"))? == 0 {
                        return Ok(Received::Deadline);
                    }
                    if ready[1].revents != 0 {
                        self.stderr.absorb()?;
                    }
                    if self.stderr.flooded() {
                        self.end();
                    }
                    if ready[0].revents == 0 && Instant::now() >= deadline {
                        return Ok(Received::Deadline); // stderr alone must not keep this going
                    }
                }
                Err(e) => return Err(SandboxError::io("cannot read from a sandbox")(e)),
            }
        }
    }

    fn finish(self: Box<Self>) -> Result<Finished, SandboxError> {
        self.end();
        self.wait_for_end()
    }
}

impl Drop for Running {
    /// Ends the tree: the helper is asked, so that it cleans up, and killed if it does not answer.
    fn drop(&mut self) {
        self.end();
        let until = Instant::now() + GRACE;
        let mut rest = [0; 4096];
        loop {
            let mut ready = [sys::poll_fd(self.socket.as_raw_fd(), libc::POLLIN)];
            match sys::poll(&mut ready, until) {
                Ok(n) if n > 0 && matches!(io::Read::read(&mut &self.socket, &mut rest), Ok(n) if n > 0) => {}
                Ok(n) if n > 0 => break, // closed: the run is over
                _ => break self.lent.spoil(),
            }
        }
    }
}

/// One output of the program: the pipe, what is kept of it, and how much came.
struct Stream {
    fd: Option<OwnedFd>,
    kept: Vec<u8>,
    limit: u64,
    seen: u64,
}

impl Stream {
    fn new(fd: OwnedFd, limit: u64) -> Stream {
        Stream { fd: Some(fd), kept: Vec::new(), limit, seen: 0 }
    }

    /// The descriptor to poll; -1, which poll ignores, once closed.
    fn raw(&self) -> i32 {
        self.fd.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    /// Takes one read's worth; false when there is nothing (now, or ever again).
    fn absorb(&mut self) -> Result<bool, SandboxError> {
        let mut buffer = [0; 65536];
        let Some(fd) = &self.fd else { return Ok(false) };
        match sys::read(fd, &mut buffer) {
            Ok(0) => {
                self.fd = None;
                Ok(false)
            }
            Ok(n) => {
                let room = (self.limit - self.kept.len() as u64).min(n as u64) as usize;
                self.kept.extend_from_slice(&buffer[..room]);
                self.seen += n as u64;
                Ok(true)
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(true),
            Err(e) => Err(SandboxError::io("cannot read from a sandbox")(e)),
        }
    }

    fn cut(&self) -> bool {
        self.seen > self.kept.len() as u64
    }

    fn flooded(&self) -> bool {
        self.seen > self.limit.saturating_mul(Limits::FLOOD)
    }
}
