//! The gradients of the packed, micro-batched updates against plain ones: one trajectory at a time, no packing.

use tch::{Kind, Tensor};

use super::super::actor::ActorSums;
use super::super::critic::CriticSums;
use super::*;
use crate::numerics::aggregate::{Aggregation, Counts};
use crate::{Algorithm, KlKind};

const MINIBATCH: [usize; 6] = [0, 1, 4, 6, 7, 8];

fn counts(batch: &[Experience], minibatch: &[usize]) -> Counts {
    Counts::of(&minibatch.iter().map(|&i| batch[i].trainable_len()).collect::<Vec<_>>())
}

fn flat(gradients: Vec<Option<Tensor>>) -> Tensor {
    Tensor::cat(&gradients.iter().flatten().map(|g| g.flatten(0, -1).to_kind(Kind::Double)).collect::<Vec<_>>(), 0)
}

fn actor(trainer: &Trainer, batch: &[Experience], minibatch: &[usize], counts: Counts) -> Tensor {
    let prepared = trainer.progress.as_ref().unwrap().prepared.clone();
    let gradients = trainer.actor_gradients(batch, &prepared, minibatch, counts, &mut ActorSums::default());
    flat(gradients.clip(1.0, f64::INFINITY))
}

fn critic_gradient(trainer: &Trainer, batch: &[Experience], minibatch: &[usize], counts: Counts) -> Tensor {
    let prepared = trainer.progress.as_ref().unwrap().prepared.clone();
    let gradients = trainer.critic_gradients(batch, &prepared, minibatch, counts, &mut CriticSums::default()).unwrap();
    flat(gradients.clip(1.0, f64::INFINITY))
}

/// ‖a − b‖ / ‖b‖
fn distance(a: &Tensor, b: &Tensor) -> f64 {
    ((a - b).norm() / b.norm()).double_value(&[])
}

/// A trainer that stands after its first step, so that ratios and value differences are not trivial.
fn moved(config: TrainConfig) -> (Trainer, Vec<Experience>) {
    let batch = batch(&policy(), 40);
    let mut trainer = Trainer::from_policy(policy(), config).unwrap();
    let stopped = trainer.round(&batch, &mut |_, _| Ok(Control::Stop)).unwrap();
    assert!(!stopped.finished && trainer.is_mid_round());
    (trainer, batch)
}

#[test] // numerics table, row 18, for every aggregation; dividing by the micro-batch's own count is the broken control
fn any_split_into_micro_batches_gives_the_same_gradient() {
    for aggregation in [Aggregation::TokenMean, Aggregation::SeqMeanTokenMean, Aggregation::SeqMeanTokenSum] {
        let (mut trainer, batch) = moved(TrainConfig { aggregation, micro_tokens: 10_000, ..config() });
        let all = counts(&batch, &MINIBATCH);
        let (whole_actor, whole_critic) =
            (actor(&trainer, &batch, &MINIBATCH, all), critic_gradient(&trainer, &batch, &MINIBATCH, all));
        for micro_tokens in [1, 20, 45] {
            trainer.config.micro_tokens = micro_tokens;
            assert!(distance(&actor(&trainer, &batch, &MINIBATCH, all), &whole_actor) < 1e-4);
            assert!(distance(&critic_gradient(&trainer, &batch, &MINIBATCH, all), &whole_critic) < 1e-4);
        }
        let local = |of: fn(&Trainer, &[Experience], &[usize], Counts) -> Tensor| {
            let parts = MINIBATCH.map(|i| of(&trainer, &batch, &[i], counts(&batch, &[i])));
            parts.into_iter().reduce(|a, b| a + b).unwrap() / MINIBATCH.len() as f64
        };
        if aggregation == Aggregation::TokenMean {
            assert!(
                distance(&local(actor), &whole_actor) > 1e-2 && distance(&local(critic_gradient), &whole_critic) > 1e-2
            );
        }
        assert!(distance(&whole_actor.zeros_like(), &whole_actor) > 0.99, "doing nothing must not pass");
    }
}

#[test] // layers run again on the way back, or kept, with adapters and without
fn recomputing_layers_gives_the_same_gradient() {
    let lora = Some(rollmill_model::LoraConfig { rank: 4, ..Default::default() });
    for lora in [None, lora] {
        let (mut trainer, batch) = moved(TrainConfig { lora, ..config() });
        let all = counts(&batch, &MINIBATCH);
        trainer.config.recompute_over = usize::MAX;
        let kept = [actor, critic_gradient].map(|of| of(&trainer, &batch, &MINIBATCH, all));
        trainer.config.recompute_over = 0;
        let again = [actor, critic_gradient].map(|of| of(&trainer, &batch, &MINIBATCH, all));
        for (a, b) in again.iter().zip(&kept) {
            assert!(distance(a, b) < 1e-5, "{}", distance(a, b));
        }
    }
}

#[test] // rows without advantage are left out, and the gradient stays; counting only what is left is the broken control
fn rows_that_cannot_move_anything_are_not_computed() {
    let config = TrainConfig { algorithm: Algorithm::Grpo, ..config() };
    let mut batch = batch(&policy(), 40);
    batch[3..6].iter_mut().for_each(|e| e.reward = Some(0.5)); // a group of equal rewards
    let mut trainer = Trainer::from_policy(policy(), config).unwrap();
    let prepared = trainer.prepare(&batch).unwrap();
    let gradient = |rows: &[usize], of: &[usize], sums: &mut ActorSums| {
        let gradients = trainer.actor_gradients(&batch, &prepared, rows, counts(&batch, of), sums);
        flat(gradients.clip(1.0, f64::INFINITY))
    };
    let (all, some) = ((0..9).collect::<Vec<_>>(), [0, 1, 2, 6, 7, 8]);
    let mut sums = [ActorSums::default(), ActorSums::default()];
    let [skipped, kept] = &mut sums;
    let (with, without) = (gradient(&all, &all, skipped), gradient(&some, &all, kept));
    assert!(distance(&with, &without) < 1e-6 && skipped.places() == kept.places());
    assert!(distance(&gradient(&some, &some, &mut ActorSums::default()), &with) > 0.1);
}

