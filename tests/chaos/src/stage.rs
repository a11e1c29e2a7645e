//! One stage under fire: workers are started, killed, frozen and started again until the stage is done or the power is
//! cut; then a fresh worker must find or make it complete, and the checker looks.

use crate::check::{self, Finding};
use crate::counted::Log;
use crate::fate::{self, Fate, Thaw};
use crate::history::History;
use crate::jobs::{Command, Operations, Program};
use crate::phase::{self, Held, Phase};
use crate::place::Place;
use crate::rng::Rng;
use crate::server::Server;
use crate::tally::Tally;
use crate::{campaign::Settings, cost, process};
use anyhow::Context;
use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// After so many kills in one stage its workers are left alone.
const KILLS_PER_STAGE: usize = 40;
/// After so long its workers are left alone.
const CALM_AFTER: Duration = Duration::from_secs(45);
/// A stage whose workers are left alone and that is not done by now is stuck.
const STUCK_AFTER: Duration = Duration::from_secs(300);
struct Worker {
    child: Child,
    started: Instant,
    fate: Fate,
    /// Objects of its fate's kind that appeared since its start.
    events: usize,
    /// When a decided kill or freeze falls due.
    due: Option<Instant>,
    frozen: Option<(Instant, Option<Held>)>,
    thawed: bool,
    /// The server was down during its life.
    outage: bool,
    log: PathBuf,
}

