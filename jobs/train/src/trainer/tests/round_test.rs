//! One round: what moves, what stays, what is measured, what is refused.

use rollmill_model::ValueHead;

use super::*;
use crate::numerics::off_policy::OffPolicy;
use crate::{Algorithm, KlKind, TrainError};

#[test]
fn a_step_of_one_network_leaves_the_other_untouched() {
    let batch = batch(&policy(), 40);
    let mut trainer = Trainer::from_policy(policy(), config()).unwrap();
    let prepared = trainer.prepare(&batch).unwrap();
    let all: Vec<usize> = (0..9).collect();

    let (actor, trunk, before) = (weights(&trainer.actor), weights(&critic(&trainer).trunk), head(&trainer));
    trainer.actor_step(&batch, &prepared, &all, true, &mut Metrics::new()).unwrap();
    assert_eq!((&weights(&critic(&trainer).trunk), &head(&trainer)), (&trunk, &before));
    let moved_actor = weights(&trainer.actor);
    assert_ne!(moved_actor, actor);

    trainer.critic_step(&batch, &prepared, &all, &mut Metrics::new()).unwrap();
    assert_eq!(weights(&trainer.actor), moved_actor);
    assert_ne!(weights(&critic(&trainer).trunk), trunk);
    assert_ne!(head(&trainer), before);
    assert_eq!(weights(&trainer.reference), weights(&policy()));
}

#[test]
fn pretraining_moves_the_head_alone_and_only_on_the_first_round() {
    let batch = batch(&policy(), 40);
    let explained = |steps: u64| {
        let mut trainer = Trainer::from_policy(
            policy(),
            TrainConfig { critic_pretrain_steps: steps, critic_pretrain_lr: 3e-2, ..config() },
        )
        .unwrap();
        let stats = trainer.prepare(&batch).unwrap().stats;
        assert_eq!(weights(&trainer.actor), weights(&policy()));
        assert_eq!(weights(&critic(&trainer).trunk), weights(&policy()));
        trainer.rounds = 1;
        let before = head(&trainer);
        trainer.prepare(&batch).unwrap();
        assert_eq!(before, head(&trainer));
        stats["explained_variance"]
    };
    assert!(explained(0).abs() < 1e-6, "a zero head explains nothing");
    assert!(explained(100) > 0.2, "{}", explained(100));
}

