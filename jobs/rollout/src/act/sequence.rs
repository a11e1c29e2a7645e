//! The growing token sequence with its mask and log-probs.
//!
//! Must hold: it only grows, its three columns have one length, a token is trainable if and only if it was sampled.

use rollmill_policy::Completed;

#[derive(Debug, Default)]
pub(super) struct Sequence {
    pub tokens: Vec<u32>,
    pub trainable: Vec<bool>,
    pub log_probs: Vec<f32>,
}

impl Sequence {
    pub fn force(&mut self, ids: &[u32]) {
        self.tokens.extend(ids);
        self.trainable.resize(self.tokens.len(), false);
        self.log_probs.resize(self.tokens.len(), 0.0);
    }

    pub fn sampled(&mut self, completed: &Completed) {
        debug_assert_eq!(completed.token_ids.len(), completed.log_probs.len());
        self.tokens.extend(&completed.token_ids);
        self.trainable.resize(self.tokens.len(), true);
        self.log_probs.extend(&completed.log_probs);
    }

    pub fn len(&self) -> usize {
        self.tokens.len()
    }
}
