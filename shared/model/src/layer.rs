//! One decoder layer: norm, attention with rotary embedding, norm, gated MLP; and the pieces the cached step shares.
//!
//! What must hold: a layer finds its weights by the names of [`crate::layout`], so their order is said there only.

use tch::{Kind, Tensor};

use crate::ModelConfig;
use crate::lora::Adapter;
use crate::rope::Rope;

/// Tensors by Hugging Face name.
pub(crate) type Named = [(String, Tensor)];

/// The weights of one layer, borrowed.
pub(crate) struct Layer<'a> {
    pub attention_norm: &'a Tensor,
    pub output: Projection<'a>,
    pub mlp_norm: &'a Tensor,
    query: Projection<'a>,
    key: Projection<'a>,
    value: Projection<'a>,
    /// Norms per head, \[head_dim\]; None in families without.
    query_norm: Option<&'a Tensor>,
    key_norm: Option<&'a Tensor>,
    gate: Projection<'a>,
    up: Projection<'a>,
    down: Projection<'a>,
    /// What may learn, in the order of [`crate::Decoder::trainable`].
    learns: &'a Named,
}

impl<'a> Layer<'a> {
    /// From its named weights; `factors` are its adapters' with their scale, where there are any.
    pub fn of(weights: &'a Named, factors: Option<(&'a Named, f64)>) -> Layer<'a> {
        let weight = |part| find(weights, part, ".weight").expect("the layout gives every layer this weight");
        let projection = |part| Projection {
            weight: weight(part),
            bias: find(weights, part, ".bias"),
            adapter: factors.and_then(|(factors, scale)| Adapter::find(factors, part, scale)),
        };
        Layer {
            attention_norm: weight("input_layernorm"),
            query: projection("self_attn.q_proj"),
            key: projection("self_attn.k_proj"),
            value: projection("self_attn.v_proj"),
            query_norm: find(weights, "self_attn.q_norm", ".weight"),
            key_norm: find(weights, "self_attn.k_norm", ".weight"),
            output: projection("self_attn.o_proj"),
            mlp_norm: weight("post_attention_layernorm"),
            gate: projection("mlp.gate_proj"),
            up: projection("mlp.up_proj"),
            down: projection("mlp.down_proj"),
            learns: factors.map_or(weights, |(factors, _)| factors),
        }
    }

    /// Its tensors that collect gradients now, in the order of [`crate::Decoder::trainable`].
    pub fn trainable(&self) -> Vec<&'a Tensor> {
        self.learns.iter().map(|(_, tensor)| tensor).filter(|tensor| tensor.requires_grad()).collect()
    }

    /// \[B,T,H\] to \[B,T,H\], without a cache, differentiable.
    pub fn forward(&self, config: &ModelConfig, x: &Tensor, rope: &Rope, attend: Option<&Tensor>) -> Tensor {
        let h = rms_norm(x, self.attention_norm, config.rms_norm_eps);
        let x = x + self.output.apply(&self.attention(config, &h, rope, attend));
        let h = rms_norm(&x, self.mlp_norm, config.rms_norm_eps);
        x + self.mlp(&h)
    }

    /// The gated MLP: \[.., H\] to \[.., H\].
    pub fn mlp(&self, h: &Tensor) -> Tensor {
        self.down.apply(&(self.gate.apply(h).silu() * self.up.apply(h)))
    }

    /// Queries, keys and values of normed states \[.., H\]: \[.., heads, head_dim\] each, the first two turned.
    pub fn heads(&self, config: &ModelConfig, h: &Tensor, rope: &Rope) -> (Tensor, Tensor, Tensor) {
        let split = |projection: &Projection<'_>, count: i64| {
            let mut shape = h.size();
            shape.pop();
            shape.extend([count, config.head_dim]);
            projection.apply(h).reshape(shape)
        };
        let turned = |projection, count, norm: Option<&Tensor>| {
            let heads = split(projection, count);
            rope.turn(&norm.map_or_else(|| heads.shallow_clone(), |norm| rms_norm(&heads, norm, config.rms_norm_eps)))
        };
        let (queries, shared) = (config.num_attention_heads, config.num_key_value_heads);
        let query = turned(&self.query, queries, self.query_norm);
        (query, turned(&self.key, shared, self.key_norm), split(&self.value, shared))
    }

    fn attention(&self, config: &ModelConfig, h: &Tensor, rope: &Rope, attend: Option<&Tensor>) -> Tensor {
        let (rows, tokens) = (h.size()[0], h.size()[1]);
        let (queries, group) = (config.num_attention_heads, config.num_attention_heads / config.num_key_value_heads);
        let (query, key, value) = self.heads(config, h, rope);
        let (key, value) = (spread(&key, group).transpose(1, 2), spread(&value, group).transpose(1, 2));
        let query = query.transpose(1, 2);
        Tensor::scaled_dot_product_attention(&query, &key, &value, attend, 0.0, attend.is_none(), None, false)
            .transpose(1, 2)
            .reshape([rows, tokens, queries * config.head_dim])
    }
}

