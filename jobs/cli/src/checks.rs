//! What `doctor` looks at, one function a thing.

use crate::model;
use rollmill_job::{JobError, Run};
use rollmill_policy::{Endpoint, EndpointConfig, Tokenizer};
use rollmill_sandbox::{Namespaces, NamespacesOptions, Sandbox, Spec};
use std::path::{Path, PathBuf};
use std::process::Command;

/// One finding.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Finding {
    /// The thing.
    pub name: &'static str,
    /// Whether it is there and works; none if it is optional and absent.
    pub ok: Option<bool>,
    /// What was seen.
    pub found: String,
    /// What to do, if anything.
    pub todo: String,
}

fn good(name: &'static str, found: impl Into<String>) -> Finding {
    Finding { name, ok: Some(true), found: found.into(), todo: String::new() }
}

fn bad(name: &'static str, found: impl Into<String>, todo: impl Into<String>) -> Finding {
    Finding { name, ok: Some(false), found: found.into(), todo: todo.into() }
}

fn absent(name: &'static str, found: impl Into<String>, todo: impl Into<String>) -> Finding {
    Finding { name, ok: None, found: found.into(), todo: todo.into() }
}

/// The run's store.
pub async fn store(address: Option<&str>) -> Finding {
    let Some(address) = address else { return absent("store", "not asked", "pass --run to check a run's store") };
    match Run::open(address).await {
        Ok(run) => good("store", format!("run {} at {}", run.id, run.address())),
        Err(JobError::NoRun { .. }) => match rollmill_store::open(address, &rollmill_job::env::s3_settings()) {
            Ok(store) if address.contains("://") => match rollmill_store::probe::probe(store.as_ref()).await {
                Ok(()) => good("store", format!("{address} honours create-only writes; no run there yet")),
                Err(e) => bad("store", e.to_string(), "fix the store, then run doctor again"),
            },
            _ => absent("store", format!("no run at {address}"), "make one: rollmill init"),
        },
        Err(e) => bad("store", e.to_string(), "fix the address or the credentials"),
    }
}

/// The policy endpoint.
pub async fn endpoint(url: Option<&str>) -> Finding {
    let Some(url) = url else { return absent("endpoint", "not asked", "`run` starts rollmill-serve by itself") };
    let config = EndpointConfig { url: url.into(), retries: 0, ..EndpointConfig::default() };
    let health = match Endpoint::new(config) {
        Ok(endpoint) => endpoint.health().await,
        Err(e) => Err(e),
    };
    match health {
        Ok(h) => {
            good("endpoint", format!("{url} serves {}", h.checkpoint.unwrap_or_else(|| "an unnamed checkpoint".into())))
        }
        Err(e) => bad("endpoint", e.to_string(), "start it, or correct --endpoint"),
    }
}

/// The model folder and its tokenizer.
pub fn tokenizer(name: &str) -> Finding {
    let folder = match model::find(name) {
        Ok(folder) => folder,
        Err(e) => return bad("tokenizer", e.to_string(), "make setup"),
    };
    match Tokenizer::load(&folder) {
        Ok(t) => good("tokenizer", format!("{} tokens, {}", t.vocab_size(), folder.display())),
        Err(e) => bad("tokenizer", e.to_string(), "make setup"),
    }
}

/// The sandbox, by running something in it.
pub fn sandbox() -> Finding {
    let sandbox = match Namespaces::open(NamespacesOptions::default()) {
        Ok(sandbox) => sandbox,
        Err(e) => return bad("sandbox", e.to_string(), "see the message; user namespaces and python3 are needed"),
    };
    let spec = Spec { argv: ["python3", "-c", "print(1)"].map(String::from).to_vec(), ..Spec::default() };
    let level = sandbox.level();
    match sandbox.run(&spec) {
        Ok(done) if done.stdout == b"1\n" => good(
            "sandbox",
            format!("{}, level {}, cgroup {}; {}", level.backend, level.level, level.cgroup, level.notes.join("; ")),
        ),
        Ok(done) => bad("sandbox", format!("python3 gave {:?}", String::from_utf8_lossy(&done.stderr)), "report this"),
        Err(e) => bad("sandbox", e.to_string(), "see the message"),
    }
}

/// The program beside this one.
pub fn beside(name: &str) -> Option<PathBuf> {
    let here = std::env::current_exe().ok()?;
    let path = here.parent()?.join(name);
    path.is_file().then_some(path)
}

/// `rollmill-train` and `rollmill-serve`, which link libtorch.
pub fn libtorch() -> Finding {
    for name in ["rollmill-serve", "rollmill-train"] {
        let Some(path) = beside(name) else {
            return bad("libtorch", format!("no {name} beside rollmill"), "make build");
        };
        match Command::new(&path).arg("--version").output() {
            Ok(out) if out.status.success() => (),
            Ok(out) => {
                let text = String::from_utf8_lossy(&out.stderr).lines().next().unwrap_or_default().to_string();
                return bad("libtorch", format!("{name} does not start: {text}"), "make setup, make build");
            }
            Err(e) => return bad("libtorch", format!("{name} does not start: {e}"), "make build"),
        }
    }
    good("libtorch", "rollmill-serve and rollmill-train start")
}

/// A GPU, as the driver shows it.
pub fn gpu() -> Finding {
    if !Path::new("/proc/driver/nvidia/version").exists() {
        return absent("gpu", "no NVIDIA driver", "not needed for small models");
    }
    match Command::new("nvidia-smi").args(["--query-gpu=name,memory.total", "--format=csv,noheader"]).output() {
        Ok(out) if out.status.success() => good("gpu", String::from_utf8_lossy(&out.stdout).trim().replace('\n', "; ")),
        _ => bad("gpu", "the driver is there, nvidia-smi does not answer", "check the driver"),
    }
}
