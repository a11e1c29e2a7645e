//! `rollmill-serve` as `run` needs it: up with one checkpoint, or stopped.

use super::child::terminate;
use crate::sections::ServeConfig;
use crate::serving::{self, Setup};
use rollmill_job::{JobError, Run, checkpoint, peak_memory_of, write_report};
use std::time::Instant;
use tokio::process::Child;

/// The endpoint of a run on this machine.
pub struct Server {
    setup: Setup,
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
        Server { setup: Setup::here(run, config), running: None }
    }

    /// An endpoint that serves the checkpoint of `round`, and how many requests it takes at once.
    pub async fn endpoint(&mut self, run: &Run, round: u32) -> Result<(String, u32), JobError> {
        if let Some(url) = &run.operations.endpoint {
            return Ok((url.clone(), run.operations.concurrency.unwrap_or(64)));
        }
        let concurrency = run.operations.concurrency.unwrap_or(self.setup.config.slots);
        if let Some(running) = self.running.as_mut().filter(|r| r.round == round)
            && matches!(running.child.try_wait(), Ok(None))
        {
            return Ok((running.url.clone(), concurrency));
        }
        self.stop(run).await;
        let manifest = checkpoint::of_round(run, round).await?;
        let serving = serving::start(run, &manifest, &self.setup).await?;
        let url = format!("http://{}:{}", self.setup.host, serving.port);
        self.running = Some(Running { round, url: url.clone(), child: serving.child, since: Instant::now() });
        Ok((url, concurrency))
    }

    /// Stops it, if it runs, and removes the checkpoint it had loaded.
    pub async fn stop(&mut self, run: &Run) {
        if let Some(mut running) = self.running.take() {
            let peak = running.child.id().map_or(0, peak_memory_of);
            // For people only: that it could not be written changes nothing.
            let _ = write_report(run, "serve", running.since.elapsed().as_secs_f64(), peak).await;
            terminate(&running.child);
            let _ = running.child.wait().await;
            let _ = std::fs::remove_dir_all(&self.setup.folder);
        }
    }
}
