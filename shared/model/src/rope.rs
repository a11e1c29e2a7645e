//! The rotary embedding (Su et al. 2021), half-split as in Hugging Face weights, with the scaling of Llama 3.1 and later.
//!
//! Positions in, tables of cosines and sines out; angles are computed in F32, as `transformers` does.

use std::f64::consts::TAU;

use serde_json::{Value, json};
use tch::{Kind, Tensor};

use crate::ModelConfig;

/// How Llama 3.1 and later stretch the rotary embedding to a longer context (`rope_type` "llama3"). Names are those of
/// `config.json`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RopeScaling {
    /// What low frequencies are divided by.
    pub factor: f64,
    /// Waves longer than `original_max_position_embeddings` / this are low frequencies.
    pub low_freq_factor: f64,
    /// Waves shorter than `original_max_position_embeddings` / this stay as they are.
    pub high_freq_factor: f64,
    /// The context before it was stretched, in tokens.
    pub original_max_position_embeddings: i64,
}

impl RopeScaling {
    /// As `rope_scaling` in `config.json`.
    pub(crate) fn to_json(self) -> Value {
        json!({
            "rope_type": "llama3",
            "factor": self.factor,
            "low_freq_factor": self.low_freq_factor,
            "high_freq_factor": self.high_freq_factor,
            "original_max_position_embeddings": self.original_max_position_embeddings,
        })
    }

    /// One frequency (radians per position), scaled; in between the two limits by linear interpolation. Source:
    /// `_compute_llama3_parameters` in `modeling_rope_utils.py` of transformers 5.24.
    fn scale(&self, frequency: f64) -> f64 {
        // waves of this frequency in the original context
        let waves = self.original_max_position_embeddings as f64 * frequency / TAU;
        let share = (waves - self.low_freq_factor) / (self.high_freq_factor - self.low_freq_factor);
        let share = share.clamp(0.0, 1.0);
        (1.0 - share) * frequency / self.factor + share * frequency
    }
}

/// Cosines and sines of some positions.
pub(crate) struct Rope {
    cos: Tensor,
    sin: Tensor,
    half: i64,
}

impl Rope {
    /// For `positions` int64 of any shape \[..\]; tables are \[.., 1, head_dim\] in `kind`.
    pub fn at(config: &ModelConfig, positions: &Tensor, kind: Kind) -> Rope {
        let frequencies = Tensor::from_slice(&frequencies(config)).to_device(positions.device());
        let angle = positions.to_kind(Kind::Float).unsqueeze(-1) * frequencies;
        let angle = Tensor::cat(&[&angle, &angle], -1).unsqueeze(-2);
        Rope { cos: angle.cos().to_kind(kind), sin: angle.sin().to_kind(kind), half: config.head_dim / 2 }
    }

    /// Turns heads \[.., heads, head_dim\] to their positions.
    pub fn turn(&self, heads: &Tensor) -> Tensor {
        let (first, second) = (heads.narrow(-1, 0, self.half), heads.narrow(-1, self.half, self.half));
        heads * &self.cos + Tensor::cat(&[&second.neg(), &first], -1) * &self.sin
    }
}

/// Radians per position of each pair of a head.
fn frequencies(config: &ModelConfig) -> Vec<f32> {
    let frequency = |pair: i64| config.rope_theta.powf(-2.0 * pair as f64 / config.head_dim as f64);
    let scale = |f: f64| config.rope_scaling.map_or(f, |scaling| scaling.scale(f));
    (0..config.head_dim / 2).map(|pair| scale(frequency(pair)) as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn llama3_scaling_by_hand() {
        let scaling = RopeScaling {
            factor: 8.0,
            low_freq_factor: 1.0,
            high_freq_factor: 4.0,
            original_max_position_embeddings: 100,
        };
        // a wave as long as half the context lies a third of the way from 1 to 4
        let middle = TAU / 50.0;
        let expected = middle / 8.0 * (2.0 / 3.0) + middle / 3.0;
        assert!((scaling.scale(middle) - expected).abs() < 1e-12);
        assert_eq!((scaling.scale(1.0), scaling.scale(1e-3)), (1.0, 1e-3 / 8.0));
    }
}
