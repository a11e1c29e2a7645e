//! `rollmill-serve`: a checkpoint behind the OpenAI completions protocol.
//!
//! In: a Hugging Face folder and requests with token ids (or text). Out: token ids, their log-probs at the sampling
//! temperature, text. What must hold: the same request gives the same draw wherever it is batched, up to rounding of the
//! logits; memory is bounded by slots × context, and the queue by its length.

pub mod args;
pub mod bench;
mod checkpoint;
pub mod engine;
mod generation;
mod http;
pub mod process;
mod protocol;
mod serve;
mod slots;

pub use serve::serve;
