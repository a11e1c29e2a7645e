//! One decoder layer: norm, attention with rotary embedding, norm, gated MLP; and the pieces the cached step shares.
//!
//! The order of the nine weights is that of [`crate::weights::layout`].

use tch::{Kind, Tensor};

use crate::ModelConfig;

/// The weights of one layer, borrowed.
pub(crate) struct Layer<'a> {
    pub attention_norm: &'a Tensor,
    pub query: &'a Tensor,
    pub key: &'a Tensor,
    pub value: &'a Tensor,
    pub output: &'a Tensor,
    pub mlp_norm: &'a Tensor,
    pub gate: &'a Tensor,
    pub up: &'a Tensor,
    pub down: &'a Tensor,
}

impl<'a> Layer<'a> {
    /// From its nine named weights.
    pub fn of(named: &'a [(String, Tensor)]) -> Layer<'a> {
        let weight = |index: usize| &named[index].1;
        Layer {
            attention_norm: weight(0),
            query: weight(1),
            key: weight(2),
            value: weight(3),
            output: weight(4),
            mlp_norm: weight(5),
            gate: weight(6),
            up: weight(7),
            down: weight(8),
        }
    }

    /// Its weights that learn, in the order of [`crate::Decoder::trainable`].
    pub fn trainable(&self) -> Vec<&'a Tensor> {
        let all = [
            self.attention_norm,
            self.query,
            self.key,
            self.value,
            self.output,
            self.mlp_norm,
            self.gate,
            self.up,
            self.down,
        ];
        all.into_iter().filter(|weight| weight.requires_grad()).collect()
    }

    /// \[B,T,H\] to \[B,T,H\], without a cache, differentiable.
    pub fn forward(&self, config: &ModelConfig, x: &Tensor, rope: &Rope, attend: Option<&Tensor>) -> Tensor {
        let h = rms_norm(x, self.attention_norm, config.rms_norm_eps);
        let x = x + self.attention(config, &h, rope, attend).linear::<Tensor>(self.output, None);
        let h = rms_norm(&x, self.mlp_norm, config.rms_norm_eps);
        x + self.mlp(&h)
    }

    /// The gated MLP: \[.., H\] to \[.., H\].
    pub fn mlp(&self, h: &Tensor) -> Tensor {
        (h.linear::<Tensor>(self.gate, None).silu() * h.linear::<Tensor>(self.up, None))
            .linear::<Tensor>(self.down, None)
    }

    fn attention(&self, config: &ModelConfig, h: &Tensor, rope: &Rope, attend: Option<&Tensor>) -> Tensor {
        let (rows, tokens) = (h.size()[0], h.size()[1]);
        let heads = |weight: &Tensor, count: i64| {
            h.linear::<Tensor>(weight, None).reshape([rows, tokens, count, config.head_dim])
        };
        let (queries, shared) = (config.num_attention_heads, config.num_key_value_heads);
        let query = rope.turn(&heads(self.query, queries)).transpose(1, 2);
        let key = spread(&rope.turn(&heads(self.key, shared)), queries / shared).transpose(1, 2);
        let value = spread(&heads(self.value, shared), queries / shared).transpose(1, 2);
        Tensor::scaled_dot_product_attention(&query, &key, &value, attend, 0.0, attend.is_none(), None, false)
            .transpose(1, 2)
            .reshape([rows, tokens, queries * config.head_dim])
    }
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

/// Cosines and sines of the rotary embedding (Su et al. 2021), half-split as in Hugging Face weights.
pub(crate) struct Rope {
    cos: Tensor,
    sin: Tensor,
    half: i64,
}

impl Rope {
    /// For `positions` int64 of any shape \[..\]; tables are \[.., 1, head_dim\] in `kind`.
    pub fn at(config: &ModelConfig, positions: &Tensor, kind: Kind) -> Rope {
        let half = config.head_dim / 2;
        let inverse: Vec<f32> =
            (0..half).map(|i| config.rope_theta.powf(-2.0 * i as f64 / config.head_dim as f64) as f32).collect();
        let inverse = Tensor::from_slice(&inverse).to_device(positions.device());
        let angle = positions.to_kind(Kind::Float).unsqueeze(-1) * inverse;
        let angle = Tensor::cat(&[&angle, &angle], -1).unsqueeze(-2);
        Rope { cos: angle.cos().to_kind(kind), sin: angle.sin().to_kind(kind), half }
    }

    /// Turns heads \[.., heads, head_dim\] to their positions.
    pub fn turn(&self, heads: &Tensor) -> Tensor {
        let (first, second) = (heads.narrow(-1, 0, self.half), heads.narrow(-1, self.half, self.half));
        heads * &self.cos + Tensor::cat(&[&second.neg(), &first], -1) * &self.sin
    }
}
