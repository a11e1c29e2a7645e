//! One stage under fire: workers are started, killed, frozen and started again until the stage is done or the power is
//! cut; then a fresh worker must find or make it complete, and the checker looks.

use crate::check::{self, Finding};
use crate::counted::Log;
use crate::fate::{self, Fate};
use crate::history::History;
use crate::jobs::{Command, Operations, Program};
use crate::place::Place;
use crate::rng::Rng;
use crate::server::Server;
use crate::tally::Tally;
use crate::worker::{Kill, Worker};
use crate::{campaign::Settings, cost};
use anyhow::Context;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

/// After so many kills in one stage its workers are left alone.
const KILLS_PER_STAGE: usize = 40;
/// After so long its workers are left alone.
const CALM_AFTER: Duration = Duration::from_secs(45);
/// A stage whose workers are left alone and that is not done by now is stuck.
pub(crate) const STUCK_AFTER: Duration = Duration::from_secs(300);

/// Everything a stage needs.
#[allow(missing_docs)] // the fields say it by their names
pub struct Fire<'a> {
    pub settings: &'a Settings,
    pub place: &'a Place,
    pub operations: Operations,
    pub history: &'a mut History,
    pub tally: &'a mut Tally,
    pub rng: &'a mut Rng,
    pub server: Option<&'a mut Server>,
    /// A folder for the workers' output.
    pub logs: &'a Path,
    /// The counted job's log.
    pub counted: &'a Path,
    /// Attempts of workers that were killed.
    pub killed: &'a mut BTreeSet<String>,
}

