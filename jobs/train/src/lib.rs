//! PPO with a separate critic, as a library. In: checked experiences (token ids, masks, behaviour log-probs, rewards) and
//! three decoders. Out: changed weights, metrics per step, and checkpoints that resume to the same bytes.
//! Must hold: no randomness from libtorch, no clock in anything that is saved, no bucket.

pub mod adamw;
pub mod config;
pub mod error;
pub mod experience;
pub mod numerics;
pub mod packing;
pub mod ppo;
pub mod shuffle;
mod tensor_file;

pub use adamw::{AdamW, AdamWConfig};
pub use config::{Dtype, KlKind, Preset, TrainConfig};
pub use error::{Result, TrainError};
pub use experience::Experience;
pub use ppo::{Control, Metrics, Optimizers, RoundMetrics, StepMetrics, Trainer};
