//! Log-probs: chunks do not matter, gradients flow, and they are those of the sampler (numerics row 19).
#![allow(clippy::unwrap_used)] // clippy allows it in tests, but not in their helpers

use rollmill_model::{Decoder, Family, ModelConfig, sampling, token_log_prob_gradients, token_log_probs};
use tch::{Device, Kind, Tensor};

fn setting() -> (Decoder, Tensor, Tensor) {
    setting_of(Family::Llama)
}

fn setting_of(family: Family) -> (Decoder, Tensor, Tensor) {
    let decoder = Decoder::random(ModelConfig { family, ..ModelConfig::tiny(300) }, 9);
    let ids = Tensor::from_slice(&(0..12i64).map(|i| (i * 31) % 300).collect::<Vec<_>>()).unsqueeze(0);
    let positions = Tensor::arange(12, (Kind::Int64, Device::Cpu)).unsqueeze(0);
    let targets = Tensor::from_slice(&(0..12i64).map(|i| (i * 17 + 5) % 300).collect::<Vec<_>>());
    let hidden = decoder.hidden(&ids, &positions, None).squeeze_dim(0);
    (decoder, hidden, targets)
}

fn floats(t: &Tensor) -> Vec<f32> {
    Vec::try_from(t.detach()).unwrap()
}

#[test]
fn chunks_change_nothing_and_the_sampler_agrees() {
    let (decoder, hidden, targets) = setting();
    for temperature in [0.7, 1.0, 1.5] {
        let (whole, entropy) = token_log_probs(&decoder, &hidden, &targets, temperature, 100);
        let (chunked, entropy_chunked) = token_log_probs(&decoder, &hidden, &targets, temperature, 5);
        for (a, b) in [(&whole, &chunked), (&entropy, &entropy_chunked)] {
            assert!((a - b).abs().max().double_value(&[]) < 1e-5);
        }
        let logits = decoder.logits(&hidden);
        for i in 0..12 {
            let row = floats(&logits.get(i));
            let drawn = sampling::sample(&row, temperature, 1.0, sampling::uniform(1, i as u64));
            let target = Tensor::from_slice(&[drawn.token as i64]);
            let (again, _) = token_log_probs(&decoder, &hidden.narrow(0, i, 1), &target, temperature, 1);
            assert!((again.double_value(&[0]) - f64::from(drawn.log_prob)).abs() < 1e-5);
            let highest = row.iter().fold(f64::NEG_INFINITY, |m, &x| m.max(f64::from(x) / temperature));
            let sum: f64 = row.iter().map(|&x| (f64::from(x) / temperature - highest).exp()).sum();
            let expected: f64 =
                row.iter().map(|&x| f64::from(x) / temperature - highest - sum.ln()).map(|l| -l.exp() * l).sum();
            assert!((entropy.double_value(&[i]) - expected).abs() < 1e-4);
        }
    }
}

#[test]
fn gradients_reach_every_weight_and_equal_across_chunks() {
    let gradients = |family: Family, chunk: i64| {
        let (mut decoder, _, targets) = setting_of(family);
        decoder.set_trainable(true);
        let ids = Tensor::from_slice(&(0..12i64).map(|i| (i * 31) % 300).collect::<Vec<_>>()).unsqueeze(0);
        let positions = Tensor::arange(12, (Kind::Int64, Device::Cpu)).unsqueeze(0);
        let hidden = decoder.hidden(&ids, &positions, None).squeeze_dim(0);
        let (log_probs, entropy) = token_log_probs(&decoder, &hidden, &targets, 0.8, chunk);
        assert!(!entropy.requires_grad());
        log_probs.sum(Kind::Float).backward();
        decoder.parameters().into_iter().map(|(n, p)| (n.to_string(), p.grad())).collect::<Vec<_>>()
    };
    for family in [Family::Llama, Family::Qwen2, Family::Qwen3] {
        for ((name, whole), (_, chunked)) in gradients(family, 100).into_iter().zip(gradients(family, 5)) {
            let size = whole.norm().double_value(&[]);
            assert!(size > 0.0, "{name}");
            assert!((whole - chunked).norm().double_value(&[]) / size < 1e-4, "{name}");
        }
    }
}

#[test]
fn a_gradient_is_the_slope() {
    // central difference in one weight of the first layer
    let (decoder, _, targets) = setting();
    let ids = Tensor::from_slice(&(0..12i64).map(|i| (i * 31) % 300).collect::<Vec<_>>()).unsqueeze(0);
    let positions = Tensor::arange(12, (Kind::Int64, Device::Cpu)).unsqueeze(0);
    let loss = |decoder: &Decoder| {
        let hidden = decoder.hidden(&ids, &positions, None).squeeze_dim(0);
        token_log_probs(decoder, &hidden, &targets, 1.0, 100).0.sum(Kind::Double)
    };
    let mut trained = decoder.deep_copy();
    trained.set_trainable(true);
    loss(&trained).backward();
    let slope = trained.parameters()[2].1.grad().double_value(&[3, 4]);
    let moved = |by: f64| {
        let copy = decoder.deep_copy();
        let mut cell = copy.parameters()[2].1.get(3).get(4);
        let _ = cell.g_add_scalar_(by);
        loss(&copy).double_value(&[])
    };
    let measured = (moved(1e-2) - moved(-1e-2)) / 2e-2;
    assert!((slope - measured).abs() < 1e-2 * slope.abs().max(0.1), "{slope} against {measured}");
    // the copies did not move the original
    assert_eq!(loss(&decoder).double_value(&[]), loss(&decoder.deep_copy()).double_value(&[]));
}

#[test]
fn no_positions_give_no_log_probs() {
    let (decoder, hidden, targets) = setting();
    let (log_probs, entropy) = token_log_probs(&decoder, &hidden.narrow(0, 0, 0), &targets.narrow(0, 0, 0), 1.0, 4);
    assert_eq!((log_probs.size(), entropy.size()), (vec![0], vec![0]));
}

#[test] // the same pull by autograd over one whole graph; without the temperature the broken control differs
fn the_way_back_by_hand_is_that_of_autograd() {
    for tied in [true, false] {
        let config = ModelConfig { tie_word_embeddings: tied, ..ModelConfig::tiny(300) };
        let (mut decoder, (_, hidden, targets)) = (Decoder::random(config, 9), setting());
        decoder.set_trainable(true);
        let hidden = hidden.detach().set_requires_grad(true);
        let pull = Tensor::arange(12, (Kind::Float, Device::Cpu)).cos();
        let at = decoder.output_index().unwrap();
        let output = &decoder.trainable()[at].1;
        let by_autograd = |temperature: f64| {
            let loss = (token_log_probs(&decoder, &hidden, &targets, temperature, 100).0 * &pull).sum(Kind::Float);
            Tensor::run_backward(&[&loss], &[&hidden, output], false, false)
        };
        let mut by_output = output.detach().zeros_like();
        let by_hidden = token_log_prob_gradients(&decoder, &hidden.detach(), &targets, 0.8, 5, &pull, &mut |part| {
            let _ = by_output.g_add_(part);
        });
        let (want, control) = (by_autograd(0.8), by_autograd(1.0));
        for (got, want, control) in [(&by_hidden, &want[0], &control[0]), (&by_output, &want[1], &control[1])] {
            let apart = |a: &Tensor| ((a - want).norm() / want.norm()).double_value(&[]);
            assert!(apart(got) < 1e-5 && apart(control) > 1e-2, "{} {}", apart(got), apart(control));
        }
    }
}
