//! Watches one program until it ends or a limit ends it, removes its container, and says what happened.
//!
//! What must hold: every way out removes the container; limits act whether or not the caller calls.
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use rollmill_sandbox::{Collected, Facts, Finished, Limits, SandboxError, Spec, is_idle};
use tokio::sync::oneshot;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

use crate::collect;
use crate::error::asked;
use crate::meter::Usage;
use crate::output::Heard;
use crate::program::Program;

/// How often CPU time and waiting are read, and, every other time, whether the program lives.
const TICK: Duration = Duration::from_millis(50);
/// How long a program whose outputs are closed may take to end by itself when the run is to end.
const ENDING: Duration = Duration::from_secs(2);
/// How long the daemon may take to pass on the last of the output.
const DRAIN: Duration = Duration::from_secs(20);

/// Exit code of a program that SIGKILL ended, as the daemon tells it.
const KILLED: i64 = 128 + 9;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    Wall,
    Cpu,
    Flood,
    Asked,
}

/// How a program ended: by itself with a code, or because of us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Exited(i64),
    Killed(Why),
}

/// A program and what it may use.
pub struct Watch {
    program: Program,
    heard: Arc<Heard>,
    asked: oneshot::Receiver<()>,
    limits: Limits,
    collect: Vec<String>,
    closed: bool,
    cpu: Duration,
    waiting: HashMap<i32, u64>,
    sees_waiting: bool,
}

impl Watch {
    pub fn new(program: Program, heard: Arc<Heard>, asked: oneshot::Receiver<()>, spec: &Spec) -> Watch {
        let (limits, collect) = (spec.limits.clone(), spec.collect.clone());
        let (waiting, cpu) = (HashMap::new(), Duration::ZERO);
        Watch { program, heard, asked, limits, collect, closed: false, cpu, waiting, sees_waiting: false }
    }

    /// Until the container is gone.
    pub async fn until_gone(mut self) -> Result<Finished, SandboxError> {
        let started = Instant::now();
        let watched = self.until_end(started).await;
        let wall = started.elapsed();
        let ended = match watched {
            Ok(end) => self.measure(end).await,
            Err(e) => Err(e),
        };
        let Watch { program, heard, cpu, waiting, sees_waiting, mut closed, .. } = self;
        let (container, mut output) = (program.container, program.exec.output);
        let drain = async {
            while !closed {
                match output.next().await {
                    Some(Ok(item)) => heard.absorb(item),
                    _ => closed = true,
                }
            }
        };
        // what the daemon does not pass on in time is lost, with the daemon
        let (_, drained) = tokio::join!(container.remove(), timeout(DRAIN, drain));
        drop(drained);
        heard.close();
        let (end, usage, collected) = ended?;
        let waited = since(&program.before.waiting, &waiting);
        let cpu = usage.cpu.map_or(cpu, |all| all.saturating_sub(program.before.cpu).max(cpu));
        let (stdout, stderr, output_cut) = heard.take();
        let idle = end == End::Killed(Why::Wall) && sees_waiting && is_idle(wall, cpu, waited);
        let facts = Facts { output_cut, cpu, wall, idle, ..facts(end, &usage) };
        Ok(Finished { facts, stdout, stderr, collected })
    }

    async fn until_end(&mut self, started: Instant) -> Result<End, SandboxError> {
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let end = started + self.limits.wall;
        let mut ticks = 0_u32;
        loop {
            let room = self.heard.has_room();
            tokio::select! {
                item = self.program.exec.output.next(), if !self.closed && room => match item {
                    Some(Ok(item)) => {
                        self.heard.absorb(item);
                        if self.heard.flooded() {
                            return Ok(End::Killed(Why::Flood));
                        }
                    }
                    _ => {
                        self.closed = true;
                        self.heard.close();
                        if let Some(code) = self.exits_within(Duration::from_millis(100)).await? {
                            return Ok(End::Exited(code));
                        }
                    }
                },
                () = self.heard.made_room(), if !room => {}
                _ = &mut self.asked => return self.asked_until_gone().await,
                () = tokio::time::sleep_until(end) => return self.last_look(Why::Wall).await,
                _ = tick.tick() => {
                    ticks += 1;
                    self.sample().await;
                    if self.cpu >= self.limits.cpu {
                        return self.last_look(Why::Cpu).await;
                    }
                    if ticks.is_multiple_of(2) && let Some(code) = self.exit_code().await? {
                        return Ok(End::Exited(code));
                    }
                }
            }
        }
    }