impl Fire<'_> {
    /// Runs `command` under fire until its stage is complete and checked.
    pub async fn run(&mut self, command: &Command) -> anyhow::Result<()> {
        let started = Instant::now();
        let mut workers: Vec<Worker> = Vec::new();
        let mut kills: Vec<Kill> = Vec::new();
        let cut = self.rng.chance(0.25).then(|| self.rng.log_between(Duration::from_millis(10), command.longest * 2));
        let mut server_kill = self.draw_server_kill(command);
        let mut done = false;
        loop {
            let running = workers.iter().filter(|w| w.frozen.is_none()).count();
            if !done && running < self.settings.workers {
                let calm = kills.len() >= KILLS_PER_STAGE || started.elapsed() > CALM_AFTER;
                let freezing = workers.iter().any(|w| matches!(w.fate, Fate::Freeze { .. }));
                let fate = self.draw_fate(command, calm, freezing);
                workers.push(self.start(command, fate)?);
            }
            self.serve(&mut server_kill, started, &mut workers).await?;
            let fresh = self.observe().await?;
            let mut left = Vec::new();
            for worker in workers {
                left.extend(self.advance(command, worker, &fresh, &mut done, &mut kills).await?);
            }
            workers = left;
            if !done && cut.is_some_and(|c| started.elapsed() > c) && self.tally.kills < self.settings.kills {
                self.tally.cuts += workers.len();
                for worker in workers.drain(..) {
                    self.kill(command, worker, &mut kills).await?;
                }
                break;
            }
            if done && workers.is_empty() {
                break;
            }
            if started.elapsed() > STUCK_AFTER {
                let what = format!("{} is not done after {STUCK_AFTER:?}: {}", command.name, self.state(command));
                self.find(Finding::Worker { what });
                break;
            }
            tokio::time::sleep(self.tick()).await;
        }
        drop_all(workers)?;
        self.up().await?;
        self.finish(command).await?;
        self.judge(command, &kills).await
    }

    pub(crate) fn tick(&self) -> Duration {
        Duration::from_millis(if self.server.is_some() { 10 } else { 2 })
    }

    pub(crate) fn find(&mut self, finding: Finding) {
        self.tally.findings.push((self.tally.runs, finding));
    }

    /// How far a stage is, for a finding.
    fn state(&self, command: &Command) -> String {
        let Some((stage, _)) = &command.stage else { return String::new() };
        let count = |kind: &str| {
            let prefix = format!("control/{}/{kind}/", stage.name());
            self.history.objects.keys().filter(|k| k.starts_with(&prefix)).count()
        };
        let (done, operations) = (cost::saved_keys(self.history, stage).len(), self.operations);
        format!("{} terms, {} chunks, {done} items saved, {operations:?}", count("leases"), count("chunks"))
    }

    pub(crate) fn ttl(&self) -> Duration {
        Duration::from_secs(self.operations.lease_seconds)
    }

    fn draw_fate(&mut self, command: &Command, calm: bool, freezing: bool) -> Fate {
        let wanted = self.tally.frozen < self.settings.freezes && command.stage.is_some() && !freezing;
        if wanted && self.rng.chance(0.3) {
            return fate::freeze(self.rng, self.ttl());
        }
        let fate = fate::draw(self.rng, command.longest);
        if calm || self.tally.kills >= self.settings.kills { Fate::Live } else { fate }
    }

    fn draw_server_kill(&mut self, command: &Command) -> Option<Duration> {
        let wanted = self.server.is_some() && self.tally.server_kills < self.settings.server_kills;
        let at = self.rng.between(Duration::from_millis(50), command.longest.min(Duration::from_secs(3)));
        (wanted && command.stage.is_some()).then_some(at)
    }

    /// Kills and restarts the server as decided.
    async fn serve(
        &mut self,
        kill: &mut Option<Duration>,
        started: Instant,
        workers: &mut [Worker],
    ) -> anyhow::Result<()> {
        let Some(server) = self.server.as_deref_mut() else { return Ok(()) };
        let due = server.is_up() && kill.is_some_and(|k| started.elapsed() > k);
        if due {
            *kill = None;
            server.kill(self.rng.between(Duration::ZERO, Duration::from_millis(1500)))?;
            self.tally.server_kills += 1;
            workers.iter_mut().for_each(|w| w.outage = true);
        } else if server.advance()? {
            // Its parts find each other only some seconds after it answers; until then reads fail, which they may.
            match self.history.recheck(self.place.blobs.as_ref(), "").await {
                Ok(()) => server.recovered(),
                Err(e) if e.is_transient() => server.silent().context(e.to_string())?,
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }

    /// Waits until the server is up again, and decides no more about it in this stage.
    async fn up(&mut self) -> anyhow::Result<()> {
        while self.server.as_ref().is_some_and(|s| !s.is_up()) {
            self.serve(&mut None, Instant::now(), &mut []).await?;
            tokio::time::sleep(self.tick()).await;
        }
        Ok(())
    }

    /// What is new in the store; nothing while its server is down.
    pub(crate) async fn observe(&mut self) -> anyhow::Result<Vec<String>> {
        if self.server.as_ref().is_some_and(|s| !s.is_up()) {
            return Ok(Vec::new());
        }
        let seen = self.history.observe(self.place.blobs.as_ref()).await;
        match (seen, self.server.as_deref_mut()) {
            (Err(e), Some(server)) if e.is_transient() => server.silent().map(|()| Vec::new()).context(e.to_string()),
            (Ok(fresh), Some(server)) => {
                server.answered();
                Ok(fresh)
            }
            (seen, _) => Ok(seen?),
        }
    }

    /// A fresh worker that nobody disturbs must end with 0; with 75, and be run again, only while the server comes back.
    async fn finish(&mut self, command: &Command) -> anyhow::Result<()> {
        loop {
            let outage = self.server.as_ref().is_some_and(|s| s.may_fail());
            let (code, said) = self.undisturbed(command).await?;
            if code == Some(75) && outage {
                continue;
            }
            if code != Some(0) {
                let what = format!("a fresh {} ended with {code:?}: {}", command.name, said.trim());
                self.find(Finding::Worker { what });
            }
            return self.observe().await.map(drop);
        }
    }

    /// Code and output of a worker that is left alone; no code, if it does not end.
    async fn undisturbed(&mut self, command: &Command) -> anyhow::Result<(Option<i32>, String)> {
        self.tally.workers += 1;
        let log = self.logs.join("fresh.log");
        let mut child = self.spawn(command, &log)?;
        let started = Instant::now();
        let mut code = None;
        while code.is_none() && started.elapsed() < STUCK_AFTER {
            code = child.try_wait()?.map(|status| status.code().unwrap_or(-1));
            self.observe().await?;
            tokio::time::sleep(self.tick()).await;
        }
        if code.is_none() {
            child.kill()?;
            child.wait()?;
        }
        Ok((code, std::fs::read_to_string(&log).unwrap_or_default()))
    }

    /// Checks the finished stage and adds up what the kills cost.
    async fn judge(&mut self, command: &Command, kills: &[Kill]) -> anyhow::Result<()> {
        self.tally.stages += 1;
        let Some((stage, table)) = &command.stage else { return Ok(()) };
        let checked = check::stage(self.place.blobs.as_ref(), stage, table).await?;
        self.tally.items += checked.items;
        self.tally.rows += checked.rows;
        self.tally.parts += checked.parts;
        self.tally.kept += checked.attempts.iter().filter(|a| self.killed.contains(*a)).count();
        checked.findings.into_iter().for_each(|f| self.find(f));
        let (twice, all) = cost::overlap(self.history, stage);
        self.tally.overlap = (self.tally.overlap.0 + twice, self.tally.overlap.1 + all);
        for kill in kills {
            if let Some(held) = &kill.held {
                let redone = cost::saved_and_redone(self.history, stage, held, kill.when);
                self.tally.redone_saved.add(redone as f64);
            }
        }
        if command.program == Program::Counted {
            let (redone, killed) = self.tally.redone;
            self.tally.redone = (redone + Log::read(self.counted).redone(), killed + kills.len());
        }
        Ok(())
    }
}

fn drop_all(workers: Vec<Worker>) -> anyhow::Result<()> {
    for mut worker in workers {
        worker.child.kill()?;
        worker.child.wait()?;
    }
    Ok(())
}
