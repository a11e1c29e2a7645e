//! Training as a library: PPO with a separate critic, and what it is compared with. In: checked experiences (token ids,
//! masks, behaviour log-probs, rewards) and decoders. Out: changed weights, metrics per step, and checkpoints that resume to
//! the same bytes.
//! Must hold: no randomness from libtorch, no clock in anything that is saved, no bucket.

pub mod adamw;
pub mod alerts;
pub mod algorithm;
pub mod config;
pub mod error;
pub mod experience;
pub mod numerics;
pub mod packing;
pub mod shuffle;
mod tensor_file;
pub mod trainer;

pub use adamw::{AdamW, AdamWConfig};
pub use algorithm::Algorithm;
pub use config::{Dtype, KlKind, Preset, TrainConfig};
pub use error::{Result, TrainError};
pub use experience::Experience;
pub use trainer::{Control, Critic, Metrics, Optimizers, RoundMetrics, StepMetrics, Trainer};
