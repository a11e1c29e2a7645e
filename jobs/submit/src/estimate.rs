//! What the steps that are left will take, said before anything is submitted.
//!
//! In: the chain and its state, resources, counts of tasks, seconds an item took so far in this run. Out: shards for each step, and
//! a line for each job. Two figures of hours: what the scheduler could charge at most (every worker until its time limit, once),
//! and what is likely at the measured rate, where there is one.

use crate::chain::{Chain, Step};
use crate::progress::{Progress, State};
use crate::settings::{ClusterSettings, Resources};
use rollmill_job::{JobError, Run, Stage, inspect, seal};
use rollmill_rollout::{RolloutConfig, TRAIN};
use rollmill_schema::Task;
use rollmill_score::ScoreConfig;
use rollmill_synthesize::SynthesizeConfig;
use rollmill_verify::VerifyConfig;
use std::collections::BTreeMap;

/// What is known of a run's size and speed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// Candidates.
    pub candidates: usize,
    /// Tasks by split; before `verify` has sealed them, as if it rejected none.
    pub tasks: BTreeMap<String, usize>,
    /// Whether the tasks are counted, not guessed.
    pub counted: bool,
    /// Seconds of a worker that an item took, by job.
    pub seconds: BTreeMap<String, f64>,
}

/// Sections that sizes follow from.
#[derive(Clone, Debug)]
pub struct Sizes {
    /// `[rollout]`.
    pub rollout: RolloutConfig,
    /// `[synthesize]`.
    pub synthesize: SynthesizeConfig,
    /// `[verify]`.
    pub verify: VerifyConfig,
    /// `[score]`.
    pub score: ScoreConfig,
}

/// One step's size.
#[derive(Clone, Debug, PartialEq)]
pub struct Size {
    /// Items it has.
    pub items: usize,
    /// Shards they make.
    pub shards: u32,
}

/// One job's line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    /// Steps that are left.
    pub steps: usize,
    /// Their items.
    pub items: usize,
    /// Workers: elements of all arrays.
    pub workers: u64,
    /// Tokens sampled at most.
    pub tokens: u64,
    /// Core hours at most.
    pub core_hours: f64,
    /// GPU hours at most.
    pub gpu_hours: f64,
    /// Core hours at the measured rate; none without one.
    pub likely: Option<f64>,
}

/// Everything that is left, by job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Lines by job, in the order of the flow.
    pub lines: Vec<(String, Line)>,
    /// Whether the tasks are counted, not guessed.
    pub counted: bool,
}

impl Facts {
    /// From the sources and, where there is one, from the run.
    pub async fn read(run: Option<&Run>, sizes: &Sizes) -> Result<Facts, JobError> {
        let mut facts = Facts::default();
        // That a source cannot be read is `synthesize`'s to say: here it only leaves a number out.
        if let Ok(loaded) = rollmill_synthesize::load(&sizes.synthesize) {
            let never = loaded.candidates.iter().filter(|c| c.eval_only).count();
            facts.guess(loaded.candidates.len(), never, sizes.verify.heldout);
        }
        let Some(run) = run else { return Ok(facts) };
        let stages = inspect::stages(run).await?;
        // The sources lie where the run was made; elsewhere the store knows how many they gave.
        let synthesized = stages.iter().find(|stage| stage.stage == Stage::synthesize().name());
        if let Some(synthesized) = synthesized.filter(|_| facts.candidates == 0) {
            facts.guess(synthesized.items, 0, sizes.verify.heldout);
        }
        match seal::read_sealed::<Task>(run, &Stage::verify()).await {
            Ok((tasks, _)) => {
                (facts.tasks, facts.counted) = (BTreeMap::new(), true);
                for task in tasks {
                    *facts.tasks.entry(task.split).or_default() += 1;
                }
            }
            Err(JobError::InputAbsent { .. } | JobError::InputIncomplete { .. }) => {}
            Err(e) => return Err(e),
        }
        let mut sums: BTreeMap<String, (f64, f64)> = BTreeMap::new();
        for state in stages.iter().filter(|s| s.sealed && s.seconds > 0.0) {
            let job = state.stage.split('/').next().unwrap_or_default().to_string();
            let sum = sums.entry(job).or_default();
            *sum = (sum.0 + state.seconds, sum.1 + state.items as f64);
        }
        facts.seconds = sums.into_iter().map(|(job, (seconds, items))| (job, seconds / items.max(1.0))).collect();
        Ok(facts)
    }

