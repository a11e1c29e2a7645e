//! Helpers, which are started once and hold one sandbox after the other: starting a process for each run costs more than
//! the namespaces do.
//!
//! In: how to start one. Out: one that nobody else has, for one run. What must hold: a helper holds one run at a time, so that no
//! two runs alive share a host uid; one that answers oddly is never lent again; all end when their owner does.
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::run::GRACE;
use super::slot::{Slot, User};
use crate::{SandboxError, sys};

/// A helper process. Dropping it ends the process, its run and what it keeps loaded.
#[derive(Debug)]
pub struct Holder {
    helper: Child,
    control: Option<UnixStream>,
    slot: Slot,
}

/// Those that hold no run now; as many are kept as runs were alive at once.
#[derive(Debug, Clone, Default)]
pub struct Idle(Arc<Mutex<Vec<Holder>>>);

/// A [`Holder`] that one run has; it goes back when the run is over.
pub struct Lent {
    holder: Option<Holder>,
    idle: Idle,
    user: User,
}

impl Holder {
    /// Starts one, which does what its argument says.
    pub fn start(helper: &Path, argument: &str, slot: Slot) -> Result<Holder, SandboxError> {
        let (control, helper) = spawn(helper, argument)?;
        Ok(Holder { helper, control: Some(control), slot })
    }

    pub fn user(&self) -> User {
        self.slot.user
    }

    /// What is said to the helper beside its runs.
    pub fn control(&self) -> Result<&UnixStream, SandboxError> {
        self.control.as_ref().ok_or_else(|| died("it has no socket"))
    }

    /// Announces a run, and gives our end of its socket.
    fn announce(&mut self) -> Result<UnixStream, SandboxError> {
        if !self.is_alive() {
            return Err(died("it ended while it had nothing to do"));
        }
        let (ours, theirs) = pair()?;
        let sent = sys::send_fds(self.control()?, [&OwnedFd::from(theirs)]);
        sent.map_err(|e| died(&format!("it takes no more runs: {e}")))?;
        Ok(ours)
    }

    fn is_alive(&mut self) -> bool {
        matches!(self.helper.try_wait(), Ok(None))
    }
}

impl Idle {
    /// An idle helper, or a new one, and the socket of the run it is lent for.
    pub fn lend(
        &self,
        start: impl FnOnce() -> Result<Holder, SandboxError>,
    ) -> Result<(UnixStream, Lent), SandboxError> {
        while let Some(mut holder) = self.pop() {
            if let Ok(socket) = holder.announce() {
                return Ok((socket, Lent::new(holder, self)));
            } // killed by somebody, and reaped here
        }
        let mut holder = start()?;
        let socket = holder.announce()?;
        Ok((socket, Lent::new(holder, self)))
    }

    fn pop(&self) -> Option<Holder> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }
}

impl Lent {
    fn new(holder: Holder, idle: &Idle) -> Lent {
        Lent { user: holder.user(), holder: Some(holder), idle: idle.clone() }
    }

    /// Whose ids the run has.
    pub fn user(&self) -> User {
        self.user
    }

    /// Does not give the helper back: a run did not begin in it. It ends by itself.
    pub fn discard(&mut self) {
        self.holder = None;
    }

    /// Ends the helper: it does not answer.
    pub fn spoil(&mut self) {
        if let Some(mut holder) = self.holder.take() {
            let _ = holder.helper.kill(); // gone already
        }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(mut holder) = self.holder.take()
            && holder.is_alive()
        {
            self.idle.0.lock().unwrap_or_else(PoisonError::into_inner).push(holder);
        }
    }
}

impl Drop for Holder {
    /// The helper ends when its socket closes, and is killed if it does not.
    fn drop(&mut self) {
        self.control = None;
        let until = Instant::now() + GRACE;
        while self.is_alive() {
            if Instant::now() > until {
                let _ = self.helper.kill();
                let _ = self.helper.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

pub fn died(what: &str) -> SandboxError {
    SandboxError::HelperDied { what: what.into() }
}

/// A socket to a helper, ours and theirs, on which nobody waits for ever.
fn pair() -> Result<(UnixStream, UnixStream), SandboxError> {
    let pair = UnixStream::pair().and_then(|(ours, theirs)| {
        ours.set_read_timeout(Some(GRACE))?;
        ours.set_write_timeout(Some(GRACE))?;
        Ok((ours, theirs))
    });
    pair.map_err(SandboxError::io("cannot make a socket"))
}

/// The socket's other end is the helper's descriptor 0.
fn spawn(program: &Path, argument: &str) -> Result<(UnixStream, Child), SandboxError> {
    let (ours, theirs) = pair()?;
    let helper = Command::new(program)
        .arg0("rollmill") // the sandbox's init shows this name, not a path of this host
        .arg(argument)
        .env_clear()
        .current_dir("/")
        .process_group(0) // a terminal's ctrl-c reaches the caller, which ends its runs in order
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(SandboxError::io(format!("cannot start the sandbox helper {}", program.display())))?;
    Ok((ours, helper))
}
