//! `config.json` to a [`ModelConfig`], in the style of `transformers` 4 (`rope_theta`, `rope_scaling`) or 5 (`rope_parameters`).
//!
//! What must hold: every field the network needs is there or has the default that `transformers` documents; what this
//! network cannot do (other architectures, other ropes, sliding windows, other activations) is refused by name, never
//! ignored.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::ModelConfig;
use crate::{Family, ModelError, RopeScaling};

/// The content of a `config.json`, with where it comes from, for messages.
struct Source<'a> {
    map: &'a Map<String, Value>,
    path: &'a Path,
}

impl ModelConfig {
    /// Parses the content of a `config.json`; `path` is for messages only.
    pub fn from_json(json: &Value, path: &Path) -> Result<Self, ModelError> {
        let map =
            json.as_object().ok_or_else(|| ModelError::bad(path, "is not a JSON object; fetch the file again"))?;
        let source = Source { map, path };
        let family = source.family()?;
        source.refuse_unsupported(family)?;
        let int = |key: &str, default: Option<i64>| source.int(key, default);
        let (hidden_size, heads) = (int("hidden_size", None)?, int("num_attention_heads", None)?);
        let (head_dim, positions) = match family {
            Family::Llama => (hidden_size / heads, 2048),
            Family::Qwen2 => (hidden_size / heads, 32768),
            Family::Qwen3 => (128, 32768),
        };
        let config = ModelConfig {
            family,
            hidden_size,
            intermediate_size: int("intermediate_size", None)?,
            num_hidden_layers: int("num_hidden_layers", None)?,
            num_attention_heads: heads,
            // Qwen's documented default, 32, is that of no model
            num_key_value_heads: int("num_key_value_heads", (family == Family::Llama).then_some(heads))?,
            head_dim: int("head_dim", Some(head_dim))?,
            rms_norm_eps: map.get("rms_norm_eps").and_then(Value::as_f64).unwrap_or(1e-6),
            rope_theta: source.rope_theta(),
            rope_scaling: source.rope_scaling()?,
            vocab_size: int("vocab_size", None)?,
            tie_word_embeddings: source.is_true("tie_word_embeddings"),
            max_position_embeddings: int("max_position_embeddings", Some(positions))?,
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
}

impl Source<'_> {
    fn bad<T>(&self, detail: impl Into<String>) -> Result<T, ModelError> {
        Err(ModelError::bad(self.path, detail))
    }

    /// By `model_type`; `architectures`, where it is there, must agree.
    fn family(&self) -> Result<Family, ModelError> {
        let model_type = self.map.get("model_type").and_then(Value::as_str).unwrap_or("(none)");
        let Some(family) = Family::of(model_type) else {
            return self
                .bad(format!("model_type {model_type} is not supported; use a model of type llama, qwen2 or qwen3"));
        };
        let named = self.map.get("architectures").and_then(Value::as_array).filter(|all| !all.is_empty());
        match named {
            Some(all) if !all.contains(&json!(family.architecture())) => {
                let (got, wanted) = (json!(all), family.architecture());
                self.bad(format!("architectures {got} are not supported; use a {wanted}"))
            }
            _ => Ok(family),
        }
    }

    fn refuse_unsupported(&self, family: Family) -> Result<(), ModelError> {
        let act = self.map.get("hidden_act").and_then(Value::as_str).unwrap_or("silu");
        if act != "silu" {
            return self.bad(format!("hidden_act {act} is not supported; use a model with silu"));
        }
        for bias in ["attention_bias", "mlp_bias"] {
            // Qwen2 has its biases without a switch, and `transformers` reads none there
            if family != Family::Qwen2 && self.is_true(bias) {
                return self.bad(format!("{bias} is not supported; use a model without biases"));
            }
        }
        if self.is_true("use_sliding_window") {
            return self.bad("use_sliding_window is not supported; use a model that attends to everything");
        }
        let types = self.map.get("layer_types").and_then(Value::as_array);
        match types.and_then(|types| types.iter().find(|kind| **kind != "full_attention")) {
            Some(kind) => {
                self.bad(format!("layer_types {kind} is not supported; use a model with full_attention only"))
            }
            None => Ok(()),
        }
    }

    fn is_true(&self, key: &str) -> bool {
        self.map.get(key).and_then(Value::as_bool).unwrap_or(false)
    }

    /// `rope_theta`, at the top level or in `rope_parameters`; 10000 is the documented default.
    fn rope_theta(&self) -> f64 {
        let nested = || self.map.get("rope_parameters").and_then(|p| p.get("rope_theta"));
        self.map.get("rope_theta").or_else(nested).and_then(Value::as_f64).unwrap_or(10000.0)
    }

    fn rope_scaling(&self) -> Result<Option<RopeScaling>, ModelError> {
        let object = |key| self.map.get(key).and_then(Value::as_object).map(|o| (key, o));
        if is_partial(self.map) {
            return self.bad("partial_rotary_factor is not supported; use a model without it");
        }
        let mut scaling = None;
        for (key, rope) in ["rope_scaling", "rope_parameters"].into_iter().filter_map(object) {
            let part = |name| rope.get(name).or_else(|| self.map.get(name)).and_then(Value::as_f64);
            if part("partial_rotary_factor").unwrap_or(1.0) != 1.0 {
                return self
                    .bad(format!("{key} with a partial_rotary_factor is not supported; use a model without it"));
            }
            scaling = match rope.get("rope_type").or_else(|| rope.get("type")).and_then(Value::as_str) {
                None | Some("default") => scaling,
                Some("llama3") => Some(self.llama3(key, rope)?),
                Some(kind) => {
                    let instead = "use a model with the rope of type default or llama3";
                    return self.bad(format!("{key} of type {kind} is not supported; {instead}"));
                }
            };
        }
        Ok(scaling)
    }

    fn llama3(&self, key: &str, rope: &Map<String, Value>) -> Result<RopeScaling, ModelError> {
        let number = |name: &str| match rope.get(name).and_then(Value::as_f64) {
            Some(value) if value > 0.0 => Ok(value),
            _ => self.bad(format!("{key} of type llama3 needs a positive {name}; add it")),
        };
        let scaling = RopeScaling {
            factor: number("factor")?,
            low_freq_factor: number("low_freq_factor")?,
            high_freq_factor: number("high_freq_factor")?,
            original_max_position_embeddings: number("original_max_position_embeddings")? as i64,
        };
        if scaling.low_freq_factor >= scaling.high_freq_factor {
            return self.bad(format!("{key}: low_freq_factor must be below high_freq_factor; fix the config"));
        }
        Ok(scaling)
    }

    fn int(&self, key: &str, default: Option<i64>) -> Result<i64, ModelError> {
        match self.map.get(key).filter(|v| !v.is_null()) {
            None => default.map_or_else(|| self.bad(format!("has no {key}; add it")), Ok),
            Some(value) => match value.as_i64().filter(|n| (1..1 << 31).contains(n)) {
                Some(number) => Ok(number),
                None => self.bad(format!("{key} must be a positive number, not {value}; fix it")),
            },
        }
    }
}

fn is_partial(rope: &Map<String, Value>) -> bool {
    rope.get("partial_rotary_factor").and_then(Value::as_f64).is_some_and(|part| part != 1.0)
}

/// A token id, or a list of them.
pub(super) fn ids(json: &Value, key: &str, path: &Path) -> Result<Vec<i64>, ModelError> {
    let bad = || ModelError::bad(path, format!("{key} must be a token id or a list of them; fix it"));
    match json.get(key) {
        None | Some(Value::Null) => Ok(vec![]),
        Some(Value::Array(many)) => many.iter().map(|id| id.as_i64().ok_or_else(bad)).collect(),
        Some(one) => Ok(vec![one.as_i64().ok_or_else(bad)?]),
    }
}
