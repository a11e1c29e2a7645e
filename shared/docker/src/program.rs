//! The program beside the keeper: an exec that unpacks its files, waits for a word of ours, and becomes the program.
//!
//! What must hold: the limits of the run hold before the word is said; of the daemon's environment nothing is left.
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bollard::exec::{CreateExecOptions, StartExecOptions, StartExecResults};
use rollmill_sandbox::{SandboxError, Spec};
use tokio::io::{AsyncWrite, AsyncWriteExt};

use crate::archive;
use crate::container::{Container, Shape};
use crate::daemon::Core;
use crate::error::{asked, failed};
use crate::meter::Meter;
use crate::output::{self, Outputs};

/// Shells read a pipe byte by byte, so what follows the line is the program's. The line also takes what is left of the padding
/// of the tar. `env` says 127 where there is no such program and 126 where it cannot be executed.
const PROGRAM: &str = r#"if [ "$1" = files ]; then tar -xmf - -C /work || exit 125; fi
printf .
read -r go
shift
exec env -i "$@""#;

/// The input of an exec.
pub type Input = Pin<Box<dyn AsyncWrite + Send>>;

/// An exec and its two ends.
pub struct Exec {
    pub id: String,
    pub output: Outputs,
    pub input: Input,
}

/// Starts a command in a container, as the slot's user.
pub async fn exec(container: &Container, cmd: Vec<String>, folder: &str) -> Result<Exec, SandboxError> {
    let what = "start a program";
    let options = CreateExecOptions {
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        cmd: Some(cmd),
        user: Some(container.user()),
        working_dir: Some(folder.to_string()),
        ..Default::default()
    };
    let id = container.client.create_exec(&container.id, options).await.map_err(asked(what))?.id;
    let large = StartExecOptions { output_capacity: Some(64 << 10), ..Default::default() };
    match container.client.start_exec(&id, Some(large)).await.map_err(asked(what))? {
        StartExecResults::Attached { output, input } => Ok(Exec { id, output, input }),
        StartExecResults::Detached => Err(failed(what, "it is detached")),
    }
}

/// A program that runs.
pub struct Program {
    pub container: Container,
    pub exec: Exec,
    pub meter: Meter,
    /// What the set-up used.
    pub before: Before,
}

/// What was used before the program began, which is not its own.
#[derive(Default)]
pub struct Before {
    pub cpu: Duration,
    /// Nanoseconds that threads waited for a CPU, by thread; the program is one that unpacked its files.
    pub waiting: HashMap<i32, u64>,
}

/// In a container that waits for a run like this, or in a new one.
pub async fn start(core: &Arc<Core>, spec: &Spec) -> Result<Program, SandboxError> {
    let shape = Shape::of(spec);
    if let Some(container) = core.pool.take(&shape) {
        // one that waited may have died meanwhile, with its daemon for one: then a new one tells what is wrong
        if let Ok(program) = start_in(core, container, spec).await {
            return Ok(program);
        }
    }
    start_in(core, Container::start(core, &shape).await?, spec).await
}

async fn start_in(core: &Core, mut container: Container, spec: &Spec) -> Result<Program, SandboxError> {
    match set_up(core, &mut container, spec).await {
        Ok((exec, meter, before)) => Ok(Program { container, exec, meter, before }),
        Err(error) => {
            container.remove().await;
            Err(error)
        }
    }
}

async fn set_up(core: &Core, container: &mut Container, spec: &Spec) -> Result<(Exec, Meter, Before), SandboxError> {
    container.put_pristine(&spec.pristine).await?;
    let what = "write the files under /work";
    let mut exec = exec(container, command(core, spec), "/work").await?;
    if !spec.files.is_empty() {
        let archive = archive::of_files(&spec.files).map_err(|e| failed(what, &e.to_string()))?;
        exec.input.write_all(&archive).await.map_err(|e| failed(what, &e.to_string()))?;
    }
    output::until_ready(&mut exec.output, "start a program").await?;
    container.limit().await?;
    let meter = Meter::of(container);
    let mut before = Before { cpu: meter.cpu(container).await.unwrap_or_default(), ..Before::default() };
    meter.sample_waiting(&mut before.waiting);
    let go = async {
        exec.input.write_all(b"\n").await?;
        exec.input.flush().await
    };
    go.await.map_err(|e| failed("start a program", &e.to_string()))?;
    Ok((exec, meter, before))
}

fn command(core: &Core, spec: &Spec) -> Vec<String> {
    let files = if spec.files.is_empty() { "none" } else { "files" };
    let mut all = ["/bin/sh", "-c", PROGRAM, "sh", files].map(String::from).to_vec();
    let defaults = [("PATH", core.image.path.as_str()), ("HOME", "/tmp"), ("LANG", "C.UTF-8")];
    let absent = defaults.iter().filter(|(name, _)| !spec.env.iter().any(|(n, _)| n == name));
    all.extend(spec.env.iter().map(|(name, value)| format!("{name}={value}")));
    all.extend(absent.map(|(name, value)| format!("{name}={value}")));
    all.extend(spec.argv.iter().cloned());
    all
}

/// Whether `env` would take the program for something else.
pub fn check(spec: &Spec) -> Result<(), SandboxError> {
    spec.check()?;
    if spec.argv[0].contains('=') || spec.argv[0].starts_with('-') {
        return Err(SandboxError::BadSpec { reason: format!("{:?} is no name for a program here", spec.argv[0]) });
    }
    if spec.env.iter().any(|(name, _)| name.starts_with('-')) {
        return Err(SandboxError::BadSpec { reason: "a variable's name begins with -".into() });
    }
    Ok(())
}
