//! GGUF to a Hugging Face folder, once, without libtorch.
//!
//! In: a GGUF v3 file of a llama-type model with a SmolLM tokenizer. Out: model.safetensors (F32), config.json,
//! generation_config.json, tokenizer.json, tokenizer_config.json with the chat template. What must hold: everything is
//! checked before the first byte is written, and the same file gives the same bytes.

mod dequantize;
mod reader;
mod tokenizer;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::Path;

use safetensors::Dtype;
use safetensors::tensor::View;

use crate::config::write_json;
use crate::{Family, ModelConfig, ModelError, layout, weights};
use reader::{Gguf, Info};

/// Converts the GGUF file `src` into the Hugging Face folder `dst`, which is made if absent.
pub fn convert(src: &Path, dst: &Path) -> Result<(), ModelError> {
    let bytes = std::fs::read(src).map_err(|e| ModelError::io(src, e))?;
    let gguf = Gguf::parse(src, &bytes)?;
    let config = config(&gguf)?;
    let tensors = tensors(&gguf, &config)?;
    let tokenizer = tokenizer::tokenizer_json(&gguf, config.vocab_size)?;
    let tokenizer_config = tokenizer::tokenizer_config_json(&gguf, &config)?;
    std::fs::create_dir_all(dst).map_err(|e| ModelError::io(dst, e))?;
    weights::write_safetensors(&dst.join("model.safetensors"), tensors)?;
    write_json(&dst.join("tokenizer.json"), &tokenizer)?;
    write_json(&dst.join("tokenizer_config.json"), &tokenizer_config)?;
    config.save(dst)
}

fn config(gguf: &Gguf<'_>) -> Result<ModelConfig, ModelError> {
    let architecture = gguf.string("general.architecture")?;
    if architecture != "llama" {
        return Err(gguf.bad(format!("architecture {architecture} is not supported; use a model of type llama")));
    }
    if let Some(scaling) = gguf.get("llama.rope.scaling.type").and_then(|v| v.as_str()).filter(|s| *s != "none") {
        return Err(gguf.bad(format!("rope scaling {scaling} is not supported; use a model without it")));
    }
    let size = |key: &str| gguf.integer(&format!("llama.{key}"));
    let (hidden_size, heads) = (size("embedding_length")?, size("attention.head_count")?);
    let optional = |key: &str, default: i64| match gguf.get(&format!("llama.{key}")) {
        Some(_) => size(key),
        None => Ok(default),
    };
    let token = |key: &str| gguf.get(&format!("tokenizer.ggml.{key}_token_id")).and_then(|v| v.as_i64());
    let vocab_size = gguf.array("tokenizer.ggml.tokens")?.len() as i64;
    let config = ModelConfig {
        family: Family::Llama,
        hidden_size,
        intermediate_size: size("feed_forward_length")?,
        num_hidden_layers: size("block_count")?,
        num_attention_heads: heads,
        num_key_value_heads: optional("attention.head_count_kv", heads)?,
        head_dim: optional("rope.dimension_count", hidden_size / heads.max(1))?,
        rms_norm_eps: gguf.float("llama.attention.layer_norm_rms_epsilon")?,
        rope_theta: gguf.float("llama.rope.freq_base").unwrap_or(10000.0),
        rope_scaling: None,
        vocab_size,
        tie_word_embeddings: !gguf.tensors.contains_key("output.weight"),
        max_position_embeddings: size("context_length")?,
        bos_token_id: token("bos"),
        eos_token_ids: token("eos").into_iter().collect(),
        pad_token_id: token("padding"),
    };
    // the checks of a config.json hold here too
    ModelConfig::from_json(&config.to_json(), gguf.path)
}

/// A tensor that is dequantised when it is written.
struct Entry<'a> {
    data: &'a [u8],
    info: &'a Info,
    /// Heads whose rows llama.cpp interleaved for its rope.
    interleaved: Option<usize>,
}

fn tensors<'a>(gguf: &'a Gguf<'a>, config: &ModelConfig) -> Result<Vec<(String, Entry<'a>)>, ModelError> {
    let mut unused: BTreeSet<&str> = gguf.tensors.keys().map(String::as_str).collect();
    let mut entries = vec![];
    for (name, shape) in layout::layout(config) {
        let source = gguf_name(&name);
        let info = gguf.tensors.get(&source);
        let info = info.ok_or_else(|| gguf.bad(format!("lacks the tensor {source}; fetch the file again")))?;
        if info.shape.iter().map(|&n| n as i64).ne(shape.iter().copied()) {
            let detail = format!("{source} has shape {:?}, its metadata say {shape:?}; fetch it again", info.shape);
            return Err(gguf.bad(detail));
        }
        unused.remove(source.as_str());
        let heads = match name.rsplit('.').nth(1) {
            Some("q_proj") => Some(config.num_attention_heads as usize),
            Some("k_proj") => Some(config.num_key_value_heads as usize),
            _ => None,
        };
        entries.push((name, Entry { data: gguf.bytes_of(&source, info)?, info, interleaved: heads }));
    }
    match unused.first() {
        Some(name) => Err(gguf.bad(format!("has a tensor {name} this network does not know; use a plain llama model"))),
        None => Ok(entries),
    }
}

/// The name llama.cpp gives to a Hugging Face weight.
fn gguf_name(name: &str) -> String {
    match name {
        "model.embed_tokens.weight" => return "token_embd.weight".into(),
        "model.norm.weight" => return "output_norm.weight".into(),
        "lm_head.weight" => return "output.weight".into(),
        _ => {}
    }
    [
        ("model.layers.", "blk."),
        ("input_layernorm", "attn_norm"),
        ("post_attention_layernorm", "ffn_norm"),
        ("self_attn.q_proj", "attn_q"),
        ("self_attn.k_proj", "attn_k"),
        ("self_attn.v_proj", "attn_v"),
        ("self_attn.o_proj", "attn_output"),
        ("mlp.gate_proj", "ffn_gate"),
        ("mlp.up_proj", "ffn_up"),
        ("mlp.down_proj", "ffn_down"),
    ]
    .iter()
    .fold(name.to_string(), |name, (from, to)| name.replace(from, to))
}

impl View for Entry<'_> {
    fn dtype(&self) -> Dtype {
        Dtype::F32
    }

    fn shape(&self) -> &[usize] {
        &self.info.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        let values = dequantize::values(self.info.kind, self.data);
        let values = match self.interleaved {
            Some(heads) => half_split(&values, heads, self.info.shape[0], self.info.shape[1]),
            None => values,
        };
        Cow::Owned(values.iter().flat_map(|v| v.to_le_bytes()).collect())
    }

    fn data_len(&self) -> usize {
        4 * self.info.shape.iter().product::<usize>()
    }
}

/// Undoes llama.cpp's permutation of query and key rows: within a head, row 2i goes to i and row 2i+1 to half + i.
fn half_split(values: &[f32], heads: usize, rows: usize, columns: usize) -> Vec<f32> {
    let (width, half) = (rows / heads, rows / heads / 2);
    let mut out = Vec::with_capacity(values.len());
    for row in 0..rows {
        let (head, within) = (row / width, row % width);
        let from = head * width + 2 * (within % half) + within / half;
        out.extend_from_slice(&values[from * columns..(from + 1) * columns]);
    }
    out
}

#[cfg(test)]
mod tests;
