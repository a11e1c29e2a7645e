//! One network over some trajectories, forwards and backwards, micro-batch by micro-batch. In: trajectories and a loss of
//! what is predicted about them. Out: the gradient of every weight that learns.
//! Must hold: no full-vocabulary logits of a batch exist, forwards or backwards; beyond `recompute_over` places no graph of
//! more than a layer; the loss is a sum over trajectories, so that any split gives the same gradient.

use rollmill_model::{Decoder, ValueHead, token_log_prob_gradients, token_log_probs};
use tch::Tensor;

use super::gradients::Gradients;
use super::prepare::{PerToken, scatter};
use super::round::Trainer;
use super::selection::{CHUNK, Selection};
use crate::experience::Experience;
use crate::packing::{MicroBatch, PackedRow, micro_batches, pack};

/// Passes without gradients keep no activations, so they take larger micro-batches.
const NO_GRAD_FACTOR: usize = 4;

/// A micro-batch on its way.
pub(super) struct Micro<'a> {
    /// Which tokens are predicted from where.
    pub(super) selection: &'a Selection,
    /// Places computed, padding included.
    pub(super) places: f64,
}

/// Where the critic is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Read {
    /// In the state before each trainable token: values.
    Tokens,
    /// Behind each trajectory: scores.
    Ends,
}

impl Trainer {
    /// Some trajectories, packed by task: a group's common prompt and equal completions are computed once.
    pub(super) fn rows(&self, batch: &[Experience], indices: &[usize]) -> Vec<PackedRow> {
        let items = indices.iter().map(|&i| (i, batch[i].task_id.as_str(), batch[i].tokens.as_slice()));
        pack(items, self.config.micro_tokens)
    }

    /// One after another: the attention masks of all at once would be large.
    fn micro_batches(
        &self,
        batch: &[Experience],
        indices: &[usize],
        budget: usize,
    ) -> impl Iterator<Item = MicroBatch> + use<> {
        let device = self.actor.device();
        micro_batches(self.rows(batch, indices), budget).into_iter().map(move |rows| MicroBatch::new(&rows, device))
    }

    /// Every trajectory of `indices` once, without gradients.
    pub(super) fn sweep(&self, batch: &[Experience], indices: &[usize], mut each: impl FnMut(&MicroBatch, &Selection)) {
        tch::no_grad(|| {
            for micro in self.micro_batches(batch, indices, self.config.micro_tokens * NO_GRAD_FACTOR) {
                each(&micro, &Selection::new(&micro, batch, self.actor.device()));
            }
        });
    }

    /// Log-probs of the trainable tokens of `indices` under `network`, without gradients; nothing for the others.
    pub(super) fn log_probs(&self, network: &Decoder, batch: &[Experience], indices: &[usize]) -> PerToken {
        let mut log_probs = vec![vec![]; batch.len()];
        self.sweep(batch, indices, |micro, selection| {
            let (flat, _) = selection.log_probs(network, micro, self.config.temperature);
            scatter(&flat, selection, batch, &mut log_probs);
        });
        log_probs
    }

    /// Gradients of the policy. `loss` gets the log-probs of a micro-batch's trainable tokens, [M] f32 with a graph, and
    /// their entropies.
    pub(super) fn policy_gradients(
        &self,
        batch: &[Experience],
        indices: &[usize],
        loss: &mut dyn FnMut(&Micro, &Tensor, &Tensor) -> Tensor,
    ) -> Gradients {
        let network = self.actor_mirror.of(&self.actor);
        let mut gradients = Gradients::new(network.trainable().len());
        for micro in self.micro_batches(batch, indices, self.config.micro_tokens) {
            let selection = Selection::new(&micro, batch, self.actor.device());
            let places = micro.ids.numel();
            let body =
                network.body(&micro.ids, &micro.positions, micro.attend.as_ref(), places > self.config.recompute_over);
            let hidden = body.hidden().flatten(0, 1).index_select(0, &selection.places);
            let temperature = self.config.temperature;
            let (unique, entropy) =
                tch::no_grad(|| token_log_probs(network, &hidden, &selection.targets, temperature, CHUNK));
            let unique = unique.set_requires_grad(true);
            let micro = Micro { selection: &selection, places: places as f64 };
            let total = loss(&micro, &selection.spread(&unique), &selection.spread(&entropy));
            let pull = Tensor::run_backward(&[total], &[&unique], false, false).swap_remove(0);
            let output = network.output_index();
            let mut add_output = |part: &Tensor| output.into_iter().for_each(|at| gradients.add(at, part));
            let pull = token_log_prob_gradients(
                network,
                &hidden,
                &selection.targets,
                temperature,
                CHUNK,
                &pull,
                &mut add_output,
            );
            let pull = at_places(body.hidden(), &selection.places, &pull);
            body.backward(&pull, &mut |at, part| gradients.add(at, part));
        }
        gradients
    }

    /// Gradients of the critic's trunk and, behind them, of its head. `loss` gets one number per trainable token or per
    /// trajectory of a micro-batch, [M] f32 with a graph.
    pub(super) fn critic_gradients_of(
        &self,
        (trunk, head): (&Decoder, &ValueHead),
        batch: &[Experience],
        indices: &[usize],
        read: Read,
        loss: &mut dyn FnMut(&Micro, &Tensor) -> Tensor,
    ) -> Gradients {
        let count = trunk.trainable().len();
        let mut gradients = Gradients::new(count + 2);
        for micro in self.micro_batches(batch, indices, self.config.micro_tokens) {
            let selection = Selection::new(&micro, batch, self.actor.device());
            let places = micro.ids.numel();
            let body =
                trunk.body(&micro.ids, &micro.positions, micro.attend.as_ref(), places > self.config.recompute_over);
            let at = if read == Read::Tokens { &selection.places } else { &selection.ends };
            let hidden = body.hidden().flatten(0, 1).index_select(0, at).set_requires_grad(true);
            let numbers = head.forward(&hidden);
            let numbers = if read == Read::Tokens { selection.spread(&numbers) } else { numbers };
            let total = loss(&Micro { selection: &selection, places: places as f64 }, &numbers);
            let parts = Tensor::run_backward(&[total], &[&hidden, &head.weight, &head.bias], false, false);
            gradients.add(count, &parts[1]);
            gradients.add(count + 1, &parts[2]);
            let pull = at_places(body.hidden(), at, &parts[0]);
            body.backward(&pull, &mut |at, part| gradients.add(at, part));
        }
        gradients
    }
}

/// Zeros of the shape of `hidden` [B,T,H] with `parts` [N,H] added at the flat `places` [N].
fn at_places(hidden: &Tensor, places: &Tensor, parts: &Tensor) -> Tensor {
    let flat = hidden.flatten(0, 1).zeros_like();
    flat.index_add(0, places, parts).reshape(hidden.size())
}
