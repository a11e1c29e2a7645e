//! Adapters: they start as nothing, learn alone, and come back as they were, apart or merged.
#![allow(clippy::unwrap_used)] // clippy allows it in tests, but not in their helpers

use std::path::Path;

use rollmill_model::{Decoder, Family, LoraConfig, ModelConfig, ModelError, sampling};
use tch::{Device, Kind, Tensor};

fn base() -> Decoder {
    Decoder::random(ModelConfig { family: Family::Qwen2, tie_word_embeddings: false, ..ModelConfig::tiny(40) }, 5)
}

fn config(targets: &[&str]) -> LoraConfig {
    LoraConfig { rank: 4, alpha: 8.0, targets: targets.iter().map(|t| t.to_string()).collect(), seed: 3 }
}

/// All projections, with factors moved away from where they start.
fn adapted() -> Decoder {
    let decoder = base().with_lora(&LoraConfig { rank: 4, seed: 3, ..LoraConfig::default() }).unwrap();
    move_factors(&decoder);
    decoder
}

fn move_factors(decoder: &Decoder) {
    for (index, (_, factor)) in decoder.trainable().into_iter().enumerate() {
        let noise = |at: u64| (sampling::uniform(index as u64, at) - 0.5) as f32 * 0.3;
        let noise: Vec<f32> = (0..factor.numel() as u64).map(noise).collect();
        let _ = factor.detach().g_add_(&Tensor::from_slice(&noise).reshape(factor.size()));
    }
}

fn logits(decoder: &Decoder) -> Tensor {
    let ids = Tensor::from_slice(&(0..12i64).map(|i| (i * 31) % 40).collect::<Vec<_>>()).unsqueeze(0);
    let positions = Tensor::arange(12, (Kind::Int64, Device::Cpu)).unsqueeze(0);
    decoder.logits(&decoder.hidden(&ids, &positions, None)).to_kind(Kind::Float)
}

fn difference(a: &Tensor, b: &Tensor) -> f64 {
    (a - b).abs().max().double_value(&[]) / b.abs().max().double_value(&[])
}

fn bytes(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap()
}

#[test]
fn they_start_as_nothing_and_the_same_seed_gives_the_same_factors() {
    let plain = logits(&base());
    let decoder = base().with_lora(&config(&["q_proj", "down_proj"])).unwrap();
    assert_eq!(logits(&decoder), plain);
    let names: Vec<String> = decoder.trainable().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names[0], "model.layers.0.self_attn.q_proj.lora_A.weight");
    assert_eq!(names[3], "model.layers.0.mlp.down_proj.lora_B.weight");
    assert_eq!((names.len(), names[7].as_str()), (8, "model.layers.1.mlp.down_proj.lora_B.weight"));
    let sizes: Vec<Vec<i64>> = decoder.trainable().iter().map(|(_, t)| t.size()).collect();
    assert_eq!(sizes[..4], [[4, 32], [32, 4], [4, 64], [32, 4]]);
    // the order in which targets are named does not matter, the seed does
    let same = base().with_lora(&config(&["down_proj", "q_proj"])).unwrap();
    let other = base().with_lora(&LoraConfig { seed: 4, ..config(&["q_proj", "down_proj"]) }).unwrap();
    assert_eq!(decoder.trainable(), same.trainable());
    assert_ne!(decoder.trainable()[0].1, other.trainable()[0].1);
    // without adapters everything learns
    let all: Vec<String> = base().parameters().into_iter().map(|(name, _)| name.to_string()).collect();
    assert_eq!(base().trainable().into_iter().map(|(name, _)| name).collect::<Vec<_>>(), all);
}

#[test]
fn the_function_is_that_of_the_paper() {
    // one adapter, in the output matrix of the last layer's MLP: W + (alpha / rank) B A by hand
    let decoder = base().with_lora(&config(&["down_proj"])).unwrap();
    move_factors(&decoder);
    let by_hand = base();
    for (name, weight) in by_hand.parameters() {
        let Some(stem) = name.strip_suffix("down_proj.weight") else { continue };
        let factor = |which: &str| {
            let wanted = format!("{stem}down_proj.{which}.weight");
            decoder.trainable().into_iter().find(|(name, _)| *name == wanted).unwrap().1
        };
        let _ = weight.detach().g_add_(&(factor("lora_B").matmul(&factor("lora_A")) * 2.0));
    }
    let worst = difference(&logits(&decoder), &logits(&by_hand));
    assert!(worst < 1e-5, "{worst}");
    assert!(difference(&logits(&decoder), &logits(&base())) > 1e-2);
}

#[test]
fn only_factors_collect_gradients() {
    let mut decoder = base();
    decoder.set_trainable(true);
    let mut decoder = decoder.with_lora(&config(&["q_proj", "v_proj", "gate_proj"])).unwrap();
    move_factors(&decoder);
    assert!(decoder.trainable().iter().all(|(_, factor)| !factor.requires_grad()));
    decoder.set_trainable(true);
    logits(&decoder).square().mean(Kind::Float).backward();
    for (name, factor) in decoder.trainable() {
        assert!(factor.grad().norm().double_value(&[]) > 0.0, "{name}");
    }
    assert!(decoder.parameters().iter().all(|(_, weight)| !weight.requires_grad() && !weight.grad().defined()));
    // a copy shares neither storage nor gradients
    let (copy, before) = (decoder.deep_copy(), logits(&decoder));
    assert!(copy.trainable().iter().all(|(_, factor)| !factor.requires_grad()));
    assert_eq!(logits(&copy), before);
    move_factors(&copy);
    assert_eq!(logits(&decoder), before);
    assert_ne!(logits(&copy), before);
    decoder.set_trainable(false);
    assert!(!logits(&decoder).requires_grad());
}

