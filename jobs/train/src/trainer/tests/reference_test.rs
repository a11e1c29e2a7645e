//! The trainer against `tests/reference`, an implementation in PyTorch that was written from the formulas alone. In: random
//! batches and tiny random models. Compared: what a round prepares, the first gradients, and the change of all weights after
//! all steps, in float32, as ‖a − b‖ / ‖b‖.

use std::path::{Path, PathBuf};
use std::process::Command;

use rollmill_model::ValueHead;
use serde_json::{Value, json};

use super::super::actor::{ActorSums, counts};
use super::super::critic::CriticSums;
use super::super::prepare::PerToken;
use super::super::schedule::Schedule;
use super::*;
use crate::numerics::aggregate::Aggregation;
use crate::numerics::lambda::Lambda;
use crate::numerics::off_policy::{Level, OffPolicy};
use crate::{Algorithm, KlKind, tensor_file};

/// What the numerics table promises for float32.
const BOUND: f64 = 1e-4;

fn cases() -> Vec<(&'static str, TrainConfig)> {
    let base = TrainConfig {
        minibatch_trajectories: 4,
        micro_tokens: 40,
        recompute_over: 30,
        critic_pretrain_steps: 0,
        critic_updates: 1,
        actor_lr: 1e-3,
        critic_lr: 2e-3,
        critic_warmup_steps: 3,
        actor_warmup_steps: 2,
        eps: 1e-6,
        weight_decay: 0.01,
        temperature: 0.8,
        seed: 3,
        ..TrainConfig::default()
    };
    let with = |change: fn(&mut TrainConfig)| {
        let mut config = base.clone();
        change(&mut config);
        config
    };
    vec![
        ("ppo-long", with(|c| c.critic_updates = 2)),
        (
            "ppo-classic",
            with(|c| {
                (c.lambda_actor, c.lambda_critic, c.clip_high, c.dual_clip) = (Lambda::Fixed(0.95), 0.95, 0.2, None);
            }),
        ),
        ("ppo-discounted", with(|c| (c.gamma, c.value_clip, c.dual_clip) = (0.99, None, None))),
        ("ppo-kl-in-reward", with(|c| (c.kl_coef, c.passes) = (0.1, 2))),
        (
            "ppo-kl-loss-k2",
            with(|c| {
                (c.kl_coef, c.kl_kind, c.aggregation) = (0.1, KlKind::LossK2, Aggregation::SeqMeanTokenMean);
            }),
        ),
        (
            "ppo-kl-loss-k3",
            with(|c| (c.kl_coef, c.kl_kind, c.aggregation) = (0.1, KlKind::LossK3, Aggregation::SeqMeanTokenSum)),
        ),
        ("ppo-band", with(|c| c.off_policy = OffPolicy::Band { min: 0.7, max: 1.3 })),
        ("ppo-truncated", with(|c| c.off_policy = OffPolicy::Truncated { cap: 1.1, level: Level::Token })),
        ("ppo-sequence", with(|c| c.off_policy = OffPolicy::Truncated { cap: 1.5, level: Level::Sequence })),
        ("grpo", with(|c| (c.algorithm, c.kl_coef, c.kl_kind) = (Algorithm::Grpo, 0.05, KlKind::LossK3))),
        ("grpo-kl-in-reward", with(|c| (c.algorithm, c.kl_coef) = (Algorithm::Grpo, 0.05))),
        ("rloo", with(|c| c.algorithm = Algorithm::Rloo)),
        ("dpo", with(|c| c.algorithm = Algorithm::Dpo)),
        ("sft", with(|c| (c.algorithm, c.passing_reward) = (Algorithm::Sft, 0.5))),
        ("reward-model", with(|c| c.algorithm = Algorithm::RewardModel)),
    ]
}

