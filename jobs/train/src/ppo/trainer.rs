//! The trainer and the loop of one round.

use std::time::Instant;

use rollmill_model::{Decoder, ValueHead};
use tch::{Kind, Tensor};

use super::checkpoint;
use super::mirror::Mirror;
use super::prepare::Prepared;
use super::schedule::Schedule;
use crate::adamw::{AdamW, AdamWConfig};
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

/// Both optimizers.
#[derive(Debug)]
pub struct Optimizers {
    /// Of the policy.
    pub actor: AdamW,
    /// Of the critic's trunk and head.
    pub critic: AdamW,
}

/// A round under way.
pub(super) struct Progress {
    /// Steps of this round that are done.
    pub(super) cursor: usize,
    /// Digest of the batch.
    pub(super) batch: String,
    pub(super) prepared: Prepared,
}

/// Three networks, two optimizers and a position.
pub struct Trainer {
    /// The policy, float32.
    pub actor: Decoder,
    /// The critic's trunk, a network of its own, float32.
    pub critic: Decoder,
    /// The critic's head.
    pub value_head: ValueHead,
    /// What the KL is measured against; never changes.
    pub reference: Decoder,
    /// Moments and step counts.
    pub optimizers: Optimizers,
    /// Actor updates so far.
    pub step: u64,
    pub(super) config: TrainConfig,
    pub(super) rounds: u64,
    pub(super) progress: Option<Progress>,
    pub(super) actor_mirror: Mirror,
    pub(super) critic_mirror: Mirror,
    pub(super) reference_mirror: Mirror,
    pub(super) reference_sha256: String,
}

/// Handles to a network's weights by name; they share its storage.
pub(super) fn named(parameters: Vec<(&str, &Tensor)>) -> Vec<(String, Tensor)> {
    parameters.into_iter().map(|(name, tensor)| (name.to_owned(), tensor.shallow_clone())).collect()
}

/// The critic's trunk and head, in the order of its optimizer.
pub(super) fn critic_parameters(critic: &Decoder, head: &ValueHead) -> Vec<(String, Tensor)> {
    named(critic.parameters()).into_iter().chain(named(head.parameters())).collect()
}

pub(super) fn adamw_config(config: &TrainConfig) -> AdamWConfig {
    AdamWConfig { betas: config.betas, eps: config.eps, weight_decay: config.weight_decay }
}

impl Trainer {
    /// A fresh trainer: actor, critic trunk and reference start as copies of `policy`, the value head at 0.
    pub fn from_policy(policy: Decoder, config: TrainConfig) -> Result<Trainer> {
        let (critic, reference) = (policy.deep_copy(), policy.deep_copy());
        let head = ValueHead::zeros(&critic);
        Trainer::new(policy, critic, head, reference, config)
    }

    /// A fresh trainer of networks that are given. All must be float32 (master weights), also for bf16 computing.
    pub fn new(
        mut actor: Decoder,
        mut critic: Decoder,
        mut value_head: ValueHead,
        mut reference: Decoder,
        config: TrainConfig,
    ) -> Result<Trainer> {
        config.validate()?;
        if [&actor, &critic, &reference].iter().any(|network| network.kind() != Kind::Float) {
            return Err(TrainError::Config(
                "load the networks as float32; dtype only sets what they compute in".to_owned(),
            ));
        }
        actor.set_trainable(true);
        critic.set_trainable(true);
        value_head.set_trainable(true);
        reference.set_trainable(false);
        let adamw = adamw_config(&config);
        let critic_parameters = critic_parameters(&critic, &value_head);
        let optimizers = Optimizers {
            actor: AdamW::new(&named(actor.parameters()), adamw),
            critic: AdamW::new(&critic_parameters, adamw),
        };
        let mirror = |network| Mirror::new(network, config.dtype);
        let (actor_mirror, critic_mirror, reference_mirror) = (mirror(&actor), mirror(&critic), mirror(&reference));
        let reference_sha256 = checkpoint::digest(&reference);
        Ok(Trainer {
            actor,
            critic,
            value_head,
            reference,
            optimizers,
            step: 0,
            config,
            rounds: 0,
            progress: None,
            actor_mirror,
            critic_mirror,
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

    /// Trains on one round's batch, or on the rest of it after a resume. Rows with an error class are left out by the
    /// caller; rows without a trainable token take no part. After each step `on_step` may save the trainer, and stop.
    /// When it sees the round's last step, the round already counts as finished.
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
        loop {
            let step_began = Instant::now();
            let mut metrics = match self.update(batch, &mut progress, &schedule) {
                Ok(metrics) => metrics,
                Err(error) => {
                    self.progress = Some(progress); // the weights are those of the last good step
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
            let control = on_step(&StepMetrics { step: self.step, values: metrics }, self)?;
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
            None => Ok(Progress { cursor: 0, batch: digest, prepared: self.prepare(batch)? }),
            Some(progress) if progress.batch == digest => Ok(progress),
            Some(progress) => {
                self.progress = Some(progress);
                Err(TrainError::OtherRound("the batch is another one than the round began with".to_owned()))
            }
        }
    }

    /// One step: an actor update on its minibatch and the critic updates on theirs.
    fn update(&mut self, batch: &[Experience], progress: &mut Progress, schedule: &Schedule) -> Result<Metrics> {
        let mut metrics = Metrics::new();
        let first = progress.cursor == 0;
        let mismatch =
            self.actor_step(batch, &progress.prepared, &schedule.actor[progress.cursor], first, &mut metrics)?;
        for update in 0..self.config.critic_updates {
            let minibatch = &schedule.critic[progress.cursor * self.config.critic_updates + update];
            self.critic_step(batch, &progress.prepared, minibatch, &mut metrics)?;
        }
        progress.prepared.stats.extend(mismatch);
        metrics.extend(progress.prepared.stats.clone());
        metrics.insert("pass".to_owned(), (progress.cursor / schedule.per_pass) as f64);
        metrics.insert("minibatch".to_owned(), (progress.cursor % schedule.per_pass) as f64);
        Ok(metrics)
    }
}

fn clock(metrics: &mut Metrics, began: Instant) {
    let seconds = began.elapsed().as_secs_f64();
    let tokens = metrics.get("update_tokens").copied().unwrap_or(0.0);
    metrics.insert("seconds".to_owned(), seconds);
    metrics.insert("tokens_per_second".to_owned(), tokens / seconds.max(1e-9));
}
