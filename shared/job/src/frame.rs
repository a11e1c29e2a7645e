//! The worker's loop: find a shard that is not done, claim it, finish it, until nothing is left.

use crate::board::Board;
use crate::note::Notebook;
use crate::patience::Patience;
use crate::progress::Progress;
use crate::shard::{ShardEnd, ShardWork};
use crate::{Job, JobError, Plan, Run, RunArgs, Stage, StageReport, env, report, seal};
use rollmill_store::lease::{Claim, Leases};
use std::collections::HashMap;
use std::time::Duration;

/// How a worker's work ended, short of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All shards it was asked for are committed.
    Complete,
    /// Others still hold shards, and it was not to wait; or it was fenced.
    Elsewhere,
    /// It was asked to leave; what it had done is saved.
    Drained,
}

/// Which shards, and whether to wait for others.
#[derive(Clone, Copy, Debug, Default)]
pub struct WorkerOptions {
    /// Only this shard.
    pub shard: Option<u32>,
    /// With a shard: every so many-th after it too, for arrays that have fewer elements than there are shards. 0: none.
    pub fold: u32,
    /// Leave instead of waiting for shards that others hold.
    pub no_wait: bool,
}

impl From<&RunArgs> for WorkerOptions {
    fn from(args: &RunArgs) -> WorkerOptions {
        WorkerOptions { shard: args.shard.or_else(env::scheduled_shard), fold: args.fold, no_wait: args.no_wait }
    }
}

/// How many held shards a worker asks about in one pass, and how many blocks it looks at. Beside ten thousand others, looking
/// at every straggler again and again would cost more than the work that is left.
const ASKED: usize = 4;
const LOOKS: usize = 2;

/// Works on `stage` under `plan` until it is complete, or until something asks this worker to leave.
pub async fn work<J: Job>(
    run: &Run,
    stage: &Stage,
    plan: &Plan,
    job: &J,
    options: WorkerOptions,
) -> Result<Outcome, JobError> {
    let started = run.clock.monotonic();
    let progress = Progress::new(stage.name(), plan.items(), run.quiet);
    let ttl = Duration::from_secs(run.operations.lease_seconds);
    let leases = Leases::new(run.attempt.clone(), format!("pid {}", std::process::id()), ttl);
    let board = Board::new(run, stage, plan);
    let held = HashMap::new();
    let mut worker = Worker { run, stage, plan, job, progress, leases, board, held, ttl, worked: false };
    let outcome = match options.shard {
        Some(first) => worker.given(first, options.fold, options.no_wait).await?,
        None => worker.all(options.no_wait).await?,
    };
    let worked = worker.worked;
    if outcome == Outcome::Complete {
        worker.progress.finish();
    }
    if worked {
        let seconds = (run.clock.monotonic() - started).as_secs_f64();
        let spent = StageReport { tokens: job.tokens(), ..StageReport::of(&run.attempt, plan.items(), seconds) };
        report::write(run, stage, &spent).await?;
    }
    Ok(outcome)
}

struct Worker<'a, J: Job> {
    run: &'a Run,
    stage: &'a Stage,
    plan: &'a Plan,
    job: &'a J,
    progress: Progress,
    leases: Leases,
    board: Board<'a>,
    /// Shards that others held, and until when they are not asked about again: what happens to them before shows in listings.
    held: HashMap<u32, Duration>,
    ttl: Duration,
    worked: bool,
}

