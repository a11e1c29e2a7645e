//! One process training one round: where it starts, what it commits, when it leaves.

use crate::inputs::{self, Inputs};
use rollmill_job::checkpoint::{self, ACTOR, Draft, Manifest};
use rollmill_job::{Exit, JobError, Run};
use rollmill_model::{Decoder, ModelError};
use rollmill_schema::Metric;
use rollmill_train::{Control, StepMetrics, TrainConfig, TrainError, Trainer};
use std::path::{Path, PathBuf};
use std::time::Instant;
use tch::{Device, Kind};
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
        if let Some(done) = self.wait(checkpoint::last_of_round(&self.run, self.round))? {
            self.wait(checkpoint::project_metrics(&self.run, &done))?;
            return Ok(Exit::Complete);
        }
        let policy = self.checkpoint_of(self.round - 1)?;
        let inputs = self.wait(inputs::read(&self.run, self.round, &policy))?;
        let mut config: TrainConfig = self.run.config.section("train")?;
        config.temperature = inputs.temperature;
        let work = tempfile::tempdir().map_err(|e| local(Path::new("temporary folder"), e))?;
        let (mut trainer, before) = self.open(config, &policy, work.path())?;
        if inputs.left_out > 0.05 {
            eprintln!(
                "train: {:.0} % of the rows failed for reasons that are not the policy's",
                inputs.left_out * 100.0
            );
        }
        self.steps(&mut trainer, &inputs, before, work.path())
    }

    fn checkpoint_of(&self, round: u32) -> Result<Manifest, JobError> {
        let absent = || JobError::InputAbsent { stage: format!("checkpoint of round {round}") };
        self.wait(checkpoint::last_of_round(&self.run, round))?.ok_or_else(absent)
    }

    /// The trainer as it stood at the last committed step.
    fn open(&self, config: TrainConfig, policy: &Manifest, work: &Path) -> Result<(Trainer, Before), JobError> {
        let base = self.checkpoint_of(0)?;
        let reference = self.fetch(&base, |name| name.starts_with(ACTOR), &work.join("reference"))?;
        let load = |folder: &Path| Decoder::load(&folder.join(ACTOR), Kind::Float, Device::Cpu).map_err(model);
        let latest = self.wait(checkpoint::list(&self.run, self.round))?.pop();
        let from = latest.as_ref().or(Some(policy).filter(|p| p.round > 0));
        let trainer = match from {
            None => Trainer::from_policy(load(&reference)?, config),
            Some(manifest) => {
                let folder = self.fetch(manifest, |_| true, &work.join("resume"))?;
                let trainer = Trainer::load(&folder, load(&reference)?, config);
                let _ = std::fs::remove_dir_all(&folder);
                trainer
            }
        };
        let before = latest.map_or_else(Before::default, |m| {
            eprintln!("train: carrying on after step {} of round {}", m.step, m.round);
            Before { step: m.step, metrics: m.metrics, seconds: m.seconds }
        });
        Ok((trainer.map_err(training)?, before))
    }

    fn fetch(&self, manifest: &Manifest, wanted: impl Fn(&str) -> bool, folder: &Path) -> Result<PathBuf, JobError> {
        self.wait(checkpoint::fetch(&self.run, manifest, wanted, folder))?;
        Ok(folder.to_path_buf())
    }

    fn steps(&self, trainer: &mut Trainer, inputs: &Inputs, before: Before, work: &Path) -> Result<Exit, JobError> {
        let mut progress = Progress { step: before.step, committed: before.step, metrics: before.metrics };
        let every = trainer.config().checkpoint_every as u32;
        let commit = |trainer: &Trainer, progress: &Progress, last: bool| {
            self.commit(trainer, progress, inputs, before.seconds, last, work)
        };
        let mut on_step = |step: &StepMetrics, trainer: &Trainer| {
            progress.step += 1;
            progress.metrics.extend(self.metrics(step, progress.step, inputs));
            print(self.round, progress.step, step);
            let leave = self.run.drain.is_raised();
            if trainer.is_mid_round() && (leave || progress.step.is_multiple_of(every)) {
                commit(trainer, &progress, false).map_err(|e| TrainError::OnStep(Box::new(e)))?;
                progress.committed = progress.step;
            }
            Ok(if leave { Control::Stop } else { Control::Continue })
        };
        let round = trainer.round(&inputs.experiences, &mut on_step).map_err(training)?;
        if !round.finished {
            return Ok(Exit::Again);
        }
        let manifest = commit(trainer, &progress, true)?;
        self.wait(checkpoint::project_metrics(&self.run, &manifest))?;
        eprintln!("train: round {} ended after {} steps: {}", self.round, progress.step, manifest.id());
        Ok(Exit::Complete)
    }

    fn commit(
        &self,
        trainer: &Trainer,
        progress: &Progress,
        inputs: &Inputs,
        seconds_before: f64,
        last: bool,
        work: &Path,
    ) -> Result<Manifest, JobError> {
        let folder = work.join(format!("step-{:06}", progress.step));
        self.copy_tokenizer(&work.join("reference").join(ACTOR), &folder.join(ACTOR))?;
        trainer.save(&folder).map_err(training)?;
        let draft = Draft {
            round: self.round,
            step: progress.step,
            last,
            inputs: inputs.inputs.clone(),
            metrics: progress.metrics.clone(),
            seconds: seconds_before + self.began.elapsed().as_secs_f64(),
        };
        let manifest = self.wait(checkpoint::commit(&self.run, &folder, draft));
        let _ = std::fs::remove_dir_all(&folder);
        manifest
    }

    /// Tokenizer and chat template travel along, so that every checkpoint is a whole HF folder.
    fn copy_tokenizer(&self, from: &Path, to: &Path) -> Result<(), JobError> {
        std::fs::create_dir_all(to).map_err(|e| local(to, e))?;
        for entry in std::fs::read_dir(from).map_err(|e| local(from, e))? {
            let path = entry.map_err(|e| local(from, e))?.path();
            let name = path.file_name().unwrap_or_default();
            if path.extension().is_some_and(|e| e == "json" || e == "jinja" || e == "txt") {
                std::fs::copy(&path, to.join(name)).map_err(|e| local(&path, e))?;
            }
        }
        Ok(())
    }

    fn metrics(&self, step: &StepMetrics, number: u32, inputs: &Inputs) -> Vec<Metric> {
        let apart = [("well_formed", inputs.well_formed), ("left_out", inputs.left_out)];
        let own = step.values.iter().map(|(name, value)| (name.as_str(), *value));
        own.chain(apart)
            .map(|(name, value)| Metric {
                name: format!("train/{name}"),
                scope: "all".into(),
                split: "train".into(),
                step: i64::from(number),
                value: Some(value).filter(|v| v.is_finite()),
                count: inputs.experiences.len() as i64,
                provenance: self.run.provenance(self.round, 0),
                ..Metric::default()
            })
            .collect()
    }
}

fn print(round: u32, number: u32, step: &StepMetrics) {
    let get = |name: &str| step.values.get(name).copied().unwrap_or(f64::NAN);
    eprintln!(
        "train: round {round} step {number}  reward {:.3}  kl {:.4}  entropy {:.3}  explained variance {:.2}  {:.0} tokens/s",
        get("reward"),
        get("approx_kl"),
        get("entropy"),
        get("explained_variance"),
        get("tokens_per_second"),
    );
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
        TrainError::Config(reason) => JobError::Config { place: "[train]".into(), reason },
        other => JobError::Stopped { key: "train".into(), reason: other.to_string() },
    }
}
