//! The trainer and the loop of one round. In: a batch. Out: the networks moved, metrics per step.

use std::time::Instant;

use rollmill_model::{Decoder, ValueHead};
use tch::{Kind, Tensor};

use super::checkpoint;
use super::critic::Critic;
use super::mirror::Mirror;
use super::prepare::Prepared;
use super::schedule::Schedule;
use crate::adamw::{AdamW, AdamWConfig};
use crate::algorithm::Algorithm;
use crate::config::TrainConfig;
use crate::error::{Result, TrainError};
use crate::experience::{self, Experience};

/// Metrics by name. Names with `seconds` or `per_second` are clock readings; everything else repeats.
pub type Metrics = std::collections::BTreeMap<String, f64>;

/// What `on_step` wants next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// Go on.
    Continue,
    /// Leave the round here; it can be resumed, also after a save and a load.
    Stop,
}

/// After one actor update and its critic updates.
#[derive(Debug, Clone, PartialEq)]
pub struct StepMetrics {
    /// Steps done so far, over all rounds.
    pub step: u64,
    /// Numbers of this step, and those of its round (reward, advantages, values).
    pub values: Metrics,
    /// What was not finite and therefore skipped, with the rows that caused it.
    pub skipped: Vec<String>,
}

/// After a round.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundMetrics {
    /// False if `on_step` stopped it.
    pub finished: bool,
    /// Steps this call made.
    pub steps: u64,
    /// Numbers of the round.
    pub values: Metrics,
}

/// The optimizers of what the algorithm moves.
#[derive(Debug)]
pub struct Optimizers {
    /// Of the policy.
    pub actor: Option<AdamW>,
    /// Of the critic's trunk and head.
    pub critic: Option<AdamW>,
}

/// A round under way.
pub(super) struct Progress {
    /// Steps of this round that are done.
    pub(super) cursor: usize,
    /// Updates of this round that were skipped.
    pub(super) skipped: u64,
    /// Digest of the batch.
    pub(super) batch: String,
    pub(super) prepared: Prepared,
}

/// The networks, their optimizers and a position.
pub struct Trainer {
    /// The policy, float32.
    pub actor: Decoder,
    /// A network of its own, float32, where the algorithm has one.
    pub critic: Option<Critic>,
    /// What the KL is measured against; never changes.
    pub reference: Decoder,
    /// Moments and step counts.
    pub optimizers: Optimizers,
    /// Updates so far.
    pub step: u64,
    pub(super) config: TrainConfig,
    pub(super) rounds: u64,
    pub(super) progress: Option<Progress>,
    pub(super) actor_mirror: Mirror,
    pub(super) reference_mirror: Mirror,
    pub(super) reference_sha256: String,
}

/// Handles to a network's weights by name; they share its storage.
pub(super) fn named(parameters: Vec<(&str, &Tensor)>) -> Vec<(String, Tensor)> {
    parameters.into_iter().map(|(name, tensor)| (name.to_owned(), tensor.shallow_clone())).collect()
}

/// A network with the adapters that the config asks for.
pub(super) fn adapted(network: Decoder, config: &TrainConfig) -> Result<Decoder> {
    match &config.lora {
        None => Ok(network),
        Some(lora) => Ok(network.with_lora(lora)?),
    }
}

pub(super) fn adamw_config(config: &TrainConfig) -> AdamWConfig {
    AdamWConfig { betas: config.betas, eps: config.eps, weight_decay: config.weight_decay }
}

impl Trainer {
    /// A fresh trainer: critic trunk and reference start as copies of `policy`, the value head at 0.
    pub fn from_policy(policy: Decoder, config: TrainConfig) -> Result<Trainer> {
        let reference = policy.deep_copy();
        let head = ValueHead::zeros(&policy);
        let trunk = config.algorithm.has_critic().then(|| policy.deep_copy());
        let critic = trunk.map(|trunk| Ok::<_, TrainError>((adapted(trunk, &config)?, head))).transpose()?;
        Trainer::new(adapted(policy, &config)?, critic, reference, config)
    }

    /// A fresh trainer of networks that are given. All must be float32 (master weights), also for bf16 computing. A critic is
    /// kept only where the algorithm has one.
    pub fn new(
        mut actor: Decoder,
        critic: Option<(Decoder, ValueHead)>,
        mut reference: Decoder,
        config: TrainConfig,
    ) -> Result<Trainer> {
        config.validate()?;
        let float = |network: &Decoder| network.kind() == Kind::Float;
        if !float(&actor) || !float(&reference) || critic.as_ref().is_some_and(|(trunk, _)| !float(trunk)) {
            return Err(TrainError::Config(
                "load the networks as float32; dtype only sets what they compute in".to_owned(),
            ));
        }
        actor.set_trainable(config.algorithm.moves_policy());
        reference.set_trainable(false);
        let critic = critic.filter(|_| config.algorithm.has_critic());
        let critic = critic.map(|(trunk, head)| Critic::new(trunk, head, config.dtype));
        let adamw = |parameters: &[(String, Tensor)]| AdamW::new(parameters, adamw_config(&config));
        let optimizers = Optimizers {
            actor: config.algorithm.moves_policy().then(|| adamw(&actor.trainable())),
            critic: critic.as_ref().map(|critic| adamw(&critic.trainable())),
        };
        let (actor_mirror, reference_mirror) =
            (Mirror::new(&actor, config.dtype), Mirror::new(&reference, config.dtype));
        let reference_sha256 = checkpoint::digest(&reference);
        Ok(Trainer {
            actor,
            critic,
            reference,
            optimizers,
            step: 0,
            config,
            rounds: 0,
            progress: None,
            actor_mirror,
            reference_mirror,
            reference_sha256,
        })
    }

