//! Exit codes: an interface. Slurm (`RequeueExit`) and Kubernetes (`podFailurePolicy`) act on them.

use crate::{JobError, Outcome};
use std::io::ErrorKind;
use std::process::{ExitCode, Termination};

/// How a process of Rollmill ends. A panic ends with 101, which Rust itself gives: a bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All asked-for work is done.
    Complete,
    /// The command, the configuration or the plan is refused; running it again changes nothing.
    Usage,
    /// A shard failed for good.
    ShardFailed,
    /// Work is still leased elsewhere, or another attempt took over.
    Elsewhere,
    /// Drained or hit by something that passes: run me again.
    Again,
}

impl Exit {
    /// The code.
    pub fn code(self) -> u8 {
        match self {
            Exit::Complete => 0,
            Exit::Usage => 2,
            Exit::ShardFailed => 10,
            Exit::Elsewhere => 11,
            Exit::Again => 75,
        }
    }

    /// The exit of a program that ended with `code`; none for one that is not ours, such as 101.
    pub fn from_code(code: i32) -> Option<Exit> {
        [Exit::Complete, Exit::Usage, Exit::ShardFailed, Exit::Elsewhere, Exit::Again]
            .into_iter()
            .find(|e| i32::from(e.code()) == code)
    }
}

impl From<&Outcome> for Exit {
    fn from(outcome: &Outcome) -> Exit {
        match outcome {
            Outcome::Complete => Exit::Complete,
            Outcome::Elsewhere => Exit::Elsewhere,
            Outcome::Drained => Exit::Again,
        }
    }
}

impl From<&JobError> for Exit {
    fn from(error: &JobError) -> Exit {
        match error {
            JobError::Config { .. }
            | JobError::PlanRefused { .. }
            | JobError::RunChanged { .. }
            | JobError::NoRun { .. }
            | JobError::Retired { .. }
            | JobError::InputAbsent { .. } => Exit::Usage,
            JobError::Stopped { .. } | JobError::Corrupt { .. } | JobError::Part(_) => Exit::ShardFailed,
            JobError::Fenced { .. } => Exit::Elsewhere,
            JobError::InputIncomplete { .. } | JobError::Unavailable { .. } => Exit::Again,
            JobError::Store(e) if e.is_transient() => Exit::Again,
            JobError::Store(rollmill_store::StoreError::Disk { source, .. }) => match source.kind() {
                ErrorKind::PermissionDenied
                | ErrorKind::NotADirectory
                | ErrorKind::AlreadyExists
                | ErrorKind::ReadOnlyFilesystem
                | ErrorKind::Unsupported => Exit::Usage,
                _ => Exit::Again,
            },
            JobError::Store(_) => Exit::Usage,
        }
    }
}

/// The command line of this process; what is to be said of a wrong one, or of `--help`, is said, and how the process ends.
pub fn command_line<C: clap::Parser>() -> Result<C, Exit> {
    C::try_parse().map_err(|e| {
        // Nobody is left to tell when the terminal is gone.
        let _ = e.print();
        if e.use_stderr() { Exit::Usage } else { Exit::Complete }
    })
}

impl Termination for Exit {
    fn report(self) -> ExitCode {
        ExitCode::from(self.code())
    }
}