    async fn sample(&mut self) {
        let Program { container, meter, before, .. } = &self.program;
        if let Some(all) = meter.cpu(container).await {
            self.cpu = self.cpu.max(all.saturating_sub(before.cpu));
        }
        self.sees_waiting = meter.sample_waiting(&mut self.waiting);
    }

    /// The program may have ended since it was last looked at.
    async fn last_look(&mut self, why: Why) -> Result<End, SandboxError> {
        self.sample().await;
        Ok(self.exit_code().await?.map_or(End::Killed(why), End::Exited))
    }

    /// A program that closed its outputs is most likely ending by itself.
    async fn asked_until_gone(&mut self) -> Result<End, SandboxError> {
        let patience = if self.closed { ENDING } else { Duration::ZERO };
        Ok(self.exits_within(patience).await?.map_or(End::Killed(Why::Asked), End::Exited))
    }

    async fn exits_within(&mut self, patience: Duration) -> Result<Option<i64>, SandboxError> {
        let (end, mut pause) = (Instant::now() + patience, Duration::from_millis(1));
        loop {
            let code = self.exit_code().await?;
            if code.is_some() || Instant::now() >= end {
                return Ok(code);
            }
            sleep(pause).await;
            pause = (pause * 2).min(TICK);
        }
    }

    async fn exit_code(&mut self) -> Result<Option<i64>, SandboxError> {
        let about = self.program.container.client.inspect_exec(&self.program.exec.id).await;
        let about = about.map_err(asked("look at a program"))?;
        Ok(if about.running == Some(true) { None } else { Some(about.exit_code.unwrap_or(KILLED)) })
    }

    /// What was used, and the files that are wanted; with them the exact end of a program that we killed.
    async fn measure(&mut self, end: End) -> Result<(End, Usage, Collected), SandboxError> {
        let container = &self.program.container;
        let usage = self.program.meter.usage(container).await;
        if self.collect.is_empty() {
            return Ok((end, usage, Collected::default()));
        }
        let collected = collect::after_kill(container, &self.collect, self.limits.collect_bytes).await?;
        let end = match (end, self.exits_within(ENDING).await?) {
            (End::Killed(_), Some(code)) if code != KILLED => End::Exited(code),
            _ => end,
        };
        Ok((end, usage, collected))
    }
}

/// How long threads waited beyond what they had waited before.
fn since(before: &HashMap<i32, u64>, now: &HashMap<i32, u64>) -> Duration {
    let each = now.iter().map(|(thread, all)| all.saturating_sub(before.get(thread).copied().unwrap_or(0)));
    Duration::from_nanos(each.sum())
}

fn facts(end: End, usage: &Usage) -> Facts {
    let (exit, signal, timed_out) = match end {
        End::Exited(code) => (i32::try_from(code).ok(), None, false),
        End::Killed(why) => (None, Some(9), matches!(why, Why::Wall | Why::Cpu)),
    };
    Facts { exit, signal, timed_out, oom: usage.oom, peak_memory_bytes: usage.peak_memory_bytes, ..Facts::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_of_the_set_up_is_not_the_programs() {
        let (before, now) = (HashMap::from([(1, 500), (2, 7)]), HashMap::from([(1, 600), (3, 40)]));
        assert_eq!(since(&before, &now), Duration::from_nanos(140));
    }

    #[test]
    fn a_code_is_passed_on_and_a_kill_of_ours_is_a_signal() {
        let usage = Usage { oom: true, ..Usage::default() };
        let told = |end| {
            let facts = facts(end, &usage);
            (facts.exit, facts.signal, facts.timed_out, facts.oom)
        };
        assert_eq!(told(End::Exited(143)), (Some(143), None, false, true), "143 may be a signal, or not");
        assert_eq!(told(End::Killed(Why::Cpu)), (None, Some(9), true, true));
        assert_eq!(told(End::Killed(Why::Flood)), (None, Some(9), false, true));
    }
}
