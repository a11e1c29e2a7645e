//! Runs of Python that begin in a loaded interpreter instead of a cold one.
//!
//! In: specs whose command is the interpreter with the flags it was started with. Out: what any run gives. What must hold: a
//! run is isolated from all others as a cold one is; one interpreter forks one run at a time, so that no two runs alive share
//! a host uid; an interpreter that answers oddly is ended, and another takes its place.
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::run::{GRACE, Keeper, Running, spawn};
use super::slot::Slot;
use super::{Namespaces, spec};
use crate::wire::{self, Reply};
use crate::{Finished, Isolation, Sandbox, SandboxError, Session, Spec, sys};

/// What a warm interpreter has loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WarmOptions {
    /// Interpreter and flags; every spec's command must begin with them. They are as `["python3", "-I", "-S"]`.
    pub argv: Vec<String>,
    /// Python code that imports what runs will need. It must start no thread and open nothing.
    pub preload: String,
    /// Variables the interpreter reads at its start, such as PYTHONHASHSEED. A run's own are set when it begins.
    pub env: Vec<(String, String)>,
}

/// A [`Sandbox`] whose runs are forked from loaded interpreters. As many are kept as runs were alive at once.
#[derive(Debug)]
pub struct Warm {
    sandbox: Arc<Namespaces>,
    options: WarmOptions,
    isolation: Isolation,
    idle: Arc<Mutex<Vec<Holder>>>,
}

/// A helper with a loaded interpreter.
#[derive(Debug)]
struct Holder {
    helper: Child,
    control: Option<UnixStream>,
    slot: Slot,
}

/// A [`Holder`] that a run has; it goes back when the run is over.
pub struct Lent {
    holder: Option<Holder>,
    idle: Arc<Mutex<Vec<Holder>>>,
    slot: Slot,
}

impl Warm {
    /// Loads one interpreter, so that code that does not load is noticed here.
    pub fn open(sandbox: Arc<Namespaces>, options: WarmOptions) -> Result<Warm, SandboxError> {
        if options.argv.first().is_none_or(String::is_empty) {
            return Err(SandboxError::BadSpec { reason: "no interpreter is named".into() });
        }
        let mut isolation = sandbox.level().clone();
        isolation.notes.push("forked from a loaded interpreter".into());
        let warm = Warm { sandbox, options, isolation, idle: Arc::default() };
        warm.put_back(warm.load()?);
        Ok(warm)
    }

    fn load(&self) -> Result<Holder, SandboxError> {
        let slot = self.sandbox.slots.take()?;
        let (control, helper) = spawn(&self.sandbox, crate::helper::WARM_ARGUMENT)?;
        let hello = wire::Warm {
            argv: self.options.argv.clone(),
            env: self.options.env.clone(),
            preload: self.options.preload.clone(),
            rootfs: self.sandbox.rootfs.tree.clone(),
            host_uid: slot.host_uid,
            host_gid: slot.host_gid,
            root: slot.root,
        };
        // From here on dropping the holder ends the helper.
        let holder = Holder { helper, control: Some(control), slot };
        let Some(control) = &holder.control else { return Err(died("it has no socket")) };
        wire::write_message(control, &hello).map_err(|e| died(&e.to_string()))?;
        match wire::read_message(control).map_err(|e| died(&e.to_string()))? {
            Reply::Started => Ok(holder),
            Reply::Failed { what, errno, .. } => {
                Err(SandboxError::Setup { what, source: io::Error::from_raw_os_error(errno) })
            }
            Reply::Done { .. } => Err(died("an answer before the first run")),
        }
    }

    fn put_back(&self, holder: Holder) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(holder);
    }

    fn begin(&self, spec: &Spec, with_stdin: bool) -> Result<Running, SandboxError> {
        let Some(rest) = spec.argv.strip_prefix(self.options.argv.as_slice()).filter(|rest| !rest.is_empty()) else {
            let reason = format!("a warm run's command begins with {:?} and goes on", self.options.argv);
            return Err(SandboxError::BadSpec { reason });
        };
        let spec = Spec { argv: rest.to_vec(), ..spec.clone() };
        spec::check(&spec)?;
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let holder = idle.map_or_else(|| self.load(), Ok)?;
        let (ours, theirs) = UnixStream::pair().map_err(SandboxError::io("cannot make a socket"))?;
        let timeouts = ours.set_read_timeout(Some(GRACE)).and_then(|()| ours.set_write_timeout(Some(GRACE)));
        timeouts.map_err(SandboxError::io("cannot set up a socket"))?;
        let sent = holder.control.as_ref().map(|control| sys::send_fds(control, [&OwnedFd::from(theirs)]));
        if !matches!(sent, Some(Ok(()))) {
            return Err(died("it takes no more runs")); // and the holder ends here
        }
        let slot = holder.slot.same();
        let lent = Lent { holder: Some(holder), idle: self.idle.clone(), slot };
        Running::with(&self.sandbox, &spec, with_stdin, ours, Keeper::Warm(lent)).map_err(|r| r.error)
    }
}

fn died(what: &str) -> SandboxError {
    SandboxError::HelperDied { what: what.into() }
}

impl Sandbox for Warm {
    fn level(&self) -> &Isolation {
        &self.isolation
    }

    fn run(&self, spec: &Spec) -> Result<Finished, SandboxError> {
        self.begin(spec, false)?.wait_for_end()
    }

    fn start(&self, spec: &Spec) -> Result<Box<dyn Session>, SandboxError> {
        Ok(Box::new(self.begin(spec, true)?))
    }
}

impl Lent {
    /// Whose uid the run has.
    pub fn slot(&self) -> &Slot {
        &self.slot
    }

    /// Does not give the helper back; it ends by itself.
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
            && matches!(holder.helper.try_wait(), Ok(None))
        {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(holder);
        }
    }
}

impl Drop for Holder {
    /// The helper ends when its socket closes, and is killed if it does not.
    fn drop(&mut self) {
        self.control = None;
        let until = Instant::now() + GRACE;
        while matches!(self.helper.try_wait(), Ok(None)) {
            if Instant::now() > until {
                let _ = self.helper.kill();
                let _ = self.helper.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}
