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
    const ALL: [&str; 6] = ["ppo", "sft", "grpo", "rloo", "dpo", "reward-model"];
    let by = |algorithm: &str| format!("{TRAIN}algorithm = \"{algorithm}\"\npassing_reward = 0.5\n");
    for first in ALL {
        let parent = Setting::new(&by(first));
        let out = parent.train(1);
        assert_eq!(out.status.code(), Some(0), "{first}: {}", stderr(&out));
        for next in ALL {
            let fork = parent.fork(&by(next), 2);
            fork.sample(2);
            let out = fork.train(2);
            assert_eq!(out.status.code(), Some(0), "{next} after {first}: {}", stderr(&out));
            let has_head = fork.files(2).contains_key("critic/value_head.safetensors");
            assert_eq!(has_head, ["ppo", "reward-model"].contains(&next), "{next} after {first}");
        }
    }
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

#[test]
fn rows_of_a_policy_that_lags_are_trained_on_within_their_age() {
    let strict = Setting::new(TRAIN);
    assert_eq!(strict.train(1).status.code(), Some(0));
    strict.sample_with(2, 0);
    let out = strict.train(2);
    assert_eq!(out.status.code(), Some(2), "{}", stderr(&out));
    assert!(last_line(&out).contains("policy of round 0") && last_line(&out).contains("max_lag"), "{}", stderr(&out));

    let lagging = Setting::new(&format!("{TRAIN}max_age = 1\noff_policy = {{ kind = \"truncated\", cap = 2.0 }}\n"));
    assert_eq!(lagging.train(1).status.code(), Some(0));
    for round in [2, 3] {
        lagging.sample_with(round, round - 2);
        let out = lagging.train(round);
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        let manifests = lagging.manifests(round);
        let value =
            |name: &str| manifests.last().unwrap().metrics.iter().find(|m| m.name == name).unwrap().value.unwrap();
        // Round 2 may use round 1 again, whose policy is one behind too; round 3 may not use round 2, whose policy is two behind.
        let rows = if round == 2 { 22.0 } else { 11.0 };
        assert_eq!((value("train/trajectories"), value("train/age")), (rows, 1.0), "round {round}");
    }
}
