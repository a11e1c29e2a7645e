//! One worker under fire: started with a fate, killed, frozen or left to end, and looked at when it is gone.

use crate::check::Finding;
use crate::counted::Log;
use crate::fate::{Fate, Thaw};
use crate::jobs::{Command, Program};
use crate::phase::{self, Held, Phase};
use crate::stage::{Fire, STUCK_AFTER};
use crate::{cost, process};
use anyhow::Context;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::Instant;

pub(crate) struct Worker {
    pub child: Child,
    pub started: Instant,
    pub fate: Fate,
    /// Objects of its fate's kind that appeared since its start.
    pub events: usize,
    /// When a decided kill or freeze falls due.
    pub due: Option<Instant>,
    pub frozen: Option<(Instant, Option<Held>)>,
    pub thawed: bool,
    /// The server was down during its life.
    pub outage: bool,
    pub log: PathBuf,
}

/// A kill, for what is told after the stage.
pub(crate) struct Kill {
    pub held: Option<Held>,
    pub when: Instant,
}

impl Fire<'_> {
    pub(crate) fn start(&mut self, command: &Command, fate: Fate) -> anyhow::Result<Worker> {
        self.tally.workers += 1;
        let log = self.logs.join(format!("worker-{}.log", self.tally.workers));
        let child = self.spawn(command, &log)?;
        let started = Instant::now();
        let due = if let Fate::KillAfter(life) = fate { Some(started + life) } else { None };
        let outage = self.server.as_ref().is_some_and(|s| s.may_fail());
        Ok(Worker { child, started, fate, events: 0, due, frozen: None, thawed: false, outage, log })
    }

    pub(crate) fn spawn(&self, command: &Command, log: &Path) -> anyhow::Result<Child> {
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

    /// Does what is due to one worker; none if it is gone.
    pub(crate) async fn advance(
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
    pub(crate) async fn kill(
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
}
