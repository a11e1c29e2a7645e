//! One list of what a hostile program may try, run against every backend and against an unsafe control.
//!
//! In: a [`Sandbox`] of any kind. Out: for each [`Attack`] a [`Verdict`]. What must hold: an attack says itself what it reached,
//! so that a broken attack is no stopped one; the control, a plain process with the powers of this user, must fall to every
//! attack that is harmless there, or the attack proves nothing.
//!
//! A fork bomb runs only behind a proven limit on processes.
mod attacks;
mod backends;
mod bait;
mod plain;
mod report;

pub use attacks::all;
pub use backends::{Backend, backends, containers, docker, namespaces};
pub use bait::{Bait, running_with};
pub use plain::Plain;
pub use report::{Row, markdown, try_all};

use std::time::Duration;

use rollmill_sandbox::{Finished, Limits, Sandbox, Spec};

/// Something a hostile program tries.
#[derive(Clone, Copy)]
pub struct Attack {
    /// What it is after: a row of the table.
    pub group: &'static str,
    /// What it does.
    pub name: &'static str,
    /// Whether it must succeed against the unsafe control. Not where that would harm this machine, or where a kernel or an
    /// ordinary user's rights may refuse it anyway: there it is not tried.
    pub control: bool,
    /// How it is made.
    pub how: How,
}

/// How an attack is made and judged.
#[derive(Clone, Copy)]
pub enum How {
    /// Python that prints DONE or DENIED in its first words, by `attempt`.
    Asks(&'static str),
    /// Runs what it needs and looks at what came of it.
    Does(fn(&dyn Sandbox, &Bait) -> Verdict),
}

/// What became of an attack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It did not reach what it was after.
    Stopped,
    /// It did; with what shows it.
    Succeeded(String),
    /// It did not get as far as trying.
    Broken(String),
}

impl Verdict {
    /// Stopped if the condition holds, otherwise succeeded as `shown`.
    pub fn stopped_if(condition: bool, shown: impl FnOnce() -> String) -> Verdict {
        if condition { Verdict::Stopped } else { Verdict::Succeeded(shown()) }
    }
}

impl Attack {
    /// Makes the attack.
    pub fn on(&self, sandbox: &dyn Sandbox, bait: &Bait) -> Verdict {
        match self.how {
            How::Asks(source) => attacks::ask(sandbox, bait, source),
            How::Does(act) => act(sandbox, bait),
        }
    }
}

/// Limits small enough that reaching them is quick, and large enough for a slow machine.
pub fn limits() -> Limits {
    Limits {
        wall: Duration::from_secs(60),
        cpu: Duration::from_secs(30),
        memory_bytes: 128 << 20,
        pids: 16,
        disk_bytes: 16 << 20,
        output_bytes: 64 << 10,
        collect_bytes: 1 << 20,
    }
}

/// A Python program with these arguments and [`limits`].
pub fn python(source: &str, args: &[&str]) -> Spec {
    let mut argv = vec!["python3".to_string(), "-I".into(), "-S".into(), "-c".into(), source.into()];
    argv.extend(args.iter().map(|a| a.to_string()));
    Spec { argv, limits: limits(), ..Spec::default() }
}

/// Runs it; an error of the sandbox is one of the test.
pub fn run(sandbox: &dyn Sandbox, spec: &Spec) -> Finished {
    match sandbox.run(spec) {
        Ok(finished) => finished,
        Err(error) => panic!("the sandbox failed: {error}"),
    }
}

/// As text, without blanks around it.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_string()
}
