//! Where a round starts, and what is committed of it.

use super::{Before, Progress, Session, local, model, training};
use crate::inputs::Inputs;
use crate::memory;
use crate::tensorboard::event_file;
use rollmill_job::JobError;
use rollmill_job::checkpoint::{self, ACTOR, Draft, Manifest};
use rollmill_model::Decoder;
use rollmill_train::{TrainConfig, Trainer};
use std::path::{Path, PathBuf};
use tch::{Device, Kind};

impl Session {
    /// The trainer as it stood at the last committed step.
    pub(super) fn open(
        &self,
        config: TrainConfig,
        policy: &Manifest,
        work: &Path,
    ) -> Result<(Trainer, Before), JobError> {
        let base = self.checkpoint_of(0)?;
        let reference = self.actor_of(&base, &work.join("reference"))?;
        let reference = Decoder::load(&reference, Kind::Float, Device::Cpu).map_err(model)?;
        let weights = reference.parameters().iter().map(|(_, weight)| weight.numel() as u64).sum();
        memory::check(weights, &config, memory::limit())?;
        let latest = self.latest(work)?;
        let (trainer, before) = match latest {
            Some((manifest, folder)) => {
                self.project_events()?; // whoever committed it may have been killed before it wrote them
                eprintln!("train: carrying on after step {} of round {}", manifest.step, manifest.round);
                let before = Before { step: manifest.step, metrics: manifest.metrics, seconds: manifest.seconds };
                (self.resume(&folder, reference, config)?, before)
            }
            None if policy.round > 0 => {
                let folder = self.fetch(policy, |_| true, &work.join("resume"))?;
                (self.resume(&folder, reference, config)?, Before::default())
            }
            None => {
                let mut trainer = Trainer::from_policy(reference, config).map_err(training)?;
                trainer.step = u64::from(base.step); // imitation before the first round counts
                (trainer, Before::default())
            }
        };
        Ok((trainer, before))
    }

    /// Writes the event files of this round's checkpoints. Those that are there already stay.
    pub(super) fn project_events(&self) -> Result<(), JobError> {
        let mut before = 0;
        for manifest in self.wait(checkpoint::list(&self.run, self.round))? {
            self.project_events_of(&manifest, before)?;
            before = manifest.step;
        }
        Ok(())
    }

    /// The event file of the steps after `before`, the step of the checkpoint before.
    fn project_events_of(&self, manifest: &Manifest, before: u32) -> Result<(), JobError> {
        let events = event_file(&manifest.metrics, i64::from(before));
        self.wait(checkpoint::project_events(&self.run, manifest, events))
    }

    /// The folder of a checkpoint's policy, fetched into `folder`.
    pub(super) fn actor_of(&self, manifest: &Manifest, folder: &Path) -> Result<PathBuf, JobError> {
        Ok(self.fetch(manifest, |name| name.starts_with(ACTOR), folder)?.join(ACTOR))
    }

    fn resume(&self, folder: &Path, reference: Decoder, config: TrainConfig) -> Result<Trainer, JobError> {
        let trainer = Trainer::load(folder, reference, config).map_err(training);
        let _ = std::fs::remove_dir_all(folder);
        trainer
    }

    /// The newest checkpoint of this round with its files. The base model is none: it is where round 0 starts. One that
    /// another trainer retires meanwhile has a successor.
    fn latest(&self, work: &Path) -> Result<Option<(Manifest, PathBuf)>, JobError> {
        let mut tried = None;
        loop {
            let newest = self.wait(checkpoint::list(&self.run, self.round))?.pop();
            let Some(manifest) = newest.filter(|m| m.round > 0 || m.step > 0) else { return Ok(None) };
            match self.fetch(&manifest, |_| true, &work.join("resume")) {
                Ok(folder) => return Ok(Some((manifest, folder))),
                Err(JobError::Retired { .. }) if tried != Some(manifest.step) => tried = Some(manifest.step),
                Err(e) => return Err(e),
            }
        }
    }

    fn fetch(&self, manifest: &Manifest, wanted: impl Fn(&str) -> bool, folder: &Path) -> Result<PathBuf, JobError> {
        self.wait(checkpoint::fetch(&self.run, manifest, wanted, folder))?;
        Ok(folder.to_path_buf())
    }

    pub(super) fn commit(
        &self,
        trainer: &Trainer,
        progress: &Progress,
        inputs: &Inputs,
        seconds_before: f64,
        last: bool,
        work: &Path,
    ) -> Result<Manifest, JobError> {
        let folder = work.join(format!("step-{:06}", progress.step));
        copy_tokenizer(&work.join("reference").join(ACTOR), &folder.join(ACTOR))?;
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
        let manifest = manifest?;
        self.project_events_of(&manifest, progress.committed)?;
        Ok(manifest)
    }
}

/// Tokenizer and chat template travel along, so that every checkpoint is a whole HF folder.
fn copy_tokenizer(from: &Path, to: &Path) -> Result<(), JobError> {
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