/// A linear map with its adapter, if any.
pub(crate) struct Projection<'a> {
    weight: &'a Tensor,
    bias: Option<&'a Tensor>,
    adapter: Option<Adapter<'a>>,
}

impl Projection<'_> {
    /// \[.., in\] to \[.., out\].
    pub fn apply(&self, x: &Tensor) -> Tensor {
        let base = x.linear(self.weight, self.bias);
        match &self.adapter {
            Some(adapter) => base + adapter.apply(x),
            None => base,
        }
    }
}

/// The first tensor of the name `part` + `end`, alone or behind a dotted prefix such as `model.layers.N.`.
pub(crate) fn find<'a>(named: &'a Named, part: &str, end: &str) -> Option<&'a Tensor> {
    let front = |name: &'a str| name.strip_suffix(end)?.strip_suffix(part);
    let is = |name| front(name).is_some_and(|front| front.is_empty() || front.ends_with('.'));
    named.iter().find(|(name, _)| is(name)).map(|(_, tensor)| tensor)
}

/// Repeats each of the key or value heads \[B,T,K,D\] for its group of query heads: \[B,T,K·group,D\].
fn spread(heads: &Tensor, group: i64) -> Tensor {
    if group == 1 {
        return heads.shallow_clone();
    }
    let (rows, tokens, count, width) = heads.size4().expect("heads are made with four dimensions above");
    heads.unsqueeze(3).expand([rows, tokens, count, group, width], false).reshape([rows, tokens, count * group, width])
}

/// Root-mean-square norm over the last dimension (Zhang and Sennrich 2019), statistics in F32.
pub(crate) fn rms_norm(x: &Tensor, weight: &Tensor, eps: f64) -> Tensor {
    let wide = x.to_kind(Kind::Float);
    let scale = (wide.square().mean_dim([-1i64].as_slice(), true, Kind::Float) + eps).rsqrt();
    (wide * scale).to_kind(x.kind()) * weight
}

#[cfg(test)]
mod tests {
    use crate::{Decoder, Family, LoraConfig, ModelConfig};

    #[test]
    fn layers_name_what_learns_in_the_order_of_the_decoder() {
        let mut decoder = Decoder::random(ModelConfig { family: Family::Qwen3, ..ModelConfig::tiny(40) }, 1);
        let of_layers = |decoder: &Decoder| -> Vec<_> {
            decoder.layers().flat_map(|layer| layer.trainable()).map(|t| t.data_ptr()).collect()
        };
        let all = |decoder: &Decoder| -> Vec<_> { decoder.trainable().iter().map(|(_, t)| t.data_ptr()).collect() };
        assert!(of_layers(&decoder).is_empty());
        decoder.set_trainable(true);
        let plain = all(&decoder);
        assert_eq!(of_layers(&decoder), plain[1..plain.len() - 1]);
        let mut decoder = decoder.with_lora(&LoraConfig::default()).unwrap();
        assert!(of_layers(&decoder).is_empty());
        decoder.set_trainable(true);
        assert_eq!(of_layers(&decoder), all(&decoder));
        assert_eq!(all(&decoder).len(), 2 * 7 * 2);
    }
}
