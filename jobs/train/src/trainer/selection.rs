//! Which places of a micro-batch the trainable tokens are predicted from. In: a micro-batch and the batch. Out: unique
//! places with their targets, and the way from them to one flat list of tokens, trajectory by trajectory.
//! Must hold: the action "token t" is taken in the state before it, so its log-prob and its value stand at token t − 1.

use std::collections::HashMap;

use rollmill_model::{Decoder, token_log_probs};
use tch::{Device, Tensor};

use crate::experience::Experience;
use crate::packing::MicroBatch;

/// Positions whose full-vocabulary logits exist at once.
pub(super) const CHUNK: i64 = 256;

/// N unique predictions, M trainable tokens (M ≥ N where trajectories share tokens).
pub(super) struct Selection {
    /// [N] place in [B·T] of the token before.
    pub(super) places: Tensor,
    /// [N] the token predicted.
    pub(super) targets: Tensor,
    /// [M] which of the N each trainable token is.
    gather: Tensor,
    /// Trajectories in the order of the M tokens: index in the batch.
    pub(super) indices: Vec<usize>,
    /// [trajectories] place of the last token: the state behind the trajectory.
    pub(super) ends: Tensor,
}

impl Selection {
    pub(super) fn new(micro: &MicroBatch, batch: &[Experience], device: Device) -> Selection {
        let (mut slots, mut places, mut targets, mut gather) = (HashMap::new(), vec![], vec![], vec![]);
        for (index, path) in &micro.paths {
            for at in batch[*index].trainable_indices() {
                let next = places.len();
                let slot = *slots.entry(path[at]).or_insert(next);
                if slot == next {
                    places.push(path[at - 1]);
                    targets.push(batch[*index].tokens[at]);
                }
                gather.push(slot as i64);
            }
        }
        let ends: Vec<i64> = micro.paths.iter().map(|(_, path)| path[path.len() - 1]).collect();
        let tensor = |values: &[i64]| Tensor::from_slice(values).to_device(device);
        Selection {
            places: tensor(&places),
            targets: tensor(&targets),
            gather: tensor(&gather),
            indices: micro.paths.iter().map(|(index, _)| *index).collect(),
            ends: tensor(&ends),
        }
    }

    /// Log-probs and entropies of the M trainable tokens, f32, at `temperature`.
    pub(super) fn log_probs(&self, decoder: &Decoder, micro: &MicroBatch, temperature: f64) -> (Tensor, Tensor) {
        let hidden = decoder.hidden(&micro.ids, &micro.positions, micro.attend.as_ref()).flatten(0, 1);
        let hidden = hidden.index_select(0, &self.places);
        let (log_probs, entropy) = token_log_probs(decoder, &hidden, &self.targets, temperature, CHUNK);
        (self.spread(&log_probs), self.spread(&entropy))
    }

    /// From something per place, [B·T, ..], to the M trainable tokens.
    pub(super) fn tokens(&self, per_place: &Tensor) -> Tensor {
        self.spread(&per_place.index_select(0, &self.places))
    }

    /// From the N unique predictions to the M trainable tokens.
    pub(super) fn spread(&self, unique: &Tensor) -> Tensor {
        unique.index_select(0, &self.gather)
    }

    /// One number per trajectory, repeated for each of its trainable tokens, [M] f32.
    pub(super) fn per_row(&self, batch: &[Experience], number: impl Fn(usize) -> f32, device: Device) -> Tensor {
        let repeat = |&index: &usize| std::iter::repeat_n(number(index), batch[index].trainable_len());
        Tensor::from_slice(&self.indices.iter().flat_map(repeat).collect::<Vec<f32>>()).to_device(device)
    }

    /// A flat [M] tensor out of per-trajectory lists.
    pub(super) fn flat(&self, lists: &[Vec<f32>], device: Device) -> Tensor {
        let flat: Vec<f32> = self.indices.iter().flat_map(|&index| lists[index].iter().copied()).collect();
        Tensor::from_slice(&flat).to_device(device)
    }

    /// Trainable lengths of its trajectories.
    pub(super) fn lengths(&self, batch: &[Experience]) -> Vec<usize> {
        self.indices.iter().map(|&index| batch[index].trainable_len()).collect()
    }
}
