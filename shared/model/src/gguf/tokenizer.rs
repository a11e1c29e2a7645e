//! The tokenizer inside a GGUF file as `tokenizer.json` and `tokenizer_config.json`.
//!
//! Known is SmolLM's: byte-level BPE after splitting every digit off. Others are refused, since a wrong split would train
//! on other tokens than the model knows.

use serde_json::{Map, Value, json};

use super::reader::{self, Gguf};
use crate::{ModelConfig, ModelError};

/// `tokenizer.ggml.token_type` of control tokens, and of tokens users added.
const CONTROL: i64 = 3;
const USER_DEFINED: i64 = 4;

/// The content of `tokenizer.json` (crate and package `tokenizers`).
pub fn tokenizer_json(gguf: &Gguf<'_>, vocab_size: i64) -> Result<Value, ModelError> {
    let (model, split) = (gguf.string("tokenizer.ggml.model")?, gguf.string("tokenizer.ggml.pre")?);
    if (model, split) != ("gpt2", "smollm") {
        let detail = format!("tokenizer {model} with pre-tokenizer {split} is not supported; use a SmolLM model");
        return Err(gguf.bad(detail));
    }
    let tokens = texts(gguf, "tokenizer.ggml.tokens")?;
    let kinds = gguf.array("tokenizer.ggml.token_type")?;
    let merges = texts(gguf, "tokenizer.ggml.merges")?;
    if kinds.len() != tokens.len() {
        return Err(gguf.bad(format!("has {} tokens but {} types of them; fetch it again", tokens.len(), kinds.len())));
    }
    let vocab: Map<String, Value> = tokens.iter().enumerate().map(|(id, text)| (text.to_string(), json!(id))).collect();
    if vocab.len() as i64 != vocab_size {
        return Err(gguf.bad("has a token twice; fetch the file again".into()));
    }
    let pairs: Option<Vec<Value>> = merges.iter().map(|m| m.split_once(' ').map(|(a, b)| json!([a, b]))).collect();
    let pairs = pairs.ok_or_else(|| gguf.bad("has a merge that is no pair; fetch the file again".into()))?;
    let byte_level = |prefix: bool| json!({ "type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": true, "use_regex": true });
    Ok(json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": added(&tokens, kinds),
        "normalizer": null,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [{ "type": "Digits", "individual_digits": true }, byte_level(false)],
        },
        "post_processor": null,
        "decoder": byte_level(true),
        "model": {
            "type": "BPE",
            "dropout": null,
            "unk_token": null,
            "continuing_subword_prefix": null,
            "end_of_word_suffix": null,
            "fuse_unk": false,
            "byte_fallback": false,
            "ignore_merges": false,
            "vocab": vocab,
            "merges": pairs,
        },
    }))
}

/// The content of `tokenizer_config.json`: special tokens and the chat template.
pub fn tokenizer_config_json(gguf: &Gguf<'_>, config: &ModelConfig) -> Result<Value, ModelError> {
    let tokens = texts(gguf, "tokenizer.ggml.tokens")?;
    let text = |id: Option<i64>| id.and_then(|id| tokens.get(usize::try_from(id).ok()?)).map(|t| json!(t));
    let unknown = gguf.get("tokenizer.ggml.unknown_token_id").and_then(reader::Value::as_i64);
    let mut json = json!({
        "tokenizer_class": "GPT2Tokenizer",
        "add_prefix_space": false,
        "clean_up_tokenization_spaces": false,
        "model_max_length": config.max_position_embeddings,
        "bos_token": text(config.bos_token_id),
        "eos_token": text(config.eos_token_ids.first().copied()),
        "pad_token": text(config.pad_token_id),
        "unk_token": text(unknown),
    });
    if let Some(template) = gguf.get("tokenizer.chat_template").and_then(reader::Value::as_str) {
        json["chat_template"] = json!(template);
    }
    Ok(json)
}

fn added(tokens: &[&str], kinds: &[reader::Value]) -> Vec<Value> {
    let entry = |id: usize, text: &str, special: bool| {
        json!({ "id": id, "content": text, "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false, "special": special })
    };
    let kinds = kinds.iter().map(reader::Value::as_i64);
    let known = tokens.iter().zip(kinds).enumerate().filter_map(|(id, (text, kind))| match kind {
        Some(CONTROL) => Some(entry(id, text, true)),
        Some(USER_DEFINED) => Some(entry(id, text, false)),
        _ => None,
    });
    known.collect()
}

fn texts<'a>(gguf: &'a Gguf<'_>, key: &str) -> Result<Vec<&'a str>, ModelError> {
    let texts: Option<Vec<&str>> = gguf.array(key)?.iter().map(reader::Value::as_str).collect();
    texts.ok_or_else(|| gguf.bad(format!("{key} is not a list of texts; fetch the file again")))
}
