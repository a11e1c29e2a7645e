//! The shape of a decoder, from a Hugging Face `config.json` (and `generation_config.json` for the end tokens), and back.
//!
//! What must hold: what is written is what is read, and `transformers` reads it as the same network.

mod parse;

use std::path::Path;

use serde_json::{Value, json};

use crate::{Family, ModelError, RopeScaling};
use parse::ids;

/// Hyperparameters of a decoder. Names are those of `config.json`.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelConfig {
    /// What kind of decoder it is (`model_type`).
    pub family: Family,
    /// Width of the residual stream.
    pub hidden_size: i64,
    /// Width inside the MLP.
    pub intermediate_size: i64,
    /// Number of layers.
    pub num_hidden_layers: i64,
    /// Query heads.
    pub num_attention_heads: i64,
    /// Key and value heads; divides the query heads.
    pub num_key_value_heads: i64,
    /// Width of a head (even).
    pub head_dim: i64,
    /// Epsilon of the RMS norms.
    pub rms_norm_eps: f64,
    /// Base of the rotary embedding.
    pub rope_theta: f64,
    /// How the rotary embedding was stretched, if it was.
    pub rope_scaling: Option<RopeScaling>,
    /// Number of token ids.
    pub vocab_size: i64,
    /// True where the output matrix is the embedding.
    pub tie_word_embeddings: bool,
    /// Longest sequence the model was trained for, in tokens.
    pub max_position_embeddings: i64,
    /// Token that begins a text, if any.
    pub bos_token_id: Option<i64>,
    /// Tokens that end a text; may be empty.
    pub eos_token_ids: Vec<i64>,
    /// Padding token, if any.
    pub pad_token_id: Option<i64>,
}

impl ModelConfig {
    /// A two-layer llama for tests: hidden 32, 4 query and 2 key-value heads of 8, tied embeddings.
    pub fn tiny(vocab_size: i64) -> Self {
        ModelConfig {
            family: Family::Llama,
            hidden_size: 32,
            intermediate_size: 64,
            num_hidden_layers: 2,
            num_attention_heads: 4,
            num_key_value_heads: 2,
            head_dim: 8,
            rms_norm_eps: 1e-5,
            rope_theta: 10000.0,
            rope_scaling: None,
            vocab_size,
            tie_word_embeddings: true,
            max_position_embeddings: 512,
            bos_token_id: None,
            eos_token_ids: vec![],
            pad_token_id: None,
        }
    }

    /// Reads `dir/config.json`, and the end tokens from `dir/generation_config.json` where that names them.
    pub fn load(dir: &Path) -> Result<Self, ModelError> {
        let path = dir.join("config.json");
        let mut config = Self::from_json(&read_json(&path)?, &path)?;
        let generation = dir.join("generation_config.json");
        if generation.exists() {
            let ends = ids(&read_json(&generation)?, "eos_token_id", &generation)?;
            if !ends.is_empty() {
                config.eos_token_ids = ends;
            }
        }
        Ok(config)
    }

    /// The content of `config.json`, as `transformers` 4 and 5 read it.
    pub fn to_json(&self) -> Value {
        let mut json = json!({
            "architectures": [self.family.architecture()],
            "model_type": self.family.model_type(),
            "hidden_size": self.hidden_size,
            "intermediate_size": self.intermediate_size,
            "num_hidden_layers": self.num_hidden_layers,
            "num_attention_heads": self.num_attention_heads,
            "num_key_value_heads": self.num_key_value_heads,
            "head_dim": self.head_dim,
            "rms_norm_eps": self.rms_norm_eps,
            "rope_theta": self.rope_theta,
            "vocab_size": self.vocab_size,
            "tie_word_embeddings": self.tie_word_embeddings,
            "max_position_embeddings": self.max_position_embeddings,
            "hidden_act": "silu",
            "bos_token_id": self.bos_token_id,
            "eos_token_id": self.eos_json(),
            "pad_token_id": self.pad_token_id,
            "torch_dtype": "float32",
        });
        // what a family's class does not know, its config does not say
        let switches: &[&str] = match self.family {
            Family::Llama => &["attention_bias", "mlp_bias"],
            Family::Qwen2 => &["use_sliding_window"],
            Family::Qwen3 => &["attention_bias", "use_sliding_window"],
        };
        for switch in switches {
            json[switch] = json!(false);
        }
        if let Some(scaling) = &self.rope_scaling {
            json["rope_scaling"] = scaling.to_json();
        }
        json
    }

    /// The content of `generation_config.json`.
    pub fn generation_json(&self) -> Value {
        json!({ "bos_token_id": self.bos_token_id, "eos_token_id": self.eos_json(), "pad_token_id": self.pad_token_id })
    }

    fn eos_json(&self) -> Value {
        match self.eos_token_ids.as_slice() {
            [] => Value::Null,
            [one] => json!(one),
            many => json!(many),
        }
    }

    /// Writes `config.json` and `generation_config.json` into `dir`.
    pub fn save(&self, dir: &Path) -> Result<(), ModelError> {
        write_json(&dir.join("config.json"), &self.to_json())?;
        write_json(&dir.join("generation_config.json"), &self.generation_json())
    }
}

pub(crate) fn read_json(path: &Path) -> Result<Value, ModelError> {
    let text = std::fs::read(path).map_err(|e| ModelError::io(path, e))?;
    serde_json::from_slice(&text).map_err(|e| ModelError::bad(path, format!("is not JSON ({e}); fetch the file again")))
}

pub(crate) fn write_json(path: &Path, value: &Value) -> Result<(), ModelError> {
    std::fs::write(path, format!("{value:#}\n")).map_err(|e| ModelError::io(path, e))
}

#[cfg(test)]
mod tests;
