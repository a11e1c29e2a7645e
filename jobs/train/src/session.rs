//! One process training one round: where it starts, what it commits, when it leaves.
//! Must hold: what is committed follows from the round's inputs and config alone, whoever was killed on the way; the
//! trainer that loses a manifest's create stops.

mod observe;
mod saved;

use crate::demonstrations;
use crate::inputs::{self, Inputs};
use crate::stage::{Imitation, imitation};
use observe::Observer;
use rollmill_job::checkpoint::{self, Manifest};
use rollmill_job::{Exit, JobError, Plan, Run, Stage};
use rollmill_model::{ModelConfig, ModelError};
use rollmill_schema::Metric;
use rollmill_train::{Control, StepMetrics, TrainConfig, TrainError, Trainer};
use std::path::Path;
use std::time::Instant;
use tokio::runtime::Handle;

/// A round's training by this process.
pub struct Session {
    run: Run,
    round: u32,
    store: Handle,
    began: Instant,
}

/// What was committed of the round before this process began.
#[derive(Default)]
struct Before {
    step: u32,
    metrics: Vec<Metric>,
    seconds: f64,
}

/// What changes as steps are made.
struct Progress {
    step: u32,
    /// The step of the checkpoint before.
    committed: u32,
    metrics: Vec<Metric>,
}

impl Session {
    /// Nothing is read yet.
    pub fn new(run: Run, round: u32, store: Handle) -> Session {
        Session { run, round, store, began: Instant::now() }
    }

    fn wait<T>(&self, future: impl Future<Output = Result<T, JobError>>) -> Result<T, JobError> {
        self.store.block_on(future)
    }

    /// Trains the round to its end, or until it is asked to leave.
    pub fn train(&self) -> Result<Exit, JobError> {
        if let Some(done) = self.wait(checkpoint::trained(&self.run, self.round))? {
            self.project_events()?;
            self.wait(checkpoint::project_metrics(&self.run, &done))?;
            return Ok(Exit::Complete);
        }
        let work = tempfile::tempdir().map_err(|e| local(Path::new("temporary folder"), e))?;
        if self.round == 0 {
            return self.imitate(work.path());
        }
        let policy = self.checkpoint_of(self.round - 1)?;
        let mut config: TrainConfig = self.run.config.section("train")?;
        let inputs = self.wait(inputs::read(&self.run, self.round, &policy, &config))?;
        config.temperature = inputs.temperature;
        let (mut trainer, before) = self.open(config, &policy, work.path())?;
        self.steps(&mut trainer, &inputs, before, work.path())
    }

    /// The stage before the first round: the base model learns to imitate.
    fn imitate(&self, work: &Path) -> Result<Exit, JobError> {
        let refuse = |reason: &str| Err(JobError::Config { place: "--round 0".into(), reason: reason.into() });
        let Some(Imitation { demonstrations, train }) = imitation(&self.run.config)? else {
            return refuse(
                "round 0 is the base model; name demonstrations in [sft] to train it before the first round",
            );
        };
        if self.wait(Plan::read(&self.run, &Stage::rollout("train", 1)))?.is_some() {
            return refuse("round 1 was rolled out with the base model already; make another run");
        }
        let base = self.checkpoint_of(0)?;
        let folder = self.actor_of(&base, &work.join("reference"))?;
        let positions = ModelConfig::load(&folder).map_err(model)?.max_position_embeddings as usize;
        let read = demonstrations::read(&demonstrations, &folder, positions)?;
        let share = read.refused as f64 / (read.refused + read.experiences.len()) as f64;
        let facts = [("refused_lines".to_owned(), share)].into();
        let inputs =
            Inputs { experiences: read.experiences, inputs: vec![base.input()], temperature: train.temperature, facts };
        let (mut trainer, before) = self.open(train, &base, work)?;
        self.steps(&mut trainer, &inputs, before, work)
    }

    fn steps(&self, trainer: &mut Trainer, inputs: &Inputs, before: Before, work: &Path) -> Result<Exit, JobError> {
        let mut progress = Progress { step: before.step, committed: before.step, metrics: before.metrics };
        let mut observer = self.observer(trainer.config(), &progress.metrics)?;
        let (every, keep) = (trainer.config().checkpoint_every as u32, trainer.config().keep_checkpoints);
        let commit = |trainer: &Trainer, progress: &Progress, last: bool| {
            self.commit(trainer, progress, inputs, before.seconds, last, work)
        };
        let mut on_step = |step: &StepMetrics, trainer: &Trainer| {
            progress.step += 1;
            progress.metrics.extend(observer.see(self, step, progress.step, inputs));
            let leave = self.run.drain.is_raised();
            if trainer.is_mid_round() && (leave || progress.step.is_multiple_of(every)) {
                let commit = commit(trainer, &progress, false);
                let kept = commit.and_then(|_| self.wait(checkpoint::keep_newest(&self.run, self.round, keep)));
                kept.map_err(|e| TrainError::OnStep(Box::new(e)))?;
                progress.committed = progress.step;
            }
            Ok(if leave { Control::Stop } else { Control::Continue })
        };
        let round = trainer.round(&inputs.experiences, &mut on_step);
        observer.summary();
        let round = round.map_err(training)?;
        if !round.finished {
            return Ok(Exit::Again);
        }
        if progress.step == 0 {
            eprintln!("train: round {} has nothing to learn from: no pair, or no trajectory that passes", self.round);
        }
        let manifest = commit(trainer, &progress, true)?;
        self.wait(checkpoint::project_metrics(&self.run, &manifest))?;
        eprintln!("train: round {} ended after {} steps: {}", self.round, progress.step, manifest.id());
        Ok(Exit::Complete)
    }

    fn checkpoint_of(&self, round: u32) -> Result<Manifest, JobError> {
        self.wait(checkpoint::of_round(&self.run, round))
    }

    /// The metrics of earlier rounds, as far as their checkpoints are there, and of this one so far.
    fn observer(&self, config: &TrainConfig, so_far: &[Metric]) -> Result<Observer, JobError> {
        let mut observer = Observer::new(config.alerts.clone());
        for round in 0..self.round {
            if let Some(manifest) = self.wait(checkpoint::last_of_round(&self.run, round))? {
                observer.recall(round, &manifest.metrics);
            }
        }
        observer.recall(self.round, so_far);
        Ok(observer)
    }
}

fn local(path: &Path, e: std::io::Error) -> JobError {
    JobError::Unavailable { reason: format!("{}: {e}", path.display()) }
}

fn model(e: ModelError) -> JobError {
    JobError::Config { place: "model".into(), reason: e.to_string() }
}

fn training(e: TrainError) -> JobError {
    match e {
        TrainError::OnStep(inner) => match inner.downcast::<JobError>() {
            Ok(job) => *job,
            Err(other) => JobError::Stopped { key: "train".into(), reason: other.to_string() },
        },
        TrainError::Config(reason) | TrainError::Model(ModelError::Lora(reason)) => {
            JobError::Config { place: "[train]".into(), reason }
        }
        TrainError::OtherRound(reason) => {
            let reason = format!("cannot go on in the middle of this round: {reason}; change it back");
            JobError::Config { place: "[train]".into(), reason }
        }
        TrainError::Io { path, source } => local(&path, source),
        other => JobError::Stopped { key: "train".into(), reason: other.to_string() },
    }
}
