//! Keys and values of past tokens, in a fixed number of slots.
//!
//! What must hold: memory is allocated once, slots × capacity × layers, and never grows; a slot's tokens are those of
//! positions 0..len. Layout is \[slots, capacity, kv_heads, head_dim\] per layer, so that one token is one row.

use tch::{Device, Kind, Tensor};

use crate::{Decoder, ModelError};

/// A bounded key-value cache. Dropping it frees the memory.
#[derive(Debug)]
pub struct KvCache {
    pub(crate) keys: Vec<Tensor>,
    pub(crate) values: Vec<Tensor>,
    lengths: Vec<usize>,
    capacity: usize,
}

impl KvCache {
    /// Room for `slots` sequences of at most `capacity` tokens each, in the decoder's kind and on its device.
    pub fn new(decoder: &Decoder, slots: usize, capacity: usize) -> Result<KvCache, ModelError> {
        let config = &decoder.config;
        let shape = [slots as i64, capacity as i64, config.num_key_value_heads, config.head_dim];
        // zeros, not empty: masked positions are multiplied by 0, which would keep a stray NaN alive
        let options: (Kind, Device) = (decoder.kind(), decoder.device());
        let layers = |_| Tensor::f_zeros(shape, options);
        Ok(KvCache {
            keys: (0..config.num_hidden_layers).map(layers).collect::<Result<_, _>>()?,
            values: (0..config.num_hidden_layers).map(layers).collect::<Result<_, _>>()?,
            lengths: vec![0; slots],
            capacity,
        })
    }

    /// Number of slots.
    pub fn slots(&self) -> usize {
        self.lengths.len()
    }

    /// Tokens a slot can hold.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Tokens a slot holds now.
    pub fn len(&self, slot: usize) -> usize {
        self.lengths[slot]
    }

    /// True where a slot holds nothing.
    pub fn is_empty(&self, slot: usize) -> bool {
        self.lengths[slot] == 0
    }

    /// Bytes of all keys and values.
    pub fn bytes(&self) -> usize {
        let of = |t: &Tensor| t.numel() * t.kind().elt_size_in_bytes();
        self.keys.iter().chain(&self.values).map(of).sum()
    }

    /// Forgets all but the first `len` tokens of a slot.
    pub fn truncate(&mut self, slot: usize, len: usize) {
        self.lengths[slot] = self.lengths[slot].min(len);
    }

    /// Makes slot `to` hold the first `len` tokens of slot `from`.
    pub fn copy_prefix(&mut self, from: usize, to: usize, len: usize) {
        assert!(len <= self.lengths[from], "a slot of {} tokens has no prefix of {len}", self.lengths[from]);
        if from != to && len > 0 {
            tch::no_grad(|| {
                for layer in self.keys.iter().chain(&self.values) {
                    let part = |slot: usize| layer.select(0, slot as i64).narrow(0, 0, len as i64);
                    part(to).copy_(&part(from));
                }
            });
        }
        self.lengths[to] = len;
    }

    pub(crate) fn grow(&mut self, slot: usize, by: usize) {
        self.lengths[slot] += by;
        debug_assert!(self.lengths[slot] <= self.capacity);
    }
}
