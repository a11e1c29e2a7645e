//! `rollmill-train` as a process: killed at every step, run twice at once, given what it cannot use.
#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

mod imitation;
mod refused;
mod setting;

use rollmill_job::gc::{GcOptions, collect};
use rollmill_schema::{Metric, decode};
use setting::{Setting, stderr};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// Six steps with a checkpoint after each.
const TRAIN: &str = "actor_lr = 1e-3\ncritic_lr = 2e-3\nminibatch_trajectories = 4\npasses = 2\ncritic_pretrain_steps = 3\n\
    checkpoint_every = 1\nmicro_tokens = 60\n";

#[test]
fn killed_after_every_step_it_ends_with_the_same_bytes() {
    let start = Setting::new(TRAIN);
    let whole = start.copy();
    assert_eq!(whole.train(1).status.code(), Some(0));
    let want = whole.files(1);
    assert!(want.contains_key("actor/model.safetensors") && want.contains_key("actor/tokenizer.json"));
    let last = whole.manifests(1).last().unwrap().step;
    assert_eq!(last, 6);

    let killed = start.copy();
    for step in 1..=last {
        killed.kill_after(step);
    }
    let end = killed.train(1);
    assert_eq!(end.status.code(), Some(0), "{}", stderr(&end));
    assert_eq!(killed.files(1), want);

    // The broken control: another seed ends with other bytes, so that the comparison can fail.
    let other = Setting::new(&format!("{TRAIN}seed = 5\n"));
    assert_eq!(other.train(1).status.code(), Some(0));
    assert_ne!(other.files(1)["actor/model.safetensors"], want["actor/model.safetensors"]);
}

#[test]
fn two_trainers_at_once_never_mix() {
    let start = Setting::new(TRAIN);
    let whole = start.copy();
    assert_eq!(whole.train(1).status.code(), Some(0));
    for _ in 0..3 {
        let both = start.copy();
        let spawn = || both.command(1).stderr(Stdio::piped()).spawn().unwrap();
        let ends = [spawn(), spawn()].map(|child| child.wait_with_output().unwrap());
        let codes = ends.each_ref().map(|end| end.status.code());
        assert!(codes.iter().all(|code| matches!(code, Some(0 | 11))), "{codes:?} {}", stderr(&ends[1]));
        // Both may have lost a manifest to the other; then a third ends the round.
        assert_eq!(both.train(1).status.code(), Some(0));
        assert_eq!(both.files(1), whole.files(1));
        for manifest in both.manifests(1) {
            let folder = format!("checkpoints/round-0001/step-{:06}/{}", manifest.step, manifest.attempt);
            assert!(both.folder.path().join(folder).is_dir(), "every manifest's files are its own attempt's");
        }
    }
}

#[test]
fn a_half_written_checkpoint_is_never_read() {
    let start = Setting::new(TRAIN);
    let whole = start.copy();
    assert_eq!(whole.train(1).status.code(), Some(0));
    start.kill_after(3);
    for step in 3..=6 {
        // What a trainer leaves that is killed in the middle of an upload: files, no manifest.
        let folder = start.folder.path().join(format!("checkpoints/round-0001/step-{step:06}/dead"));
        std::fs::create_dir_all(folder.join("actor")).unwrap();
        std::fs::write(folder.join("actor/model.safetensors"), b"half").unwrap();
        std::fs::write(folder.join("state.json"), b"{").unwrap();
    }
    assert_eq!(start.train(1).status.code(), Some(0));
    assert_eq!(start.files(1), whole.files(1));
}

#[test]
fn the_newest_checkpoints_of_a_round_under_way_are_kept_and_gc_removes_the_rest() {
    let setting = Setting::new(&format!("{TRAIN}keep_checkpoints = 2\n"));
    setting.kill_after(5);
    let steps = || -> Vec<String> {
        let folder = std::fs::read_dir(setting.folder.path().join("checkpoints/round-0001")).unwrap();
        let mut names: Vec<String> = folder
            .map(|entry| entry.unwrap().path())
            .filter(|path| holds_a_file(path))
            .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    };
    let before = steps();
    assert!(before.len() >= 4, "nothing is deleted while it is trained: {before:?}");
    let options = GcOptions { keep_checkpoints: None, older_than: Duration::from_secs(3600), apply: true };
    setting.with_run(async |run| collect(run, options).await.unwrap());
    let kept = steps();
    // The kill may have come between a commit and the retirement that follows it.
    assert!(kept.len() < before.len() && (2..=3).contains(&kept.len()), "{before:?} to {kept:?}");
    assert_eq!(kept[..], before[before.len() - kept.len()..], "the newest are kept");
    assert_eq!(setting.train(1).status.code(), Some(0));
    let whole = Setting::new(TRAIN);
    assert_eq!(whole.train(1).status.code(), Some(0));
    let weights = |of: &Setting| of.files(1)["actor/model.safetensors"].clone();
    assert_eq!(weights(&setting), weights(&whole), "the resumed round is the uninterrupted one");
}

fn holds_a_file(folder: &Path) -> bool {
    let mut inside = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    inside.any(|path| path.is_file() || holds_a_file(&path))
}

#[test]
fn metrics_are_in_the_table_and_in_event_files_whoever_was_killed() {
    let setting = Setting::new(TRAIN);
    setting.kill_after(4);
    assert_eq!(setting.train(1).status.code(), Some(0));
    let part = setting.folder.path().join("tables/metrics/train/round-0001/part-00000.parquet");
    let (rows, _) = decode::<Metric>(&std::fs::read(part).unwrap().into()).unwrap();
    for name in [
        "score",
        "advantage_p50",
        "critic_explained_variance",
        "turns",
        "stop/passed",
        "failed_rows",
        "group_length_ratio",
        "alert/failed_rows",
        "well_formed",
        "kl_reference",
        "tokens_per_second",
    ] {
        let mut steps: Vec<i64> = rows.iter().filter(|r| r.name == format!("train/{name}")).map(|r| r.step).collect();
        steps.sort_unstable();
        assert_eq!(steps, [1, 2, 3, 4, 5, 6], "{name}");
    }
    let failed = rows.iter().find(|r| r.name == "train/failed_rows").unwrap();
    assert!((failed.value.unwrap() - 1.0 / 12.0).abs() < 1e-9, "one row of twelve failed");
    let alert = rows.iter().find(|r| r.name == "train/alert/failed_rows").unwrap();
    assert_eq!(alert.value, Some(1.0), "above 5 %");
    let events = std::fs::read_dir(setting.folder.path().join("tensorboard/train")).unwrap().count();
    assert_eq!(events, 6, "one file a checkpoint");
}

#[test]
fn asked_to_leave_it_commits_what_it_did_and_comes_back() {
    let setting = Setting::new(&TRAIN.replace("checkpoint_every = 1", "checkpoint_every = 100"));
    let mut child = setting.command(1).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stderr.take().unwrap()));
    assert!(lines.by_ref().map_while(Result::ok).any(|line| line.contains("step 2 ")));
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    lines.for_each(drop);
    let code = child.wait().unwrap().code();
    if code == Some(75) {
        assert!(setting.manifests(1).iter().all(|m| !m.last) && setting.manifests(1).len() == 1);
    } else {
        assert_eq!(code, Some(0), "it was at its last step already");
    }
    assert_eq!(setting.train(1).status.code(), Some(0));
    let whole = Setting::new(TRAIN);
    assert_eq!(whole.train(1).status.code(), Some(0));
    assert_eq!(setting.files(1)["actor/model.safetensors"], whole.files(1)["actor/model.safetensors"]);
}
