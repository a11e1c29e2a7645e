//! Losses over pairs of which one was preferred. In: one number per trajectory and pair. Out: the loss, and its derivative
//! by each number: a pair's two trajectories may then stand in different micro-batches.

/// A pair's loss −log σ(margin) and its derivative by the margin, −σ(−margin). Neither overflows.
pub fn logistic(margin: f64) -> (f64, f64) {
    let small = (-margin.abs()).exp(); // in (0, 1]
    let loss = (-margin).max(0.0) + small.ln_1p();
    let slope = if margin >= 0.0 { -small / (1.0 + small) } else { -1.0 / (1.0 + small) };
    (loss, slope)
}

/// Mean loss of pairs, and what each chosen and each rejected number's derivative is (of the mean).
pub struct PairLoss {
    /// Mean of −log σ(margin).
    pub loss: f64,
    /// Share of pairs with a margin above 0.
    pub accuracy: f64,
    /// Mean margin.
    pub margin: f64,
    /// Per pair: the derivative by the chosen one's number; that by the rejected one's is its negative.
    pub slopes: Vec<f64>,
}

impl PairLoss {
    /// The derivative by each of `rows` numbers, where `pairs` are the rows chosen, rejected, chosen, rejected, …
    pub fn by_row(&self, pairs: &[usize], rows: usize) -> Vec<f32> {
        let mut slopes = vec![0f32; rows];
        for (pair, slope) in pairs.chunks(2).zip(&self.slopes) {
            slopes[pair[0]] += *slope as f32;
            slopes[pair[1]] -= *slope as f32;
        }
        slopes
    }
}

/// Bradley and Terry (1952): the margin of a pair is `scale`·(chosen − rejected). For a reward model the numbers are
/// scores and the scale is 1; for DPO (Rafailov et al. 2023) they are log π − log π_ref summed over a trajectory's trainable
/// tokens, and the scale is β.
pub fn pair_loss(pairs: &[(f64, f64)], scale: f64) -> PairLoss {
    let count = pairs.len().max(1) as f64;
    let margins: Vec<f64> = pairs.iter().map(|(chosen, rejected)| scale * (chosen - rejected)).collect();
    let parts: Vec<(f64, f64)> = margins.iter().map(|&margin| logistic(margin)).collect();
    PairLoss {
        loss: parts.iter().map(|(loss, _)| loss).sum::<f64>() / count,
        accuracy: margins.iter().filter(|m| **m > 0.0).count() as f64 / count,
        margin: margins.iter().sum::<f64>() / count,
        slopes: parts.iter().map(|(_, slope)| scale * slope / count).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::assert_close;
    use super::*;

    use std::f64::consts::LN_2;

    #[test] // −log σ(0) = log 2; −log σ(1) = log(1 + e⁻¹) = .313262
    fn the_logistic_loss_by_hand() {
        assert_close(&[logistic(0.0).0, logistic(1.0).0, logistic(-1.0).0], &[LN_2, 0.313262, 1.313262]);
        assert_close(&[logistic(0.0).1, logistic(1.0).1, logistic(-1.0).1], &[-0.5, -0.268941, -0.731059]);
        assert_eq!((logistic(1e6), logistic(-1e6)), ((0.0, 0.0), (1e6, -1.0)));
    }

    #[test]
    fn slopes_are_the_derivatives_of_the_mean() {
        let pairs = [(1.0, 0.5), (-2.0, 0.25), (3.0, 3.0)];
        let (at, step) = (pair_loss(&pairs, 0.3), 1e-6);
        for (which, slope) in at.slopes.iter().enumerate() {
            let mut moved = pairs;
            moved[which].0 += step;
            assert!(((pair_loss(&moved, 0.3).loss - at.loss) / step - slope).abs() < 1e-6);
            let mut moved = pairs;
            moved[which].1 += step;
            assert!(((pair_loss(&moved, 0.3).loss - at.loss) / step + slope).abs() < 1e-6);
        }
        assert_eq!(at.by_row(&[4, 0, 2, 1, 3, 5], 6)[0], -at.slopes[0] as f32);
        assert_close(&[at.accuracy, at.margin], &[1.0 / 3.0, 0.3 * (0.5 - 2.25) / 3.0]);
    }
}