#[test]
fn merged_and_saved_are_the_same_function() {
    let decoder = adapted();
    let (dir, again) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    decoder.save(dir.path()).unwrap();
    let merged = decoder.merged();
    assert_eq!(merged.trainable().len(), merged.parameters().len());
    let worst = difference(&logits(&merged), &logits(&decoder));
    assert!(worst < 1e-5, "{worst}");
    merged.save(again.path()).unwrap();
    assert_eq!(bytes(&dir.path().join("model.safetensors")), bytes(&again.path().join("model.safetensors")));
    assert_eq!(logits(&Decoder::load(dir.path(), Kind::Float, Device::Cpu).unwrap()), logits(&merged));
    // merging changed nothing here, and the adapters do something
    assert!(difference(&logits(&base()), &logits(&decoder)) > 1e-2);
    assert_eq!(logits(&decoder.deep_copy()), logits(&decoder));
}

#[test]
fn other_kinds_keep_adapters_in_f32() {
    let decoder = adapted();
    let half = decoder.to_kind(Kind::BFloat16);
    assert_eq!((half.kind(), half.trainable()), (Kind::BFloat16, decoder.trainable()));
    // bf16 has 8 bits: a few percent, but the adapters themselves are far more
    let worst = difference(&logits(&half), &logits(&decoder));
    assert!(worst < 0.1, "{worst}");
    assert!(difference(&logits(&half), &logits(&base())) > 3.0 * worst);
    assert_eq!(half.merged().kind(), Kind::BFloat16);
}

#[test]
fn factors_come_back_exactly() {
    let decoder = adapted();
    let dir = tempfile::tempdir().unwrap();
    let (path, again) = (dir.path().join("lora.safetensors"), dir.path().join("again.safetensors"));
    decoder.save_lora(&path).unwrap();
    let mut back = base().with_lora(&LoraConfig { rank: 4, seed: 9, ..LoraConfig::default() }).unwrap();
    back.set_trainable(true);
    let handles = back.trainable();
    back.load_lora(&path).unwrap();
    assert_eq!(back.trainable(), decoder.trainable());
    assert_eq!(handles, decoder.trainable());
    assert!(handles.iter().all(|(_, factor)| factor.requires_grad()));
    back.save_lora(&again).unwrap();
    assert_eq!(bytes(&path), bytes(&again));
    move_factors(&decoder);
    decoder.save_lora(&again).unwrap();
    assert_ne!(bytes(&path), bytes(&again));
}

#[test]
fn what_does_not_fit_is_refused_and_nothing_changes() {
    let refused = |config: LoraConfig| base().with_lora(&config).unwrap_err().to_string();
    for (config, words) in [
        (config(&["q_proj", "lm_head"]), "lora: lm_head is no projection; use some of q_proj"),
        (config(&[]), "at least one"),
        (config(&["q_proj", "q_proj"]), "each once"),
        (LoraConfig { rank: 0, ..LoraConfig::default() }, "rank must be from 1 to 32"),
        (LoraConfig { rank: 33, ..LoraConfig::default() }, "rank must be from 1 to 32"),
        (LoraConfig { alpha: f64::NAN, ..LoraConfig::default() }, "alpha must be a positive number"),
    ] {
        let message = refused(config);
        assert!(message.contains(words) && message.lines().count() == 1, "{message}");
    }
    assert!(adapted().with_lora(&LoraConfig::default()).unwrap_err().to_string().contains("merge them"));
    let unknown = serde_json::from_str::<LoraConfig>(r#"{"rnak": 4}"#).unwrap_err().to_string();
    assert!(unknown.contains("unknown field `rnak`"), "{unknown}");
    let read: LoraConfig =
        serde_json::from_str(r#"{"rank": 4, "alpha": 8, "seed": 3, "targets": ["q_proj"]}"#).unwrap();
    assert_eq!(read, config(&["q_proj"]));

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lora.safetensors");
    assert!(matches!(base().save_lora(&path), Err(ModelError::Lora(_))));
    adapted().save_lora(&path).unwrap();
    for (config, words) in [
        (LoraConfig { rank: 8, ..LoraConfig::default() }, "lora_A.weight has shape [4, 32], the lora configuration"),
        (config(&["q_proj"]), "does not account for: model.layers.0.mlp.down_proj.lora_A.weight"),
    ] {
        let mut decoder = base().with_lora(&config).unwrap();
        let before = decoder.deep_copy().trainable();
        let message = decoder.load_lora(&path).unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
        assert_eq!(decoder.trainable(), before);
    }
    base().with_lora(&config(&["q_proj"])).unwrap().save_lora(&path).unwrap();
    assert!(adapted().load_lora(&path).unwrap_err().to_string().contains("lacks the tensors"));
}
