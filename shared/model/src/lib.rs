//! The policy network: a llama-type decoder on libtorch.
//!
//! In come Hugging Face folders (config.json, safetensors) or GGUF files; out go hidden states and log-probs one can
//! differentiate (`train`), and last-token logits over a bounded KV cache (`serve`). No randomness comes from libtorch:
//! [`sampling`] and [`Decoder::random`] use a counter-based generator. Same weights give the same bytes on disk.

pub mod body;
pub mod cache;
pub mod config;
pub mod decoder;
pub mod error;
pub mod gguf;
mod layer;
pub mod log_probs;
pub mod sampling;
mod step;
pub mod value_head;
mod weights;

pub use body::Body;
pub use cache::KvCache;
pub use config::ModelConfig;
pub use decoder::Decoder;
pub use error::ModelError;
pub use log_probs::{token_log_prob_gradients, token_log_probs};
pub use step::SlotStep;
pub use value_head::ValueHead;
