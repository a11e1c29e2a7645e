//! A forward pass that is walked back by hand. In: what [`Decoder::hidden`] takes. Out: hidden states without a graph, and
//! the gradient of every trainable weight for a given gradient of the hidden states.
//! Must hold: with `recompute` no more than the graph of one layer exists at once: the forward pass keeps each layer's
//! input, and the backward pass runs each layer again on a detached copy of it (Chen et al. 2016). Both ways give the same
//! gradients.

use tch::Tensor;

use crate::Decoder;
use crate::layer::rms_norm;
use crate::rope::Rope;

/// A forward pass under way.
pub struct Body<'a> {
    decoder: &'a Decoder,
    ids: Tensor,
    kept: Kept,
    hidden: Tensor,
}

enum Kept {
    /// The hidden states with their graph.
    Graph(Tensor),
    /// The input of each layer and, last, of the final norm.
    Inputs { inputs: Vec<Tensor>, rope: Rope, attend: Option<Tensor> },
}

impl Decoder {
    /// Runs the layers on \[B,T\] ids and positions; `attend` as for [`Decoder::hidden`].
    pub fn body(&self, ids: &Tensor, positions: &Tensor, attend: Option<&Tensor>, recompute: bool) -> Body<'_> {
        let (kept, hidden) = if recompute {
            tch::no_grad(|| self.record(ids, positions, attend))
        } else {
            let hidden = self.hidden(ids, positions, attend);
            let detached = hidden.detach();
            (Kept::Graph(hidden), detached)
        };
        Body { decoder: self, ids: ids.shallow_clone(), kept, hidden }
    }

    fn record(&self, ids: &Tensor, positions: &Tensor, attend: Option<&Tensor>) -> (Kept, Tensor) {
        let rope = Rope::at(&self.config, positions, self.kind());
        let mut inputs = vec![Tensor::embedding(self.embedding(), ids, -1, false, false)];
        for layer in self.layers() {
            let next = layer.forward(&self.config, &inputs[inputs.len() - 1], &rope, attend);
            inputs.push(next);
        }
        let hidden = rms_norm(&inputs[inputs.len() - 1], self.final_norm(), self.config.rms_norm_eps);
        (Kept::Inputs { inputs, rope, attend: attend.map(Tensor::shallow_clone) }, hidden)
    }
}

impl Body<'_> {
    /// \[B,T,H\] in the kind of the weights, without a graph.
    pub fn hidden(&self) -> &Tensor {
        &self.hidden
    }

    /// Calls `add` with the gradient of each weight that has one: its index in [`Decoder::trainable`], and a tensor of its
    /// shape. `gradient` is that of the hidden states. An index may come twice; the parts add up.
    pub fn backward(self, gradient: &Tensor, add: &mut dyn FnMut(usize, &Tensor)) {
        match self.kept {
            Kept::Graph(hidden) => {
                let trainable: Vec<Tensor> = self.decoder.trainable().into_iter().map(|(_, t)| t).collect();
                let parts = pull(&hidden, gradient, &trainable);
                parts.iter().enumerate().filter(|(_, part)| part.defined()).for_each(|(at, part)| add(at, part));
            }
            Kept::Inputs { inputs, rope, attend } => {
                walk_back(self.decoder, &self.ids, inputs, &rope, attend.as_ref(), gradient, add);
            }
        }
    }
}

fn walk_back(
    decoder: &Decoder,
    ids: &Tensor,
    mut inputs: Vec<Tensor>,
    rope: &Rope,
    attend: Option<&Tensor>,
    gradient: &Tensor,
    add: &mut dyn FnMut(usize, &Tensor),
) {
    let layers: Vec<_> = decoder.layers().collect();
    let first = usize::from(decoder.embedding().requires_grad());
    let counts: Vec<usize> = layers.iter().map(|layer| layer.trainable().len()).collect();
    let mut end = first + counts.iter().sum::<usize>();
    let mut take = || inputs.pop().expect("one input a layer and one of the norm").set_requires_grad(true);

    let last = take();
    let norm: Vec<&Tensor> = Some(decoder.final_norm()).filter(|w| w.requires_grad()).into_iter().collect();
    let hidden = rms_norm(&last, decoder.final_norm(), decoder.config.rms_norm_eps);
    let mut gradient = step_back(&hidden, gradient, &last, &norm, end, add);
    drop((hidden, last));
    for (layer, count) in layers.iter().zip(&counts).rev() {
        let input = take();
        let output = layer.forward(&decoder.config, &input, rope, attend);
        end -= count;
        gradient = step_back(&output, &gradient, &input, &layer.trainable(), end, add);
    }
    if first == 1 {
        let embedding = decoder.embedding();
        let looked_up = Tensor::embedding(embedding, ids, -1, false, false);
        add(0, &pull(&looked_up, &gradient, std::slice::from_ref(embedding))[0]);
    }
}

