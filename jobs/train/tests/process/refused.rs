//! What cannot be trained on: one line, the right exit code, nothing lost.

use super::TRAIN;
use super::setting::{Setting, stderr};

fn last_line(output: &std::process::Output) -> String {
    stderr(output).lines().last().unwrap_or_default().to_owned()
}

#[test]
fn a_wrong_config_is_a_usage_error_that_names_the_field() {
    for (train, named) in [
        ("temprature = 1", "temprature"),
        ("algorithm = \"ppoo\"", "ppoo"),
        ("max_age = 2", "off_policy"),
        ("off_policy = { kind = \"band\", min = 2.0, max = 3.0 }", "band"),
        ("grad_clip = 0", "grad_clip"),
        ("lora = { rank = 4, targets = [\"x_proj\"] }", "x_proj"),
        ("off_policy = { kind = \"truncated\", cap = 2.0 }\nkl_coef = 0.1\nkl_kind = \"loss_k2\"", "kl_kind"),
    ] {
        let setting = Setting::new(train);
        let out = setting.train(1);
        assert_eq!(out.status.code(), Some(2), "{train}: {}", stderr(&out));
        assert!(last_line(&out).contains(named), "{train}: {}", stderr(&out));
    }
}

#[test]
fn a_round_whose_input_is_not_there_is_refused() {
    let setting = Setting::new(TRAIN);
    let out = setting.train(3);
    assert_eq!(out.status.code(), Some(2), "{}", stderr(&out));
    assert!(last_line(&out).contains("round 2"), "{}", stderr(&out));
}

#[test]
fn nothing_that_passes_is_a_round_of_no_steps() {
    let setting = Setting::new("algorithm = \"sft\"\npassing_reward = 2.0");
    let out = setting.train(1);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    assert!(stderr(&out).contains("nothing to learn from"), "{}", stderr(&out));
    assert_eq!(setting.manifests(1).len(), 1);
}

#[test]
fn every_algorithm_follows_every_other() {
    let setting = Setting::new(&format!("{TRAIN}algorithm = \"ppo\"\npassing_reward = 0.5\n"));
    for algorithm in ["sft", "grpo", "rloo", "dpo", "reward-model"] {
        let other = Setting::new(&format!("{TRAIN}algorithm = \"{algorithm}\"\npassing_reward = 0.5\n"));
        let out = other.train(1);
        assert_eq!(out.status.code(), Some(0), "{algorithm}: {}", stderr(&out));
        let files = other.files(1);
        assert_eq!(files.contains_key("critic/value_head.safetensors"), algorithm == "reward-model", "{algorithm}");
        other.sample(2);
        assert_eq!(other.train(2).status.code(), Some(0), "{algorithm} goes on");
    }
    assert_eq!(setting.train(1).status.code(), Some(0));
}

#[test]
fn old_rows_are_used_within_their_age() {
    let setting = Setting::new(&format!("{TRAIN}max_age = 1\noff_policy = {{ kind = \"truncated\", cap = 2.0 }}\n"));
    assert_eq!(setting.train(1).status.code(), Some(0));
    setting.sample(2);
    let out = setting.train(2);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let manifests = setting.manifests(2);
    let value = |name: &str| manifests.last().unwrap().metrics.iter().find(|m| m.name == name).unwrap().value.unwrap();
    assert_eq!(
        (value("train/trajectories"), value("train/age")),
        (22.0, 0.5),
        "two rounds of eleven, half a round old"
    );
    assert!(value("train/importance_max") <= 2.0);
}
