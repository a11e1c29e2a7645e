//! A process that serves one checkpoint: `rollmill-serve`, or a command that is given one.
//!
//! In: a committed checkpoint. Out: a process that answers, and its address. It ends with this process.

use crate::model;
use crate::run::{program, terminate};
use crate::sections::{Dtype, ServeConfig};
use rollmill_job::checkpoint::{self, ACTOR, Manifest};
use rollmill_job::{JobError, Run};
use rollmill_policy::{Endpoint, EndpointConfig};
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// How to start it.
#[derive(Clone, Debug)]
pub struct Setup {
    /// `[serve]`.
    pub config: ServeConfig,
    /// Cores to use; none means all.
    pub threads: Option<u32>,
    /// Address to listen on.
    pub host: IpAddr,
    /// Port; 0 takes a free one.
    pub port: u16,
    /// A shell command instead of `rollmill-serve`: {model}, {checkpoint}, {host} and {port} are filled in.
    pub command: Option<String>,
    /// Where checkpoints are put for it to load.
    pub folder: PathBuf,
}

impl Setup {
    /// `rollmill-serve` for this machine alone.
    pub fn here(run: &Run, config: ServeConfig) -> Setup {
        Setup {
            config,
            threads: run.operations.threads,
            host: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 0,
            command: None,
            folder: model::cache().join("serve").join(&run.id),
        }
    }
}

/// A server that answers.
pub struct Serving {
    /// The process.
    pub child: Child,
    /// The port it listens on.
    pub port: u16,
}

/// Downloads the checkpoint, starts the server and waits until it answers, or until the run is to drain.
pub async fn start(run: &Run, manifest: &Manifest, setup: &Setup) -> Result<Serving, JobError> {
    let folder = setup.folder.join(format!("round-{:04}", manifest.round));
    checkpoint::fetch(run, manifest, |name| name.starts_with(ACTOR), &folder).await?;
    let actor = folder.join(ACTOR);
    match &setup.command {
        Some(command) => start_command(run, manifest, setup, command, &actor).await,
        None => start_ours(manifest, setup, &actor).await,
    }
}

/// `rollmill-serve` says on its output that it listens.
async fn start_ours(manifest: &Manifest, setup: &Setup, actor: &Path) -> Result<Serving, JobError> {
    let program = program("rollmill-serve")?;
    let mut command = Command::new(&program);
    command.arg("--model").arg(actor).args(["--checkpoint-id", &manifest.id()]);
    command.args(["--host", &setup.host.to_string(), "--port", &setup.port.to_string()]);
    command.args(["--slots", &setup.config.slots.to_string(), "--context", &setup.config.context.to_string()]);
    let dtype = if setup.config.dtype == Dtype::Bf16 { "bf16" } else { "f32" };
    command.args(["--dtype", dtype, "--die-with-parent"]);
    if let Some(threads) = setup.threads {
        command.args(["--threads", &threads.to_string()]);
    }
    let failed = |reason: String| JobError::Unavailable { reason: format!("rollmill-serve: {reason}") };
    let mut child = command.stdout(Stdio::piped()).kill_on_drop(true).spawn().map_err(|e| failed(e.to_string()))?;
    let stdout = child.stdout.take().ok_or_else(|| failed("it has no output".into()))?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).await.map_err(|e| failed(e.to_string()))?;
    let ready: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
    let port = ready["listening"].as_str().and_then(|address| address.rsplit(':').next()?.parse().ok());
    match port {
        Some(port) => Ok(Serving { child, port }),
        None => match child.wait().await.ok().and_then(|s| s.code()) {
            Some(code) if code != 75 => Err(JobError::Config {
                place: "rollmill-serve".into(),
                reason: format!("it refused to start (code {code}); its message is above"),
            }),
            _ => Err(failed("it ended before it was ready; its message is above".into())),
        },
    }
}

/// Another server is ready when it answers a health check.
async fn start_command(
    run: &Run,
    manifest: &Manifest,
    setup: &Setup,
    template: &str,
    actor: &Path,
) -> Result<Serving, JobError> {
    let failed = |reason: String| JobError::Config { place: "[cluster.endpoint] command".into(), reason };
    let port = if setup.port == 0 { free_port(setup.host).map_err(|e| failed(e.to_string()))? } else { setup.port };
    let filled = fill(template, actor, &manifest.id(), setup.host, port);
    let mut command = Command::new("sh");
    // The shell is replaced: a signal to it is one to the server.
    command.arg("-c").arg(format!("exec {filled}")).stdin(Stdio::null()).kill_on_drop(true);
    let mut child = command.spawn().map_err(|e| failed(format!("sh cannot be started ({e})")))?;
    let host = if setup.host.is_unspecified() { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { setup.host };
    let config = EndpointConfig { url: format!("http://{host}:{port}"), retries: 0, ..EndpointConfig::default() };
    let endpoint = Endpoint::new(config).map_err(|e| failed(e.to_string()))?;
    loop {
        if endpoint.health().await.is_ok() {
            return Ok(Serving { child, port });
        }
        tokio::select! {
            status = child.wait() => {
                let said = status.map_or_else(|e| e.to_string(), |s| s.to_string());
                return Err(failed(format!("`{filled}` ended before it was ready ({said}); its message is above")));
            }
            () = run.drain.raised() => {
                terminate(&child);
                let _ = child.wait().await;
                return Err(JobError::Unavailable { reason: "asked to leave before the server was ready".into() });
            }
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
        }
    }
}

/// A port that nobody has now. Another may take it before the server does, which then ends and is started again.
fn free_port(host: IpAddr) -> std::io::Result<u16> {
    Ok(TcpListener::bind((host, 0))?.local_addr()?.port())
}

fn fill(template: &str, actor: &Path, checkpoint: &str, host: IpAddr, port: u16) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
    template
        .replace("{model}", &quoted(&actor.display().to_string()))
        .replace("{checkpoint}", &quoted(checkpoint))
        .replace("{host}", &host.to_string())
        .replace("{port}", &port.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_filled_and_quoted() {
        let filled = fill(
            "vllm serve {model} --served-model-name {checkpoint} --host {host} --port {port}",
            Path::new("/a b/it's"),
            "round-0001/x",
            IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            8000,
        );
        assert_eq!(filled, r"vllm serve '/a b/it'\''s' --served-model-name 'round-0001/x' --host 0.0.0.0 --port 8000");
    }
}
