//! The cached step against the full forward pass, on random networks. Promise: log-probs within 1e-4 (numerics.md,
//! "How to compare").
#![allow(clippy::unwrap_used)] // clippy allows it in tests, but not in their helpers

use rollmill_model::{Decoder, Family, KvCache, LoraConfig, ModelConfig, ModelError, SlotStep};
use tch::{Device, Kind, Tensor};

const PROMISE: f64 = 1e-4;

fn config(heads: i64, shared: i64, tied: bool) -> ModelConfig {
    ModelConfig {
        num_attention_heads: heads,
        num_key_value_heads: shared,
        tie_word_embeddings: tied,
        ..ModelConfig::tiny(50)
    }
}

/// One of each family, and one with adapters that do something.
fn networks() -> Vec<Decoder> {
    let of = |family, heads, shared, tied| Decoder::random(ModelConfig { family, ..config(heads, shared, tied) }, 7);
    let adapted = of(Family::Qwen2, 4, 2, true).with_lora(&LoraConfig { rank: 3, ..LoraConfig::default() }).unwrap();
    for (index, (_, factor)) in adapted.trainable().into_iter().enumerate() {
        let _ = factor.detach().fill_(0.03 * (1 + index % 5) as f64);
    }
    vec![
        of(Family::Llama, 4, 2, true),
        of(Family::Llama, 6, 1, true),
        of(Family::Qwen2, 4, 4, false),
        of(Family::Qwen3, 4, 2, true),
        adapted,
    ]
}

/// A made-up sequence of ids.
fn sequence(salt: i64, length: usize) -> Vec<i64> {
    (0..length as i64).map(|i| (i * i * 7 + salt * 13 + i) % 50).collect()
}

/// Log-probs [V] after the last of `ids`, by the full forward pass.
fn full(decoder: &Decoder, ids: &[i64]) -> Tensor {
    let _guard = tch::no_grad_guard();
    let row = Tensor::from_slice(ids).unsqueeze(0);
    let positions = Tensor::arange(ids.len() as i64, (Kind::Int64, Device::Cpu)).unsqueeze(0);
    let hidden = decoder.hidden(&row, &positions, None);
    decoder.logits(&hidden.select(1, ids.len() as i64 - 1)).squeeze_dim(0).log_softmax(-1, Kind::Float)
}

fn worst(a: &Tensor, b: &Tensor) -> f64 {
    (a - b).abs().max().double_value(&[])
}

#[test]
fn ragged_batches_in_scattered_slots_equal_the_full_pass() {
    for decoder in networks() {
        let mut cache = KvCache::new(&decoder, 8, 64).unwrap();
        let slots = [5usize, 0, 1, 7, 2];
        let sequences: Vec<Vec<i64>> = (0..5).map(|i| sequence(i, 20 + 3 * i as usize)).collect();
        let mut at = [0usize; 5];
        // prompts of different lengths, then single tokens, then a mixture: some take 1, some several, some none
        let takes: [[usize; 5]; 6] =
            [[4, 7, 1, 9, 7], [1, 1, 1, 1, 1], [1, 1, 1, 1, 1], [3, 1, 0, 1, 2], [1, 0, 5, 1, 1], [2, 2, 2, 2, 2]];
        for take in takes {
            let batch: Vec<(usize, &[i64])> =
                (0..5).filter(|&i| take[i] > 0).map(|i| (i, &sequences[i][at[i]..at[i] + take[i]])).collect();
            let steps: Vec<SlotStep> = batch.iter().map(|&(i, tokens)| SlotStep { slot: slots[i], tokens }).collect();
            let logits = decoder.step(&mut cache, &steps).unwrap();
            for (row, &(i, tokens)) in batch.iter().enumerate() {
                at[i] += tokens.len();
                let got = logits.get(row as i64).log_softmax(-1, Kind::Float);
                let error = worst(&got, &full(&decoder, &sequences[i][..at[i]]));
                assert!(error < PROMISE, "sequence {i} at {}: {error}", at[i]);
                assert_eq!(cache.len(slots[i]), at[i]);
            }
        }
    }
}