/// Rows whose recorded log-probs are a little off the policy's, one that failed, one that was cut off, one with one token.
fn rows(actor: &Decoder, temperature: f64, seed: u64) -> Vec<Experience> {
    let mut all = batch(actor, seed);
    for (i, e) in all.iter_mut().enumerate() {
        let log_softmax = tch::no_grad(|| hidden_alone(actor, &e.tokens));
        let log_softmax = (actor.logits(&log_softmax) / temperature).log_softmax(-1, Kind::Float);
        for t in 1..e.tokens.len() {
            let noise = 0.3 * (sampling::uniform(seed + 9, (100 * i + t) as u64) - 0.5) as f32;
            e.log_probs[t] = (log_softmax.double_value(&[t as i64 - 1, e.tokens[t]]) as f32 + noise).min(0.0);
        }
    }
    all[5].reward = None;
    all[8].trainable.iter_mut().enumerate().for_each(|(t, m)| *m = t == 4);
    all
}

fn networks() -> (Decoder, Decoder, ValueHead, Decoder) {
    let random = |seed| Decoder::random(ModelConfig::tiny(VOCAB), seed);
    let (actor, trunk, reference) = (random(1), random(2), random(3));
    let head = ValueHead::zeros(&trunk);
    let pattern = Tensor::arange(32, (Kind::Float, Device::Cpu)).sin() * 0.1;
    tch::no_grad(|| head.weight.shallow_clone().copy_(&pattern.unsqueeze(0)));
    (actor, trunk, head, reference)
}

/// Writes what both sides compute from, and runs ours.
fn ours(folder: &Path, config: &TrainConfig) -> Computed {
    let (actor, trunk, head, reference) = networks();
    let batch = rows(&actor, config.temperature, 50);
    for (name, network) in [("actor", &actor), ("critic", &trunk), ("reference", &reference)] {
        network.save(&folder.join(name)).unwrap();
    }
    head.save(&folder.join("critic/value_head.safetensors")).unwrap();
    let schedule = Schedule::new(&batch, config, 0);
    std::fs::write(folder.join("case.json"), case(config, &batch, &schedule).to_string()).unwrap();
    let mut trainer = Trainer::new(actor, Some((trunk, head)), reference, config.clone()).unwrap();
    let before = all_weights(&trainer);
    let first = first_gradients(&mut trainer, &batch, &schedule);
    let mut steps = vec![];
    trainer
        .round(&batch, &mut |step, _| {
            steps.push(step.values.clone());
            Ok(Control::Continue)
        })
        .unwrap();
    let deltas = all_weights(&trainer).into_iter().zip(before).map(|((n, after), (_, before))| (n, after - before));
    Computed { deltas: deltas.collect(), steps, ..first }
}

struct Computed {
    prepared: Vec<(&'static str, Tensor)>,
    gradients: Vec<(String, Tensor)>,
    deltas: Vec<(String, Tensor)>,
    steps: Vec<Metrics>,
}

fn case(config: &TrainConfig, batch: &[Experience], schedule: &Schedule) -> Value {
    let rows: Vec<Value> = batch
        .iter()
        .map(|e| {
            json!({"task_id": e.task_id, "tokens": e.tokens, "trainable": e.trainable, "log_probs": e.log_probs,
                "reward": e.reward, "truncated": e.truncated})
        })
        .collect();
    let reward_model = config.algorithm == Algorithm::RewardModel;
    let step = |(at, actor): (usize, &Vec<usize>)| {
        let updates = if schedule.critic.is_empty() { 0 } else { config.critic_updates };
        let critic =
            if reward_model { vec![actor.clone()] } else { schedule.critic[at * updates..][..updates].to_vec() };
        json!({"actor": actor, "critic": critic})
    };
    let steps: Vec<Value> = schedule.actor.iter().enumerate().map(step).collect();
    json!({"config": config, "models": {"actor": "actor", "critic": "critic", "reference": "reference"},
        "batch": rows, "steps": steps})
}

fn all_weights(trainer: &Trainer) -> Vec<(String, Tensor)> {
    let copy = |network: &'static str| {
        move |(name, weight): (String, Tensor)| (format!("{network}.{name}"), weight.detach().copy())
    };
    let mut all = vec![];
    if trainer.config.algorithm.moves_policy() {
        all.extend(trainer.actor.trainable().into_iter().map(copy("actor")));
    }
    all.extend(trainer.critic.iter().flat_map(Critic::trainable).map(copy("critic")));
    all
}

