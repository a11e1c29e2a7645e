//! The decoder: named weights in, hidden states and logits out, differentiable.
//!
//! Shapes: B rows, T tokens, H hidden, V vocabulary. Weights keep their Hugging Face names and order.

use tch::{Kind, Tensor};

use crate::layer::{Layer, rms_norm};
use crate::lora::Lora;
use crate::rope::Rope;
use crate::{ModelConfig, layout, sampling};

/// A decoder with its weights, and adapters where [`Decoder::with_lora`] gave it some.
#[derive(Debug)]
pub struct Decoder {
    /// Its shape.
    pub config: ModelConfig,
    /// In the order of [`layout::layout`].
    pub(crate) named: Vec<(String, Tensor)>,
    pub(crate) lora: Option<Lora>,
}

impl Decoder {
    /// A decoder with random F32 weights on the CPU: matrices and embedding normal with variance 1/columns (so that
    /// logits have variance about 1), biases normal with deviation 0.1, norms 1. The generator is
    /// [`sampling::uniform`], so the same seed gives the same bits.
    pub fn random(config: ModelConfig, seed: u64) -> Decoder {
        let mut at = 0u64;
        let named = layout::layout(&config)
            .into_iter()
            .map(|(name, shape)| {
                let count = shape.iter().product::<i64>() as usize;
                let values = match shape.as_slice() {
                    [_, columns] => normals(seed, &mut at, count, (*columns as f64).powf(-0.5)),
                    _ if name.ends_with(".bias") => normals(seed, &mut at, count, 0.1),
                    _ => vec![1f32; count],
                };
                (name, Tensor::from_slice(&values).reshape(&shape))
            })
            .collect();
        Decoder { config, named, lora: None }
    }

    /// All weights by Hugging Face name, in a stable order: embedding, layers, final norm, `lm_head` where not tied.
    /// Adapters are not among them.
    pub fn parameters(&self) -> Vec<(&str, &Tensor)> {
        self.named.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect()
    }

    /// Handles of what learns, in a stable order: without adapters all weights, in the order of [`Decoder::parameters`];
    /// with adapters their factors only, named like `model.layers.0.self_attn.q_proj.lora_A.weight`.
    pub fn trainable(&self) -> Vec<(String, Tensor)> {
        self.learns().iter().map(|(name, tensor)| (name.clone(), tensor.shallow_clone())).collect()
    }

    /// Where the output matrix is in [`Decoder::trainable`], if it learns. Tied, it is the embedding's place.
    pub fn output_index(&self) -> Option<usize> {
        let learns = self.output().requires_grad();
        learns.then(|| if self.config.tie_word_embeddings { 0 } else { self.learns().len() - 1 })
    }

    /// Makes what learns collect gradients, or not.
    pub fn set_trainable(&mut self, yes: bool) {
        for (_, tensor) in self.learns() {
            // sets it in place, for all handles
            let _ = tensor.set_requires_grad(yes);
        }
    }

    fn learns(&self) -> &[(String, Tensor)] {
        self.lora.as_ref().map_or(&self.named, |lora| &lora.factors)
    }

    /// Hidden states after the final norm, \[B,T,H\] in the kind of the weights.
    ///
    /// `ids` and `positions` are \[B,T\] int64; positions are given so that packed rows (one prompt, several completions)
    /// work. `attend` is None for causal, or \[B,1,T,T\] bool where true means "query row may attend to key column"; every
    /// row needs at least one true. Ids must be inside the vocabulary.
    pub fn hidden(&self, ids: &Tensor, positions: &Tensor, attend: Option<&Tensor>) -> Tensor {
        let rope = Rope::at(&self.config, positions, self.kind());
        let mut x = Tensor::embedding(self.embedding(), ids, -1, false, false);
        for layer in self.layers() {
            x = layer.forward(&self.config, &x, &rope, attend);
        }
        rms_norm(&x, self.final_norm(), self.config.rms_norm_eps)
    }

    /// Logits of hidden states: \[.., H\] gives \[.., V\], by the embedding where tied, else by `lm_head`.
    pub fn logits(&self, hidden: &Tensor) -> Tensor {
        hidden.linear::<Tensor>(self.output(), None)
    }

    /// An independent copy, adapters included: no storage shared, no gradients.
    pub fn deep_copy(&self) -> Decoder {
        self.to_kind(self.kind())
    }

    /// An independent copy with weights of another kind: no storage shared, no gradients. Adapters stay F32.
    pub fn to_kind(&self, kind: Kind) -> Decoder {
        let copy = |(name, tensor): &(String, Tensor)| (name.clone(), tensor.detach().to_dtype(kind, false, true));
        let named = self.named.iter().map(copy).collect();
        Decoder { config: self.config.clone(), named, lora: self.lora.as_ref().map(Lora::deep_copy) }
    }

    /// The kind (dtype) of the weights.
    pub fn kind(&self) -> Kind {
        self.named[0].1.kind()
    }

    /// The device of the weights.
    pub fn device(&self) -> tch::Device {
        self.named[0].1.device()
    }

    pub(crate) fn embedding(&self) -> &Tensor {
        &self.named[0].1
    }

    pub(crate) fn layers(&self) -> impl Iterator<Item = Layer<'_>> {
        let end = self.final_norm_index();
        let each = (end - 1) / self.config.num_hidden_layers as usize;
        let layers = self.named[1..end].chunks_exact(each).enumerate();
        layers.map(|(index, weights)| Layer::of(weights, self.lora.as_ref().map(|lora| lora.layer(index))))
    }

    pub(crate) fn final_norm(&self) -> &Tensor {
        &self.named[self.final_norm_index()].1
    }

    pub(crate) fn output(&self) -> &Tensor {
        if self.config.tie_word_embeddings {
            return self.embedding();
        }
        &self.named[self.final_norm_index() + 1].1
    }

    fn final_norm_index(&self) -> usize {
        self.named.len() - if self.config.tie_word_embeddings { 1 } else { 2 }
    }
}

/// Standard normals times `scale` by Box and Muller (1958), two per pair of uniforms, from position `at` on.
pub(crate) fn normals(seed: u64, at: &mut u64, count: usize, scale: f64) -> Vec<f32> {
    let mut values = Vec::with_capacity(count + 1);
    while values.len() < count {
        let radius = (-2.0 * (1.0 - sampling::uniform(seed, *at)).ln()).sqrt() * scale;
        let (sin, cos) = (std::f64::consts::TAU * sampling::uniform(seed, *at + 1)).sin_cos();
        values.extend([(radius * cos) as f32, (radius * sin) as f32]);
        *at += 2;
    }
    values.truncate(count);
    values
}
