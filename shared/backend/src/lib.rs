//! The sandbox that a run's settings ask for, the same for every job that executes what it does not trust.
//!
//! In: `[operations.sandbox]` ([`SandboxSettings`]) and a job's floor. Out: a [`Sandbox`], proved to work on this machine. What
//! must hold: a machine that cannot isolate as asked refuses here, before any item is touched; what was reached is in the
//! sandbox's own [`Isolation`](rollmill_sandbox::Isolation), which every row records.
//!
//! What it does not know: tasks, tiers, rewards.

mod keep;

pub use keep::Keep;

use rollmill_docker::{Docker, DockerOptions};
use rollmill_grader::{t0, t2};
use rollmill_job::config::{SandboxBackend, SandboxSettings};
use rollmill_job::{JobError, Run};
use rollmill_sandbox::{Check, Level, Namespaces, NamespacesOptions, Root, Sandbox, SandboxError, State, Warm};
use std::sync::Arc;

/// Opens the sandbox of a run. An error says what is missing; one that passes is [`JobError::Unavailable`].
pub fn open(run: &Run, floor: Level) -> Result<Arc<dyn Sandbox>, JobError> {
    from_settings(&run.operations.sandbox, floor)
}

/// The same from settings alone.
pub fn from_settings(settings: &SandboxSettings, floor: Level) -> Result<Arc<dyn Sandbox>, JobError> {
    let opened = match settings.backend {
        SandboxBackend::Namespaces => namespaces(settings, floor),
        SandboxBackend::Docker => docker(settings, floor)?,
    };
    opened.map_err(|e| match e.is_transient() {
        true => JobError::Unavailable { reason: format!("sandbox: {e}") },
        false => JobError::Config { place: "sandbox".into(), reason: e.to_string() },
    })
}

/// The row about containers in a table of what this machine can isolate.
pub fn check_docker() -> Check {
    let name = "docker";
    match rollmill_docker::reach(None) {
        Ok(why) => Check { name, state: State::Yes, why, todo: String::new() },
        Err(e) => Check {
            name,
            state: State::No,
            why: e.to_string(),
            todo: "not needed: containers are the other backend ([operations.sandbox] backend = \"docker\")".into(),
        },
    }
}

fn docker(settings: &SandboxSettings, floor: Level) -> Result<Result<Arc<dyn Sandbox>, SandboxError>, JobError> {
    let Some(image) = settings.image.clone() else {
        let reason = "the docker backend needs image: an id, a digest, or a name such as python:3.12-slim".into();
        return Err(JobError::Config { place: "[operations.sandbox]".into(), reason });
    };
    let (runtime, warm) = (settings.runtime.clone(), settings.containers);
    let opened = Docker::open(DockerOptions { image, runtime, warm, floor, ..DockerOptions::default() });
    Ok(opened.map(|docker| Arc::new(docker) as Arc<dyn Sandbox>))
}

fn namespaces(settings: &SandboxSettings, floor: Level) -> Result<Arc<dyn Sandbox>, SandboxError> {
    let root = match &settings.root {
        None => Root::Host,
        Some(path) if path.contains('/') => Root::At(path.into()),
        Some(name) => Root::Named(name.clone()),
    };
    let sandbox = Arc::new(Namespaces::open(NamespacesOptions { root, floor, ..NamespacesOptions::default() })?);
    Ok(match settings.warm {
        true => Arc::new(Warm::new(sandbox, vec![t0::interpreter(), t2::interpreter()])),
        false => sandbox,
    })
}
