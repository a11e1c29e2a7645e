//! `verify`: candidates to tasks, their secrets, and rejections with reasons.
//!
//! In: sealed `candidates`. Out: one admission a candidate; `tasks`, `task_secrets` and `rejections` follow from it. A task is
//! admitted when its reference passes all of its tests every time, in the sandbox, while doing nothing and an empty solution
//! earn 0; which orders of calls its reference survives is recorded, and solutions are asked in them. What needs the whole set (exact duplicates, the split by group) is decided in the plan.
//!
//! What must hold: no group lies in two splits; what is for evaluation only never lands in `train`; a failure of the
//! machine is no reason to reject a task.

mod check;
mod config;
mod orders;
mod split;

pub use check::{Decision, check};
pub use config::VerifyConfig;
pub use split::{duplicates, splits};

use async_trait::async_trait;
use rollmill_job::{Exit, ItemError, Job, JobError, Plan, PlanDraft, Run, RunArgs, Stage, WorkerOptions, seal, work};
use rollmill_sandbox::Sandbox;
use rollmill_schema::{Admission, Candidate, Rejection, Row, Task, TaskSecret, encode};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Flags of `rollmill verify`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example:\n  rollmill verify --run runs/demo")]
pub struct Args {
    #[command(flatten)]
    run: RunArgs,
    /// Candidates checked at once (default: the number of cores)
    #[arg(long)]
    concurrency: Option<usize>,
}

struct Verify {
    run: Run,
    config: VerifyConfig,
    sandbox: Arc<dyn Sandbox>,
    candidates: HashMap<String, Candidate>,
    duplicates: BTreeMap<String, String>,
    splits: BTreeMap<String, String>,
    concurrency: usize,
}

impl Verify {
    fn admission(&self, c: &Candidate, decision: Decision) -> Admission {
        let candidate = serde_json::to_string(c).unwrap_or_default();
        Admission {
            task_id: c.task_id.clone(),
            admitted: decision.reason.is_none(),
            reason: decision.reason,
            detail: decision.detail,
            split: self.splits.get(&c.group).cloned().unwrap_or_default(),
            verified: decision.verified.to_string(),
            candidate,
            provenance: self.run.provenance(0, 0),
        }
    }
}

#[async_trait]
impl Job for Verify {
    type Row = Admission;

    async fn process(&self, key: &str) -> Result<Admission, ItemError> {
        let candidate = self.candidates.get(key).ok_or_else(|| ItemError::Stop("the candidate is not there".into()))?;
        if let Some(first) = self.duplicates.get(key) {
            return Ok(self.admission(candidate, Decision::rejected("duplicate", format!("the same text as {first}"))));
        }
        let (sandbox, c, config) = (self.sandbox.clone(), candidate.clone(), self.config.clone());
        let decided = tokio::task::spawn_blocking(move || check(sandbox.as_ref(), &c, &config)).await;
        let decision = decided.unwrap_or_else(|e| std::panic::resume_unwind(e.into_panic()));
        match decision {
            Ok(decision) => Ok(self.admission(candidate, decision)),
            Err(e) if e.is_transient() => Err(ItemError::Retry(e.to_string())),
            Err(e) => Err(ItemError::Stop(e.to_string())),
        }
    }

    fn failed(&self, key: &str, reason: &str) -> Option<Admission> {
        let candidate = self.candidates.get(key)?;
        Some(self.admission(candidate, Decision::rejected("infrastructure", reason.to_string())))
    }

    fn concurrency(&self) -> usize {
        self.concurrency
    }

    fn tables(&self) -> &[&'static str] {
        &[Task::TABLE, TaskSecret::TABLE, Rejection::TABLE]
    }

    fn project(
        &self,
        rows: &[Admission],
        plan: &str,
        attempt: &str,
    ) -> Result<Vec<(&'static str, bytes::Bytes)>, JobError> {
        let (mut tasks, mut secrets, mut rejections) = (Vec::new(), Vec::new(), Vec::new());
        for row in rows {
            let corrupt = |e: serde_json::Error| JobError::Corrupt { key: row.key(), reason: e.to_string() };
            let candidate = row.parse_candidate().map_err(corrupt)?;
            tasks.extend(row.to_task(&candidate));
            secrets.extend(row.to_secret(&candidate));
            rejections.extend(row.to_rejection(&candidate));
        }
        Ok(vec![
            (Task::TABLE, encode(&tasks, plan, attempt)?),
            (TaskSecret::TABLE, encode(&secrets, plan, attempt)?),
            (Rejection::TABLE, encode(&rejections, plan, attempt)?),
        ])
    }
}

/// Runs the job.
pub async fn run(args: &Args) -> Result<Exit, JobError> {
    let run = Run::from_args(&args.run).await?;
    let config: VerifyConfig = run.config.section("verify")?;
    let (candidates, input) = seal::read_sealed::<Candidate>(&run, &Stage::synthesize()).await?;
    let duplicates = duplicates(&candidates);
    let splits = splits(&candidates, &duplicates, &config);
    let draft = PlanDraft {
        keys: candidates.iter().map(|c| c.task_id.clone()).collect(),
        shard_size: config.shard_size,
        inputs: vec![input],
        settings: serde_json::json!({ "duplicates": duplicates, "splits": splits }),
    };
    let stage = Stage::verify();
    let plan = Plan::ensure(&run, &stage, draft).await?;
    let sandbox = rollmill_backend::open(&run, config.floor)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let job = Verify {
        run: run.clone(),
        config,
        sandbox,
        candidates: candidates.into_iter().map(|c| (c.task_id.clone(), c)).collect(),
        duplicates,
        splits,
        concurrency: args.concurrency.unwrap_or(cores),
    };
    Ok(Exit::from(&work(&run, &stage, &plan, &job, WorkerOptions::from(&args.run)).await?))
}
