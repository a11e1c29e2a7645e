//! What the trainer learns from: one trajectory, as token ids. In: from the caller. Out: checked experiences and a digest.
//! Must hold: a failure that the policy did not cause is never a reward of 0; such a trajectory takes no part in anything.

use sha2::{Digest, Sha256};

use crate::error::{Result, TrainError};

/// One trajectory with its reward. The three lists have one length.
#[derive(Debug, Clone, PartialEq)]
pub struct Experience {
    /// Task it belongs to; experiences of one task share the computation of their common prefix.
    pub task_id: String,
    /// The whole sequence: prompt, answers, tool output.
    pub tokens: Vec<i64>,
    /// True where the policy sampled the token. Never at position 0, which nothing predicts.
    pub trainable: Vec<bool>,
    /// Behaviour log-probs at the sampling temperature, aligned to `tokens`; not read where `trainable` is false.
    pub log_probs: Vec<f32>,
    /// Terminal reward of the trajectory; none if it failed for a reason that is not the policy's.
    pub reward: Option<f64>,
    /// True if the recorded stop reason says that it was cut off (length, turn or token limit).
    pub truncated: bool,
}

impl Experience {
    /// Whether there is something to learn from it: a reward, and a token that the policy sampled.
    pub fn takes_part(&self) -> bool {
        self.reward.is_some() && self.trainable.contains(&true)
    }

    /// Number of trainable tokens.
    pub fn trainable_len(&self) -> usize {
        self.trainable.iter().filter(|&&t| t).count()
    }

    /// Indices of the trainable tokens.
    pub(crate) fn trainable_indices(&self) -> impl Iterator<Item = usize> + '_ {
        self.trainable.iter().enumerate().filter(|(_, t)| **t).map(|(at, _)| at)
    }

    fn problem(&self, vocab_size: i64, positions: i64) -> Option<String> {
        let (n, m, l) = (self.tokens.len(), self.trainable.len(), self.log_probs.len());
        if n != m || n != l {
            return Some(format!("{n} tokens, {m} mask entries and {l} log-probs: they must be equally many"));
        }
        if n as i64 > positions {
            return Some(format!("{n} tokens are more than the {positions} positions of the model"));
        }
        if let Some(token) = self.tokens.iter().find(|t| !(0..vocab_size).contains(*t)) {
            return Some(format!("token {token} is outside the vocabulary of {vocab_size}"));
        }
        if self.trainable.first() == Some(&true) {
            return Some("its first token is trainable, but nothing predicts it".to_owned());
        }
        if let Some(at) =
            self.trainable_indices().find(|&at| !(self.log_probs[at].is_finite() && self.log_probs[at] <= 1e-3))
        {
            return Some(format!("log-prob {} of trainable token {at} is no log-probability", self.log_probs[at]));
        }
        self.reward.filter(|r| !r.is_finite()).map(|reward| format!("reward {reward} is not finite"))
    }
}

/// Refuses a batch with a malformed experience, or without one that takes part.
pub(crate) fn check(batch: &[Experience], vocab_size: i64, positions: i64) -> Result<()> {
    for (index, experience) in batch.iter().enumerate() {
        if let Some(problem) = experience.problem(vocab_size, positions) {
            return Err(TrainError::Experience { index, task: experience.task_id.clone(), problem });
        }
    }
    match batch.iter().any(Experience::takes_part) {
        true => Ok(()),
        false => Err(TrainError::EmptyBatch(batch.len())),
    }
}

/// SHA-256 over everything the trainer reads, in hex: a resumed round must see the same batch.
pub(crate) fn digest(batch: &[Experience]) -> String {
    let mut hash = Sha256::new();
    for e in batch {
        hash.update((e.task_id.len() as u64).to_le_bytes());
        hash.update(e.task_id.as_bytes());
        hash.update((e.tokens.len() as u64).to_le_bytes());
        e.tokens.iter().for_each(|t| hash.update(t.to_le_bytes()));
        e.trainable.iter().for_each(|&t| hash.update([u8::from(t)]));
        e.trainable_indices().for_each(|at| hash.update(e.log_probs[at].to_le_bytes()));
        hash.update([u8::from(e.reward.is_some())]);
        hash.update(e.reward.unwrap_or_default().to_le_bytes());
        hash.update([u8::from(e.truncated)]);
    }
    hex::encode(hash.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Experience {
        Experience {
            task_id: "t".to_owned(),
            tokens: vec![1, 2, 3],
            trainable: vec![false, true, true],
            log_probs: vec![f32::NAN, -1.0, -2.0],
            reward: Some(1.0),
            truncated: false,
        }
    }

    fn refused(change: impl Fn(&mut Experience)) -> String {
        let mut e = sample();
        change(&mut e);
        check(&[sample(), e], 8, 16).unwrap_err().to_string()
    }

    #[test]
    fn malformed_experiences_are_named() {
        check(&[sample()], 8, 16).unwrap();
        assert!(refused(|e| e.tokens[1] = 8).contains("experience 1 (task t): token 8"));
        assert!(refused(|e| e.tokens.push(1)).contains("equally many"));
        assert!(refused(|e| e.trainable[0] = true).contains("first token"));
        assert!(refused(|e| e.log_probs[2] = f32::NAN).contains("log-prob NaN"));
        assert!(refused(|e| e.log_probs[2] = 0.5).contains("no log-probability"));
        assert!(refused(|e| e.reward = Some(f64::INFINITY)).contains("not finite"));
        assert!(check(&[sample()], 8, 2).is_err());
        let failed = Experience { reward: None, ..sample() };
        assert!(!failed.takes_part() && matches!(check(&[failed], 8, 16), Err(TrainError::EmptyBatch(1))));
        assert!(matches!(check(&[], 8, 16), Err(TrainError::EmptyBatch(0))));
    }

    #[test]
    fn the_digest_sees_what_the_trainer_reads_and_nothing_else() {
        let base = digest(&[sample()]);
        let changed = |change: &dyn Fn(&mut Experience)| {
            let mut e = sample();
            change(&mut e);
            digest(&[e]) != base
        };
        assert!(
            changed(&|e| e.tokens[2] = 4) && changed(&|e| e.reward = Some(0.5)) && changed(&|e| e.truncated = true)
        );
        assert!(changed(&|e| e.log_probs[1] = -1.5) && changed(&|e| e.task_id.push('x')));
        assert!(!changed(&|e| e.log_probs[0] = 0.0), "a prompt token's log-prob is not read");
    }
}
