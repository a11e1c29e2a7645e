//! Round 0: imitation before the first round.

use super::setting::{Setting, stderr};

const CONVERSATION: &str = r#"{"messages":[{"role":"system","content":"s"},{"role":"user","content":"a b"},{"role":"assistant","content":"b a"}]}"#;
const TURNS: &str = r#"{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"b"},{"role":"assistant","content":"a"}]}"#;

fn setting(lines: &[&str]) -> (Setting, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("demonstrations.jsonl");
    std::fs::write(&file, lines.join("\n")).unwrap();
    let sft = format!(
        "[sft]\ndemonstrations = \"{}\"\nactor_lr = 1e-2\npasses = 4\ncheckpoint_every = 1\nminibatch_trajectories = 2\n",
        file.display()
    );
    (Setting::with_sections(&format!("[train]\nalgorithm = \"grpo\"\nactor_lr = 1e-3\n{sft}"), false), folder)
}

#[test]
fn the_first_round_starts_from_what_was_imitated() {
    let (setting, _files) = setting(&[CONVERSATION, "{\"messages\": []}", TURNS, "no json"]);
    let base = setting.files(0);
    let killed = setting.copy();
    let out = setting.train(0);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    for line in [":2: messages must be", ":4: "] {
        assert!(stderr(&out).contains(&format!("demonstrations.jsonl{line}")), "{}", stderr(&out));
    }
    let trained = setting.files(0);
    assert_ne!(trained["actor/model.safetensors"], base["actor/model.safetensors"]);
    assert_eq!(trained["actor/tokenizer.json"], base["actor/tokenizer.json"]);
    let losses: Vec<f64> = setting
        .manifests(0)
        .last()
        .unwrap()
        .metrics
        .iter()
        .filter(|m| m.name == "train/policy_loss")
        .filter_map(|m| m.value)
        .collect();
    assert!(losses.len() == 4 && losses[3] < 0.8 * losses[0], "{losses:?}");

    for step in 1..=4 {
        killed.kill_after_step_of(0, step);
    }
    assert_eq!(killed.train(0).status.code(), Some(0));
    assert_eq!(killed.files(0)["actor/model.safetensors"], trained["actor/model.safetensors"]);

    setting.sample(1);
    let out = setting.train(1);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    // The KL is measured against what was imitated: the same rows have another one beside the model before that.
    let kl = |setting: &Setting| {
        let manifests = setting.manifests(1);
        manifests[0].metrics.iter().find(|m| m.name == "train/kl_reference" && m.step == 1).unwrap().value.unwrap()
    };
    let plain = Setting::new("algorithm = \"grpo\"\nactor_lr = 1e-3");
    assert_eq!(plain.train(1).status.code(), Some(0));
    assert!((kl(&setting) - kl(&plain)).abs() > 1e-3, "{} and {}", kl(&setting), kl(&plain));
}

#[test]
fn without_demonstrations_round_0_is_refused() {
    let plain = Setting::new("algorithm = \"grpo\"");
    let out = plain.train(0);
    assert_eq!(out.status.code(), Some(2), "{}", stderr(&out));
    assert!(stderr(&out).contains("[sft]"), "{}", stderr(&out));
    let (setting, files) = setting(&[CONVERSATION]);
    setting.sample(1);
    let out = setting.train(0);
    assert!(out.status.code() == Some(2) && stderr(&out).contains("another run"), "{}", stderr(&out));
    std::fs::remove_file(files.path().join("demonstrations.jsonl")).unwrap();
}
