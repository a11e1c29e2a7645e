//! The sampler against a brute-force reference, and the generator against published values.
#![allow(clippy::unwrap_used)] // clippy allows it in tests, but not in their helpers

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use rollmill_model::sampling::{sample, uniform};

/// Probabilities in f64 by the definition: softmax at the temperature, then the nucleus, renormalised.
fn reference(logits: &[f32], temperature: f64, top_p: f64) -> Vec<f64> {
    let highest = logits.iter().fold(f64::NEG_INFINITY, |m, &x| m.max(f64::from(x)));
    let mut p: Vec<f64> = logits.iter().map(|&x| ((f64::from(x) - highest) / temperature).exp()).collect();
    let total: f64 = p.iter().sum();
    p.iter_mut().for_each(|p| *p /= total);
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[b].total_cmp(&p[a]).then(a.cmp(&b)));
    let mut mass = 0.0;
    for index in order {
        let keep = mass < top_p || mass == 0.0;
        mass += p[index];
        if !keep {
            p[index] = 0.0;
        }
    }
    let kept: f64 = p.iter().sum();
    p.iter().map(|p| p / kept).collect()
}

/// True where inverse CDF of `p` at `u` gives `token`, up to rounding.
fn is_inverse(p: &[f64], u: f64, token: usize) -> bool {
    let below: f64 = p[..token].iter().sum();
    p[token] > 0.0 && below <= u + 1e-6 && u <= below + p[token] + 1e-6
}

fn made_up(size: usize, spread: f32, seed: u64) -> Vec<f32> {
    (0..size as u64).map(|i| (uniform(seed, i) as f32 - 0.5) * spread).collect()
}

/// The same cases on every run.
fn fixed() -> ProptestConfig {
    ProptestConfig { rng_seed: RngSeed::Fixed(20), failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(fixed())]

    #[test]
    fn draws_are_the_inverse_cdf(
        size in 1usize..2000, spread in 0f32..60.0, seed: u64, temperature in 0.1f64..3.0, u in 0f64..1.0,
    ) {
        let logits = made_up(size, spread, seed);
        let p = reference(&logits, temperature, 1.0);
        let got = sample(&logits, temperature, 1.0, u);
        prop_assert!(is_inverse(&p, u, got.token as usize));
        prop_assert!((f64::from(got.log_prob) - p[got.token as usize].ln()).abs() < 1e-4);
    }

    #[test]
    fn top_p_keeps_the_nucleus(
        size in 1usize..600, spread in 0f32..20.0, seed: u64, top_p in 0.01f64..0.99, u in 0f64..1.0,
    ) {
        let logits = made_up(size, spread, seed);
        let p = reference(&logits, 0.8, top_p);
        let got = sample(&logits, 0.8, top_p, u);
        prop_assert!(is_inverse(&p, u, got.token as usize));
        prop_assert!((f64::from(got.log_prob) - p[got.token as usize].ln()).abs() < 1e-4);
    }

    #[test]
    fn uniform_is_in_range(seed: u64, position: u64) {
        prop_assert!((0.0..1.0).contains(&uniform(seed, position)));
    }
}

/// The reference check can fail: the neighbour of a drawn token is not the inverse CDF.
#[test]
fn a_wrong_token_is_seen() {
    let logits = made_up(100, 4.0, 3);
    let p = reference(&logits, 1.0, 1.0);
    let got = sample(&logits, 1.0, 1.0, 0.37).token as usize;
    assert!(is_inverse(&p, 0.37, got) && !is_inverse(&p, 0.37, got + 1) && !is_inverse(&p, 0.37, got - 1));
}

#[test]
fn greedy_takes_the_lowest_of_equals_with_its_log_prob_at_temperature_one() {
    let got = sample(&[0.0, 2.0, 2.0, 1.0], 0.0, 0.1, 0.99);
    // log softmax by hand: 2 − ln(1 + 2e² + e)
    let expected = 2.0 - (1.0 + 2.0 * 2f64.exp() + 1f64.exp()).ln();
    assert_eq!(got.token, 1);
    assert!((f64::from(got.log_prob) - expected).abs() < 1e-6);
}

#[test]
fn edges() {
    let logits = [f32::NEG_INFINITY, 0.0, f32::NEG_INFINITY, 0.0, f32::NEG_INFINITY];
    assert_eq!(sample(&logits, 1.0, 1.0, 0.0).token, 1);
    assert_eq!(sample(&logits, 1.0, 1.0, 0.49).token, 1);
    assert_eq!(sample(&logits, 1.0, 1.0, 0.51).token, 3);
    assert_eq!(sample(&logits, 1.0, 1.0, 1.0 - f64::EPSILON / 2.0).token, 3);
    // top-p takes one token at least, the lowest of equals
    assert_eq!(sample(&logits, 1.0, 0.0, 0.99), sample(&logits[..2], 1.0, 1.0, 0.5));
    assert!(sample(&[f32::NAN, 0.0], 1.0, 1.0, 0.5).log_prob.is_nan());
    assert!(sample(&[f32::NAN, 0.0], 1.0, 0.9, 0.5).log_prob.is_nan());
    // a very sharp distribution
    assert_eq!(sample(&[0.0, 1000.0], 0.01, 1.0, 0.999_999).token, 1);
}

#[test]
fn the_generator_is_split_mix() {
    // SplitMix64 by its definition, with the seed's hash as state: first outputs for state 1234567 are the published
    // 6457827717110365317, 3203168211198807973, 9817491932198370423 (Rosetta Code, "Pseudo-random numbers/Splitmix64")
    fn next(state: &mut u64) -> u64 {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    let mut state = 1_234_567;
    let known = [6457827717110365317, 3203168211198807973, 9817491932198370423];
    assert_eq!([next(&mut state), next(&mut state), next(&mut state)], known);
    let mut state = next(&mut 42);
    for position in 0..4 {
        assert_eq!(uniform(42, position), (next(&mut state) >> 11) as f64 / (1u64 << 53) as f64);
    }
}

#[test]
fn uniform_has_the_right_mean_and_neighbours_do_not_move_together() {
    // mean ½ and covariance 0 of 10,000 draws: standard errors .0029 and .0008; five of them as bound
    for (seed_step, position_step) in [(0, 1), (1, 0), (1, 1)] {
        let draw = |i: u64| uniform(7 + i * seed_step, i * position_step);
        let n = 10_000;
        let mean = (0..n).map(draw).sum::<f64>() / n as f64;
        let covariance = (0..n).map(|i| (draw(i) - 0.5) * (draw(i + 1) - 0.5)).sum::<f64>() / n as f64;
        assert!((mean - 0.5).abs() < 0.0145 && covariance.abs() < 0.0042, "{mean} {covariance}");
    }
}
