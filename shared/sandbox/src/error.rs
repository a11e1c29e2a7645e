//! What can go wrong around a run. Nothing here is ever the fault of the program inside.
use std::io;

use crate::Level;

/// An infrastructure failure. [`is_transient`](SandboxError::is_transient) tells whether to try the same run again.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// No helper program: stop the run.
    #[error(
        "no sandbox helper found: build `rollmill`, put `rollmill-sandbox-helper` beside it or set ROLLMILL_SANDBOX_HELPER (looked at: {looked})"
    )]
    HelperMissing {
        /// Paths tried.
        looked: String,
    },
    /// This machine cannot make namespaces (and cannot, or may not, do with Landlock): stop the run.
    #[error(
        "sandboxes do not work here ({reason}): allow unprivileged user namespaces, choose the docker backend or set the floor to landlock"
    )]
    Unavailable {
        /// What failed, with the system's error.
        reason: String,
    },
    /// The level reached is below the floor of the run: stop the run.
    #[error(
        "the sandbox reaches level {level} but the run asks for at least {floor} ({why}): lower the floor or delegate a cgroup"
    )]
    BelowFloor {
        /// Level reached.
        level: Level,
        /// Level asked for.
        floor: Level,
        /// Why not higher.
        why: String,
    },
    /// The private root file system could not be built: stop the run.
    #[error("cannot build the sandbox's root file system: {what}")]
    RootFs {
        /// What failed.
        what: String,
    },
    /// The spec can never be run: a bug of the caller, give up this item.
    #[error("the sandbox cannot run this: {reason}")]
    BadSpec {
        /// What is wrong with it.
        reason: String,
    },
    /// All slots (host uids) are taken: try again later.
    #[error("all {slots} sandbox slots are in use: run fewer at once or raise the number of slots")]
    NoSlot {
        /// Slots there are.
        slots: u32,
    },
    /// The sandbox could not be set up: transient if the machine was short of something.
    #[error("cannot set up a sandbox: {what}: {source}")]
    Setup {
        /// The step that failed.
        what: String,
        /// The system's error.
        source: io::Error,
    },
    /// The helper went away without an answer: try again.
    #[error("the sandbox helper ended without an answer ({what}): try again")]
    HelperDied {
        /// What was awaited.
        what: String,
    },
    /// No container daemon listens: stop the run.
    #[error("no container daemon found: start Docker or Podman, or set DOCKER_HOST=unix:///path (looked at: {looked})")]
    NoDaemon {
        /// Sockets tried.
        looked: String,
    },
    /// The daemon has no such image: stop the run.
    #[error("the container daemon has no image {image}: pull or import it first")]
    NoImage {
        /// As it was asked for.
        image: String,
    },
    /// The daemon cannot hold what runs in it, or refused a request: stop the run.
    #[error("the container daemon cannot run sandboxes: {what}")]
    DaemonRefused {
        /// What it refused, and why.
        what: String,
    },
    /// The daemon did not answer, or failed: try again.
    #[error("the container daemon failed ({what}): try again")]
    DaemonFailed {
        /// What was asked, and what came of it.
        what: String,
    },
    /// Talking to the helper failed: try again.
    #[error("{what}: {source}")]
    Io {
        /// What was done.
        what: String,
        /// The system's error.
        source: io::Error,
    },
}

impl SandboxError {
    /// Whether the same run may succeed when tried again. Otherwise [`SandboxError::BadSpec`] concerns one item, and all
    /// others stop the run.
    pub fn is_transient(&self) -> bool {
        match self {
            SandboxError::NoSlot { .. }
            | SandboxError::HelperDied { .. }
            | SandboxError::DaemonFailed { .. }
            | SandboxError::Io { .. } => true,
            SandboxError::Setup { source, .. } => matches!(
                source.raw_os_error(),
                Some(
                    libc::EAGAIN
                        | libc::ENOMEM
                        | libc::ENOSPC
                        | libc::EMFILE
                        | libc::ENFILE
                        | libc::EBUSY
                        | libc::EINTR
                        // a warm interpreter or init was killed in between
                        | libc::EPIPE
                        | libc::ECONNRESET
                        | libc::ESRCH
                )
            ),
            _ => false,
        }
    }

    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> SandboxError {
        let what = what.into();
        move |source| SandboxError::Io { what, source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortage_is_transient_and_a_refusal_is_not() {
        let setup = |code| SandboxError::Setup { what: "clone".into(), source: io::Error::from_raw_os_error(code) };
        assert!(setup(libc::EAGAIN).is_transient());
        assert!(setup(libc::EPIPE).is_transient() && setup(libc::ESRCH).is_transient());
        assert!(!setup(libc::EPERM).is_transient());
        assert!(SandboxError::NoSlot { slots: 1 }.is_transient());
        assert!(!SandboxError::BadSpec { reason: "x".into() }.is_transient());
    }
}