/// A kill, for what is told after the stage.
struct Kill {
    held: Option<Held>,
    when: Instant,
}

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
                self.find(Finding::Worker { what: format!("{} is not done after {STUCK_AFTER:?}", command.name) });
                break;
            }
            tokio::time::sleep(self.tick()).await;
        }
        drop_all(workers)?;
        self.up().await?;
        self.finish(command).await?;
        self.judge(command, &kills).await
    }

    fn tick(&self) -> Duration {
        Duration::from_millis(if self.server.is_some() { 10 } else { 2 })
    }

    fn find(&mut self, finding: Finding) {
        self.tally.findings.push((self.tally.runs, finding));
    }

    fn ttl(&self) -> Duration {
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

    fn start(&mut self, command: &Command, fate: Fate) -> anyhow::Result<Worker> {
        self.tally.workers += 1;
        let log = self.logs.join(format!("worker-{}.log", self.tally.workers));
        let child = self.spawn(command, &log)?;
        let started = Instant::now();
        let due = if let Fate::KillAfter(life) = fate { Some(started + life) } else { None };
        let outage = self.server.as_ref().is_some_and(|s| !s.is_up());
        Ok(Worker { child, started, fate, events: 0, due, frozen: None, thawed: false, outage, log })
    }

    fn spawn(&self, command: &Command, log: &Path) -> anyhow::Result<Child> {
        let program = match command.program {
            Program::Rollmill => &self.settings.rollmill,
            Program::Counted => &self.settings.counted,
        };
        let mut start = std::process::Command::new(program);
        start.args(&command.args).args(["--run", &self.place.address]).current_dir(&self.settings.project);
        self.place.tell(&mut start);
        start.stdin(Stdio::null()).stdout(Stdio::null()).stderr(std::fs::File::create(log)?);
        process::start(&mut start).with_context(|| format!("{} cannot be started", program.display()))
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
    async fn observe(&mut self) -> anyhow::Result<Vec<String>> {
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

    /// Does what is due to one worker; none if it is gone.
    async fn advance(
        &mut self,
        command: &Command,
        mut worker: Worker,
        fresh: &[String],
        done: &mut bool,
        kills: &mut Vec<Kill>,
    ) -> anyhow::Result<Option<Worker>> {
        if let Some(status) = worker.child.try_wait()? {
            self.ended(command, &worker, status, done);
            return Ok(None);
        }
        let now = Instant::now();
        match worker.fate {
            Fate::Live => (),
            Fate::KillOn { event, nth, lag } => {
                worker.events += fresh.iter().filter(|k| k.contains(event)).count();
                if worker.due.is_none() && worker.events >= nth {
                    worker.due = Some(now + lag);
                }
            }
            Fate::KillAfter(_) => (),
            Fate::Freeze { .. } => return self.freeze(command, worker, *done).map(Some),
        }
        if worker.due.is_some_and(|due| now >= due) {
            if let Some((worker, status)) = self.kill(command, worker, kills).await? {
                self.ended(command, &worker, status, done);
            }
            return Ok(None);
        }
        if *done && now.duration_since(worker.started) > STUCK_AFTER {
            self.find(Finding::Worker { what: format!("{} does not end though all is done", command.name) });
            self.kill(command, worker, kills).await?;
            return Ok(None);
        }
        Ok(Some(worker))
    }

    fn freeze(&mut self, command: &Command, mut worker: Worker, done: bool) -> anyhow::Result<Worker> {
        let (Fate::Freeze { lag, thaw }, Some((stage, _))) = (worker.fate, &command.stage) else { return Ok(worker) };
        let now = Instant::now();
        match (&worker.frozen, worker.due) {
            _ if worker.thawed => (),
            (None, None) => {
                if phase::held(self.history, stage, worker.child.id()).is_some() {
                    worker.due = Some(now + lag);
                }
            }
            (None, Some(due)) if now >= due => {
                process::signal(&worker.child, libc::SIGSTOP)?;
                worker.frozen = Some((now, phase::held(self.history, stage, worker.child.id())));
            }
            (None, Some(_)) => (),
            (Some((since, held)), _) => {
                let over = match thaw {
                    Thaw::After(time) => now.duration_since(*since) > time,
                    // Until the others have finished it, and in any case beyond its lease.
                    Thaw::Finished => done && now.duration_since(*since) > self.ttl(),
                };
                if over {
                    self.tally.frozen += 1;
                    self.tally.robbed +=
                        usize::from(held.as_ref().is_some_and(|h| cost::robbed(self.history, stage, h)));
                    process::signal(&worker.child, libc::SIGCONT)?;
                    (worker.frozen, worker.thawed) = (None, true);
                }
            }
        }
        Ok(worker)
    }

    fn ended(&mut self, command: &Command, worker: &Worker, status: ExitStatus, done: &mut bool) {
        let code = status.code().unwrap_or(-status.signal().unwrap_or(0));
        *self.tally.exits.entry((command.name, code)).or_default() += 1;
        match code {
            0 => *done = true,
            75 if worker.outage => (),
            _ => {
                let text = std::fs::read_to_string(&worker.log).unwrap_or_default();
                let outage = if worker.outage { " (the server was down during its life)" } else { "" };
                let what = format!("{} ended with {code}{outage}: {}", command.name, text.trim());
                self.find(Finding::Worker { what });
            }
        }
        let _ = std::fs::remove_file(&worker.log);
    }

    /// Kills with -9, and notes what the worker was at. The worker, if it had ended by itself before.
    async fn kill(
        &mut self,
        command: &Command,
        mut worker: Worker,
        kills: &mut Vec<Kill>,
    ) -> anyhow::Result<Option<(Worker, ExitStatus)>> {
        worker.child.kill()?;
        let status = worker.child.wait()?;
        if status.signal() != Some(libc::SIGKILL) {
            return Ok(Some((worker, status)));
        }
        let when = Instant::now();
        self.observe().await?;
        self.tally.kills += 1;
        let _ = std::fs::remove_file(&worker.log);
        let Some((stage, table)) = &command.stage else {
            *self.tally.phases.entry((command.name, Phase::Start)).or_default() += 1;
            return Ok(None);
        };
        let pid = worker.child.id();
        let held = phase::held(self.history, stage, pid);
        let phase = phase::phase(self.history, stage, held.as_ref(), cost::projections(table));
        *self.tally.phases.entry((command.name, phase)).or_default() += 1;
        if command.program == Program::Counted {
            let saved = cost::saved_keys(self.history, stage);
            let (finished, in_flight) = Log::read(self.counted).lost(pid, &saved);
            self.tally.lost_finished.add(finished as f64);
            self.tally.lost_in_flight.add(in_flight as f64);
        }
        if let Some(held) = &held {
            self.killed.insert(held.attempt.clone());
            if matches!(phase, Phase::Claimed | Phase::Items | Phase::Part) {
                self.tally.seconds_lost.add(when.saturating_duration_since(held.last_saved).as_secs_f64());
            }
        }
        kills.push(Kill { held, when });
        Ok(None)
    }

    /// A fresh worker that nobody disturbs must end with 0.
    async fn finish(&mut self, command: &Command) -> anyhow::Result<()> {
        self.tally.workers += 1;
        let log = self.logs.join("fresh.log");
        let mut child = self.spawn(command, &log)?;
        let started = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break Some(status);
            }
            if started.elapsed() > STUCK_AFTER {
                child.kill()?;
                child.wait()?;
                break None;
            }
            self.observe().await?;
            tokio::time::sleep(self.tick()).await;
        };
        let code = status.and_then(|s| s.code());
        if code != Some(0) {
            let text = std::fs::read_to_string(&log).unwrap_or_default();
            let what = format!("a fresh {} ended with {code:?}: {}", command.name, text.trim());
            self.find(Finding::Worker { what });
        }
        self.observe().await.map(drop)
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
