//! The critic's head: one number per hidden state.

use std::collections::HashMap;
use std::path::Path;

use tch::{Device, Kind, Tensor};

use crate::weights::{read_file, write_tensors};
use crate::{Decoder, ModelError};

/// A linear map from hidden states to values. Starts at zero, so that the first values are 0.
#[derive(Debug)]
pub struct ValueHead {
    /// \[1,H\], F32.
    pub weight: Tensor,
    /// \[1\], F32.
    pub bias: Tensor,
}

impl ValueHead {
    /// Zeros for a decoder of hidden size H, on its device.
    pub fn zeros(decoder: &Decoder) -> ValueHead {
        let options = (Kind::Float, decoder.device());
        ValueHead { weight: Tensor::zeros([1, decoder.config.hidden_size], options), bias: Tensor::zeros([1], options) }
    }

    /// Values of hidden states: \[B,T,H\] of any kind gives \[B,T\] F32. Differentiable.
    pub fn forward(&self, hidden: &Tensor) -> Tensor {
        hidden.to_kind(Kind::Float).linear(&self.weight, Some(&self.bias)).squeeze_dim(-1)
    }

    /// Both tensors by name, in a stable order.
    pub fn parameters(&self) -> Vec<(&str, &Tensor)> {
        vec![("value_head.weight", &self.weight), ("value_head.bias", &self.bias)]
    }

    /// Makes both tensors collect gradients, or none.
    pub fn set_trainable(&mut self, yes: bool) {
        self.weight = self.weight.set_requires_grad(yes);
        self.bias = self.bias.set_requires_grad(yes);
    }

    /// Writes a safetensors file of its own; the same values give the same bytes.
    pub fn save(&self, path: &Path) -> Result<(), ModelError> {
        write_tensors(path, &self.parameters())
    }

    /// Reads what [`ValueHead::save`] wrote.
    pub fn load(path: &Path, device: Device) -> Result<ValueHead, ModelError> {
        let mut found = HashMap::new();
        read_file(path, Kind::Float, device, &mut found)?;
        let mut take = |name: &str| {
            let lacks = || ModelError::bad(path, format!("lacks {name}; give the file that the trainer saved"));
            found.remove(name).ok_or_else(lacks)
        };
        Ok(ValueHead { weight: take("value_head.weight")?, bias: take("value_head.bias")? })
    }
}
