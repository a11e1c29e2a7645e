//! A tiny GGUF written by hand, converted, loaded; and every way to break it.

use std::path::Path;

use tch::{Device, Kind};

use super::*;
use crate::Decoder;

fn text(out: &mut Vec<u8>, s: &str) {
    out.extend((s.len() as u64).to_le_bytes());
    out.extend(s.as_bytes());
}

/// GGUF with one layer of width 4, 2 heads of 2 (half 1: the permutation is the identity there), or of 4 (it is not).
struct Tiny {
    head_dim: u64,
    architecture: &'static str,
    pre: &'static str,
    skip: Option<&'static str>,
    extra: Option<&'static str>,
    embedding_kind: u32,
}

impl Default for Tiny {
    fn default() -> Self {
        Tiny { head_dim: 4, architecture: "llama", pre: "smollm", skip: None, extra: None, embedding_kind: 0 }
    }
}

impl Tiny {
    fn bytes(&self) -> Vec<u8> {
        let queries = 2 * self.head_dim;
        let mut meta: Vec<Vec<u8>> = vec![];
        let mut entry = |key: &str, kind: u32, value: Vec<u8>| {
            let mut e = vec![];
            text(&mut e, key);
            e.extend(kind.to_le_bytes());
            e.extend(value);
            meta.push(e);
        };
        let string = |s: &str| {
            let mut v = vec![];
            text(&mut v, s);
            v
        };
        let strings = |all: &[&str]| {
            let mut v = 8u32.to_le_bytes().to_vec();
            v.extend((all.len() as u64).to_le_bytes());
            all.iter().for_each(|s| text(&mut v, s));
            v
        };
        entry("general.architecture", 8, string(self.architecture));
        for (key, n) in [
            ("block_count", 1),
            ("context_length", 64),
            ("embedding_length", 4),
            ("feed_forward_length", 6),
            ("attention.head_count", 2),
            ("attention.head_count_kv", 1),
            ("rope.dimension_count", self.head_dim as u32),
        ] {
            entry(&format!("llama.{key}"), 4, n.to_le_bytes().to_vec());
        }
        entry("llama.attention.layer_norm_rms_epsilon", 6, 1e-5f32.to_le_bytes().to_vec());
        entry("tokenizer.ggml.model", 8, string("gpt2"));
        entry("tokenizer.ggml.pre", 8, string(self.pre));
        entry("tokenizer.ggml.tokens", 9, strings(&["<|end|>", "a", "b", "ab"]));
        let mut kinds = 5u32.to_le_bytes().to_vec();
        kinds.extend(4u64.to_le_bytes());
        [3i32, 1, 1, 1].iter().for_each(|k| kinds.extend(k.to_le_bytes()));
        entry("tokenizer.ggml.token_type", 9, kinds);
        entry("tokenizer.ggml.merges", 9, strings(&["a b"]));
        entry("tokenizer.ggml.eos_token_id", 4, 0u32.to_le_bytes().to_vec());
        entry("tokenizer.chat_template", 8, string("{{ messages }}"));

        let mut tensors = vec![
            ("token_embd.weight", vec![4, 4]),
            ("output_norm.weight", vec![4]),
            ("blk.0.attn_norm.weight", vec![4]),
            ("blk.0.ffn_norm.weight", vec![4]),
            ("blk.0.attn_q.weight", vec![4, queries]),
            ("blk.0.attn_k.weight", vec![4, self.head_dim]),
            ("blk.0.attn_v.weight", vec![4, self.head_dim]),
            ("blk.0.attn_output.weight", vec![queries, 4]),
            ("blk.0.ffn_gate.weight", vec![4, 6]),
            ("blk.0.ffn_up.weight", vec![4, 6]),
            ("blk.0.ffn_down.weight", vec![6, 4]),
        ];
        tensors.retain(|(name, _)| Some(*name) != self.skip);
        tensors.extend(self.extra.map(|name| (name, vec![4u64])));
        let mut out = b"GGUF".to_vec();
        out.extend(3u32.to_le_bytes());
        out.extend((tensors.len() as u64).to_le_bytes());
        out.extend((meta.len() as u64).to_le_bytes());
        meta.iter().for_each(|e| out.extend(e));
        let mut data: Vec<u8> = vec![];
        for (name, shape) in &tensors {
            text(&mut out, name);
            out.extend((shape.len() as u32).to_le_bytes());
            shape.iter().for_each(|n| out.extend(n.to_le_bytes()));
            let kind = if name.starts_with("token_embd") { self.embedding_kind } else { 0 };
            out.extend(kind.to_le_bytes());
            out.extend((data.len() as u64).to_le_bytes());
            let columns = shape[0];
            // every value of a row is the row's number
            (0..shape.iter().product::<u64>()).for_each(|i| data.extend(((i / columns) as f32).to_le_bytes()));
            data.resize(data.len().next_multiple_of(32), 0);
        }
        out.resize(out.len().next_multiple_of(32), 0);
        out.extend(data);
        out
    }

