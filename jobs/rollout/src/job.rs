//! The job side of a rollout: one key, one trajectory.

use crate::act::{ActConfig, ActError, Acted, act};
use crate::discover::Address;
use crate::ready::Ready;
use crate::tester::VisibleTests;
use crate::{Args, RolloutConfig, RolloutSet, endpoint};
use async_trait::async_trait;
use rollmill_grader::T0Options;
use rollmill_job::checkpoint::{self, ACTOR, Manifest};
use rollmill_job::{ItemError, Job, JobError, Run, clock};
use rollmill_policy::endpoint::Next;
use rollmill_policy::seed::trajectory_seed;
use rollmill_policy::{Chat, Endpoint, EndpointConfig, Tokenizer};
use rollmill_sandbox::Sandbox;
use rollmill_schema::{StepRow, Task, Trajectory};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;

/// Everything one worker needs.
pub struct Rollout {
    run: Run,
    act: ActConfig,
    set: RolloutSet,
    round: u32,
    policy_round: u32,
    checkpoint: String,
    policy: String,
    tokenizer: Tokenizer,
    chat: Chat,
    endpoint: Endpoint,
    sandbox: Arc<dyn Sandbox>,
    places: Arc<Semaphore>,
    tasks: HashMap<String, Ready>,
    concurrency: usize,
    /// Tokens sampled by this worker.
    sampled: AtomicU64,
}

impl Rollout {
    /// Opens endpoint, tokenizer and sandbox.
    #[allow(clippy::too_many_arguments)] // one caller; a struct for it would only repeat the names
    pub async fn open(
        run: &Run,
        config: RolloutConfig,
        set: RolloutSet,
        tasks: Vec<Task>,
        policy_round: u32,
        manifest: &Manifest,
        address: &Address,
        args: &Args,
    ) -> Result<Rollout, JobError> {
        let (tokenizer, chat) = tokenizer(run, manifest).await?;
        let endpoint_config = EndpointConfig {
            url: address.url.clone(),
            api_key_env: args.endpoint_key_env.clone(),
            concurrency: args.concurrency.max(1),
            vocab_size: Some(tokenizer.vocab_size()),
            ..EndpointConfig::default()
        };
        let probe = endpoint::probe_for(&set, &tokenizer).map_err(|e| bad_checkpoint(manifest, e.to_string()))?;
        let (endpoint, health) = endpoint::open(endpoint_config, manifest, address.trusted, probe).await?;
        let mut act = ActConfig { temperature: set.temperature, top_p: set.top_p, ..config.act.clone() };
        act.context = health.context.map_or(act.context, |served| act.context.min(served));
        let sandbox = rollmill_backend::open(run, config.floor)?;
        let options = T0Options { per_call: Duration::from_secs_f64(config.call_seconds), ..T0Options::default() };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Rollout {
            run: run.clone(),
            act,
            set,
            round: args.round,
            policy_round,
            checkpoint: manifest.id(),
            policy: health.model.unwrap_or_default(),
            tokenizer,
            chat,
            endpoint,
            sandbox,
            places: Arc::new(Semaphore::new(cores)),
            tasks: tasks
                .into_iter()
                .map(|t| Ok((t.task_id.clone(), Ready::of(t, &options)?)))
                .collect::<Result<_, JobError>>()?,
            concurrency: args.concurrency.max(1),
            sampled: AtomicU64::new(0),
        })
    }

    fn blank(&self, key: &str) -> Trajectory {
        let (task_id, sample) = split_key(key);
        let seed = trajectory_seed(&self.run.id, self.round, &self.set.name, task_id, sample);
        Trajectory {
            trajectory_id: key.into(),
            task_id: task_id.into(),
            split: self.set.name.clone(),
            sample: sample as i32,
            sampled_at: clock::rfc3339(self.run.clock.wall()),
            policy: self.policy.clone(),
            checkpoint: self.checkpoint.clone(),
            policy_round: self.policy_round as i32,
            temperature: self.set.temperature,
            top_p: self.set.top_p,
            messages: "[]".into(),
            final_files: "{}".into(),
            isolation: serde_json::to_string(self.sandbox.level()).unwrap_or_default(),
            provenance: self.run.provenance(self.round, seed as i64),
            ..Trajectory::default()
        }
    }
}

fn split_key(key: &str) -> (&str, u32) {
    let (task, sample) = key.rsplit_once('.').unwrap_or((key, "0"));
    (task, sample.parse().unwrap_or(0))
}

fn bad_checkpoint(manifest: &Manifest, reason: String) -> JobError {
    JobError::Config { place: format!("checkpoint {}", manifest.id()), reason }
}