#[test] // every token's log-prob stands at the token before it; one place further is the broken control
fn the_actor_gradient_is_that_of_the_plain_formula() {
    let (trainer, batch) = moved(TrainConfig { kl_coef: 0.1, kl_kind: KlKind::LossK2, ..config() });
    let got = actor(&trainer, &batch, &MINIBATCH, counts(&batch, &MINIBATCH));
    assert!(distance(&got, &plain_actor(&trainer, &batch, 1)) < 1e-4);
    assert!(distance(&got, &plain_actor(&trainer, &batch, 0)) > 0.1);
}

fn plain_actor(trainer: &Trainer, batch: &[Experience], back: usize) -> Tensor {
    let prepared = &trainer.progress.as_ref().unwrap().prepared;
    let (mut loss, mut tokens) = (Tensor::from(0f32), 0);
    for i in MINIBATCH {
        let e = &batch[i];
        let now = alone(&trainer.actor, &e.tokens);
        let reference = tch::no_grad(|| alone(&trainer.reference, &e.tokens));
        for (slot, t) in e.trainable_indices().enumerate() {
            let log_prob = now.get((t - back) as i64).get(e.tokens[t]);
            let ratio = (&log_prob - f64::from(e.log_probs[t])).exp();
            let advantage = f64::from(prepared.advantages.as_ref().unwrap()[i][slot]);
            let bounded = ratio.clamp(0.8, 1.28) * advantage;
            let kl = (&log_prob - reference.get((t - back) as i64).get(e.tokens[t])).square() * 0.05;
            loss = loss - (ratio * advantage).minimum(&bounded) + kl;
            tokens += 1;
        }
    }
    let parameters: Vec<Tensor> = trainer.actor.parameters().iter().map(|(_, t)| t.shallow_clone()).collect();
    let gradients = Tensor::run_backward(&[loss / f64::from(tokens)], &parameters, false, false);
    flat(gradients.into_iter().map(Some).collect())
}

#[test] // the value of an action's state stands at the token before it; one place further is the broken control
fn the_critic_gradient_is_that_of_the_plain_formula() {
    let (trainer, batch) = moved(config());
    let got = critic_gradient(&trainer, &batch, &MINIBATCH, counts(&batch, &MINIBATCH));
    assert!(distance(&got, &plain_critic(&trainer, &batch, 1)) < 1e-4);
    assert!(distance(&got, &plain_critic(&trainer, &batch, 0)) > 0.1);
}

fn plain_critic(trainer: &Trainer, batch: &[Experience], back: usize) -> Tensor {
    let prepared = &trainer.progress.as_ref().unwrap().prepared;
    let (mut loss, mut tokens) = (Tensor::from(0f32), 0);
    for i in MINIBATCH {
        let e = &batch[i];
        let Critic { trunk, head, .. } = critic(trainer);
        let values = head.forward(&hidden_alone(trunk, &e.tokens).unsqueeze(0)).squeeze_dim(0);
        for (slot, t) in e.trainable_indices().enumerate() {
            let value = values.get((t - back) as i64);
            let (old, target) = (
                f64::from(prepared.values.as_ref().unwrap()[i][slot]),
                f64::from(prepared.returns.as_ref().unwrap()[i][slot]),
            );
            let bounded = (&value - old).clamp(-0.2, 0.2) + old - target;
            loss += (&value - target).square().maximum(&bounded.square()) * 0.5;
            tokens += 1;
        }
    }
    let parameters: Vec<Tensor> = critic(trainer).trainable().into_iter().map(|(_, t)| t).collect();
    let gradients = Tensor::run_backward(&[loss / f64::from(tokens)], &parameters, false, false);
    flat(gradients.into_iter().map(Some).collect())
}

#[test]
fn bf16_computing_points_the_same_way() {
    let (trainer, batch) = moved(config());
    let (half, _) = moved(TrainConfig { dtype: crate::Dtype::Bf16, ..config() });
    let all = counts(&batch, &MINIBATCH);
    for of in [actor, critic_gradient] {
        let (a, b) = (of(&trainer, &batch, &MINIBATCH, all), of(&half, &batch, &MINIBATCH, all));
        let cosine = ((&a * &b).sum(Kind::Double) / (a.norm() * b.norm())).double_value(&[]);
        assert!(cosine > 0.95, "{cosine}");
        assert!(distance(&b, &a) > 1e-4, "float32 in disguise");
    }
    let second = critic(&half);
    for (master, mirror) in [(&half.actor, &half.actor_mirror), (&second.trunk, &second.mirror)] {
        let copy = mirror.of(master);
        for ((_, master), (_, copy)) in master.parameters().into_iter().zip(copy.parameters()) {
            assert_eq!((master.kind(), copy.kind()), (Kind::Float, Kind::BFloat16));
            assert!(master.to_kind(Kind::BFloat16).equal(copy), "the copy follows its master");
        }
    }
}
