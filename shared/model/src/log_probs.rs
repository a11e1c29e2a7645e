//! Log-probs of chosen tokens at a temperature, in chunks over the vocabulary matrix.

use tch::{Kind, Tensor};

use crate::Decoder;

/// Log-probs and entropies of next-token distributions.
///
/// `hidden` is \[N,H\] (the selected positions), `targets` \[N\] int64; both results are \[N\] F32. Logits are divided by
/// `temperature` (numerics row 19), as the sampler does. Work goes in chunks of `chunk` positions: without gradients no
/// more than \[chunk,V\] logits exist at once; with gradients each chunk keeps one \[chunk,V\] for the backward pass.
/// The log-probs are differentiable; the entropy is a metric, cut off from the graph.
pub fn token_log_probs(
    decoder: &Decoder,
    hidden: &Tensor,
    targets: &Tensor,
    temperature: f64,
    chunk: i64,
) -> (Tensor, Tensor) {
    let count = hidden.size()[0];
    let (mut log_probs, mut entropies) = (vec![], vec![]);
    let mut at = 0;
    while at < count {
        let take = chunk.max(1).min(count - at);
        let all = distributions(decoder, &hidden.narrow(0, at, take), temperature);
        log_probs.push(all.gather(-1, &targets.narrow(0, at, take).unsqueeze(-1), false).squeeze_dim(-1));
        entropies.push(entropy(&all));
        at += take;
    }
    if count == 0 {
        let empty = || Tensor::zeros([0], (Kind::Float, hidden.device()));
        return (empty(), empty());
    }
    (Tensor::cat(&log_probs, 0), Tensor::cat(&entropies, 0))
}

/// Log-softmax of logits / temperature, \[n,V\] F32.
fn distributions(decoder: &Decoder, hidden: &Tensor, temperature: f64) -> Tensor {
    let mut logits = decoder.logits(hidden).to_kind(Kind::Float);
    if temperature != 1.0 {
        let _ = logits.g_div_scalar_(temperature);
    }
    logits.log_softmax(-1, Kind::Float)
}

/// −Σ p log p per row, without a graph.
fn entropy(log_probs: &Tensor) -> Tensor {
    tch::no_grad(|| {
        let all = log_probs.detach();
        -(all.exp() * &all).sum_dim_intlist([-1i64].as_slice(), false, Kind::Float)
    })
}
