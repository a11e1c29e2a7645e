//! The algorithms, by what they need. All of them read the same batch of experiences; what differs is which networks
//! learn, where a trajectory's signal comes from and what a minibatch is made of.

use serde::{Deserialize, Serialize};

/// How a batch changes the weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// Advantages from a critic that is a network of its own (Schulman et al. 2017).
    #[default]
    Ppo,
    /// Advantages from the group, divided by its deviation (Shao et al. 2024).
    Grpo,
    /// Advantages from the group, leave-one-out (Ahmadian et al. 2024).
    Rloo,
    /// Pairs of a group against the reference (Rafailov et al. 2023).
    Dpo,
    /// Likelihood of the trajectories with a high enough reward: imitation, or rejection sampling on a policy's own.
    Sft,
    /// A scalar reward model from pairs of a group (Bradley and Terry 1952): the critic's trunk and head, read behind the
    /// last token. The policy stays as it is.
    RewardModel,
}

impl Algorithm {
    /// Whether the policy moves.
    pub fn moves_policy(self) -> bool {
        self != Algorithm::RewardModel
    }

    /// Whether there is a second network with a head of its own.
    pub fn has_critic(self) -> bool {
        matches!(self, Algorithm::Ppo | Algorithm::RewardModel)
    }

    /// Whether it learns from the advantage of what was sampled.
    pub fn has_advantages(self) -> bool {
        matches!(self, Algorithm::Ppo | Algorithm::Grpo | Algorithm::Rloo)
    }

    /// Whether its minibatches are made of pairs.
    pub fn takes_pairs(self) -> bool {
        matches!(self, Algorithm::Dpo | Algorithm::RewardModel)
    }
}