    /// Tasks as if none were rejected.
    fn guess(&mut self, candidates: usize, never: usize, heldout: f64) {
        let rest = (candidates - never) as f64;
        let heldout = (rest * heldout).round() as usize;
        self.candidates = candidates;
        self.tasks =
            [("train", rest as usize - heldout), ("heldout", never + heldout)].map(|(s, n)| (s.into(), n)).into();
    }

    fn tasks_of(&self, split: &str) -> usize {
        self.tasks.get(split).copied().unwrap_or(0)
    }
}

impl Sizes {
    /// How large a step will be.
    pub fn of(&self, step: &Step, facts: &Facts) -> Size {
        let made = |items: usize, shard: usize| Size { items, shards: items.div_ceil(shard.max(1)).max(1) as u32 };
        match step {
            Step::Synthesize => made(facts.candidates, self.synthesize.shard_size),
            Step::Verify => made(facts.candidates, self.verify.shard_size),
            Step::Train { round } => made(self.trajectories(TRAIN, facts) * usize::from(*round > 0), usize::MAX),
            Step::Endpoint { .. } | Step::Evaluate { .. } => Size { items: 1, shards: 1 },
            Step::Rollout { set, .. } => {
                let samples = self.rollout.set(set).map_or(1, |s| s.samples as usize);
                made(self.trajectories(set, facts), self.rollout.shard_tasks.max(1) * samples)
            }
            Step::Score { set, .. } => made(self.trajectories(set, facts), self.score.shard_size),
        }
    }

    fn trajectories(&self, set: &str, facts: &Facts) -> usize {
        let Ok(set) = self.rollout.set(set) else { return 0 };
        let tasks = facts.tasks_of(&set.split);
        set.tasks.unwrap_or(tasks).min(tasks) * set.samples as usize
    }

    fn tokens(&self, step: &Step, items: usize) -> u64 {
        let act = &self.rollout.act;
        let each = u64::from(act.plan_tokens) + u64::from(act.max_attempts.max(1)) * u64::from(act.code_tokens);
        if matches!(step, Step::Rollout { .. }) { items as u64 * each } else { 0 }
    }
}

/// Elements of an array: how many there would be for all shards, and those that have something to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elements {
    /// Shards are dealt to so many elements.
    pub fold: u32,
    /// Those with a shard that is left.
    pub indexes: Vec<u32>,
}

impl Elements {
    /// For a step in that state.
    pub fn of(state: &State, size: &Size, resources: &Resources, max_array: u32) -> Elements {
        let shards = if let State::Open(_, shards) = state { *shards } else { size.shards };
        let fold = shards.max(1).min(resources.workers).min(max_array).max(1);
        let mut indexes: Vec<u32> = match state {
            State::Done => vec![],
            State::Open(open, _) => open.iter().map(|shard| shard % fold).collect(),
            State::Unplanned => (0..fold).collect(),
        };
        indexes.sort_unstable();
        indexes.dedup();
        Elements { fold, indexes }
    }
}

impl Estimate {
    /// Adds up what is left.
    pub fn of(
        chain: &Chain,
        progress: &Progress,
        sizes: &Sizes,
        facts: &Facts,
        settings: &ClusterSettings,
    ) -> Result<Estimate, JobError> {
        let mut lines: Vec<(String, Line)> = Vec::new();
        for (node, state) in chain.nodes.iter().zip(&progress.0).filter(|(_, state)| **state != State::Done) {
            let job = node.step.job();
            let resources = settings.resources(job)?;
            let size = sizes.of(&node.step, facts);
            let workers = Elements::of(state, &size, &resources, settings.max_array).indexes.len() as u64;
            let items = match state {
                State::Open(open, shards) => size.items * open.len() / (*shards).max(1) as usize,
                _ => size.items,
            };
            if !lines.iter().any(|(name, _)| name == job) {
                lines.push((job.into(), Line::default()));
            }
            let Some((_, line)) = lines.iter_mut().find(|(name, _)| name == job) else { continue };
            let hours = workers as f64 * resources.seconds as f64 / 3600.0;
            line.steps += 1;
            line.items += items;
            line.workers += workers;
            line.tokens += sizes.tokens(&node.step, items);
            line.core_hours += hours * f64::from(resources.cpus);
            line.gpu_hours += hours * f64::from(resources.gpus);
            if let Some(seconds) = facts.seconds.get(job) {
                line.likely =
                    Some(line.likely.unwrap_or(0.0) + seconds * items as f64 * f64::from(resources.cpus) / 3600.0);
            }
        }
        Ok(Estimate { lines, counted: facts.counted })
    }

