//! The critic's loss with value clipping. In: flat f32 tensors [M] of trainable tokens. Out: one loss per token.

use tch::Tensor;

/// Half the larger of (V − R)² and (V_old + clamp(V − V_old, ±ε) − R)²; without ε half the plain square. The formula is
/// that of the PPO reference implementations (OpenAI baselines `ppo2`).
pub fn value_loss(values: &Tensor, old: &Tensor, returns: &Tensor, clip: Option<f64>) -> Tensor {
    let plain = (values - returns).square();
    let Some(clip) = clip else { return plain * 0.5 };
    let bounded = ((values - old).clamp(-clip, clip) + old - returns).square();
    plain.maximum(&bounded) * 0.5
}

/// 1 where the clip took the gradient away, [M].
pub fn clipped(values: &Tensor, old: &Tensor, returns: &Tensor, clip: Option<f64>) -> Tensor {
    let Some(clip) = clip else { return values.zeros_like() };
    let bounded = ((values - old).clamp(-clip, clip) + old - returns).square();
    bounded.gt_tensor(&(values - returns).square()).to_kind(tch::Kind::Float)
}

#[cfg(test)]
mod tests {
    use super::super::assert_close;
    use super::*;

    #[test] // numerics table, row 14
    fn half_the_larger_square() {
        let at = |v: f64, clip| {
            let [v, old, r] = [v, 0.2, 0.9].map(|x| Tensor::from_slice(&[x]));
            value_loss(&v, &old, &r, clip).double_value(&[0])
        };
        assert_close(&[at(0.5, Some(0.2)), at(0.1, Some(0.2))], &[0.125, 0.32]);
        assert_close(&[at(0.5, None)], &[0.08]); // the control without a clip
    }
}
