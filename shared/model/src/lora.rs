//! Low-rank adapters (Hu et al. 2021): a projection computes W x + (alpha / rank) · B (A x), and only A and B learn.
//!
//! In: a decoder and which projections get adapters. Out: a decoder of the same function (B starts at zero) whose factors
//! can be trained, saved and loaded apart, or merged into the weights. What must hold: factors are F32 whatever the kind of
//! the weights, so that small updates are not lost; the same configuration gives the same bits.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use serde::{Deserialize, Serialize};
use tch::{Kind, Tensor};

use crate::decoder::normals;
use crate::layer::{Named, find};
use crate::layout::layout;
use crate::weights::{arrange, read_file, write_tensors};
use crate::{Decoder, ModelError};

/// The projections that can have adapters.
const PROJECTIONS: [&str; 7] = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"];

/// Which adapters a decoder gets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LoraConfig {
    /// Rows of A and columns of B.
    pub rank: i64,
    /// The adapter's output is multiplied by alpha / rank.
    pub alpha: f64,
    /// Projections with adapters, in every layer: `q_proj`, `k_proj`, `v_proj`, `o_proj`, `gate_proj`, `up_proj`, `down_proj`.
    pub targets: Vec<String>,
    /// Seed of A.
    pub seed: u64,
}

impl Default for LoraConfig {
    /// Rank 16, alpha 32, all projections, seed 0.
    fn default() -> Self {
        LoraConfig { rank: 16, alpha: 32.0, targets: PROJECTIONS.map(String::from).to_vec(), seed: 0 }
    }
}

impl LoraConfig {
    fn check(&self, widest: i64) -> Result<(), ModelError> {
        let refuse = |detail: String| Err(ModelError::Lora(detail));
        if !(1..=widest).contains(&self.rank) {
            return refuse(format!("rank must be from 1 to {widest}, the hidden size, not {}; change it", self.rank));
        }
        if !(self.alpha.is_finite() && self.alpha > 0.0) {
            return refuse(format!("alpha must be a positive number, not {}; change it", self.alpha));
        }
        if let Some(unknown) = self.targets.iter().find(|target| !PROJECTIONS.contains(&target.as_str())) {
            return refuse(format!("{unknown} is no projection; use some of {}", PROJECTIONS.join(", ")));
        }
        if self.targets.is_empty() || self.targets.iter().collect::<BTreeSet<_>>().len() < self.targets.len() {
            return refuse(format!("targets must name at least one of {}, each once", PROJECTIONS.join(", ")));
        }
        Ok(())
    }
}

/// The adapters of a decoder.
#[derive(Debug)]
pub(crate) struct Lora {
    /// alpha / rank.
    scale: f64,
    /// Factors of one layer.
    each: usize,
    /// A \[rank, in\] then B \[out, rank\] of every adapter, F32, in the order of the layout.
    pub factors: Vec<(String, Tensor)>,
}

impl Lora {
    /// Factors of layer `index`, and their scale.
    pub fn layer(&self, index: usize) -> (&Named, f64) {
        (&self.factors[index * self.each..][..self.each], self.scale)
    }

    /// The adapter of the weight of this name, if it has one.
    pub fn adapter(&self, weight: &str) -> Option<Adapter<'_>> {
        Adapter::find(&self.factors, weight.strip_suffix(".weight")?, self.scale)
    }

    /// An independent copy without gradients.
    pub fn deep_copy(&self) -> Lora {
        let copy = |(name, tensor): &(String, Tensor)| (name.clone(), tensor.detach().copy());
        Lora { factors: self.factors.iter().map(copy).collect(), ..*self }
    }
}

/// The adapter of one projection, borrowed.
pub(crate) struct Adapter<'a> {
    a: &'a Tensor,
    b: &'a Tensor,
    scale: f64,
}

