//! The clipped policy loss of PPO (Schulman et al. 2017) with separate bounds (clip-higher, DAPO, Yu et al. 2025) and the
//! dual clip (Ye et al. 2020). In: flat f32 tensors [M] of trainable tokens. Out: one loss per token.

use serde::{Deserialize, Serialize};
use tch::Tensor;

/// Bound on Δ log-prob before it is exponentiated, so that one absurd token cannot make the loss infinite.
pub const LOG_RATIO_BOUND: f64 = 20.0;

/// How far the ratio may move before its gradient stops.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Clip {
    /// ε below: the ratio is clipped at 1 − low.
    pub low: f64,
    /// ε above: the ratio is clipped at 1 + high.
    pub high: f64,
    /// Dual clip c > 1: where A < 0 the loss is at most −c·A. None leaves it unbounded.
    pub dual: Option<f64>,
}

/// Per-token results, all [M]. Only `loss` carries a gradient.
pub struct PolicyLoss {
    /// −min(ρA, clip(ρ)A), dual-clipped.
    pub loss: Tensor,
    /// Clamped Δ log-prob against the behaviour policy.
    pub log_ratio: Tensor,
    /// 1 where the lower or upper clip took the gradient away.
    pub clipped: Tensor,
    /// 1 where the dual clip did.
    pub dual_clipped: Tensor,
}

/// ρ = exp(clamp(log_probs − old, ±20)); both at the sampling temperature. `advantages` carry no gradient.
pub fn policy_loss(log_probs: &Tensor, old: &Tensor, advantages: &Tensor, clip: Clip) -> PolicyLoss {
    let log_ratio = (log_probs - old).clamp(-LOG_RATIO_BOUND, LOG_RATIO_BOUND);
    let ratio = log_ratio.exp();
    let plain = &ratio * advantages;
    let bounded = ratio.clamp(1.0 - clip.low, 1.0 + clip.high) * advantages;
    let clipped = bounded.lt_tensor(&plain).to_kind(tch::Kind::Float);
    let surrogate = plain.minimum(&bounded);
    let (surrogate, dual_clipped) = match clip.dual {
        None => (surrogate, clipped.zeros_like()),
        Some(c) => {
            let floor = advantages * c;
            let cut = advantages.lt(0.0).logical_and(&surrogate.lt_tensor(&floor));
            (floor.where_self(&cut, &surrogate), cut.to_kind(tch::Kind::Float))
        }
    };
    PolicyLoss { loss: -surrogate, log_ratio: log_ratio.detach(), clipped, dual_clipped }
}

#[cfg(test)]
mod tests {
    use super::super::assert_close;
    use super::*;

    const CLIP: Clip = Clip { low: 0.2, high: 0.28, dual: None };

    fn loss_at(ratio: f64, advantage: f64, clip: Clip) -> f64 {
        let log_probs = Tensor::from_slice(&[ratio.ln()]);
        policy_loss(&log_probs, &Tensor::from_slice(&[0f64]), &Tensor::from_slice(&[advantage]), clip)
            .loss
            .double_value(&[0])
    }

    #[test] // numerics table, rows 13, 13b, 13c
    fn clipped_and_dual_clipped() {
        let dual = Clip { dual: Some(3.0), ..CLIP };
        assert_close(&[loss_at(1.5, 1., CLIP), loss_at(0.5, -1., CLIP)], &[-1.28, 0.8]);
        assert_close(&[loss_at(5., -1., dual), loss_at(5., -1., CLIP)], &[3., 5.]);
        assert_close(&[loss_at(5., 1., dual)], &[-1.28]); // only where A < 0
    }

    #[test]
    fn gradient_stops_where_clipped_and_flows_inside() {
        let gradient = |ratio: f64, advantage: f64, dual: Option<f64>| {
            let log_probs = Tensor::from_slice(&[ratio.ln()]).set_requires_grad(true);
            let parts = policy_loss(
                &log_probs,
                &Tensor::from_slice(&[0f64]),
                &Tensor::from_slice(&[advantage]),
                Clip { dual, ..CLIP },
            );
            let loss = parts.loss.sum(tch::Kind::Double);
            Tensor::run_backward(&[&loss], &[&log_probs], false, false)[0].double_value(&[0])
        };
        assert_close(&[gradient(1.5, 1., None), gradient(0.5, -1., None), gradient(5., -1., Some(3.))], &[0., 0., 0.]);
        assert_close(&[gradient(1.0, 2., None), gradient(1.5, -1., None)], &[-2., 1.5]); // −ρA
    }

    #[test] // row 13: the clamp keeps a trainable token with log-ratio 1000 finite too
    fn absurd_ratio_is_finite() {
        let loss = policy_loss(
            &Tensor::from_slice(&[0f32]),
            &Tensor::from_slice(&[-1000f32]),
            &Tensor::from_slice(&[-1f32]),
            CLIP,
        )
        .loss;
        assert!((loss.double_value(&[0]) / 20f64.exp() - 1.).abs() < 1e-5);
    }
}
