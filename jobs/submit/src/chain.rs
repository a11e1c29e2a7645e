//! The steps of a run in an order that a scheduler can keep.
//!
//! In: the sets of tasks, the number of rounds, the lag. Out: nodes that name those before them. What must hold: a step comes
//! after all it reads; the endpoint of a checkpoint is up beside those that act with it.

use rollmill_job::Stage;
use rollmill_rollout::{RolloutConfig, TRAIN};

/// One job of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Candidates from the sources.
    Synthesize,
    /// Tasks from candidates.
    Verify,
    /// Training of `round`; round 0 imitates demonstrations.
    Train {
        /// The round.
        round: u32,
    },
    /// The policy of `round`, served.
    Endpoint {
        /// The round whose checkpoint it is.
        round: u32,
        /// Stages that act with it: it ends when they have.
        until: Vec<Stage>,
    },
    /// Trajectories of a set.
    Rollout {
        /// The set.
        set: String,
        /// The round.
        round: u32,
        /// The round whose checkpoint acts.
        policy_round: u32,
    },
    /// Their rewards.
    Score {
        /// The set.
        set: String,
        /// The round.
        round: u32,
    },
    /// Measures of an evaluation set.
    Evaluate {
        /// The set.
        set: String,
        /// The round.
        round: u32,
    },
}

/// A step, and what it waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The step.
    pub step: Step,
    /// Nodes that must have succeeded.
    pub after: Vec<usize>,
    /// An endpoint that must have begun.
    pub beside: Option<usize>,
}

/// All steps; a node waits only for nodes before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// The steps.
    pub nodes: Vec<Node>,
    /// The version of scoring.
    pub version: String,
}

impl Step {
    /// The job, as sections of settings name it.
    pub fn job(&self) -> &'static str {
        match self {
            Step::Synthesize => "synthesize",
            Step::Verify => "verify",
            Step::Train { .. } => "train",
            Step::Endpoint { .. } => "endpoint",
            Step::Rollout { .. } => "rollout",
            Step::Score { .. } => "score",
            Step::Evaluate { .. } => "evaluate",
        }
    }

    /// A name that no other step of the run has, of letters, digits, dots and dashes.
    pub fn name(&self) -> String {
        match self {
            Step::Synthesize | Step::Verify => self.job().into(),
            Step::Train { round } | Step::Endpoint { round, .. } => format!("{}-{round:04}", self.job()),
            Step::Rollout { set, round, .. } | Step::Score { set, round } | Step::Evaluate { set, round } => {
                format!("{}-{set}-{round:04}", self.job())
            }
        }
    }

    /// Whether several workers do it, each its shards; what one worker does is none.
    pub fn is_array(&self) -> bool {
        matches!(self, Step::Verify | Step::Rollout { .. } | Step::Score { .. })
    }

    /// The stage it commits; training and endpoints commit none.
    pub fn stage(&self, version: &str) -> Option<Stage> {
        match self {
            Step::Synthesize => Some(Stage::synthesize()),
            Step::Verify => Some(Stage::verify()),
            Step::Rollout { set, round, .. } => Some(Stage::rollout(set, *round)),
            Step::Score { set, round } => Some(Stage::score(version, set, *round)),
            Step::Evaluate { set, round } => Some(Stage::evaluate(version, set, *round)),
            Step::Train { .. } | Step::Endpoint { .. } => None,
        }
    }

    /// The words after `rollmill` that do it; the run is in the environment.
    pub fn command(&self) -> Vec<String> {
        let mut words: Vec<String> = vec![self.job().into()];
        match self {
            Step::Synthesize | Step::Verify => {}
            Step::Train { round } => words.extend(["--round".into(), round.to_string()]),
            Step::Endpoint { round, until } => {
                words.extend(["--round".into(), round.to_string()]);
                words.extend(until.iter().flat_map(|stage| ["--until".into(), stage.name().to_string()]));
            }
            Step::Rollout { set, round, policy_round } => {
                words.extend(["--split".into(), set.clone(), "--round".into(), round.to_string()]);
                words.extend(["--policy-round".into(), policy_round.to_string()]);
            }
            Step::Score { set, round } | Step::Evaluate { set, round } => {
                words.extend(["--split".into(), set.clone(), "--round".into(), round.to_string()]);
            }
        }
        words
    }
}

impl Chain {
    /// All rounds of a run. `imitate`: it trains on demonstrations before the first.
    pub fn new(rollout: &RolloutConfig, version: &str, rounds: u32, imitate: bool) -> Chain {
        let mut builder = Builder { nodes: Vec::new(), rollout, rounds };
        let synthesize = builder.add(Step::Synthesize, vec![]);
        let verify = builder.add(Step::Verify, vec![synthesize]);
        let mut trained = match imitate {
            true => vec![builder.add(Step::Train { round: 0 }, vec![verify])],
            false => vec![verify],
        };
        for round in 0..=rounds {
            if round > 0 {
                let graded = builder.score_of(TRAIN, round);
                let before = trained[round as usize - 1];
                // With a lag the grades may be there long before the checkpoint that is to be trained.
                let after = if before == verify { vec![graded] } else { vec![graded, before] };
                trained.push(builder.add(Step::Train { round }, after));
            }
            builder.policy(round, trained[round as usize]);
        }
        Chain { nodes: builder.nodes, version: version.into() }
    }
}

struct Builder<'a> {
    nodes: Vec<Node>,
    rollout: &'a RolloutConfig,
    rounds: u32,
}

