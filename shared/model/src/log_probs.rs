//! Log-probs of chosen tokens at a temperature, and the way back from them, in chunks over the vocabulary matrix.
//!
//! What must hold: whatever the batch, no more than a few \[chunk,V\] of logits exist at once, forwards and backwards.

use tch::{Kind, Tensor};

use crate::Decoder;

/// Log-probs and entropies of next-token distributions.
///
/// `hidden` is \[N,H\] (the selected positions), `targets` \[N\] int64; both results are \[N\] F32. Logits are divided by
/// `temperature` (numerics row 19), as the sampler does. Under `no_grad` no more than \[chunk,V\] logits exist at once, and
/// [`token_log_prob_gradients`] is the way back; with a graph each chunk keeps one \[chunk,V\] for the backward pass.
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

/// What `gradient` \[N\] F32 at the log-probs of [`token_log_probs`] means for the hidden states, \[N,H\], and for the output
/// matrix: `add_output` is called once a chunk with a part of \[V,H\], if that matrix is trained.
///
/// With p the softmax of logits / T, the derivative of log p\[target\] by the logits is (1\[target\] − p) / T.
pub fn token_log_prob_gradients(
    decoder: &Decoder,
    hidden: &Tensor,
    targets: &Tensor,
    temperature: f64,
    chunk: i64,
    gradient: &Tensor,
    add_output: &mut dyn FnMut(&Tensor),
) -> Tensor {
    tch::no_grad(|| {
        let (count, chunk) = (hidden.size()[0], chunk.max(1));
        let output = decoder.output();
        let mut parts = vec![];
        for at in (0..count).step_by(chunk as usize) {
            let take = chunk.min(count - at);
            let part = |whole: &Tensor| whole.narrow(0, at, take);
            let (hidden, weight) = (part(hidden), part(gradient).unsqueeze(-1) / temperature);
            let mut by_logits = distributions(decoder, &hidden, temperature).exp_();
            let _ = by_logits.g_mul_(&weight.neg());
            let by_logits = by_logits.scatter_add_(-1, &part(targets).unsqueeze(-1), &weight).to_kind(hidden.kind());
            if output.requires_grad() {
                add_output(&by_logits.transpose(0, 1).matmul(&hidden));
            }
            parts.push(by_logits.matmul(output));
        }
        if parts.is_empty() { hidden.zeros_like() } else { Tensor::cat(&parts, 0) }
    })
}
