//! What a rollout needs to talk to a policy: tokenizer, chat template, action grammar, seeds, the endpoint client and
//! its probe.
//!
//! In: a model folder in the Hugging Face layout and the address of an OpenAI completions endpoint. Out: token ids in,
//! token ids and log-probs out. Must hold: text that comes from a task or a sandbox never becomes a control token, and
//! sampled ids are handed on exactly as received. Nothing here links libtorch.

pub mod chat;
pub mod endpoint;
pub mod grammar;
pub mod probe;
pub mod seed;
pub mod tokenizer;

pub use chat::{Chat, ChatError};
pub use endpoint::{Completed, Completion, Endpoint, EndpointConfig, EndpointError, Finish, Health, Next, Policy};
pub use probe::{Probe, ProbeError};
pub use tokenizer::{Tokenizer, TokenizerError};
