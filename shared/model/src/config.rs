//! The shape of a decoder, from a Hugging Face `config.json` (and `generation_config.json` for the end tokens).
//!
//! What must hold: every field the network needs is there or has the default that `transformers` documents; what this
//! network cannot do (other model types, scaled rope, biases, other activations) is refused, never ignored.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::ModelError;

/// Hyperparameters of a llama-type decoder. Names are those of `config.json`.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelConfig {
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
    /// A two-layer network for tests: hidden 32, 4 query and 2 key-value heads of 8, tied embeddings.
    pub fn tiny(vocab_size: i64) -> Self {
        ModelConfig {
            hidden_size: 32,
            intermediate_size: 64,
            num_hidden_layers: 2,
            num_attention_heads: 4,
            num_key_value_heads: 2,
            head_dim: 8,
            rms_norm_eps: 1e-5,
            rope_theta: 10000.0,
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

    /// Parses the content of a `config.json`; `path` is for messages only.
    pub fn from_json(json: &Value, path: &Path) -> Result<Self, ModelError> {
        let map =
            json.as_object().ok_or_else(|| ModelError::bad(path, "is not a JSON object; fetch the file again"))?;
        refuse_unsupported(map, path)?;
        let hidden_size = int(map, "hidden_size", None, path)?;
        let heads = int(map, "num_attention_heads", None, path)?;
        let config = ModelConfig {
            hidden_size,
            intermediate_size: int(map, "intermediate_size", None, path)?,
            num_hidden_layers: int(map, "num_hidden_layers", None, path)?,
            num_attention_heads: heads,
            num_key_value_heads: int(map, "num_key_value_heads", Some(heads), path)?,
            head_dim: int(map, "head_dim", Some(hidden_size / heads), path)?,
            rms_norm_eps: map.get("rms_norm_eps").and_then(Value::as_f64).unwrap_or(1e-6),
            rope_theta: rope_theta(map),
            vocab_size: int(map, "vocab_size", None, path)?,
            tie_word_embeddings: map.get("tie_word_embeddings").and_then(Value::as_bool).unwrap_or(false),
            max_position_embeddings: int(map, "max_position_embeddings", Some(2048), path)?,
            bos_token_id: ids(json, "bos_token_id", path)?.first().copied(),
            eos_token_ids: ids(json, "eos_token_id", path)?,
            pad_token_id: ids(json, "pad_token_id", path)?.first().copied(),
        };
        config.check(path)?;
        Ok(config)
    }

    fn check(&self, path: &Path) -> Result<(), ModelError> {
        if self.num_attention_heads % self.num_key_value_heads != 0 {
            return Err(ModelError::bad(path, "num_key_value_heads must divide num_attention_heads; fix the config"));
        }
        if self.head_dim % 2 != 0 {
            return Err(ModelError::bad(path, "head_dim must be even for a rotary embedding; fix the config"));
        }
        let outside = |id: &&i64| **id < 0 || **id >= self.vocab_size;
        if let Some(id) = self.eos_token_ids.iter().find(outside) {
            return Err(ModelError::bad(path, format!("eos_token_id {id} is outside the vocabulary; fix the config")));
        }
        Ok(())
    }

    /// The content of `config.json`, as `transformers` reads it.
    pub fn to_json(&self) -> Value {
        json!({
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
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
            "attention_bias": false,
            "mlp_bias": false,
            "bos_token_id": self.bos_token_id,
            "eos_token_id": self.eos_json(),
            "pad_token_id": self.pad_token_id,
            "torch_dtype": "float32",
        })
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

fn refuse_unsupported(map: &Map<String, Value>, path: &Path) -> Result<(), ModelError> {
    let refuse = |detail: String| Err(ModelError::bad(path, detail));
    match map.get("model_type").and_then(Value::as_str) {
        Some("llama") => {}
        other => {
            let name = other.unwrap_or("(none)");
            return refuse(format!("model_type {name} is not supported; use a model of type llama"));
        }
    }
    let act = map.get("hidden_act").and_then(Value::as_str).unwrap_or("silu");
    if act != "silu" {
        return refuse(format!("hidden_act {act} is not supported; use a model with silu"));
    }
    for bias in ["attention_bias", "mlp_bias"] {
        if map.get(bias).and_then(Value::as_bool).unwrap_or(false) {
            return refuse(format!("{bias} is not supported; use a model without biases"));
        }
    }
    for key in ["rope_scaling", "rope_parameters"] {
        let scaling = map.get(key).and_then(Value::as_object);
        let kind = scaling.and_then(|s| s.get("rope_type").or_else(|| s.get("type"))).and_then(Value::as_str);
        if let Some(kind) = kind.filter(|k| *k != "default") {
            return refuse(format!("{key} of type {kind} is not supported; use a model with the default rope"));
        }
    }
    Ok(())
}

/// `rope_theta`, at the top level or in `rope_parameters` (transformers 5); 10000 is the documented default.
fn rope_theta(map: &Map<String, Value>) -> f64 {
    let nested = || map.get("rope_parameters").and_then(|p| p.get("rope_theta"));
    map.get("rope_theta").or_else(nested).and_then(Value::as_f64).unwrap_or(10000.0)
}

fn int(map: &Map<String, Value>, key: &str, default: Option<i64>, path: &Path) -> Result<i64, ModelError> {
    match map.get(key).filter(|v| !v.is_null()) {
        None => default.ok_or_else(|| ModelError::bad(path, format!("has no {key}; add it"))),
        Some(value) => value
            .as_i64()
            .filter(|n| (1..1 << 31).contains(n))
            .ok_or_else(|| ModelError::bad(path, format!("{key} must be a positive number, not {value}; fix it"))),
    }
}

fn ids(json: &Value, key: &str, path: &Path) -> Result<Vec<i64>, ModelError> {
    let bad = || ModelError::bad(path, format!("{key} must be a token id or a list of them; fix it"));
    match json.get(key) {
        None | Some(Value::Null) => Ok(vec![]),
        Some(Value::Array(many)) => many.iter().map(|id| id.as_i64().ok_or_else(bad)).collect(),
        Some(one) => Ok(vec![one.as_i64().ok_or_else(bad)?]),
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
mod tests {
    use super::*;

    fn with(key: &str, value: Value) -> Result<ModelConfig, ModelError> {
        let mut json = ModelConfig::tiny(64).to_json();
        json[key] = value;
        ModelConfig::from_json(&json, Path::new("config.json"))
    }

    #[test]
    fn json_round_trip() {
        let mut config = ModelConfig::tiny(64);
        config.eos_token_ids = vec![2, 3];
        config.bos_token_id = Some(1);
        assert_eq!(ModelConfig::from_json(&config.to_json(), Path::new("c")).unwrap(), config);
    }

    #[test]
    fn what_the_network_cannot_do_is_refused_by_name() {
        for (key, value) in [
            ("model_type", json!("mamba")),
            ("hidden_act", json!("gelu")),
            ("attention_bias", json!(true)),
            ("rope_scaling", json!({"rope_type": "llama3"})),
            ("num_key_value_heads", json!(3)),
            ("head_dim", json!(7)),
            ("vocab_size", json!(null)),
            ("hidden_size", json!(-1)),
            ("eos_token_id", json!(64)),
        ] {
            let message = with(key, value).unwrap_err().to_string();
            assert!(message.contains(key) && message.starts_with("config.json"), "{message}");
        }
        assert!(with("rope_scaling", json!({"rope_type": "default"})).is_ok());
    }

    #[test]
    fn defaults_are_those_of_transformers() {
        let json = json!({"model_type": "llama", "hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 8,
            "num_hidden_layers": 1, "vocab_size": 9, "rope_parameters": {"rope_theta": 5.0, "rope_type": "default"}});
        let config = ModelConfig::from_json(&json, Path::new("c")).unwrap();
        assert_eq!((config.head_dim, config.num_key_value_heads, config.rope_theta), (8, 4, 5.0));
        assert!(!config.tie_word_embeddings);
    }

    #[test]
    fn generation_config_names_the_end_tokens() {
        let dir = tempfile::tempdir().unwrap();
        let mut config = ModelConfig::tiny(64);
        config.eos_token_ids = vec![2];
        config.save(dir.path()).unwrap();
        std::fs::write(dir.path().join("generation_config.json"), r#"{"eos_token_id": [5, 6]}"#).unwrap();
        assert_eq!(ModelConfig::load(dir.path()).unwrap().eos_token_ids, [5, 6]);
    }
}
