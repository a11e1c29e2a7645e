//! `rollmill-serve` as `run` needs it: up with one checkpoint, or stopped.

use super::child::{program, terminate};
use crate::model;
use crate::sections::{Dtype, ServeConfig};
use rollmill_job::checkpoint::{self, ACTOR};
use rollmill_job::{JobError, Run, peak_memory_of, write_report};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Instant;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// The endpoint of a run on this machine.
pub struct Server {
    config: ServeConfig,
    threads: Option<u32>,
    /// Where checkpoints are put for `serve` to load.
    folder: PathBuf,
    running: Option<Running>,
}

struct Running {
    round: u32,
    url: String,
    child: Child,
    since: Instant,
}

impl Server {
    /// Nothing is started yet.
    pub fn new(run: &Run, config: ServeConfig) -> Server {
        let folder = model::cache().join("serve").join(&run.id);
        Server { config, threads: run.operations.threads, folder, running: None }
    }

    /// An endpoint that serves the checkpoint of `round`, and how many requests it takes at once.
    pub async fn endpoint(&mut self, run: &Run, round: u32) -> Result<(String, u32), JobError> {
        if let Some(url) = &run.operations.endpoint {
            return Ok((url.clone(), run.operations.concurrency.unwrap_or(64)));
        }
        let concurrency = run.operations.concurrency.unwrap_or(self.config.slots);
        if let Some(running) = self.running.as_mut().filter(|r| r.round == round)
            && matches!(running.child.try_wait(), Ok(None))
        {
            return Ok((running.url.clone(), concurrency));
        }
        self.stop(run).await;
        let running = self.start(run, round).await?;
        let url = running.url.clone();
        self.running = Some(running);
        Ok((url, concurrency))
    }

    async fn start(&self, run: &Run, round: u32) -> Result<Running, JobError> {
        let absent = || JobError::InputAbsent { stage: format!("checkpoint of round {round}") };
        let manifest = checkpoint::last_of_round(run, round).await?.ok_or_else(absent)?;
        let folder = self.folder.join(format!("round-{round:04}"));
        checkpoint::fetch(run, &manifest, |name| name.starts_with(ACTOR), &folder).await?;
        let program = program("rollmill-serve")?;
        let mut command = Command::new(&program);
        command.arg("--model").arg(folder.join(ACTOR)).args(["--checkpoint-id", &manifest.id(), "--port", "0"]);
        command.args(["--slots", &self.config.slots.to_string(), "--context", &self.config.context.to_string()]);
        let dtype = if self.config.dtype == Dtype::Bf16 { "bf16" } else { "f32" };
        command.args(["--dtype", dtype, "--die-with-parent"]);
        if let Some(threads) = self.threads {
            command.args(["--threads", &threads.to_string()]);
        }
        let failed = |reason: String| JobError::Unavailable { reason: format!("rollmill-serve: {reason}") };
        let mut child = command.stdout(Stdio::piped()).kill_on_drop(true).spawn().map_err(|e| failed(e.to_string()))?;
        let stdout = child.stdout.take().ok_or_else(|| failed("it has no output".into()))?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).await.map_err(|e| failed(e.to_string()))?;
        let ready: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
        match ready["listening"].as_str() {
            Some(address) => Ok(Running { round, url: format!("http://{address}"), child, since: Instant::now() }),
            None => match child.wait().await.ok().and_then(|s| s.code()) {
                Some(code) if code != 75 => Err(JobError::Config {
                    place: "rollmill-serve".into(),
                    reason: format!("it refused to start (code {code}); its message is above"),
                }),
                _ => Err(failed("it ended before it was ready; its message is above".into())),
            },
        }
    }

    /// Stops it, if it runs, and removes the checkpoint it had loaded.
    pub async fn stop(&mut self, run: &Run) {
        if let Some(mut running) = self.running.take() {
            let peak = running.child.id().map_or(0, peak_memory_of);
            // For people only: that it could not be written changes nothing.
            let _ = write_report(run, "serve", running.since.elapsed().as_secs_f64(), peak).await;
            terminate(&running.child);
            let _ = running.child.wait().await;
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}
