//! From per-token losses to one number, by name. In: row lengths and the counts of the **whole** minibatch. Out: one
//! weight per token, so that a loss is Σ weight·loss and any split into micro-batches adds up to the same gradient.

use serde::{Deserialize, Serialize};
use tch::{Kind, Tensor};

/// How per-token losses become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aggregation {
    /// Every token counts the same (DAPO): Σ loss / tokens.
    #[default]
    TokenMean,
    /// Every trajectory counts the same (GRPO): mean over rows of the row's mean.
    SeqMeanTokenMean,
    /// Mean over rows of the row's sum.
    SeqMeanTokenSum,
}

/// Counts over the whole minibatch: all micro-batches, all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Trainable tokens.
    pub tokens: usize,
    /// Trajectories with at least one trainable token.
    pub sequences: usize,
}

impl Counts {
    /// Counts of a minibatch with these trainable lengths.
    pub fn of(lengths: &[usize]) -> Counts {
        Counts { tokens: lengths.iter().sum(), sequences: lengths.iter().filter(|&&l| l > 0).count() }
    }
}

/// The weight of each token, rows one after another; `lengths` are the trainable lengths of *these* rows, `counts` those
/// of the whole minibatch.
pub fn weights(lengths: &[usize], how: Aggregation, counts: Counts) -> Vec<f32> {
    let (tokens, sequences) = (counts.tokens.max(1) as f64, counts.sequences.max(1) as f64);
    let weight = |length: usize| match how {
        Aggregation::TokenMean => 1.0 / tokens,
        Aggregation::SeqMeanTokenMean => 1.0 / (sequences * length as f64),
        Aggregation::SeqMeanTokenSum => 1.0 / sequences,
    };
    lengths.iter().flat_map(|&length| std::iter::repeat_n(weight(length) as f32, length)).collect()
}

/// Σ weight·loss over flat [M] tensors: this micro-batch's part of the loss.
pub fn aggregate(losses: &Tensor, weights: &Tensor) -> Tensor {
    (losses * weights).sum(Kind::Float)
}

#[cfg(test)]
mod tests {
    use super::super::assert_close;
    use super::*;

    const ALL: [Aggregation; 3] = [Aggregation::TokenMean, Aggregation::SeqMeanTokenMean, Aggregation::SeqMeanTokenSum];

    fn losses(lengths: &[usize], each: &[f32]) -> Tensor {
        let flat: Vec<f32> = lengths.iter().zip(each).flat_map(|(&l, &x)| std::iter::repeat_n(x, l)).collect();
        Tensor::from_slice(&flat)
    }

    fn total(lengths: &[usize], each: &[f32], how: Aggregation, counts: Counts) -> f64 {
        aggregate(&losses(lengths, each), &Tensor::from_slice(&weights(lengths, how, counts))).double_value(&[])
    }

    #[test] // numerics table, row 17
    fn named() {
        let got = ALL.map(|how| total(&[2, 8], &[1., 3.], how, Counts::of(&[2, 8])));
        assert_close(&got, &[2.6, 2.0, 13.0]);
    }

    #[test] // row 18; the control divides by the micro-batch's own count and then averages
    fn a_split_per_row_adds_up_to_the_same() {
        let counts = Counts::of(&[2, 8]);
        let got = ALL.map(|how| total(&[2], &[1.], how, counts) + total(&[8], &[3.], how, counts));
        assert_close(&got, &[2.6, 2.0, 13.0]);
        let local = |l: usize, x| total(&[l], &[x], Aggregation::TokenMean, Counts::of(&[l]));
        assert!(((local(2, 1.) + local(8, 3.)) / 2. - 2.6).abs() > 0.1);
    }
}