impl<'a> Adapter<'a> {
    /// That of the projection `stem` among `factors`.
    pub fn find(factors: &'a Named, stem: &str, scale: f64) -> Option<Adapter<'a>> {
        let factor = |end| find(factors, stem, end);
        Some(Adapter { a: factor(".lora_A.weight")?, b: factor(".lora_B.weight")?, scale })
    }

    /// What it adds to the projection: \[.., in\] of any kind to \[.., out\] of the same, computed in F32.
    pub fn apply(&self, x: &Tensor) -> Tensor {
        let low = x.to_kind(Kind::Float).linear::<Tensor>(self.a, None) * self.scale;
        low.linear::<Tensor>(self.b, None).to_kind(x.kind())
    }

    /// The weight of a plain projection of the same function, F32.
    pub fn merge(&self, weight: &Tensor) -> Tensor {
        tch::no_grad(|| weight.to_kind(Kind::Float) + self.b.matmul(self.a) * self.scale)
    }
}

impl Decoder {
    /// Whether it has adapters.
    pub fn has_lora(&self) -> bool {
        self.lora.is_some()
    }

    /// Adds adapters: A normal with variance 1/in (so that A x has the variance of x), B zero. The weights stop collecting
    /// gradients. Refuses unknown targets, and a decoder that has adapters.
    pub fn with_lora(mut self, config: &LoraConfig) -> Result<Decoder, ModelError> {
        config.check(self.config.hidden_size)?;
        if self.lora.is_some() {
            return Err(ModelError::Lora("the decoder has adapters; merge them before adding others".into()));
        }
        self.set_trainable(false);
        let (device, mut at, mut factors) = (self.device(), 0, vec![]);
        for (name, [rows, columns]) in targets(&self, config) {
            let values = normals(config.seed, &mut at, (config.rank * columns) as usize, (columns as f64).powf(-0.5));
            let a = Tensor::from_slice(&values).reshape([config.rank, columns]).to_device(device);
            let b = Tensor::zeros([rows, config.rank], (Kind::Float, device));
            factors.extend([(format!("{name}.lora_A.weight"), a), (format!("{name}.lora_B.weight"), b)]);
        }
        self.lora = Some(Lora { scale: config.alpha / config.rank as f64, each: 2 * config.targets.len(), factors });
        Ok(self)
    }

    /// An independent decoder of the same function without adapters, in the same kind.
    pub fn merged(&self) -> Decoder {
        let mut plain = self.deep_copy();
        if let Some(lora) = plain.lora.take() {
            for (name, tensor) in &mut plain.named {
                if let Some(adapter) = lora.adapter(name) {
                    *tensor = adapter.merge(tensor).to_kind(tensor.kind());
                }
            }
        }
        plain
    }

    /// Writes the factors into a safetensors file of their own (F32, no rank, alpha or targets besides what shapes and names
    /// tell); the same values give the same bytes. A decoder without adapters is refused.
    pub fn save_lora(&self, path: &Path) -> Result<(), ModelError> {
        let factors = &self.adapters()?.factors;
        write_tensors(path, &factors.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect::<Vec<_>>())
    }

    /// Reads what [`Decoder::save_lora`] wrote into the factors of this decoder, whose adapters must be configured alike.
    /// Handles stay valid; on an error nothing has changed.
    pub fn load_lora(&mut self, path: &Path) -> Result<(), ModelError> {
        let factors = &self.adapters()?.factors;
        let mut found = HashMap::new();
        read_file(path, Kind::Float, self.device(), &mut found)?;
        let wanted = factors.iter().map(|(name, tensor)| (name.clone(), tensor.size())).collect();
        let read = arrange(wanted, path, "the lora configuration", found)?;
        for ((_, to), (_, from)) in factors.iter().zip(&read) {
            to.detach().f_copy_(from)?;
        }
        Ok(())
    }

    fn adapters(&self) -> Result<&Lora, ModelError> {
        let none = || ModelError::Lora("the decoder has no adapters; add them before saving or loading".into());
        self.lora.as_ref().ok_or_else(none)
    }
}

/// Name (without `.weight`) and shape of every projection that gets an adapter, in the order of the layout.
fn targets(decoder: &Decoder, config: &LoraConfig) -> Vec<(String, [i64; 2])> {
    let wanted = |stem: &str| stem.rsplit('.').next().is_some_and(|last| config.targets.iter().any(|t| t == last));
    let all = layout(&decoder.config).into_iter().filter_map(|(name, shape)| {
        let stem = name.strip_suffix(".weight").filter(|stem| wanted(stem))?;
        Some((stem.to_string(), shape.try_into().ok()?))
    });
    all.collect()
}
