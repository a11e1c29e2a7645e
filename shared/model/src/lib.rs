//! The policy network: a decoder of the Llama or Qwen family on libtorch.
//!
//! In come Hugging Face folders (config.json, safetensors) or GGUF files; out go hidden states and log-probs one can
//! differentiate (`train`), and last-token logits over a bounded KV cache (`serve`). No randomness comes from libtorch:
//! [`sampling`] and [`Decoder::random`] use a counter-based generator. Same weights give the same bytes on disk.

pub mod body;
pub mod cache;
pub mod config;
pub mod decoder;
pub mod error;
pub mod family;
pub mod gguf;
mod layer;
mod layout;
pub mod log_probs;
pub mod lora;
pub mod rope;
pub mod sampling;
mod step;
pub mod value_head;
mod weights;

pub use body::Body;
pub use cache::KvCache;
pub use config::ModelConfig;
pub use decoder::Decoder;
pub use error::ModelError;
pub use family::Family;
pub use log_probs::{token_log_prob_gradients, token_log_probs};
pub use lora::LoraConfig;
pub use rope::RopeScaling;
pub use step::SlotStep;
pub use value_head::ValueHead;