/// The gradient of `input`; those of `weights` go to `add` with indices from `from` on.
fn step_back(
    output: &Tensor,
    gradient: &Tensor,
    input: &Tensor,
    weights: &[&Tensor],
    from: usize,
    add: &mut dyn FnMut(usize, &Tensor),
) -> Tensor {
    let wanted: Vec<&Tensor> = std::iter::once(input).chain(weights.iter().copied()).collect();
    let mut parts = pull(output, gradient, &wanted);
    parts[1..].iter().enumerate().for_each(|(at, part)| add(from + at, part));
    parts.swap_remove(0)
}

/// Gradients of `inputs` where `output` has `gradient`.
fn pull<T: std::borrow::Borrow<Tensor>>(output: &Tensor, gradient: &Tensor, inputs: &[T]) -> Vec<Tensor> {
    let scalar = (output * gradient).sum(output.kind());
    Tensor::run_backward(&[scalar], inputs, false, false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Family, LoraConfig, ModelConfig};
    use tch::{Device, Kind};

    fn gradients(decoder: &Decoder, attend: Option<&Tensor>, recompute: bool) -> Vec<Tensor> {
        let ids = Tensor::from_slice(&[1i64, 4, 2, 9, 4, 0, 3, 3]).reshape([2, 4]);
        let positions = Tensor::arange(4, (Kind::Int64, Device::Cpu)).expand([2, 4], false);
        let body = decoder.body(&ids, &positions, attend, recompute);
        assert!(!body.hidden().requires_grad());
        let gradient = Tensor::arange(2 * 4 * 32, (Kind::Float, Device::Cpu)).reshape([2, 4, 32]).sin();
        let mut sums: Vec<Tensor> = decoder.trainable().iter().map(|(_, t)| t.detach().zeros_like()).collect();
        body.backward(&gradient, &mut |at, part| {
            let _ = sums[at].g_add_(part);
        });
        sums
    }

    fn decoders() -> Vec<Decoder> {
        let of = |family, tied| ModelConfig { family, tie_word_embeddings: tied, ..ModelConfig::tiny(11) };
        let shapes = [(Family::Llama, true), (Family::Llama, false), (Family::Qwen2, true), (Family::Qwen3, false)];
        let mut all: Vec<Decoder> = shapes.map(|(family, tied)| Decoder::random(of(family, tied), 5)).into();
        let adapted = Decoder::random(of(Family::Llama, true), 5).with_lora(&LoraConfig::default()).unwrap();
        for (name, factor) in adapted.trainable() {
            if name.contains("lora_B") {
                let _ = tch::no_grad(|| factor.detach().fill_(0.1)); // at 0 the other factors have no gradient
            }
        }
        all.push(adapted);
        all
    }

    #[test] // a gradient of another weight in its place, or none, would be far outside the bound
    fn recomputing_gives_the_same_gradients() {
        for mut decoder in decoders() {
            decoder.set_trainable(true);
            let causal = Tensor::ones([1, 1, 4, 4], (Kind::Bool, Device::Cpu)).tril(0);
            for attend in [None, Some(&causal)] {
                let (whole, again) = (gradients(&decoder, attend, false), gradients(&decoder, attend, true));
                for ((name, weight), (a, b)) in decoder.trainable().iter().zip(whole.iter().zip(&again)) {
                    assert_eq!(b.size(), weight.size());
                    let apart = (a - b).norm().double_value(&[]);
                    assert!(apart <= 1e-5 * a.norm().double_value(&[]), "{name}: {apart}");
                    // A key's bias moves all scores of a query alike, which the softmax does not see.
                    let unseen = name == "lm_head.weight" || name.ends_with("k_proj.bias");
                    assert!(a.norm().double_value(&[]) > 1e-3 || unseen, "{name}");
                }
            }
        }
    }
}
