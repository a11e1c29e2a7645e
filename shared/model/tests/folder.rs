//! Weights out to a folder and back.
#![allow(clippy::unwrap_used)] // clippy allows it in tests, but not in their helpers

use std::collections::HashMap;
use std::path::Path;

use rollmill_model::{Decoder, Family, ModelConfig, ModelError, ValueHead};
use tch::{Device, Kind, Tensor};

fn load(dir: &Path) -> Result<Decoder, ModelError> {
    Decoder::load(dir, Kind::Float, Device::Cpu)
}

fn saved(family: Family, tied: bool) -> (Decoder, tempfile::TempDir) {
    let decoder = Decoder::random(ModelConfig { family, tie_word_embeddings: tied, ..ModelConfig::tiny(40) }, 5);
    let dir = tempfile::tempdir().unwrap();
    decoder.save(dir.path()).unwrap();
    (decoder, dir)
}

/// Writes tensors with the public format crate, not with our own code.
fn write(path: &Path, tensors: &[(&str, Vec<usize>, Vec<u8>)]) {
    let views = tensors.iter().map(|(name, shape, bytes)| {
        (*name, safetensors::tensor::TensorView::new(safetensors::Dtype::F32, shape.clone(), bytes).unwrap())
    });
    safetensors::serialize_to_file(views, None::<HashMap<String, String>>, path).unwrap();
}

fn raw(decoder: &Decoder) -> Vec<(&str, Vec<usize>, Vec<u8>)> {
    let bytes =
        |t: &Tensor| Vec::<f32>::try_from(t.flatten(0, -1)).unwrap().iter().flat_map(|v| v.to_le_bytes()).collect();
    let shape = |t: &Tensor| t.size().iter().map(|&n| n as usize).collect();
    decoder.parameters().into_iter().map(|(name, t)| (name, shape(t), bytes(t))).collect()
}

#[test]
fn round_trip_keeps_every_byte() {
    use Family::{Llama, Qwen2, Qwen3};
    for (family, tied) in [(Llama, true), (Llama, false), (Qwen2, true), (Qwen3, false)] {
        let (decoder, dir) = saved(family, tied);
        let again = tempfile::tempdir().unwrap();
        load(dir.path()).unwrap().save(again.path()).unwrap();
        for file in ["model.safetensors", "config.json", "generation_config.json"] {
            let read = |d: &Path| std::fs::read(d.join(file)).unwrap();
            assert_eq!(read(dir.path()), read(again.path()), "{file}");
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 3);
        let bytes = std::fs::read(dir.path().join("model.safetensors")).unwrap();
        let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
        assert_eq!(file.len(), decoder.parameters().len());
        for (name, shape, bytes) in raw(&decoder) {
            let view = file.tensor(name).unwrap();
            assert_eq!((view.shape(), view.data()), (shape.as_slice(), bytes.as_slice()), "{name}");
        }
    }
}

#[test]
fn another_seed_gives_other_bytes() {
    let bytes = |seed| {
        let dir = tempfile::tempdir().unwrap();
        Decoder::random(ModelConfig::tiny(40), seed).save(dir.path()).unwrap();
        std::fs::read(dir.path().join("model.safetensors")).unwrap()
    };
    assert_eq!(bytes(1), bytes(1));
    assert_ne!(bytes(1), bytes(2));
}