/// The tokenizer and chat template that travel with the checkpoint.
async fn tokenizer(run: &Run, manifest: &Manifest) -> Result<(Tokenizer, Chat), JobError> {
    let bad = |reason: String| bad_checkpoint(manifest, reason);
    let folder = tempfile::tempdir().map_err(|e| bad(e.to_string()))?;
    let small = |name: &str| name.starts_with(ACTOR) && !name.ends_with(".safetensors");
    checkpoint::fetch(run, manifest, small, folder.path()).await?;
    let tokenizer = Tokenizer::load(&folder.path().join(ACTOR)).map_err(|e| bad(e.to_string()))?;
    let chat = Chat::load(&folder.path().join(ACTOR), &tokenizer).map_err(|e| bad(e.to_string()))?;
    Ok((tokenizer, chat))
}

#[async_trait]
impl Job for Rollout {
    type Row = Trajectory;

    async fn process(&self, key: &str) -> Result<Trajectory, ItemError> {
        let (task_id, _) = split_key(key);
        let ready = self.tasks.get(task_id).ok_or_else(|| ItemError::Stop("the task is not there".into()))?;
        let blank = self.blank(key);
        let tester = VisibleTests {
            sandbox: self.sandbox.clone(),
            places: self.places.clone(),
            suite: ready.visible.clone(),
            options: ready.options.clone(),
        };
        let task = ready.act_task();
        let seed = blank.provenance.seed as u64;
        let acted = act(&self.endpoint, &self.tokenizer, &self.chat, &self.act, &task, seed, &tester).await;
        match acted {
            Ok(acted) => {
                self.sampled.fetch_add(acted.sampled_tokens as u64, Ordering::Relaxed);
                Ok(filled(blank, acted, &ready.file))
            }
            // The client has already retried with back-off. If the endpoint answers otherwise, this item is the poison.
            Err(ActError::Endpoint(e)) if e.is_transient() => match self.endpoint.health().await {
                Ok(_) => Err(ItemError::Retry(e.to_string())),
                Err(_) => Err(ItemError::Unavailable(e.to_string())),
            },
            Err(e) => Err(sort(e)),
        }
    }

    fn failed(&self, key: &str, reason: &str) -> Option<Trajectory> {
        let (class, reason) = ("infrastructure".to_string(), reason.to_string());
        Some(Trajectory { error_class: Some(class), error: Some(reason), ..self.blank(key) })
    }

    fn concurrency(&self) -> usize {
        self.concurrency
    }

    fn tokens(&self) -> u64 {
        self.sampled.load(Ordering::Relaxed)
    }
}

/// What an error of acting means for the worker.
fn sort(error: ActError) -> ItemError {
    let text = error.to_string();
    match &error {
        ActError::Endpoint(e) if e.next() == Next::GiveUpItem => ItemError::Retry(text),
        ActError::Tester(e) if e.next != Next::Stop => ItemError::Retry(text),
        ActError::PromptTooLong { .. } | ActError::Tokenizer(_) => ItemError::Retry(text),
        _ => ItemError::Stop(text),
    }
}

/// The row of what a policy did; its last code is the file `file`.
pub(crate) fn filled(blank: Trajectory, acted: Acted, file: &str) -> Trajectory {
    let name = |value: serde_json::Value| value.as_str().unwrap_or_default().to_string();
    let mut said: Vec<&str> = acted.steps.iter().map(|s| s.reasoning.trim()).filter(|r| !r.is_empty()).collect();
    said.dedup();
    let reasoning = said.join("\n");
    let steps = acted.steps.into_iter().map(|s| StepRow {
        phase: name(serde_json::json!(s.phase)),
        reasoning: s.reasoning,
        action: s.action,
        observation: s.observation,
        observation_sha256: s.observation_sha256,
        ok: s.ok,
        stop: name(serde_json::json!(s.stop)),
        ms: s.ms as i64,
    });
    Trajectory {
        messages: serde_json::to_string(&acted.messages).unwrap_or_default(),
        plan: acted.plan,
        reasoning,
        steps: steps.collect(),
        final_files: serde_json::json!({ file: acted.final_code }).to_string(),
        token_ids: acted.tokens.into_iter().map(|t| t as i32).collect(),
        trainable: acted.trainable,
        log_probs: acted.log_probs,
        prompt_tokens: acted.prompt_tokens as i32,
        sampled_tokens: acted.sampled_tokens as i32,
        attempts: acted.attempts as i32,
        passed_visible: acted.passed_visible,
        well_formed: acted.well_formed,
        stop_reason: name(serde_json::json!(acted.stop_reason)),
        truncated: acted.truncated,
        ..blank
    }
}