impl<J: Job> Worker<'_, J> {
    /// Any shard that is free, until none is open.
    async fn all(&mut self, no_wait: bool) -> Result<Outcome, JobError> {
        let mut patience = Patience::new(self.run);
        loop {
            let blocks = self.board.open_blocks().await?;
            if blocks.is_empty() {
                self.seal().await?;
                return Ok(Outcome::Complete);
            }
            let (mut advanced, mut open, mut asked) = (false, false, 0);
            for block in blocks.into_iter().take(LOOKS) {
                advanced |= self.block(block, &mut asked).await?;
                open |= !self.board.open_shards(block).is_empty();
                if self.run.drain.is_raised() {
                    return Ok(Outcome::Drained);
                }
                if asked >= ASKED {
                    break;
                }
            }
            self.board.turn();
            // Blocks in which nothing was open are closed now: others may be free.
            if advanced || !open {
                patience.renew();
                continue;
            }
            if no_wait {
                return Ok(Outcome::Elsewhere);
            }
            patience.wait().await;
        }
    }

    /// Works on the free shards of a block. `asked` counts those that others hold.
    async fn block(&mut self, block: u32, asked: &mut usize) -> Result<bool, JobError> {
        let mut advanced = false;
        loop {
            self.board.look(block).await?;
            self.progress.set(self.board.items_done());
            let mut worked = false;
            for shard in self.board.open_shards(block) {
                if self.run.drain.is_raised() || *asked >= ASKED {
                    return Ok(advanced);
                }
                let now = self.run.clock.monotonic();
                if self.held.get(&shard).is_some_and(|until| *until > now) {
                    continue;
                }
                if self.shard(shard).await? {
                    // Others worked meanwhile: look again before the next.
                    worked = true;
                    break;
                }
                self.held.insert(shard, now + self.ttl / 3);
                *asked += 1;
            }
            if !worked {
                return Ok(advanced);
            }
            (advanced, *asked) = (true, 0);
        }
    }

    /// The given shards; a stage that projects is sealed by the last of such workers, for nobody after it has the right to.
    async fn given(&mut self, first: u32, fold: u32, no_wait: bool) -> Result<Outcome, JobError> {
        let step = if fold == 0 { usize::MAX } else { fold as usize };
        let mut elsewhere = false;
        for shard in (first as usize..self.plan.shards.len()).step_by(step) {
            match self.one(shard as u32, no_wait).await? {
                Outcome::Complete => {}
                Outcome::Elsewhere => elsewhere = true,
                Outcome::Drained => return Ok(Outcome::Drained),
            }
        }
        if elsewhere {
            return Ok(Outcome::Elsewhere);
        }
        if !self.job.tables().is_empty() && self.board.open_blocks().await?.is_empty() {
            self.seal().await?;
        }
        Ok(Outcome::Complete)
    }

    /// One given shard, waited for while another has it.
    async fn one(&mut self, shard: u32, no_wait: bool) -> Result<Outcome, JobError> {
        let mut patience = Patience::new(self.run);
        loop {
            self.board.look(Board::block_of(shard)).await?;
            if self.board.is_done(shard) {
                return Ok(Outcome::Complete);
            }
            if self.run.drain.is_raised() {
                return Ok(Outcome::Drained);
            }
            if self.shard(shard).await? {
                continue;
            }
            if no_wait {
                return Ok(Outcome::Elsewhere);
            }
            patience.wait().await;
        }
    }

    /// Works on `shard` if nobody holds it; whether it did.
    async fn shard(&mut self, shard: u32) -> Result<bool, JobError> {
        let run = self.run;
        let blobs = run.blobs.as_ref();
        let notebook = Notebook::new(run, self.plan.shards[shard as usize].len());
        let (folder, now) = (self.stage.lease(shard)?, run.clock.monotonic());
        let mut lease = match self.leases.claim(blobs, &folder, now, notebook.write(run)).await {
            Ok(Claim::Held(lease)) => lease,
            Ok(Claim::Busy(_)) => return Ok(false),
            // A question about a lease that the store did not answer costs a pause, not the worker: ask again later.
            Err(e) if e.is_transient() => return Ok(false),
            Err(e) => return Err(e.into()),
        };
        self.worked = true;
        let work = ShardWork {
            run,
            stage: self.stage,
            plan: self.plan,
            job: self.job,
            leases: &self.leases,
            progress: &self.progress,
            notebook: &notebook,
        };
        let end = work.finish(shard, &mut lease).await;
        match &end {
            Ok(ShardEnd::Committed) => self.board.finished(shard),
            Ok(ShardEnd::Fenced) => {}
            Ok(ShardEnd::Drained) => self.leases.release(blobs, &lease, notebook.write(run)).await?,
            Err(e) => {
                notebook.error(&e.to_string());
                // What ended the shard says more than a release that failed after it.
                let _ = self.leases.release(blobs, &lease, notebook.write(run)).await;
            }
        }
        end.map(|_| true)
    }

    async fn seal(&self) -> Result<(), JobError> {
        seal::complete(self.run, self.stage, self.plan, self.job).await
    }
}
