//! A killed trainer resumes to the same bytes: interrupted after every step of two rounds, by a save and a load.

use std::path::Path;

use super::*;
use crate::numerics::off_policy::OffPolicy;
use crate::{KlKind, TrainError};

fn trained(dir: &Path, config: &TrainConfig, stop_at: Option<u64>) -> Vec<Metrics> {
    let mut trainer = Trainer::from_policy(policy(), config.clone()).unwrap();
    let mut seen = vec![];
    let batches = [batch(&policy(), 40), batch(&policy(), 60)];
    while trainer.rounds() < 2 {
        let at = trainer.rounds() as usize;
        let mut on_step = |metrics: &StepMetrics, trainer: &Trainer| {
            seen.push(without_clocks(&metrics.values));
            if Some(metrics.step) == stop_at {
                trainer.save(&dir.join("half"))?;
                return Ok(Control::Stop);
            }
            Ok(Control::Continue)
        };
        trainer.round(&batches[at], &mut on_step).unwrap();
        if Some(trainer.step) == stop_at {
            drop(trainer); // the killed process
            trainer = Trainer::load(&dir.join("half"), policy(), config.clone()).unwrap();
        }
    }
    trainer.save(&dir.join("end")).unwrap();
    seen
}

/// Every file of a checkpoint with its bytes.
fn files(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all = vec![];
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => all.extend(files(&path)),
            false => all.push((path.to_string_lossy().into_owned(), std::fs::read(&path).unwrap())),
        }
    }
    all.sort();
    all
}

fn bytes_of(root: &Path) -> Vec<(String, Vec<u8>)> {
    let end = root.join("end");
    let short = |path: String| path.replace(&*end.to_string_lossy(), "");
    files(&end).into_iter().map(|(path, bytes)| (short(path), bytes)).collect()
}

#[test]
fn resuming_after_any_step_gives_the_same_bytes_and_metrics() {
    same_bytes_and_metrics(TrainConfig { kl_coef: 0.05, kl_kind: KlKind::LossK3, passes: 1, ..config() }, 10);
}

#[test]
fn so_it_does_with_adapters_and_off_policy_rows() {
    let lora = Some(rollmill_model::LoraConfig { rank: 4, ..Default::default() });
    let off_policy = OffPolicy::Truncated { cap: 1.5, level: Default::default() };
    same_bytes_and_metrics(TrainConfig { lora, off_policy, passes: 1, ..config() }, 12);
}

fn same_bytes_and_metrics(config: TrainConfig, files: usize) {
    let whole = tempfile::tempdir().unwrap();
    let metrics = trained(whole.path(), &config, None);
    assert_eq!(metrics.len(), 6);
    let want = bytes_of(whole.path());
    assert_eq!(want.len(), files, "actor 3, critic 3 and its head, two optimizers, state; two files of adapters");
    for stop_at in 1..=6 {
        let half = tempfile::tempdir().unwrap();
        assert_eq!(trained(half.path(), &config, Some(stop_at)), metrics, "stopped after step {stop_at}");
        assert!(bytes_of(half.path()) == want, "stopped after step {stop_at}");
    }
    // The broken control: another seed gives other bytes, so the comparison can fail.
    let other = tempfile::tempdir().unwrap();
    trained(other.path(), &TrainConfig { seed: 8, ..config }, None);
    let weights =
        |all: &[(String, Vec<u8>)]| all.iter().find(|(name, _)| name == "/actor/model.safetensors").unwrap().1.clone();
    assert!(weights(&bytes_of(other.path())) != weights(&want));
}

#[test]
fn a_round_goes_on_only_with_its_own_batch_config_and_reference() {
    let dir = tempfile::tempdir().unwrap();
    let mut trainer = Trainer::from_policy(policy(), config()).unwrap();
    trainer.round(&batch(&policy(), 40), &mut |_, _| Ok(Control::Stop)).unwrap();
    trainer.save(dir.path()).unwrap();
    let load = |reference, config| Trainer::load(dir.path(), reference, config);

    let other_config = load(policy(), TrainConfig { clip_high: 0.3, ..config() });
    assert!(matches!(other_config, Err(TrainError::OtherRound(_))));
    assert!(load(policy(), TrainConfig { checkpoint_every: 3, ..config() }).is_ok());
    let other_reference = load(Decoder::random(ModelConfig::tiny(VOCAB), 9), config());
    assert!(matches!(other_reference, Err(TrainError::Checkpoint { .. })));
    let mut loaded = load(policy(), config()).unwrap();
    assert!(matches!(loaded.round(&batch(&policy(), 60), &mut go_on), Err(TrainError::OtherRound(_))));
    assert!(loaded.round(&batch(&policy(), 40), &mut go_on).unwrap().finished, "the refusal lost nothing");
}

#[test]
fn a_damaged_checkpoint_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let trainer = Trainer::from_policy(policy(), config()).unwrap();
    trainer.save(dir.path()).unwrap();
    let path = dir.path().join("optimizer-actor.safetensors");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let error = Trainer::load(dir.path(), policy(), config()).err().unwrap().to_string();
    assert!(error.contains("optimizer-actor.safetensors"), "{error}");
}