    fn convert(&self, dir: &Path) -> Result<(), ModelError> {
        std::fs::write(dir.join("m.gguf"), self.bytes()).unwrap();
        convert(&dir.join("m.gguf"), &dir.join("out"))
    }
}

#[test]
fn converts_to_a_folder_that_loads() {
    let dir = tempfile::tempdir().unwrap();
    Tiny::default().convert(dir.path()).unwrap();
    let out = dir.path().join("out");
    let decoder = Decoder::load(&out, Kind::Float, Device::Cpu).unwrap();
    assert_eq!((decoder.config.rms_norm_eps, decoder.config.head_dim), (1e-5, 4));
    assert_eq!(decoder.config.eos_token_ids, [0]);
    // llama.cpp's rows 0 1 2 3 of a head were Hugging Face's 0 2 1 3
    let rows = |name: &str| -> Vec<f32> {
        let named = decoder.parameters();
        let tensor = named.iter().find(|(n, _)| *n == name).unwrap().1;
        Vec::try_from(tensor.select(1, 0)).unwrap()
    };
    assert_eq!(rows("model.layers.0.self_attn.q_proj.weight"), [0., 2., 1., 3., 4., 6., 5., 7.]);
    assert_eq!(rows("model.layers.0.self_attn.k_proj.weight"), [0., 2., 1., 3.]);
    assert_eq!(rows("model.layers.0.self_attn.v_proj.weight"), [0., 1., 2., 3.]);
    let tokenizer = tokenizers::Tokenizer::from_file(out.join("tokenizer.json")).unwrap();
    assert_eq!(tokenizer.encode("abb<|end|>", false).unwrap().get_ids(), [3, 2, 0]);
    assert_eq!(tokenizer.decode(&[3, 2, 0], true).unwrap(), "abb");
    let again = tempfile::tempdir().unwrap();
    Tiny::default().convert(again.path()).unwrap();
    for file in ["model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json"] {
        assert_eq!(std::fs::read(out.join(file)).unwrap(), std::fs::read(again.path().join("out").join(file)).unwrap());
    }
}

#[test]
fn bad_files_are_named_and_nothing_is_written() {
    let cases = [
        (Tiny { architecture: "mamba", ..Tiny::default() }, "mamba"),
        (Tiny { pre: "llama-bpe", ..Tiny::default() }, "llama-bpe"),
        (Tiny { skip: Some("blk.0.attn_q.weight"), ..Tiny::default() }, "blk.0.attn_q.weight"),
        (Tiny { extra: Some("rope_freqs.weight"), ..Tiny::default() }, "rope_freqs.weight"),
        (Tiny { embedding_kind: 12, ..Tiny::default() }, "ggml type 12"),
        (Tiny { head_dim: 3, ..Tiny::default() }, "head_dim"),
    ];
    for (tiny, word) in cases {
        let dir = tempfile::tempdir().unwrap();
        let message = tiny.convert(dir.path()).unwrap_err().to_string();
        assert!(message.contains(word) && message.contains("m.gguf"), "{message}");
        assert!(!dir.path().join("out").exists());
    }
}

#[test]
fn every_cut_is_an_error_never_a_panic() {
    let bytes = Tiny::default().bytes();
    for end in (0..bytes.len()).step_by(7) {
        let gguf = Gguf::parse(Path::new("m.gguf"), &bytes[..end]);
        let read = gguf.and_then(|gguf| {
            let config = config(&gguf)?;
            tensors(&gguf, &config).map(|_| ())
        });
        assert!(read.is_err(), "cut at {end}");
    }
}