impl Builder<'_> {
    fn add(&mut self, step: Step, after: Vec<usize>) -> usize {
        self.nodes.push(Node { step, after, beside: None });
        self.nodes.len() - 1
    }

    /// Rounds of training that act with the checkpoint of `policy`: the newest that is surely there when they begin.
    fn rounds_of(&self, policy: u32) -> impl Iterator<Item = u32> + use<> {
        let lag = self.rollout.max_lag;
        (1..=self.rounds).filter(move |round| (round - 1).saturating_sub(lag) == policy)
    }

    /// All that acts with the checkpoint of a round: its endpoint, evaluation sets, rounds of training.
    fn policy(&mut self, round: u32, trained: usize) {
        let sets =
            self.rollout.sets.iter().filter(|s| s.when.is_due(round, self.rounds)).map(|s| (s.name.clone(), round));
        // What is trained on first: others wait for it.
        let acting: Vec<(String, u32)> = self.rounds_of(round).map(|r| (TRAIN.to_string(), r)).chain(sets).collect();
        if acting.is_empty() {
            return;
        }
        let until = acting.iter().map(|(set, round)| Stage::rollout(set, *round)).collect();
        let endpoint = self.add(Step::Endpoint { round, until }, vec![trained]);
        for (set, of) in acting {
            let evaluated = set != TRAIN;
            let rollout = self.add(Step::Rollout { set: set.clone(), round: of, policy_round: round }, vec![trained]);
            self.nodes[rollout].beside = Some(endpoint);
            let score = self.add(Step::Score { set: set.clone(), round: of }, vec![rollout]);
            if evaluated {
                self.add(Step::Evaluate { set, round: of }, vec![score]);
            }
        }
    }

    /// The node that grades a set in a round.
    fn score_of(&self, set: &str, round: u32) -> usize {
        let wanted = Step::Score { set: set.into(), round };
        // `policy` has run for every earlier round, and with it for this one's rollout.
        self.nodes.iter().position(|node| node.step == wanted).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rollmill_rollout::{RolloutSet, When};

    fn chain(rounds: u32, max_lag: u32, imitate: bool) -> Chain {
        let sets = vec![RolloutSet { when: When::Ends, ..RolloutSet::default() }];
        Chain::new(&RolloutConfig { max_lag, sets, ..RolloutConfig::default() }, "v1", rounds, imitate)
    }

    fn names(chain: &Chain, of: impl IntoIterator<Item = usize>) -> Vec<String> {
        of.into_iter().map(|at| chain.nodes[at].step.name()).collect()
    }

    fn find<'a>(chain: &'a Chain, name: &str) -> &'a Node {
        chain.nodes.iter().find(|node| node.step.name() == name).unwrap()
    }

    #[test]
    fn two_rounds_in_order() {
        let chain = chain(2, 0, false);
        let all = names(&chain, 0..chain.nodes.len());
        assert_eq!(
            all.join(" "),
            "synthesize verify \
             endpoint-0000 rollout-train-0001 score-train-0001 rollout-heldout-0000 score-heldout-0000 evaluate-heldout-0000 \
             train-0001 endpoint-0001 rollout-train-0002 score-train-0002 \
             train-0002 endpoint-0002 rollout-heldout-0002 score-heldout-0002 evaluate-heldout-0002"
        );
        let train = find(&chain, "train-0002");
        assert_eq!(names(&chain, train.after.clone()), ["score-train-0002", "train-0001"]);
        let rollout = find(&chain, "rollout-train-0002");
        assert_eq!(names(&chain, rollout.beside), ["endpoint-0001"]);
        assert_eq!(names(&chain, rollout.after.clone()), ["train-0001"]);
        let words = find(&chain, "endpoint-0000").step.command().join(" ");
        assert_eq!(words, "endpoint --round 0 --until rollout/train/round-0001 --until rollout/heldout/round-0000");
        assert_eq!(rollout.step.command().join(" "), "rollout --split train --round 2 --policy-round 1");
    }

    #[test]
    fn with_a_lag_a_round_is_sampled_while_the_one_before_trains() {
        let chain = chain(3, 1, true);
        let rollout = find(&chain, "rollout-train-0002");
        assert_eq!(names(&chain, rollout.after.clone()), ["train-0000"], "the imitated policy acts twice");
        assert_eq!(names(&chain, find(&chain, "rollout-train-0003").after.clone()), ["train-0001"]);
        assert_eq!(names(&chain, find(&chain, "train-0002").after.clone()), ["score-train-0002", "train-0001"]);
    }

    proptest! {
        #[test]
        fn nodes_wait_for_earlier_ones_and_every_policy_that_acts_is_served(
            rounds in 0u32..6, lag in 0u32..4, imitate: bool
        ) {
            let chain = chain(rounds, lag, imitate);
            let mut seen = std::collections::BTreeSet::new();
            for (at, node) in chain.nodes.iter().enumerate() {
                prop_assert!(seen.insert(node.step.name()), "{} twice", node.step.name());
                prop_assert!(node.after.iter().chain(&node.beside).all(|&before| before < at));
                if let Step::Rollout { set, round, policy_round } = &node.step {
                    let newest = if set == TRAIN { round - 1 } else { *round };
                    prop_assert!(*policy_round <= newest && newest - policy_round <= lag);
                    let endpoint = node.beside.map(|at| chain.nodes[at].step.clone());
                    let Some(Step::Endpoint { round: served, until }) = endpoint else { panic!("no endpoint") };
                    prop_assert_eq!(served, *policy_round);
                    prop_assert!(until.contains(&Stage::rollout(set, *round)));
                }
            }
            let trained = chain.nodes.iter().filter(|n| matches!(n.step, Step::Train { round } if round > 0)).count();
            prop_assert_eq!(trained as u32, rounds);
        }
    }
}