/// What a round prepares, and the first gradients of each network, with the weights it starts from.
fn first_gradients(trainer: &mut Trainer, batch: &[Experience], schedule: &Schedule) -> Computed {
    let prepared = trainer.prepare(batch).unwrap();
    let mut gradients = vec![];
    let mut take = |network: &str, names: Vec<(String, Tensor)>, parts: Vec<Option<Tensor>>| {
        let named = names.into_iter().zip(parts);
        gradients.extend(named.filter_map(|((name, _), part)| Some((format!("{network}.{name}"), part?))));
    };
    let algorithm = trainer.config.algorithm;
    let minibatch = &schedule.actor[0];
    if algorithm == Algorithm::Dpo {
        let (mut sums, mut metrics) = (ActorSums::default(), Metrics::new());
        let of = trainer.preference_gradients(batch, &prepared, minibatch, &mut sums, &mut metrics);
        take("actor", trainer.actor.trainable(), of.clip(0.0, f64::INFINITY));
    } else if algorithm == Algorithm::RewardModel {
        let (of, _) = trainer.reward_model_gradients(batch, minibatch, &mut Metrics::new()).unwrap();
        take("critic", critic(trainer).trainable(), of.clip(0.0, f64::INFINITY));
    } else {
        let of =
            trainer.actor_gradients(batch, &prepared, minibatch, counts(batch, minibatch), &mut ActorSums::default());
        take("actor", trainer.actor.trainable(), of.clip(0.0, f64::INFINITY));
    }
    if algorithm == Algorithm::Ppo {
        let minibatch = &schedule.critic[0];
        let counts = counts(batch, minibatch);
        let of = trainer.critic_gradients(batch, &prepared, minibatch, counts, &mut CriticSums::default()).unwrap();
        take("critic", critic(trainer).trainable(), of.clip(0.0, f64::INFINITY));
    }
    let flat = |lists: &PerToken| Tensor::from_slice(&lists.concat());
    let lists = [
        ("old", Some(&prepared.old).filter(|_| algorithm.has_advantages())),
        ("advantages", prepared.advantages.as_ref()),
        ("values", prepared.values.as_ref()),
        ("returns", prepared.returns.as_ref()),
        ("reference", prepared.reference.as_ref()),
    ];
    let prepared = lists.into_iter().filter_map(|(name, lists)| Some((name, flat(lists?)))).collect();
    Computed { prepared, gradients, deltas: vec![], steps: vec![] }
}

/// ‖ours − theirs‖ / ‖theirs‖ over all tensors at once.
fn apart<'a>(ours: impl Iterator<Item = (&'a Tensor, &'a Tensor)>) -> f64 {
    let (difference, size) = ours.fold((0.0, 0.0), |(difference, size), (a, b)| {
        assert_eq!(a.size(), b.size());
        let square = |t: Tensor| t.to_kind(Kind::Double).square().sum(Kind::Double).double_value(&[]);
        (difference + square(a - b), size + square(b.shallow_clone()))
    });
    (difference / size).sqrt()
}

fn reference_python() -> Option<PathBuf> {
    let python = std::env::var_os("ROLLMILL_TRANSFORMERS").map(PathBuf::from).filter(|p| p.exists());
    let required = std::env::var("ROLLMILL_REQUIRE").unwrap_or_default().split(',').any(|n| n == "transformers");
    assert!(python.is_some() || !required, "ROLLMILL_TRANSFORMERS names no Python with torch and transformers");
    if python.is_none() {
        eprintln!("skipped: transformers: ROLLMILL_TRANSFORMERS names no Python that has it");
    }
    python
}

#[test]
fn the_reference_implementation_agrees_with_the_numerics_table() {
    let Some(python) = reference_python() else { return };
    let out = Command::new(python).arg(script("table.py")).output().unwrap();
    assert!(out.status.success(), "{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/reference").join(name)
}

