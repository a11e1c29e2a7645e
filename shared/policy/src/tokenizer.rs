//! Text to token ids and back, over a Hugging Face `tokenizer.json`.
//!
//! In: a model folder. Out: ids and text. Must hold: control tokens come only out of [`Tokenizer::encode`], which is for
//! text of our own (chat templates); whatever a task or a sandbox wrote goes through [`Tokenizer::encode_untrusted`].
//! Pieces of a prompt are encoded apart and joined: exact for byte-level BPE; a tokenizer that puts a space mark before
//! every text (Metaspace) gets one mark a piece.

use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Why a tokenizer cannot be loaded or used. None of these heals by itself: stop the run and mend the model folder.
#[derive(Debug, thiserror::Error)]
pub enum TokenizerError {
    /// A file is missing or unreadable.
    #[error("cannot read {}: {source}; give a model folder in the hugging face layout", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file is not what its name says.
    #[error("cannot use {}: {reason}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The tokenizer refused a text or some ids.
    #[error("the tokenizer failed: {0}")]
    Failed(String),
}

/// A tokenizer with what a rollout has to know about its model folder.
pub struct Tokenizer {
    trusted: tokenizers::Tokenizer,
    untrusted: tokenizers::Tokenizer,
    control: BTreeSet<u32>,
    eos: Vec<u32>,
    vocab_size: u32,
    digest: String,
}

impl Tokenizer {
    /// Loads `tokenizer.json` of `dir`, with the end-of-sequence tokens that `generation_config.json` and
    /// `tokenizer_config.json` name. Errors name the file.
    pub fn load(dir: &Path) -> Result<Self, TokenizerError> {
        let path = dir.join("tokenizer.json");
        let bytes = read(&path)?;
        let malformed = |reason: String| TokenizerError::Malformed { path: path.clone(), reason };
        let json: Value = serde_json::from_slice(&bytes).map_err(|e| malformed(e.to_string()))?;
        let trusted = build(&json).map_err(malformed)?;
        let untrusted = build(&without_added_tokens(&json)).map_err(malformed)?;
        let control = trusted.get_added_tokens_decoder().keys().copied().collect();
        let highest =
            trusted.get_vocab(true).into_values().max().ok_or_else(|| malformed("empty vocabulary".into()))?;
        let digest = format!("sha256:{}", hex::encode(Sha256::digest(&bytes)));
        let mut tokenizer = Self { trusted, untrusted, control, eos: Vec::new(), vocab_size: highest + 1, digest };
        tokenizer.eos = eos_ids(dir, &tokenizer)?;
        Ok(tokenizer)
    }

    /// Encodes text of our own; control tokens written in it become control tokens. Adds none by itself.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, TokenizerError> {
        ids(&self.trusted, text)
    }

    /// Encodes text of others: no control token ever comes out, "<|im_end|>" stays eight or so ordinary tokens.
    pub fn encode_untrusted(&self, text: &str) -> Result<Vec<u32>, TokenizerError> {
        let whole = ids(&self.untrusted, text)?;
        if !self.has_control(&whole) {
            return Ok(whole);
        }
        // A vocabulary whose merges spell a control token: character by character they cannot meet.
        let mut out = Vec::new();
        for c in text.chars() {
            out.extend(ids(&self.untrusted, c.encode_utf8(&mut [0; 4]))?);
        }
        if self.has_control(&out) {
            return Err(TokenizerError::Failed("a single character encodes as a control token".into()));
        }
        Ok(out)
    }

    /// The text of `ids`, control tokens included. Bytes that are no UTF-8 (a cut character) become U+FFFD.
    pub fn decode(&self, ids: &[u32]) -> Result<String, TokenizerError> {
        self.trusted.decode(ids, false).map_err(|e| TokenizerError::Failed(e.to_string()))
    }

    /// Tokens that end a turn, in ascending order; empty where the folder names none.
    pub fn eos_ids(&self) -> &[u32] {
        &self.eos
    }

    /// Whether `id` is an added token (a control token, or one that takes its text out of normal tokenisation).
    pub fn is_control(&self, id: u32) -> bool {
        self.control.contains(&id)
    }

    /// The id of the token written exactly as `token`.
    pub fn token_to_id(&self, token: &str) -> Option<u32> {
        self.trusted.token_to_id(token)
    }

    /// One more than the highest id. A model's embedding may be padded beyond it.
    pub fn vocab_size(&self) -> u32 {
        self.vocab_size
    }

    /// `sha256:` and the hash of `tokenizer.json`, for provenance.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    fn has_control(&self, ids: &[u32]) -> bool {
        ids.iter().any(|id| self.control.contains(id))
    }
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>, TokenizerError> {
    std::fs::read(path).map_err(|source| TokenizerError::Read { path: path.to_owned(), source })
}

/// The JSON of `dir/name`, or null where there is no such file.
pub(crate) fn optional_json(dir: &Path, name: &str) -> Result<Value, TokenizerError> {
    let path = dir.join(name);
    match std::fs::read(&path) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map_err(|e| TokenizerError::Malformed { path: path.clone(), reason: e.to_string() }),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Value::Null),
        Err(source) => Err(TokenizerError::Read { path, source }),
    }
}

/// A token named in `tokenizer_config.json`: a string, or an object with its `content`.
pub(crate) fn token_text<'a>(config: &'a Value, name: &str) -> Option<&'a str> {
    let token = &config[name];
    token.as_str().or_else(|| token["content"].as_str())
}

fn build(json: &Value) -> Result<tokenizers::Tokenizer, String> {
    let bytes = serde_json::to_vec(json).map_err(|e| e.to_string())?;
    let mut tokenizer = tokenizers::Tokenizer::from_bytes(bytes).map_err(|e| e.to_string())?;
    tokenizer.with_truncation(None).map_err(|e| e.to_string())?;
    tokenizer.with_padding(None);
    Ok(tokenizer)
}

fn without_added_tokens(json: &Value) -> Value {
    let mut json = json.clone();
    if let Some(object) = json.as_object_mut() {
        object.insert("added_tokens".into(), Value::Array(Vec::new()));
    }
    json
}

fn ids(tokenizer: &tokenizers::Tokenizer, text: &str) -> Result<Vec<u32>, TokenizerError> {
    let encoding = tokenizer.encode_fast(text, false).map_err(|e| TokenizerError::Failed(e.to_string()))?;
    Ok(encoding.get_ids().to_vec())
}

fn eos_ids(dir: &Path, tokenizer: &Tokenizer) -> Result<Vec<u32>, TokenizerError> {
    let generation = optional_json(dir, "generation_config.json")?;
    let config = optional_json(dir, "tokenizer_config.json")?;
    let listed = match &generation["eos_token_id"] {
        Value::Array(ids) => ids.clone(),
        Value::Null => Vec::new(),
        one => vec![one.clone()],
    };
    let mut eos = BTreeSet::new();
    for id in listed {
        let id = id.as_u64().and_then(|id| u32::try_from(id).ok()).filter(|id| *id < tokenizer.vocab_size);
        eos.insert(id.ok_or_else(|| TokenizerError::Malformed {
            path: dir.join("generation_config.json"),
            reason: "eos_token_id is no token of the vocabulary".into(),
        })?);
    }
    eos.extend(token_text(&config, "eos_token").and_then(|token| tokenizer.token_to_id(token)));
    Ok(eos.into_iter().collect())
}

#[cfg(test)]
#[path = "tokenizer_tests.rs"]
pub(crate) mod tests;
