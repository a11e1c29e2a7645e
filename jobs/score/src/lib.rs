//! `score`: trajectories to rewards, by version, set and round.
//!
//! In: sealed `trajectories`, `task_secrets`, and of `tasks` what verification saw. Out: one reward a trajectory. A new version scores again without a new rollout.
//!
//! What must hold: the solution is taken from the trajectory's files alone and graded in a fresh sandbox; what is not the
//! policy's fault has status `infrastructure` and no number; the same inputs give the same canonical columns.

mod config;
mod graded;

pub use config::ScoreConfig;
pub use graded::{Graded, Suites, grade_solution};

use async_trait::async_trait;
use rollmill_grader::{GradeError, T0Options};
use rollmill_job::{Exit, ItemError, Job, JobError, Plan, PlanDraft, Run, RunArgs, Stage, WorkerOptions, seal, work};
use rollmill_sandbox::Sandbox;
use rollmill_schema::{Reward, Task, TaskSecret, Trajectory};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Flags of `rollmill score`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example:\n  rollmill score --run runs/demo --round 1 --split train")]
pub struct Args {
    #[command(flatten)]
    run: RunArgs,
    /// The round
    #[arg(long)]
    round: u32,
    /// `train`, or the name of an evaluation set
    #[arg(long, default_value = "train")]
    split: String,
    /// Score under this version instead of the configuration's: a new grade without a new rollout
    #[arg(long, value_name = "NAME")]
    score_version: Option<String>,
    /// With --score-version: this preset instead of the configuration's, pure or shaped
    #[arg(long, requires = "score_version")]
    preset: Option<String>,
    /// Trajectories graded at once (default: the number of cores)
    #[arg(long)]
    concurrency: Option<usize>,
}

struct Score {
    run: Run,
    config: ScoreConfig,
    round: u32,
    sandbox: Arc<dyn Sandbox>,
    trajectories: HashMap<String, Trajectory>,
    suites: HashMap<String, Arc<Suites>>,
    concurrency: usize,
}

impl Score {
    fn blank(&self, t: &Trajectory) -> Reward {
        Reward {
            trajectory_id: t.trajectory_id.clone(),
            task_id: t.task_id.clone(),
            split: t.split.clone(),
            sample: t.sample,
            version: self.config.version.clone(),
            status: "infrastructure".into(),
            tier: self.suites.get(&t.task_id).map_or("T0", |suites| suites.a.tier().name()).into(),
            step_rewards: "[]".into(),
            verdicts: "[]".into(),
            isolation: serde_json::to_string(self.sandbox.level()).unwrap_or_default(),
            provenance: self.run.provenance(self.round, t.provenance.seed),
            ..Reward::default()
        }
    }
}

#[async_trait]
impl Job for Score {
    type Row = Reward;

    async fn process(&self, key: &str) -> Result<Reward, ItemError> {
        let t = self.trajectories.get(key).ok_or_else(|| ItemError::Stop("the trajectory is not there".into()))?;
        if t.error_class.is_some() {
            return Ok(self.blank(t));
        }
        let suites = self.suites.get(&t.task_id).ok_or_else(|| ItemError::Stop("the task has no secrets".into()))?;
        let solution = suites
            .solution(&t.final_files)
            .map_err(|e| ItemError::Stop(format!("final_files of {key} is no JSON object of texts ({e})")))?;
        let options = T0Options {
            per_call: Duration::from_secs_f64(self.config.call_seconds),
            seed: t.provenance.seed as u64,
            ..T0Options::default()
        };
        let (sandbox, suites, reward) = (self.sandbox.clone(), suites.clone(), self.config.reward);
        let work = move || grade_solution(sandbox.as_ref(), &solution, &suites, &reward, &options);
        let graded = tokio::task::spawn_blocking(work).await;
        match graded.unwrap_or_else(|e| std::panic::resume_unwind(e.into_panic())) {
            Ok(graded) => Ok(graded.into_reward(self.blank(t), t.steps.len())),
            Err(e) if e.is_transient() || matches!(e, GradeError::Arguments { .. } | GradeError::Task(_)) => {
                Err(ItemError::Retry(e.to_string()))
            }
            Err(e) => Err(ItemError::Stop(e.to_string())),
        }
    }

    fn failed(&self, key: &str, reason: &str) -> Option<Reward> {
        let t = self.trajectories.get(key)?;
        Some(Reward { quarantine: Some(format!("not graded: {reason}")), ..self.blank(t) })
    }

    fn concurrency(&self) -> usize {
        self.concurrency
    }
}

fn configured(run: &Run, args: &Args) -> Result<ScoreConfig, JobError> {
    let mut config: ScoreConfig = run.config.section("score")?;
    if let Some(version) = &args.score_version {
        config.version.clone_from(version);
    }
    if let Some(name) = &args.preset {
        let unknown = |_| JobError::Config { place: "--preset".into(), reason: "give pure or shaped".into() };
        config.reward.preset = serde_json::from_value(serde_json::json!(name)).map_err(unknown)?;
    }
    config.check()?;
    Ok(config)
}

/// Runs the job.
pub async fn run(args: &Args) -> Result<Exit, JobError> {
    let run = Run::from_args(&args.run).await?;
    let config = configured(&run, args)?;
    if config.reward.pays_for_failing_code() {
        eprintln!("score: the shaped preset pays for failing code; use the pure preset where the policy can earn it");
    }
    let (trajectories, input) = seal::read_sealed::<Trajectory>(&run, &Stage::rollout(&args.split, args.round)).await?;
    let (secrets, tasks) = seal::read_sealed::<TaskSecret>(&run, &Stage::verify()).await?;
    // What was seen of their references stands with the tasks.
    let (seen, _) = seal::read_sealed::<Task>(&run, &Stage::verify()).await?;
    let seen: HashMap<&str, &str> = seen.iter().map(|t| (t.task_id.as_str(), t.verified.as_str())).collect();
    let wanted: std::collections::HashSet<&str> = trajectories.iter().map(|t| t.task_id.as_str()).collect();
    let mut suites = HashMap::new();
    for secret in secrets.iter().filter(|s| wanted.contains(s.task_id.as_str())) {
        let corrupt = |reason: String| JobError::Corrupt { key: format!("task_secrets {}", secret.task_id), reason };
        let suite = Suites::of(&secret.entry_point, &secret.tests_a, secret.tests_b.as_deref());
        let suite = suite.map_err(|e| corrupt(e.to_string()))?;
        let verified = seen.get(secret.task_id.as_str()).copied().unwrap_or_default();
        suites.insert(secret.task_id.clone(), Arc::new(suite.verified(verified)));
    }
    let draft = PlanDraft {
        keys: trajectories.iter().map(|t| t.trajectory_id.clone()).collect(),
        shard_size: config.shard_size,
        inputs: vec![input, tasks],
        settings: serde_json::json!({ "reward": config.reward }),
    };
    let stage = Stage::score(&config.version, &args.split, args.round);
    let plan = Plan::ensure(&run, &stage, draft).await?;
    let sandbox = rollmill_backend::open(&run, config.floor)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let job = Score {
        run: run.clone(),
        config,
        round: args.round,
        sandbox,
        trajectories: trajectories.into_iter().map(|t| (t.trajectory_id.clone(), t)).collect(),
        suites,
        concurrency: args.concurrency.unwrap_or(cores),
    };
    Ok(Exit::from(&work(&run, &stage, &plan, &job, WorkerOptions::from(&args.run)).await?))
}
