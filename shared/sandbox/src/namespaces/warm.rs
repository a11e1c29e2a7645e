//! Runs of Python that begin in a loaded interpreter instead of a cold one.
//!
//! In: specs; those whose command begins as a kept interpreter was started are forked from it, all others start cold. Out: what
//! any run gives. What must hold: a run is isolated from all others as a cold one is; an interpreter that answers oddly is ended,
//! and another takes its place.
use std::io;
use std::sync::Arc;

use super::holder::{Holder, Idle, died};
use super::run::Running;
use super::{Namespaces, spec};
use crate::wire::{self, Reply};
use crate::{Finished, Isolation, Sandbox, SandboxError, Session, Spec};

/// What a warm interpreter has loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WarmOptions {
    /// Interpreter and flags with which the commands of its runs begin, such as `["python3", "-I", "-S"]`; the next word of a
    /// command is `-c` or a file.
    pub argv: Vec<String>,
    /// Python code that imports what runs will need. It must start no thread and open nothing.
    pub preload: String,
    /// Names and texts of programs to compile beforehand; `<string>` is the name of one that follows `-c`. A run that begins with
    /// exactly such a text is spared its compilation.
    pub programs: Vec<(String, String)>,
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
    idle: Idle,
}

impl Warm {
    /// Nothing is started yet.
    pub fn new(sandbox: Arc<Namespaces>, interpreters: Vec<WarmOptions>) -> Warm {
        // a loaded interpreter forks into namespaces: where there are none, all runs start cold
        let possible = sandbox.landlock.is_none();
        let kinds = interpreters.into_iter().filter(|options| possible && !options.argv.is_empty());
        Warm { sandbox, kinds: kinds.map(|options| Kind { options, idle: Idle::default() }).collect() }
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
        let holder = Holder::start(&self.sandbox.helper, crate::helper::WARM_ARGUMENT, self.sandbox.slots.take()?)?;
        let hello = wire::Warm {
            argv: options.argv.clone(),
            env: options.env.clone(),
            preload: options.preload.clone(),
            programs: options.programs.clone(),
            rootfs: self.sandbox.rootfs.tree.clone(),
            user: holder.user(),
        };
        let control = holder.control()?;
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
        let (socket, lent) = kind.idle.lend(|| self.load(&kind.options))?;
        Running::with(&self.sandbox, &spec, with_stdin, socket, lent).map_err(|r| r.error)
    }
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
