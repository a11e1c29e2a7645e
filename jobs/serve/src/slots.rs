//! Which slot of the cache a request gets, and what of it need not be computed.
//!
//! A new request looks for the longest common token prefix among all slots, free or busy. A free slot that holds nothing
//! but such a prefix is continued in place (sequences grow turn by turn); otherwise the prefix is copied to the free slot
//! used least recently. A request whose prefix another one is just computing waits for it.

use rollmill_model::{Decoder, KvCache, ModelError};

/// A request waits for a prefix being computed if that saves more tokens than this.
const WORTH_WAITING: usize = 16;

/// The cache with the tokens of each slot.
pub struct Slots {
    pub cache: KvCache,
    slots: Vec<Slot>,
    clock: u64,
}

#[derive(Default)]
struct Slot {
    /// The sequence; the cache holds its first `cache.len(slot)` tokens, all of them when the slot is free.
    tokens: Vec<i64>,
    busy: bool,
    used: u64,
}

/// What a request gets.
#[derive(Debug, PartialEq)]
pub enum Claim {
    /// A slot, with this many tokens already there.
    Slot(usize, usize),
    /// Try again after the next step.
    Wait,
}

impl Slots {
    pub fn new(decoder: &Decoder, slots: usize, context: usize) -> Result<Slots, ModelError> {
        let cache = KvCache::new(decoder, slots, context)?;
        Ok(Slots { cache, slots: (0..slots).map(|_| Slot::default()).collect(), clock: 0 })
    }

    pub fn any_free(&self) -> bool {
        self.slots.iter().any(|slot| !slot.busy)
    }

    /// The cache, with a view of the sequences beside it.
    pub fn split<'a>(&'a mut self) -> (&'a mut KvCache, impl Fn(usize) -> &'a [i64]) {
        let Slots { cache, slots, .. } = self;
        let slots: &'a [Slot] = slots;
        (cache, move |slot: usize| slots[slot].tokens.as_slice())
    }

    /// True where the cache holds the whole sequence.
    pub fn is_fed(&self, slot: usize) -> bool {
        self.cache.len(slot) == self.slots[slot].tokens.len()
    }

    pub fn push(&mut self, slot: usize, token: i64) {
        self.slots[slot].tokens.push(token);
    }

    /// Gives a slot back; what the cache holds stays there for others.
    pub fn release(&mut self, slot: usize) {
        self.clock += 1;
        let held = self.cache.len(slot);
        let entry = &mut self.slots[slot];
        entry.tokens.truncate(held);
        (entry.busy, entry.used) = (false, self.clock);
    }

    /// Gives a slot back and forgets what it held, after a step that failed.
    pub fn wipe(&mut self, slot: usize) {
        self.cache.truncate(slot, 0);
        self.release(slot);
    }

    /// Claims a slot for a prompt of at least one token; at least its last token is left to compute.
    pub fn claim(&mut self, prompt: &[i64]) -> Claim {
        let shareable = &prompt[..prompt.len() - 1];
        let held = |i: usize| common(shareable, &self.slots[i].tokens[..self.cache.len(i)]);
        let coming = (0..self.slots.len()).map(|i| common(shareable, &self.slots[i].tokens)).max().unwrap_or(0);
        // of equally long prefixes, prefer the slot that can be continued in place
        let in_place = |i: usize, held: usize| !self.slots[i].busy && held == self.slots[i].tokens.len();
        let best = (0..self.slots.len()).map(|i| (held(i), i)).max_by_key(|&(held, i)| (held, in_place(i, held)));
        let Some((length, source)) = best else { return Claim::Wait };
        let oldest = (0..self.slots.len()).filter(|&i| !self.slots[i].busy).min_by_key(|&i| self.slots[i].used);
        let Some(oldest) = oldest.filter(|_| coming <= length + WORTH_WAITING) else { return Claim::Wait };
        let target = if in_place(source, length) && length > 0 { source } else { oldest };
        if target == source {
            self.cache.truncate(target, length);
        } else {
            self.cache.copy_prefix(source, target, length);
        }
        let entry = &mut self.slots[target];
        entry.tokens.clear();
        entry.tokens.extend_from_slice(prompt);
        entry.busy = true;
        Claim::Slot(target, length)
    }
}

