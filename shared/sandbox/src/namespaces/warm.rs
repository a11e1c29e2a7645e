//! Runs of Python that begin in a loaded interpreter instead of a cold one.
//!
//! In: specs; those whose command begins as a kept interpreter was started are forked from it, all others start cold. Out: what
//! any run gives. What must hold: a run is isolated from all others as a cold one is; one interpreter forks one run at a
//! time, so that no two runs alive share a host uid; an interpreter that answers oddly is ended, and another takes its place.
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
    /// Interpreter and flags with which the commands of its runs begin, such as `["python3", "-I", "-S"]`; the next word of a
    /// command is `-c` or a file.
    pub argv: Vec<String>,
    /// Python code that imports what runs will need. It must start no thread and open nothing.
    pub preload: String,
    /// Variables the interpreter reads at its start, such as PYTHONHASHSEED. A run's own are set when it begins.
    pub env: Vec<(String, String)>,
}

/// A [`Sandbox`] whose runs are forked from loaded interpreters where it has the one they begin with. Interpreters are loaded
/// when they are first needed; as many are kept as runs were alive at once.
#[derive(Debug)]
pub struct Warm {
    sandbox: Arc<Namespaces>,
    kinds: Vec<Kind>,
}

#[derive(Debug)]
struct Kind {
    options: WarmOptions,
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
    /// Nothing is started yet.
    pub fn new(sandbox: Arc<Namespaces>, interpreters: Vec<WarmOptions>) -> Warm {
        // a loaded interpreter forks into namespaces: where there are none, all runs start cold
        let possible = sandbox.landlock.is_none();
        let kinds = interpreters.into_iter().filter(|options| possible && !options.argv.is_empty());
        Warm { sandbox, kinds: kinds.map(|options| Kind { options, idle: Arc::default() }).collect() }
    }

    /// The interpreter that a command begins with, and the rest of the command.
    fn kind_of<'a>(&self, argv: &'a [String]) -> Option<(&Kind, &'a [String])> {
        self.kinds.iter().find_map(|kind| {
            let rest = argv.strip_prefix(kind.options.argv.as_slice())?;
            // Another flag asks for another interpreter.
            let next = rest.first()?;
            (next == "-c" && rest.len() > 1 || !next.starts_with('-')).then_some((kind, rest))
        })
    }

    fn load(&self, options: &WarmOptions) -> Result<Holder, SandboxError> {
        let slot = self.sandbox.slots.take()?;
        let (control, helper) = spawn(&self.sandbox, crate::helper::WARM_ARGUMENT)?;
        let hello = wire::Warm {
            argv: options.argv.clone(),
            env: options.env.clone(),
            preload: options.preload.clone(),
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

    fn begin(&self, spec: &Spec, with_stdin: bool) -> Result<Running, SandboxError> {
        let Some((kind, rest)) = self.kind_of(&spec.argv) else {
            return Running::begin(&self.sandbox, spec, with_stdin).map_err(|r| r.error);
        };
        let spec = Spec { argv: rest.to_vec(), ..spec.clone() };
        spec::check(&spec)?;
        let idle = kind.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let holder = idle.map_or_else(|| self.load(&kind.options), Ok)?;
        let (ours, theirs) = UnixStream::pair().map_err(SandboxError::io("cannot make a socket"))?;
        let timeouts = ours.set_read_timeout(Some(GRACE)).and_then(|()| ours.set_write_timeout(Some(GRACE)));
        timeouts.map_err(SandboxError::io("cannot set up a socket"))?;
        let sent = holder.control.as_ref().map(|control| sys::send_fds(control, [&OwnedFd::from(theirs)]));
        if !matches!(sent, Some(Ok(()))) {
            return Err(died("it takes no more runs")); // and the holder ends here
        }
        let slot = holder.slot.same();
        let lent = Lent { holder: Some(holder), idle: kind.idle.clone(), slot };
        Running::with(&self.sandbox, &spec, with_stdin, ours, Keeper::Warm(lent)).map_err(|r| r.error)
    }
}

fn died(what: &str) -> SandboxError {
    SandboxError::HelperDied { what: what.into() }
}

impl Sandbox for Warm {
    fn level(&self) -> &Isolation {
        self.sandbox.level()
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