/// The comparison can fail: one token changed far back must show.
#[test]
fn a_wrong_past_token_is_seen() {
    let decoder = Decoder::random(config(4, 2, true), 7);
    let mut cache = KvCache::new(&decoder, 1, 64).unwrap();
    let mut ids = sequence(1, 20);
    let logits = decoder.step(&mut cache, &[SlotStep { slot: 0, tokens: &ids }]).unwrap();
    let got = logits.get(0).log_softmax(-1, Kind::Float);
    assert!(worst(&got, &full(&decoder, &ids)) < PROMISE);
    ids[3] = (ids[3] + 1) % 50;
    assert!(worst(&got, &full(&decoder, &ids)) > 10.0 * PROMISE);
}

#[test]
fn a_copied_prefix_continues_as_if_computed() {
    let decoder = Decoder::random(config(4, 2, true), 3);
    let mut cache = KvCache::new(&decoder, 4, 64).unwrap();
    let (long, mut other) = (sequence(1, 30), sequence(1, 12));
    other.extend(sequence(9, 6));
    // the target slot holds leftovers of something longer
    let _ = decoder.step(&mut cache, &[SlotStep { slot: 3, tokens: &sequence(4, 40) }]).unwrap();
    let _ = decoder.step(&mut cache, &[SlotStep { slot: 0, tokens: &long }]).unwrap();
    cache.copy_prefix(0, 3, 12);
    assert_eq!(cache.len(3), 12);
    let logits = decoder.step(&mut cache, &[SlotStep { slot: 3, tokens: &other[12..] }]).unwrap();
    assert!(worst(&logits.get(0).log_softmax(-1, Kind::Float), &full(&decoder, &other)) < PROMISE);
    // and in place: forget the tail, go on differently
    cache.truncate(0, 12);
    let logits = decoder.step(&mut cache, &[SlotStep { slot: 0, tokens: &other[12..] }]).unwrap();
    assert!(worst(&logits.get(0).log_softmax(-1, Kind::Float), &full(&decoder, &other)) < PROMISE);
}

#[test]
fn steps_that_do_not_fit_are_refused_before_the_cache_changes() {
    let decoder = Decoder::random(config(4, 2, true), 3);
    let mut cache = KvCache::new(&decoder, 2, 8).unwrap();
    let step = |slot: usize, tokens: &'static [i64]| SlotStep { slot, tokens };
    for (batch, word) in [
        (vec![], "at least one slot"),
        (vec![step(2, &[1])], "does not exist"),
        (vec![step(0, &[])], "no new tokens"),
        (vec![step(0, &[1]), step(0, &[2])], "twice"),
        (vec![step(0, &[1]), step(1, &[50])], "vocabulary"),
        (vec![step(0, &[-1])], "vocabulary"),
        (vec![step(1, &[1, 2, 3, 4, 5, 6, 7, 8, 9])], "do not fit"),
    ] {
        let error = decoder.step(&mut cache, &batch).unwrap_err();
        assert!(matches!(error, ModelError::Step(_)) && error.to_string().contains(word), "{error}");
        assert!(cache.is_empty(0) && cache.is_empty(1));
    }
    assert_eq!((cache.slots(), cache.capacity(), cache.bytes()), (2, 8, 2 * 2 * 8 * 2 * 8 * 2 * 4));
}

#[test]
fn explicit_masks_pack_two_completions_behind_one_prompt() {
    let decoder = Decoder::random(config(4, 2, true), 11);
    let (prompt, one, two) = (sequence(1, 6), sequence(2, 4), sequence(3, 5));
    let row = Tensor::from_slice(&[prompt.clone(), one.clone(), two.clone()].concat()).unsqueeze(0);
    let positions: Vec<i64> = (0..10).chain(6..11).collect();
    let positions = Tensor::from_slice(&positions).unsqueeze(0);
    let mut allowed = vec![false; 15 * 15];
    for query in 0..15usize {
        for key in 0..=query {
            allowed[query * 15 + key] = key < 6 || (query < 10) == (key < 10);
        }
    }
    let attend = Tensor::from_slice(&allowed).reshape([1, 1, 15, 15]);
    let hidden = decoder.hidden(&row, &positions, Some(&attend));
    for (end, alone) in [(9, [prompt.clone(), one].concat()), (14, [prompt, two].concat())] {
        let packed = decoder.logits(&hidden.select(1, end)).squeeze_dim(0).log_softmax(-1, Kind::Float);
        assert!(worst(&packed, &full(&decoder, &alone)) < PROMISE);
    }
}