#[test]
fn losses_gradients_and_updates_are_those_of_the_reference_implementation() {
    let Some(python) = reference_python() else { return };
    let root = tempfile::tempdir().unwrap();
    let mut computed = vec![];
    for (name, config) in cases() {
        let folder = root.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        computed.push((name, folder.clone(), ours(&folder, &config)));
    }
    let out = Command::new(python).arg(script("main.py")).arg(root.path()).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    for (name, folder, ours) in &computed {
        let theirs = tensor_file::read(&folder.join("reference.safetensors"), Device::Cpu).unwrap();
        for (list, mine) in &ours.prepared {
            let apart = apart(std::iter::once((mine, &theirs[*list])));
            assert!(apart < BOUND, "{name}: {list} is {apart:e} apart");
        }
        same_losses(name, &ours.steps, &folder.join("reference.json"));
        for network in ["actor", "critic"] {
            let mut report = vec![];
            for (kind, mine) in [("grad", &ours.gradients), ("delta", &ours.deltas)] {
                let named: Vec<(&Tensor, &Tensor)> = mine
                    .iter()
                    .filter_map(|(n, t)| {
                        Some((t, &theirs[&format!("{network}.{kind}.{}", n.strip_prefix(network)?.strip_prefix('.')?)]))
                    })
                    .collect();
                if named.is_empty() {
                    continue;
                }
                let distance = apart(named.iter().copied());
                report.push(format!("{kind} {distance:.1e}"));
                assert!(distance < BOUND, "{name}: {network} {kind} is {distance:e} apart");
                // The no-op control: weights that did not move must be seen.
                let still: Vec<Tensor> = named.iter().map(|(mine, _)| mine.zeros_like()).collect();
                assert!(apart(still.iter().zip(named.iter().map(|(_, theirs)| *theirs))) > 0.9);
            }
            if !report.is_empty() {
                println!("{name:18} {network:6} {}", report.join("  "));
            }
        }
    }
    another_rule_is_seen(root.path());
}

/// Losses and gradient norms of every step.
fn same_losses(name: &str, steps: &[Metrics], theirs: &Path) {
    let theirs: Value = serde_json::from_slice(&std::fs::read(theirs).unwrap()).unwrap();
    let theirs = theirs["steps"].as_array().unwrap();
    assert_eq!(steps.len(), theirs.len());
    let mut compared = 0;
    for (mine, theirs) in steps.iter().zip(theirs) {
        for key in ["policy_loss", "value_loss", "actor_grad_norm", "critic_grad_norm"] {
            let Some(want) = theirs[key].as_f64() else { continue };
            let key = if mine.contains_key("reward_model_loss") {
                key.replace("value_loss", "reward_model_loss")
            } else {
                key.to_owned()
            };
            let apart = (mine[&key] - want).abs();
            assert!(apart < BOUND * want.abs().max(0.01), "{name}: {key} is {} and not {want}", mine[&key]);
            compared += 1;
        }
    }
    assert!(compared >= 2 * steps.len(), "{name}: a loss and a norm a step");
}

/// The broken controls: ours under another rule than the reference was told must be far outside the bound.
fn another_rule_is_seen(root: &Path) {
    let deltas = |case: &str, change: fn(&mut TrainConfig)| {
        let mut config = cases().into_iter().find(|(name, _)| *name == case).unwrap().1;
        change(&mut config);
        let scratch = tempfile::tempdir().unwrap();
        let theirs = tensor_file::read(&root.join(case).join("reference.safetensors"), Device::Cpu).unwrap();
        let ours = ours(scratch.path(), &config).deltas;
        let key = |name: &str| name.replacen('.', ".delta.", 1);
        apart(ours.iter().map(|(name, delta)| (delta, &theirs[&key(name)])))
    };
    assert!(deltas("ppo-classic", |_| ()) < BOUND);
    assert!(deltas("ppo-classic", |c| c.lambda_actor = Lambda::Fixed(1.0)) > 1e-2);
    assert!(deltas("ppo-classic", |c| c.aggregation = Aggregation::SeqMeanTokenMean) > 1e-2);
    assert!(deltas("grpo", |c| c.kl_coef = 0.0) > 1e-2);
    assert!(deltas("dpo", |c| c.temperature = 1.0) > 1e-2);
}
