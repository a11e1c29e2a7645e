//! Rows of similar length side by side, as tensors. In: packed rows. Out: ids, positions, mask and where each
//! trajectory's tokens are in the flattened [B·T].

use tch::{Device, Tensor};

use super::PackedRow;

/// Trajectories of a micro-batch: index in the batch, and the flat place of each of its tokens in [B·T].
pub type Paths = Vec<(usize, Vec<i64>)>;

/// Inputs of one forward pass.
pub struct MicroBatch {
    /// [B,T] int64, padded with token 0 on the right.
    pub ids: Tensor,
    /// [B,T] int64.
    pub positions: Tensor,
    /// [B,1,T,T] bool, or None where causal attention is right for every row.
    pub attend: Option<Tensor>,
    /// Where the trajectories are.
    pub paths: Paths,
}

/// Sorts rows by length and cuts them so that B·T, padding included, stays within `budget` (a longer row stands alone).
/// Deterministic: equal lengths keep their order.
pub fn micro_batches(mut rows: Vec<PackedRow>, budget: usize) -> Vec<Vec<PackedRow>> {
    rows.sort_by_key(|row| std::cmp::Reverse(row.tokens.len()));
    let mut batches: Vec<Vec<PackedRow>> = vec![];
    for row in rows {
        match batches.last_mut() {
            Some(open) if (open.len() + 1) * open[0].tokens.len() <= budget => open.push(row),
            _ => batches.push(vec![row]),
        }
    }
    batches
}

impl MicroBatch {
    /// Lays rows into tensors on `device`.
    pub fn new(rows: &[PackedRow], device: Device) -> MicroBatch {
        let longest = rows.iter().map(|row| row.tokens.len()).max().unwrap_or(0);
        let shape = [rows.len() as i64, longest as i64];
        let padded = |of: fn(&PackedRow) -> &[i64]| {
            let mut flat = vec![0; rows.len() * longest];
            for (row, into) in rows.iter().zip(flat.chunks_mut(longest.max(1))) {
                into[..of(row).len()].copy_from_slice(of(row));
            }
            Tensor::from_slice(&flat).reshape(shape).to_device(device)
        };
        let attend = (!rows.iter().all(PackedRow::is_chain)).then(|| attend(rows, longest).to_device(device));
        let paths = rows.iter().enumerate().flat_map(|(at, row)| {
            let offset = at * longest;
            row.paths
                .iter()
                .map(move |(index, path)| (*index, path.iter().map(|place| (offset + place) as i64).collect()))
        });
        MicroBatch { ids: padded(|r| &r.tokens), positions: padded(|r| &r.positions), attend, paths: paths.collect() }
    }
}

/// [B,1,T,T]; padding attends to itself alone, so that no softmax is over nothing.
fn attend(rows: &[PackedRow], longest: usize) -> Tensor {
    let mut flat = vec![false; rows.len() * longest * longest];
    for (row, into) in rows.iter().zip(flat.chunks_mut(longest * longest)) {
        let length = row.tokens.len();
        for (at, seen) in row.attend().chunks(length).enumerate() {
            into[at * longest..at * longest + length].copy_from_slice(seen);
        }
        (length..longest).for_each(|at| into[at * longest + at] = true);
    }
    Tensor::from_slice(&flat).reshape([rows.len() as i64, 1, longest as i64, longest as i64])
}

#[cfg(test)]
mod tests {
    use super::super::pack;
    use super::*;
    use proptest::prelude::*;
    use rollmill_model::{Decoder, ModelConfig};
    use tch::{IndexOp, Kind};

    /// log p(token | before) of every token but the first, computed alone.
    fn alone(decoder: &Decoder, tokens: &[i64]) -> Vec<f64> {
        let ids = Tensor::from_slice(tokens).unsqueeze(0);
        let positions = Tensor::arange(tokens.len() as i64, (Kind::Int64, Device::Cpu)).unsqueeze(0);
        let log_probs = decoder.logits(&decoder.hidden(&ids, &positions, None)).log_softmax(-1, Kind::Float);
        (1..tokens.len()).map(|at| log_probs.double_value(&[0, at as i64 - 1, tokens[at]])).collect()
    }

    /// The worst difference between packed and alone, over all tokens of all trajectories.
    fn worst(decoder: &Decoder, trajectories: &[Vec<i64>], budget: usize, break_it: bool) -> f64 {
        let items = trajectories.iter().enumerate().map(|(at, t)| (at, ["a", "b"][at % 2], t.as_slice()));
        let mut seen = vec![false; trajectories.len()];
        let mut worst: f64 = 0.0;
        for rows in micro_batches(pack(items, budget), budget) {
            let batch = MicroBatch::new(&rows, Device::Cpu);
            let attend = if break_it { None } else { batch.attend.as_ref() };
            let hidden = decoder.hidden(&batch.ids, &batch.positions, attend);
            let log_probs = decoder.logits(&hidden).flatten(0, 1).log_softmax(-1, Kind::Float);
            for (index, path) in &batch.paths {
                seen[*index] = true;
                let tokens = &trajectories[*index];
                for (at, want) in alone(decoder, tokens).iter().enumerate() {
                    worst = worst.max((log_probs.i((path[at], tokens[at + 1])).double_value(&[]) - want).abs());
                }
            }
        }
        assert!(seen.iter().all(|s| *s), "a trajectory got lost");
        worst
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn packed_equals_alone(
            prefix in proptest::collection::vec(0i64..7, 1..6),
            suffixes in proptest::collection::vec(proptest::collection::vec(0i64..3, 1..7), 1..7),
            budget in 4usize..60,
        ) {
            let trajectories: Vec<Vec<i64>> = suffixes.iter().map(|s| [prefix.as_slice(), s].concat()).collect();
            let decoder = Decoder::random(ModelConfig::tiny(7), 3);
            let worst = tch::no_grad(|| worst(&decoder, &trajectories, budget, false));
            prop_assert!(worst < 1e-4, "{}", worst);
        }
    }

    #[test] // the broken control: with plain causal attention over the packed row the test above must fail
    fn causal_attention_over_a_packed_row_is_wrong() {
        let decoder = Decoder::random(ModelConfig::tiny(7), 3);
        let trajectories = vec![vec![1, 2, 3, 4], vec![0], vec![1, 2, 5, 6, 4]];
        assert!(tch::no_grad(|| worst(&decoder, &trajectories, 99, false)) < 1e-4);
        assert!(tch::no_grad(|| worst(&decoder, &trajectories, 99, true)) > 1e-3);
    }

    #[test]
    fn the_budget_counts_padding() {
        let row = |n: usize| PackedRow { tokens: vec![0; n], ..Default::default() };
        let batches = micro_batches(vec![row(3), row(8), row(5), row(2)], 10);
        let lengths: Vec<Vec<usize>> = batches.iter().map(|b| b.iter().map(|r| r.tokens.len()).collect()).collect();
        assert_eq!(lengths, [vec![8], vec![5, 3], vec![2]]);
    }
}