#[test]
fn shards_with_an_index_are_one_model() {
    let (decoder, dir) = saved(Family::Llama, true);
    let all = raw(&decoder);
    let (first, second) = all.split_at(7);
    std::fs::remove_file(dir.path().join("model.safetensors")).unwrap();
    write(&dir.path().join("model-1.safetensors"), first);
    write(&dir.path().join("model-2.safetensors"), second);
    let file = |part: &[(&str, Vec<usize>, Vec<u8>)], name: &str| {
        part.iter().map(|(n, _, _)| (n.to_string(), name.to_string())).collect::<HashMap<_, _>>()
    };
    let mut map = file(first, "model-1.safetensors");
    map.extend(file(second, "model-2.safetensors"));
    let index = dir.path().join("model.safetensors.index.json");
    std::fs::write(&index, serde_json::json!({ "weight_map": map }).to_string()).unwrap();
    let loaded = load(dir.path()).unwrap();
    for ((name, a), (_, b)) in decoder.parameters().into_iter().zip(loaded.parameters()) {
        assert_eq!(a, b, "{name}");
    }
    // a model saved over the shards is the one that counts, as in transformers
    let other = Decoder::random(decoder.config.clone(), 6);
    other.save(dir.path()).unwrap();
    assert_eq!(load(dir.path()).unwrap().parameters()[0].1, other.parameters()[0].1);
    std::fs::remove_file(dir.path().join("model.safetensors")).unwrap();
    // a shard that is missing, an index that leaves the folder
    std::fs::remove_file(dir.path().join("model-2.safetensors")).unwrap();
    assert!(load(dir.path()).unwrap_err().to_string().contains("model-2.safetensors"));
    std::fs::write(&index, r#"{"weight_map": {"a": "../x.safetensors"}}"#).unwrap();
    assert!(load(dir.path()).unwrap_err().to_string().contains("index.json"));
}

#[test]
fn missing_extra_and_misshapen_tensors_are_named() {
    let (decoder, dir) = saved(Family::Llama, true);
    let path = dir.path().join("model.safetensors");
    let message = |tensors: &[(&str, Vec<usize>, Vec<u8>)]| {
        write(&path, tensors);
        load(dir.path()).unwrap_err().to_string()
    };
    let all = raw(&decoder);
    assert!(message(&all[..all.len() - 1]).contains("model.norm.weight"));
    let mut extra = all.clone();
    extra.push(("model.layers.0.self_attn.q_proj.bias", vec![1], vec![0; 4]));
    assert!(message(&extra).contains("q_proj.bias"));
    let mut bent = all.clone();
    bent[2].1.reverse();
    bent[8].1.reverse();
    assert!(message(&bent).contains("mlp.up_proj.weight has shape [32, 64]"));
    // what old exports carry besides is no error
    let mut old = all.clone();
    old.push(("lm_head.weight", vec![1], vec![0; 4]));
    old.push(("model.layers.0.self_attn.rotary_emb.inv_freq", vec![1], vec![0; 4]));
    write(&path, &old);
    assert!(load(dir.path()).is_ok());
    std::fs::write(&path, b"no tensors").unwrap();
    assert!(load(dir.path()).unwrap_err().to_string().contains("no safetensors file"));
    std::fs::remove_file(&path).unwrap();
    assert!(load(dir.path()).unwrap_err().is_transient());
}

#[test]
fn a_checkpoint_of_another_architecture_or_vocabulary_is_refused() {
    // each family's weights under another family's config, and a config with other token ids
    let (llama, qwen2, qwen3) = (Family::Llama, Family::Qwen2, Family::Qwen3);
    for (weights, config, words) in [
        (qwen2, llama, "model_type llama) does not account for: model.layers.0.self_attn.k_proj.bias"),
        (qwen3, llama, "does not account for: model.layers.0.self_attn.k_norm.weight"),
        (llama, qwen2, "lacks the tensors model.layers.0.self_attn.q_proj.bias"),
        (llama, qwen3, "lacks the tensors model.layers.0.self_attn.q_norm.weight"),
    ] {
        let (_, dir) = saved(weights, true);
        ModelConfig { family: config, ..ModelConfig::tiny(40) }.save(dir.path()).unwrap();
        let message = load(dir.path()).unwrap_err().to_string();
        assert!(message.contains(words) && message.lines().count() == 1, "{message}");
    }
    let (_, dir) = saved(llama, true);
    ModelConfig::tiny(41).save(dir.path()).unwrap();
    let message = load(dir.path()).unwrap_err().to_string();
    assert!(
        message.contains("model.embed_tokens.weight has shape [40, 32]") && message.contains("[41, 32]"),
        "{message}"
    );
}

#[test]
fn value_head_starts_at_zero_and_comes_back() {
    let decoder = Decoder::random(ModelConfig::tiny(40), 5);
    let mut head = ValueHead::zeros(&decoder);
    let hidden = Tensor::ones([2, 3, 32], (Kind::Float, Device::Cpu));
    assert_eq!(head.forward(&hidden), Tensor::zeros([2, 3], (Kind::Float, Device::Cpu)));
    head.weight = &head.weight + 0.5;
    head.bias = &head.bias + 1.0;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("value_head.safetensors");
    head.save(&path).unwrap();
    let back = ValueHead::load(&path, Device::Cpu).unwrap();
    // 32 · 0.5 + 1
    assert_eq!(back.forward(&hidden).double_value(&[1, 2]), 17.0);
    decoder.save(dir.path()).unwrap();
    let wrong = ValueHead::load(&dir.path().join("model.safetensors"), Device::Cpu);
    assert!(wrong.unwrap_err().to_string().contains("value_head.weight"));
}
