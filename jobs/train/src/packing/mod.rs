//! Trajectories packed so that what they share is computed once. In: token lists. Out: rows, each a tree of tokens laid
//! flat, and micro-batches of rows under a token budget, as tensors.
//! Must hold: a token sees itself and the tokens before it in its own trajectory, and stands at its own position there,
//! so that every log-prob is what the trajectory alone would give.

mod micro_batch;
mod tree;

pub use micro_batch::{MicroBatch, Paths, micro_batches};
pub use tree::{PackedRow, pack};