#[test]
fn metrics_are_complete_and_the_policy_matches_its_own_log_probs() {
    let batch = batch(&policy(), 40);
    let mut trainer = Trainer::from_policy(policy(), config()).unwrap();
    let mut steps = vec![];
    let round = trainer
        .round(&batch, &mut |metrics, _| {
            steps.push(metrics.clone());
            Ok(Control::Continue)
        })
        .unwrap();
    assert_eq!((round.finished, round.steps, trainer.rounds(), trainer.step), (true, 6, 1, 6)); // ⌈9/4⌉ × 2 passes
    assert_eq!(steps.iter().map(|s| s.step).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    for name in [
        "score",
        "reward",
        "advantage_mean",
        "advantage_std",
        "return_mean",
        "value_mean",
        "explained_variance",
        "clip_fraction",
        "dual_clip_fraction",
        "value_clip_fraction",
        "approx_kl",
        "kl_reference",
        "entropy",
        "mismatch_p50",
        "mismatch_max",
        "actor_grad_norm",
        "critic_grad_norm",
        "actor_lr",
        "critic_lr",
        "trainable_length_mean",
        "truncated_share",
        "tokens_per_second",
        "seconds",
        "policy_loss",
        "value_loss",
    ] {
        assert!(steps.iter().all(|s| s.values[name].is_finite()), "{name}");
        assert!(round.values.contains_key(name), "{name}");
    }
    let first = &steps[0].values;
    assert!(first["mismatch_max"] < 1e-4, "{}", first["mismatch_max"]);
    assert!(first["approx_kl"].abs() < 1e-6 && first["clip_fraction"] == 0.0 && first["kl_reference"].abs() < 1e-4);
    assert!(steps[5].values["approx_kl"] > 1e-6, "the policy has moved by then");
    // Warm-up over 3 critic steps, two a step.
    let rates: Vec<f64> = steps.iter().map(|s| s.values["critic_lr"]).collect();
    assert!((rates[0] - 2e-3 * 2.0 / 3.0).abs() < 1e-12 && rates[1] == 2e-3, "{rates:?}");
}

#[test]
fn log_probs_of_another_policy_show_as_a_mismatch() {
    let mut batch = batch(&policy(), 40);
    batch.iter_mut().flat_map(|e| &mut e.log_probs).for_each(|l| *l -= 0.5);
    for off_policy in [OffPolicy::None, OffPolicy::Truncated { cap: 1.5, level: Default::default() }] {
        let mut trainer = Trainer::from_policy(policy(), TrainConfig { off_policy, ..config() }).unwrap();
        let values = trainer.round(&batch, &mut go_on).unwrap().values;
        assert!((values["mismatch_p50"] - 0.5).abs() < 1e-3, "{}", values["mismatch_p50"]);
    }
}

#[test] // row 20: 0·Inf is NaN, so masks select; the control puts the same into a token that is trained on
fn what_a_masked_token_holds_changes_nothing() {
    let with = |absurd: f32, masked: bool| {
        let mut batch = batch(&policy(), 40);
        for e in &mut batch {
            let at = e.trainable.iter().rposition(|&t| t != masked).unwrap();
            e.log_probs[at] = absurd;
        }
        let mut trainer = Trainer::from_policy(policy(), config()).unwrap();
        let values = trainer.round(&batch, &mut go_on).unwrap().values;
        (without_clocks(&values), weights(&trainer.actor))
    };
    let (metrics, moved) = with(f32::NEG_INFINITY, true);
    assert!(metrics.values().all(|v| v.is_finite()) && moved.iter().flatten().all(|w| w.is_finite()));
    assert_eq!((metrics, &moved), (with(-1.0, true).0, &with(-1000.0, true).1));
    assert_ne!(with(-1.0, false).1, with(-1000.0, false).1);
}

#[test] // row 5 in the loop: with λ = 1 and γ = 1 the target of a cut-off trajectory is the critic's value behind its end
fn a_cut_off_trajectory_bootstraps_from_the_critic() {
    let batch = batch(&policy(), 40);
    let mut head = ValueHead::zeros(&policy());
    let _ = tch::no_grad(|| head.weight.fill_(0.1));
    let mut trainer =
        Trainer::new(policy(), Some((policy(), head)), policy(), TrainConfig { critic_pretrain_steps: 0, ..config() })
            .unwrap();
    let prepared = trainer.prepare(&batch).unwrap();
    let tokens = &batch[4].tokens;
    let values = critic(&trainer).head.forward(&hidden_alone(&critic(&trainer).trunk, tokens).unsqueeze(0));
    let behind = values.double_value(&[0, tokens.len() as i64 - 1]);
    let returns = prepared.returns.unwrap();
    for target in &returns[4] {
        assert!((f64::from(*target) - (batch[4].reward.unwrap() + behind)).abs() < 1e-5);
    }
    for target in &returns[3] {
        assert!((f64::from(*target) - batch[3].reward.unwrap()).abs() < 1e-5, "a finished one does not");
    }
    let whitened: Vec<f64> = prepared.advantages.unwrap().iter().flatten().map(|&a| f64::from(a)).collect();
    let (mean, std) = crate::numerics::whiten::mean_std(&whitened);
    assert!(mean.abs() < 1e-5 && (std - 1.0).abs() < 1e-5);
}

#[test] // with λ = 1 the value behind a cut-off is its own target: unless told otherwise nothing anchors it
fn a_cut_off_trajectory_may_be_taken_as_finished() {
    let batch = batch(&policy(), 40);
    let head = || {
        let head = ValueHead::zeros(&policy());
        let _ = tch::no_grad(|| head.bias.shallow_clone().fill_(5.0));
        head
    };
    let returns = |bootstrap_cut_off| {
        let config = TrainConfig { critic_pretrain_steps: 0, bootstrap_cut_off, ..config() };
        let mut trainer = Trainer::new(policy(), Some((policy(), head())), policy(), config).unwrap();
        let prepared = trainer.prepare(&batch).unwrap();
        (prepared.returns.unwrap()[4].clone(), prepared.stats)
    };
    let (bootstrapped, stats) = returns(true);
    let reward = batch[4].reward.unwrap() as f32;
    assert!(bootstrapped.iter().all(|target| (target - reward - 5.0).abs() < 1e-4), "{bootstrapped:?}");
    assert!((stats["cut_off_value"] - f64::from(reward) - 5.0).abs() < 1e-4 && stats["finished_score"] < 1.0);
    let (finished, stats) = returns(false);
    assert!(finished.iter().all(|target| (target - reward).abs() < 1e-4), "{finished:?}");
    assert!(!stats.contains_key("cut_off_value"));
}

/// A trainer whose policy has left the reference, and a batch sampled from that policy.
fn apart(config: TrainConfig) -> (Trainer, Vec<Experience>) {
    let drifted = Decoder::random(ModelConfig::tiny(VOCAB), 2);
    let batch = batch(&drifted, 40);
    let head = ValueHead::zeros(&drifted);
    (Trainer::new(drifted.deep_copy(), Some((drifted, head)), policy(), config).unwrap(), batch)
}

#[test]
fn the_kl_goes_into_the_reward_or_into_the_loss_or_is_only_measured() {
    let with = |kl_coef, kl_kind| {
        let (mut trainer, batch) = apart(TrainConfig { kl_coef, kl_kind, ..config() });
        trainer.prepare(&batch).unwrap()
    };
    let (measured, in_reward, loss) =
        (with(0.0, KlKind::InReward), with(0.1, KlKind::InReward), with(0.1, KlKind::LossK2));
    assert!(measured.reference.is_none() && measured.stats["kl_reference"] != 0.0);
    assert_eq!(measured.stats["reward"], measured.stats["score"]);
    assert_eq!(loss.stats["reward"], loss.stats["score"]);
    let tokens: f64 = in_reward.stats["trainable_tokens"] / in_reward.stats["trajectories"];
    let penalty = in_reward.stats["score"] - in_reward.stats["reward"];
    assert!((penalty - 0.1 * in_reward.stats["kl_reference"] * tokens).abs() < 1e-4, "{penalty}");
}

#[test] // the control without a coefficient stays where it is
fn a_kl_loss_pulls_the_policy_to_the_reference() {
    let distance_after = |kl_coef| {
        let (mut trainer, mut batch) =
            apart(TrainConfig { kl_coef, kl_kind: KlKind::LossK2, passes: 8, lambda_critic: 1.0, ..config() });
        batch.iter_mut().for_each(|e| (e.reward, e.truncated) = (Some(0.0), false)); // nothing else to learn
        let squared = |trainer: &Trainer| -> f64 {
            batch
                .iter()
                .map(|e| {
                    let difference =
                        tch::no_grad(|| alone(&trainer.actor, &e.tokens) - alone(&trainer.reference, &e.tokens));
                    difference.square().mean(Kind::Float).double_value(&[])
                })
                .sum()
        };
        let before = squared(&trainer);
        trainer.round(&batch, &mut go_on).unwrap();
        squared(&trainer) / before
    };
    assert!(distance_after(1.0) < 0.9, "{}", distance_after(1.0));
    assert_eq!(distance_after(0.0), 1.0);
}

#[test]
fn numbers_that_are_not_finite_move_no_weights() {
    let batch = batch(&policy(), 40);
    let mut trainer = Trainer::from_policy(policy(), config()).unwrap();
    let mut prepared = trainer.prepare(&batch).unwrap();
    prepared.advantages.as_mut().unwrap()[2][1] = f32::INFINITY;
    prepared.returns.as_mut().unwrap()[2][1] = f32::NAN;
    let all: Vec<usize> = (0..9).collect();
    let actor = trainer.actor_step(&batch, &prepared, &all, true, &mut Metrics::new());
    assert!(matches!(actor, Err(TrainError::NotFinite { .. })));
    let done = trainer.critic_step(&batch, &prepared, &all, &mut Metrics::new());
    assert!(matches!(done, Err(TrainError::NotFinite { .. })));
    assert_eq!((weights(&trainer.actor), weights(&critic(&trainer).trunk)), (weights(&policy()), weights(&policy())));
}

#[test]
fn a_row_without_a_trainable_token_takes_no_part() {
    let mut batch = batch(&policy(), 40);
    batch[2].trainable.fill(false);
    let mut trainer = Trainer::from_policy(policy(), config()).unwrap();
    assert_eq!(trainer.round(&batch, &mut go_on).unwrap().steps, 4); // 8 trajectories, two minibatches, two passes
    batch.iter_mut().for_each(|e| e.trainable.fill(false));
    assert!(matches!(trainer.round(&batch, &mut go_on), Err(TrainError::EmptyBatch(9))));
}

/// A batch of which one row alone has token 9, and a policy whose embedding of that token is not finite.
fn poisoned(max_skipped: u64) -> (Trainer, Vec<Experience>) {
    let model = ModelConfig { tie_word_embeddings: false, ..ModelConfig::tiny(VOCAB) };
    let healthy = Decoder::random(model, 1);
    let mut batch = batch(&healthy, 40);
    for (i, e) in batch.iter_mut().enumerate() {
        e.tokens[4] = if i == 3 { 9 } else { e.tokens[4] };
        e.tokens.iter_mut().skip(if i == 3 { 5 } else { 0 }).for_each(|t| *t = if *t == 9 { 8 } else { *t });
    }
    let ill = healthy.deep_copy();
    let embedding = ill.parameters()[0].1.shallow_clone();
    let _ = tch::no_grad(|| embedding.get(9).fill_(f64::NAN));
    let head = ValueHead::zeros(&healthy);
    let config = TrainConfig { max_skipped, ..config() };
    (Trainer::new(ill, Some((healthy.deep_copy(), head)), healthy, config).unwrap(), batch)
}

#[test]
fn an_update_that_is_not_finite_is_skipped_and_the_others_are_made() {
    let (mut trainer, batch) = poisoned(4);
    let before = weights(&trainer.actor);
    let mut said = vec![];
    let round = trainer
        .round(&batch, &mut |step, _| {
            said.extend(step.skipped.clone());
            Ok(Control::Continue)
        })
        .unwrap();
    assert!(round.finished && round.values["skipped_updates"] == 2.0, "once a pass: {:?}", round.values);
    assert!(
        said.len() == 2 && said.iter().all(|s| s.contains("row 3 (task task-1)") && !s.contains("row 4")),
        "{said:?}"
    );
    let after = weights(&trainer.actor);
    assert!(after != before && after[1..].iter().flatten().all(|w| w.is_finite()));
}

#[test]
fn too_many_skipped_updates_stop_the_run_and_name_the_rows() {
    let (mut trainer, batch) = poisoned(1);
    let error = trainer.round(&batch, &mut go_on).unwrap_err();
    assert!(
        matches!(error, TrainError::NotFinite { .. }) && error.to_string().contains("row 3 (task task-1)"),
        "{error}"
    );
}

#[test]
fn groups_of_one_learn_nothing_from_a_comparison_and_move_nothing() {
    for algorithm in [Algorithm::Grpo, Algorithm::Rloo] {
        let mut batch = batch(&policy(), 40);
        batch.iter_mut().enumerate().for_each(|(i, e)| e.task_id = format!("alone {i}"));
        let mut trainer = Trainer::from_policy(policy(), TrainConfig { algorithm, ..config() }).unwrap();
        let round = trainer.round(&batch, &mut go_on).unwrap();
        assert_eq!(round.values["skipped_rows_share"], 1.0);
        assert_eq!(weights(&trainer.actor), weights(&policy()));
    }
}
