//! Jobs as processes of their own: killed, measured and exiting as they would under a scheduler.

use crate::checks;
use rollmill_job::config::Operations;
use rollmill_job::{Drain, Exit, JobError, Run};
use std::path::{Path, PathBuf};
use tokio::process::{Child, Command};

/// Starts jobs of one run.
pub struct Children {
    address: String,
    operations: Operations,
    drain: Drain,
}

impl Children {
    /// For `run`.
    pub fn new(run: &Run, drain: Drain) -> Children {
        Children { address: run.address(), operations: run.operations.clone(), drain }
    }

    /// Runs `rollmill <args> --run URI`.
    pub async fn job(&self, args: &[&str]) -> Result<Exit, JobError> {
        let program = std::env::current_exe().map_err(|e| not_started(Path::new("rollmill"), &e))?;
        let mut command = Command::new(&program);
        command.args(args).arg("--run").arg(&self.address);
        command.args(self.operations.flags());
        self.wait(&program, &mut command, args.first().copied().unwrap_or("job")).await
    }

    /// Runs `rollmill-train`.
    pub async fn train(&self, round: u32, threads: Option<u32>) -> Result<Exit, JobError> {
        let program = program("rollmill-train")?;
        let mut command = Command::new(&program);
        command.args(["--run", &self.address, "--round", &round.to_string()]);
        if let Some(threads) = threads {
            command.args(["--threads", &threads.to_string()]);
        }
        self.wait(&program, &mut command, "train").await
    }

    async fn wait(&self, program: &Path, command: &mut Command, name: &str) -> Result<Exit, JobError> {
        let mut child = command.spawn().map_err(|e| not_started(program, &e))?;
        let status = tokio::select! {
            status = child.wait() => status,
            () = self.drain.raised() => {
                terminate(&child);
                child.wait().await
            }
        };
        let status = status.map_err(|e| not_started(program, &e))?;
        match status.code().map(|code| (code, Exit::from_code(code))) {
            Some((_, Some(exit))) => Ok(exit),
            // A second Ctrl-C ends a job at once.
            Some((130, None)) => Ok(Exit::Again),
            Some((code, None)) => {
                let reason = format!("it ended with code {code}, a bug: please report the message above");
                Err(JobError::Stopped { key: name.into(), reason })
            }
            None => Err(JobError::Unavailable { reason: format!("{name} was killed by a signal ({status})") }),
        }
    }
}

/// A program that lies beside `rollmill`.
pub fn program(name: &str) -> Result<PathBuf, JobError> {
    checks::beside(name).ok_or_else(|| JobError::Config {
        place: name.into(),
        reason: "is not beside rollmill; build it with `make build`".into(),
    })
}

fn not_started(program: &Path, e: &std::io::Error) -> JobError {
    JobError::Config { place: program.display().to_string(), reason: format!("cannot be started ({e})") }
}

/// Asks a child to drain. On a terminal it has had the same signal already; a second one changes nothing.
pub fn terminate(child: &Child) {
    if let Some(pid) = child.id().and_then(|p| i32::try_from(p).ok()) {
        signal_terminate(pid);
    }
}

#[allow(unsafe_code)] // kill(2) of a child that has not been waited for: the pid is ours
fn signal_terminate(pid: i32) {
    unsafe {
        libc::kill(pid, libc::SIGTERM);
    }
}