    /// Everything together.
    pub fn total(&self) -> Line {
        let sum = |f: &dyn Fn(&Line) -> f64| self.lines.iter().map(|(_, line)| f(line)).sum::<f64>();
        let all = self.lines.iter().all(|(_, line)| line.likely.is_some());
        Line {
            steps: self.lines.iter().map(|(_, line)| line.steps).sum(),
            items: 0,
            workers: self.lines.iter().map(|(_, line)| line.workers).sum(),
            tokens: self.lines.iter().map(|(_, line)| line.tokens).sum(),
            core_hours: sum(&|line| line.core_hours),
            gpu_hours: sum(&|line| line.gpu_hours),
            likely: all.then(|| sum(&|line| line.likely.unwrap_or(0.0))),
        }
    }

    /// The table, for people.
    pub fn table(&self) -> String {
        let mut text = format!(
            "{:<12} {:>6} {:>9} {:>8} {:>12} {:>12} {:>12} {:>11}\n",
            "job", "steps", "items", "workers", "tokens <=", "core h <=", "likely", "GPU h <="
        );
        let total = ("together".to_string(), self.total());
        for (job, line) in self.lines.iter().chain([&total]) {
            let likely = line.likely.map_or("-".into(), |hours| format!("{hours:.2}"));
            text += &format!(
                "{job:<12} {:>6} {:>9} {:>8} {:>12} {:>12.1} {likely:>12} {:>11.1}\n",
                line.steps, line.items, line.workers, line.tokens, line.core_hours, line.gpu_hours
            );
        }
        if !self.counted {
            text += "Tasks are guessed from the sources, as if verify rejected none.\n";
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn resources(workers: u32) -> Resources {
        Resources { workers, ..ClusterSettings::default().resources("rollout").unwrap() }
    }

    proptest! {
        #[test]
        fn elements_cover_what_is_open_and_nothing_else(
            shards in 1u32..3000, workers in 1u32..400, max_array in 1u32..1001, every in 1u32..7
        ) {
            let open: Vec<u32> = (0..shards).filter(|shard| shard % every == 0).collect();
            let size = Size { items: 0, shards: 9 };
            let of = |state: &State| Elements::of(state, &size, &resources(workers), max_array);
            let elements = of(&State::Open(open.clone(), shards));
            prop_assert!(elements.fold <= max_array && elements.fold <= workers && elements.fold <= shards);
            for shard in &open {
                prop_assert!(elements.indexes.contains(&(shard % elements.fold)));
            }
            for index in &elements.indexes {
                prop_assert!(open.iter().any(|shard| shard % elements.fold == *index));
            }
            prop_assert!(of(&State::Done).indexes.is_empty());
            prop_assert_eq!(of(&State::Unplanned).indexes.len() as u32, 9.min(workers).min(max_array));
        }
    }

    #[test]
    fn a_round_is_estimated_from_counts_and_rates() {
        let rollout: RolloutConfig = RolloutConfig { samples: 8, tasks: Some(32), ..RolloutConfig::default() };
        let chain = Chain::new(&rollout, "v1", 1, false);
        let sizes = Sizes {
            synthesize: SynthesizeConfig::default(),
            verify: VerifyConfig::default(),
            score: ScoreConfig::default(),
            rollout,
        };
        let facts = Facts {
            candidates: 100,
            tasks: [("train".into(), 50), ("heldout".into(), 20)].into(),
            counted: true,
            seconds: [("rollout".into(), 2.0)].into(),
        };
        let settings = ClusterSettings::default();
        let estimate = Estimate::of(&chain, &Progress::none(&chain), &sizes, &facts, &settings).unwrap();
        let line = |job: &str| estimate.lines.iter().find(|(name, _)| name == job).unwrap().1.clone();
        // 32 × 8 trajectories to train on, 20 × 4 before and after; shards of 16 tasks.
        let rollouts = line("rollout");
        assert_eq!((rollouts.steps, rollouts.items, rollouts.workers), (3, 256 + 80 + 80, 2 + 2 + 2));
        let act = &sizes.rollout.act;
        assert_eq!(rollouts.tokens, 416 * u64::from(act.plan_tokens + act.max_attempts * act.code_tokens));
        assert_eq!(rollouts.core_hours, 6.0 * 2.0 * 4.0);
        assert!((rollouts.likely.unwrap() - 416.0 * 2.0 * 2.0 / 3600.0).abs() < 1e-9);
        assert_eq!(line("train").likely, None);
        assert_eq!(estimate.total().likely, None, "a sum without one of its parts is no sum");
        assert!(estimate.table().lines().count() == estimate.lines.len() + 2, "{}", estimate.table());
    }
}