    /// Its configuration.
    pub fn config(&self) -> &TrainConfig {
        &self.config
    }

    /// Rounds finished. A caller that resumes compares this with the round it wants.
    pub fn rounds(&self) -> u64 {
        self.rounds
    }

    /// True between the first and the last step of a round: the next call of `round` must bring the same batch.
    pub fn is_mid_round(&self) -> bool {
        self.progress.is_some()
    }

    /// Trains on one round's batch, or on the rest of it after a resume. Rows without a reward or a trainable token take no
    /// part. After each step `on_step` may save the trainer, and stop. When it sees the round's last step, the round
    /// already counts as finished. A batch that has nothing to learn from (no pair, none that passes) is a round of no steps.
    pub fn round(
        &mut self,
        batch: &[Experience],
        on_step: &mut dyn FnMut(&StepMetrics, &Trainer) -> Result<Control>,
    ) -> Result<RoundMetrics> {
        experience::check(batch, self.actor.config.vocab_size, self.actor.config.max_position_embeddings)?;
        let began = Instant::now();
        let mut progress = self.begin(batch)?;
        let mut values = progress.prepared.stats.clone();
        values.insert("prepare_seconds".to_owned(), began.elapsed().as_secs_f64());
        let schedule = Schedule::new(batch, &self.config, self.rounds);
        let mut steps = 0;
        if schedule.steps() == 0 {
            self.rounds += 1;
            return Ok(RoundMetrics { finished: true, steps, values });
        }
        loop {
            let step_began = Instant::now();
            let (mut metrics, skipped) = match self.update(batch, &mut progress, &schedule) {
                Ok(done) => done,
                Err(error) => {
                    self.progress = Some(progress); // each network stands where its last good update left it
                    return Err(error);
                }
            };
            self.step += 1;
            steps += 1;
            progress.cursor += 1;
            clock(&mut metrics, step_began);
            values.extend(metrics.clone());
            let last = progress.cursor == schedule.steps();
            match last {
                true => self.rounds += 1,
                false => self.progress = Some(progress),
            }
            let control = on_step(&StepMetrics { step: self.step, values: metrics, skipped }, self)?;
            if last || control == Control::Stop {
                values.insert("round_seconds".to_owned(), began.elapsed().as_secs_f64());
                return Ok(RoundMetrics { finished: last, steps, values });
            }
            progress = self.progress.take().expect("put there above, and on_step has no way to take it");
        }
    }

    /// The round under way, if it is this one, or a new one.
    fn begin(&mut self, batch: &[Experience]) -> Result<Progress> {
        let digest = experience::digest(batch);
        match self.progress.take() {
            None => Ok(Progress { cursor: 0, skipped: 0, batch: digest, prepared: self.prepare(batch)? }),
            Some(progress) if progress.batch == digest => Ok(progress),
            Some(progress) => {
                self.progress = Some(progress);
                Err(TrainError::OtherRound("the batch is another one than the round began with".to_owned()))
            }
        }
    }

    /// One step: an actor update on its minibatch and the critic updates on theirs. What is not finite is skipped, until
    /// there was too much of it.
    fn update(
        &mut self,
        batch: &[Experience],
        progress: &mut Progress,
        schedule: &Schedule,
    ) -> Result<(Metrics, Vec<String>)> {
        let (mut metrics, mut skipped) = (Metrics::new(), vec![]);
        let minibatch = &schedule.actor[progress.cursor];
        if self.config.algorithm == Algorithm::RewardModel {
            let done = self.reward_model_step(batch, minibatch, &mut metrics);
            self.or_skip(done, &mut progress.skipped, &mut skipped)?;
        } else {
            let first = progress.cursor == 0;
            let done = self.actor_step(batch, &progress.prepared, minibatch, first, &mut metrics);
            let mismatch = self.or_skip(done, &mut progress.skipped, &mut skipped)?;
            progress.prepared.stats.extend(mismatch.unwrap_or_default());
        }
        let updates = self.config.critic_updates;
        for minibatch in schedule.critic.iter().skip(progress.cursor * updates).take(updates) {
            let done = self.critic_step(batch, &progress.prepared, minibatch, &mut metrics);
            self.or_skip(done, &mut progress.skipped, &mut skipped)?;
        }
        metrics.extend(progress.prepared.stats.clone());
        let tokens: usize = minibatch.iter().map(|&i| batch[i].tokens.len()).sum();
        metrics.insert("update_tokens".to_owned(), tokens as f64);
        metrics.insert("pass".to_owned(), (progress.cursor / schedule.per_pass) as f64);
        metrics.insert("minibatch".to_owned(), (progress.cursor % schedule.per_pass) as f64);
        metrics.insert("skipped_updates".to_owned(), progress.skipped as f64);
        Ok((metrics, skipped))
    }

    /// Counts an update that was not finite; nothing has moved. One too many is an error.
    fn or_skip<T>(&self, done: Result<T>, count: &mut u64, skipped: &mut Vec<String>) -> Result<Option<T>> {
        match done {
            Ok(value) => Ok(Some(value)),
            Err(error @ TrainError::NotFinite { .. }) if *count < self.config.max_skipped => {
                *count += 1;
                skipped.push(error.to_string());
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

fn clock(metrics: &mut Metrics, began: Instant) {
    let seconds = began.elapsed().as_secs_f64();
    let tokens = metrics.get("update_tokens").copied().unwrap_or(0.0);
    metrics.insert("seconds".to_owned(), seconds);
    metrics.insert("tokens_per_second".to_owned(), tokens / seconds.max(1e-9));
}
