//! The families of decoders this network covers, and what tells them apart.
//!
//! All are pre-norm, with rotary attention and a gated SiLU MLP. Sources: `modeling_llama.py`, `modeling_qwen2.py` and
//! `modeling_qwen3.py` of transformers 5.24.

/// A family, named by `model_type` in `config.json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Llama 1 to 3, SmolLM2: no biases, no norms per head.
    Llama,
    /// Qwen2 and Qwen2.5: biases on queries, keys and values.
    Qwen2,
    /// Qwen3: an RMS norm over each head of queries and keys, before they are turned.
    Qwen3,
}

impl Family {
    const ALL: [Family; 3] = [Family::Llama, Family::Qwen2, Family::Qwen3];

    /// The family that `config.json` calls `model_type`.
    pub(crate) fn of(model_type: &str) -> Option<Family> {
        Family::ALL.into_iter().find(|family| family.model_type() == model_type)
    }

    /// Its `model_type` in `config.json`.
    pub fn model_type(self) -> &'static str {
        match self {
            Family::Llama => "llama",
            Family::Qwen2 => "qwen2",
            Family::Qwen3 => "qwen3",
        }
    }

    /// Its class in `transformers`, as `architectures` in `config.json` names it.
    pub fn architecture(self) -> &'static str {
        match self {
            Family::Llama => "LlamaForCausalLM",
            Family::Qwen2 => "Qwen2ForCausalLM",
            Family::Qwen3 => "Qwen3ForCausalLM",
        }
    }

    /// True where queries, keys and values have biases.
    pub(crate) fn has_biases(self) -> bool {
        self == Family::Qwen2
    }

    /// True where queries and keys are normed per head.
    pub(crate) fn has_head_norms(self) -> bool {
        self == Family::Qwen3
    }
}
