//! One step of a ragged batch over the cache: some slots take a whole prompt, others one token.
//!
//! Tokens of all slots go through the matrices as one \[N,H\] batch. Attention goes by runs: neighbouring slots that take
//! the same number of tokens are one call over a slice of the cache up to the run's longest sequence; the rest is masked.

use tch::{Kind, Tensor};

use crate::layer::{Layer, rms_norm};
use crate::rope::Rope;
use crate::{Decoder, KvCache, ModelConfig, ModelError};

/// New tokens of one slot; they follow what the cache holds there.
#[derive(Debug, Clone, Copy)]
pub struct SlotStep<'a> {
    /// The slot.
    pub slot: usize,
    /// At least one token id.
    pub tokens: &'a [i64],
}

/// Neighbouring slots with equally many new tokens.
struct Run {
    first_slot: usize,
    slots: i64,
    tokens: i64,
    /// Index of its first row in the flat batch.
    row: i64,
    /// Longest sequence, new tokens included.
    longest: i64,
    /// \[slots, 1, group·tokens, longest\] of 0 or −∞, or None where every slot sees all of it.
    mask: Option<Tensor>,
}

impl Decoder {
    /// Appends each slot's tokens to the cache and returns the logits of each last token, \[B,V\] F32, in the order of
    /// `batch`. No gradients. Errors before it touches the cache: a slot twice or out of range, no tokens, no room, or an
    /// id outside the vocabulary.
    pub fn step(&self, cache: &mut KvCache, batch: &[SlotStep<'_>]) -> Result<Tensor, ModelError> {
        let order = check(&self.config, cache, batch)?;
        tch::no_grad(|| self.step_sorted(cache, batch, &order))
    }

    fn step_sorted(&self, cache: &mut KvCache, batch: &[SlotStep<'_>], order: &[usize]) -> Result<Tensor, ModelError> {
        let (config, device) = (&self.config, self.device());
        let flat = Flat::of(cache, batch, order);
        let to_tensor = |values: &[i64]| Tensor::from_slice(values).to_device(device);
        let rope = Rope::at(config, &to_tensor(&flat.positions), self.kind());
        let cells = to_tensor(&flat.cells);
        let runs = runs(self, cache, batch, order);
        let mut x = Tensor::embedding(self.embedding(), &to_tensor(&flat.ids), -1, false, false);
        for (index, layer) in self.layers().enumerate() {
            let h = rms_norm(&x, layer.attention_norm, config.rms_norm_eps);
            let mixed = attend(config, &layer, &h, &rope, &cells, (&cache.keys[index], &cache.values[index]), &runs);
            x += layer.output.apply(&mixed);
            let h = rms_norm(&x, layer.mlp_norm, config.rms_norm_eps);
            x += layer.mlp(&h);
        }
        for step in batch {
            cache.grow(step.slot, step.tokens.len());
        }
        let last = x.f_index_select(0, &to_tensor(&flat.last))?;
        Ok(self.logits(&rms_norm(&last, self.final_norm(), config.rms_norm_eps)).f_to_kind(Kind::Float)?)
    }
}

/// The batch as one list of tokens, slots ascending.
#[derive(Default)]
struct Flat {
    ids: Vec<i64>,
    positions: Vec<i64>,
    /// Row of each token in the cache seen as \[slots·capacity, ..\].
    cells: Vec<i64>,
    /// Row of each step's last token, in the order of the caller's batch.
    last: Vec<i64>,
}

impl Flat {
    fn of(cache: &KvCache, batch: &[SlotStep<'_>], order: &[usize]) -> Flat {
        let mut flat = Flat { last: vec![0; batch.len()], ..Flat::default() };
        for &index in order {
            let SlotStep { slot, tokens } = batch[index];
            let start = cache.len(slot);
            flat.ids.extend(tokens);
            flat.positions.extend((start..start + tokens.len()).map(|p| p as i64));
            flat.cells.extend((start..start + tokens.len()).map(|p| (slot * cache.capacity() + p) as i64));
            flat.last[index] = flat.ids.len() as i64 - 1;
        }
        flat
    }
}

/// The order of the batch by slot, or why it cannot run.
fn check(config: &ModelConfig, cache: &KvCache, batch: &[SlotStep<'_>]) -> Result<Vec<usize>, ModelError> {
    let refuse = |detail: String| Err(ModelError::Step(detail));
    let mut order: Vec<usize> = (0..batch.len()).collect();
    order.sort_by_key(|&index| batch[index].slot);
    if batch.is_empty() {
        return refuse("a step needs at least one slot".into());
    }
    for pair in order.windows(2) {
        if batch[pair[0]].slot == batch[pair[1]].slot {
            return refuse(format!("slot {} is twice in one step; join its tokens", batch[pair[0]].slot));
        }
    }
    for step in batch {
        if step.slot >= cache.slots() {
            return refuse(format!("slot {} does not exist; the cache has {}", step.slot, cache.slots()));
        }
        if step.tokens.is_empty() {
            return refuse(format!("slot {} has no new tokens; leave it out of the step", step.slot));
        }
        if cache.len(step.slot) + step.tokens.len() > cache.capacity() {
            let (held, new, room) = (cache.len(step.slot), step.tokens.len(), cache.capacity());
            return refuse(format!("slot {} holds {held} of {room} tokens, {new} more do not fit", step.slot));
        }
        if let Some(id) = step.tokens.iter().find(|id| !(0..config.vocab_size).contains(*id)) {
            return refuse(format!("token id {id} is outside the vocabulary of {}", config.vocab_size));
        }
    }
    Ok(order)
}

fn runs(decoder: &Decoder, cache: &KvCache, batch: &[SlotStep<'_>], order: &[usize]) -> Vec<Run> {
    let mut runs: Vec<Run> = vec![];
    let mut row = 0;
    for &index in order {
        let (slot, tokens) = (batch[index].slot, batch[index].tokens.len() as i64);
        let length = cache.len(slot) as i64 + tokens;
        match runs.last_mut() {
            Some(run) if run.first_slot + run.slots as usize == slot && run.tokens == tokens => {
                run.slots += 1;
                run.longest = run.longest.max(length);
            }
            _ => runs.push(Run { first_slot: slot, slots: 1, tokens, row, longest: length, mask: None }),
        }
        row += tokens;
    }
    for run in &mut runs {
        run.mask = mask(decoder, cache, run);
    }
    runs
}

/// What each new token of a run must not see: later tokens of its slot, and leftovers behind them.
fn mask(decoder: &Decoder, cache: &KvCache, run: &Run) -> Option<Tensor> {
    let starts: Vec<i64> = (0..run.slots as usize).map(|i| cache.len(run.first_slot + i) as i64).collect();
    if run.tokens == 1 && starts.iter().all(|start| start + 1 == run.longest) {
        return None;
    }
    let group = decoder.config.num_attention_heads / decoder.config.num_key_value_heads;
    let mut cells = Vec::with_capacity((run.slots * group * run.tokens * run.longest) as usize);
    for start in starts {
        for row in 0..group * run.tokens {
            let sees = start + row % run.tokens + 1;
            cells.extend((0..run.longest).map(|column| if column < sees { 0f32 } else { f32::NEG_INFINITY }));
        }
    }
    let mask = Tensor::from_slice(&cells).reshape([run.slots, 1, group * run.tokens, run.longest]);
    Some(mask.to_device(decoder.device()).to_kind(decoder.kind()))
}

/// Attention of all new tokens: writes their keys and values to the cache, returns \[N, heads·head_dim\].
fn attend(
    config: &ModelConfig,
    layer: &Layer<'_>,
    h: &Tensor,
    rope: &Rope,
    cells: &Tensor,
    (keys, values): (&Tensor, &Tensor),
    runs: &[Run],
) -> Tensor {
    let (query, key, value) = layer.heads(config, h, rope);
    let flat = [-1, config.num_key_value_heads, config.head_dim];
    let _ = keys.view(flat).index_copy_(0, cells, &key);
    let _ = values.view(flat).index_copy_(0, cells, &value);
    let outputs: Vec<Tensor> = runs.iter().map(|run| attend_run(config, &query, keys, values, run)).collect();
    match outputs.as_slice() {
        [only] => only.shallow_clone(),
        many => Tensor::cat(many, 0),
    }
}

/// One run. The query heads that share a key head are laid side by side as more query rows, so nothing is repeated.
fn attend_run(config: &ModelConfig, query: &Tensor, keys: &Tensor, values: &Tensor, run: &Run) -> Tensor {
    let (shared, width) = (config.num_key_value_heads, config.head_dim);
    let group = config.num_attention_heads / shared;
    let past = |all: &Tensor| all.narrow(0, run.first_slot as i64, run.slots).narrow(1, 0, run.longest).transpose(1, 2);
    let query = query
        .narrow(0, run.row, run.slots * run.tokens)
        .view([run.slots, run.tokens, shared, group, width])
        .permute([0, 2, 3, 1, 4])
        .reshape([run.slots, shared, group * run.tokens, width]);
    let mask = run.mask.as_ref();
    Tensor::scaled_dot_product_attention(&query, &past(keys), &past(values), mask, 0.0, false, None, false)
        .view([run.slots, shared, group, run.tokens, width])
        .permute([0, 3, 1, 2, 4])
        .reshape([run.slots * run.tokens, config.num_attention_heads * width])
}