fn common(a: &[i64], b: &[i64]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use rollmill_model::{ModelConfig, SlotStep};

    use super::*;

    /// Feeds what a slot lacks, as the engine does.
    fn feed(decoder: &Decoder, slots: &mut Slots, slot: usize) {
        let (cache, tokens) = slots.split();
        let from = cache.len(slot);
        let _ = decoder.step(cache, &[SlotStep { slot, tokens: &tokens(slot)[from..] }]).unwrap();
    }

    fn run(decoder: &Decoder, slots: &mut Slots, prompt: &[i64]) -> (usize, usize) {
        let Claim::Slot(slot, held) = slots.claim(prompt) else { panic!("no slot") };
        assert!(!slots.is_fed(slot));
        feed(decoder, slots, slot);
        assert!(slots.is_fed(slot));
        (slot, held)
    }

    #[test]
    fn growing_sequences_stay_in_their_slot_and_samples_share_a_prompt() {
        let decoder = Decoder::random(ModelConfig::tiny(50), 1);
        let mut slots = Slots::new(&decoder, 3, 64).unwrap();
        let prompt: Vec<i64> = (0..30).collect();
        let (first, held) = run(&decoder, &mut slots, &prompt);
        assert_eq!(held, 0);
        // a second sample of the same prompt copies all but the last token from the busy slot
        let (second, held) = run(&decoder, &mut slots, &prompt);
        assert_eq!(held, 29);
        assert_ne!(first, second);
        slots.push(first, 7);
        slots.release(first);
        slots.release(second);
        // the sequence grew by the sampled token and some more: the rest alone is computed, in place
        let grown: Vec<i64> = prompt.iter().copied().chain([7, 8, 9]).collect();
        assert_eq!(run(&decoder, &mut slots, &grown), (second, 30));
        // something else entirely takes the slot never used
        let (third, held) = run(&decoder, &mut slots, &[40, 41]);
        assert_eq!(held, 0);
        assert_ne!((third == first, third == second), (true, true));
        // a short common beginning does not destroy a longer stored sequence where another slot is free
        slots.release(second);
        let other: Vec<i64> = (0..10).chain([45]).collect();
        let (fourth, held) = run(&decoder, &mut slots, &other);
        assert_eq!(held, 10);
        assert_ne!(fourth, second);
        assert_eq!(slots.claim(&grown), Claim::Slot(second, 32));
        assert!(!slots.any_free());
        assert_eq!(slots.claim(&[1]), Claim::Wait);
    }

    #[test]
    fn a_prompt_being_computed_is_worth_waiting_for() {
        let decoder = Decoder::random(ModelConfig::tiny(50), 1);
        let mut slots = Slots::new(&decoder, 3, 64).unwrap();
        let prompt: Vec<i64> = (0..30).collect();
        let Claim::Slot(first, 0) = slots.claim(&prompt) else { panic!("no slot") };
        assert_eq!(slots.claim(&prompt), Claim::Wait);
        // one that shares little does not wait
        assert!(matches!(slots.claim(&[0, 1, 2, 40]), Claim::Slot(_, 0)));
        feed(&decoder, &mut slots, first);
        assert!(matches!(slots.claim(&prompt), Claim::Slot(_, 29)));
    }

    #[test]
    fn a_wiped_slot_offers_nothing() {
        let decoder = Decoder::random(ModelConfig::tiny(50), 1);
        let mut slots = Slots::new(&decoder, 1, 64).unwrap();
        let (slot, _) = run(&decoder, &mut slots, &[1, 2, 3]);
        slots.wipe(slot);
        assert_eq!(slots.claim(&[1, 2, 3]), Claim::Slot(slot, 0));
    }
}
