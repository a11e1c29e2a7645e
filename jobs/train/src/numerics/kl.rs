//! Estimators of KL(π ‖ π_ref) from tokens sampled from π (Schulman, "Approximating KL divergence").
//! In: flat tensors [M] of log-probs. Out: one estimate per token, differentiable in `log_probs`.
//! Must hold: k1 belongs in the reward. As a loss its expected gradient is zero; a loss uses k2 (on-policy), or k3 times
//! the importance ratio, whose expected gradients are that of the KL.

use tch::Tensor;

/// log π − log π_ref: unbiased, any sign.
pub fn k1(log_probs: &Tensor, reference: &Tensor) -> Tensor {
    log_probs - reference
}

/// ½ (log π − log π_ref)²: biased, its gradient is that of the KL when the tokens are on-policy.
pub fn k2(log_probs: &Tensor, reference: &Tensor) -> Tensor {
    k1(log_probs, reference).square() * 0.5
}

/// π_ref/π − 1 − log(π_ref/π): unbiased and never negative. The log-ratio is clamped at ±20.
pub fn k3(log_probs: &Tensor, reference: &Tensor) -> Tensor {
    let log_ratio = (reference - log_probs).clamp(-20.0, 20.0);
    log_ratio.exp() - 1.0 - log_ratio
}

/// k3 as a loss: times ρ = π/π_behaviour, **with** its gradient, which makes the expected gradient that of the KL.
pub fn k3_weighted(log_probs: &Tensor, reference: &Tensor, behaviour: &Tensor) -> Tensor {
    let ratio = (log_probs - behaviour).clamp(-20.0, 20.0).exp();
    ratio * k3(log_probs, reference)
}

#[cfg(test)]
mod tests {
    use super::super::assert_close;
    use super::*;
    use tch::Kind;

    #[test] // numerics table, rows 15 and 15b
    fn estimators() {
        let at = |reference: f64| {
            let (p, r) = (Tensor::from_slice(&[-1f64]), Tensor::from_slice(&[reference]));
            [k1(&p, &r), k2(&p, &r), k3(&p, &r)].map(|k| k.double_value(&[0]))
        };
        assert_close(&at(-1.2), &[0.2, 0.02, 0.018731]);
        assert_close(&at(-3.), &[2., 2., 1.135335]);
    }

    /// Expected gradient, exact over three tokens, of an estimator used as a loss on on-policy samples.
    fn expected_gradient(estimator: impl Fn(&Tensor, &Tensor) -> Tensor) -> Vec<f64> {
        let logits = Tensor::from_slice(&[1.0f64, 0.0, -0.5]).set_requires_grad(true);
        let reference = Tensor::from_slice(&[-0.3f64, 0.2, 0.4]).log_softmax(0, Kind::Double);
        let log_probs = logits.log_softmax(0, Kind::Double);
        let loss = (log_probs.detach().exp() * estimator(&log_probs, &reference)).sum(Kind::Double);
        Vec::try_from(&Tensor::run_backward(&[&loss], &[&logits], false, false)[0]).unwrap()
    }

    fn kl_gradient() -> Vec<f64> {
        let logits = Tensor::from_slice(&[1.0f64, 0.0, -0.5]).set_requires_grad(true);
        let reference = Tensor::from_slice(&[-0.3f64, 0.2, 0.4]).log_softmax(0, Kind::Double);
        let log_probs = logits.log_softmax(0, Kind::Double);
        let kl = (log_probs.exp() * (&log_probs - reference)).sum(Kind::Double);
        Vec::try_from(&Tensor::run_backward(&[&kl], &[&logits], false, false)[0]).unwrap()
    }

    #[test] // row 16; k1, and k3 without its weight, are the broken controls
    fn as_a_loss_k2_and_weighted_k3_have_the_gradient_of_the_kl() {
        let want = kl_gradient();
        assert!(want[0] > 0.1, "descent must lower the logit that π prefers beyond the reference");
        assert_close(&expected_gradient(k2), &want);
        assert_close(&expected_gradient(|p, r| k3_weighted(p, r, &p.detach())), &want);
        assert_close(&expected_gradient(k1), &[0.; 3]);
        let unweighted = expected_gradient(k3);
        assert!((unweighted[1] - want[1]).abs() > 1e-2, "{unweighted:?} against {want:?}");
    }
}
