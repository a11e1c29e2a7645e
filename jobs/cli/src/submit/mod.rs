//! `rollmill submit`: a run as jobs of a scheduler.
//!
//! In: a configuration. Out: an estimate, then jobs of Slurm or objects of Kubernetes. What must hold: a budget that would surely
//! be spent is refused before anything is made; submitting twice adds nothing.

mod conduct;
mod k8s;
mod slurm;

pub use conduct::Args as ConductArgs;
pub use conduct::run as conduct;

use crate::sections;
use rollmill_job::budget::{Budget, Spent};
use rollmill_job::config::{Config, Operations};
use rollmill_job::{Exit, JobError, Run, env};
use rollmill_submit::k8s::Manifests;
use rollmill_submit::{Chain, ClusterSettings, Estimate, Facts, Flags, Progress, Sizes};
use std::path::{Path, PathBuf};

/// Flags.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    to: To,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum To {
    /// One script a job, arrays, dependencies over all rounds
    Slurm(slurm::Args),
    /// Indexed Jobs and endpoints, created in order by a conductor; or an Argo Workflow
    K8s(k8s::Args),
}

/// Flags of every scheduler.
#[derive(Clone, Debug, clap::Args)]
struct Wanted {
    /// The configuration
    #[arg(long)]
    config: PathBuf,
    /// Where the run lies, for all machines: a folder they share, or s3://bucket/prefix (default: `run` in [operations])
    #[arg(long, env = env::RUN, value_name = "URI")]
    run: Option<String>,
    /// Rounds (default: `rounds` in [operations])
    #[arg(long)]
    rounds: Option<u32>,
    /// Print the estimate and what would be submitted; make and submit nothing
    #[arg(long)]
    dry_run: bool,
}

/// Runs the command.
pub async fn run(args: &Args) -> Result<Exit, JobError> {
    match &args.to {
        To::Slurm(args) => slurm::run(args).await,
        To::K8s(args) => k8s::run(args).await,
    }
}

/// What a configuration asks of a scheduler.
struct Asked {
    operations: Operations,
    settings: ClusterSettings,
    budget: Budget,
    sizes: Sizes,
    chain: Chain,
    rounds: u32,
}

impl Asked {
    fn read(config_file: &Path, rounds: Option<u32>) -> Result<Asked, JobError> {
        let config = Config::read(config_file)?;
        sections::check(&config)?;
        let operations = config.operations()?;
        let sizes = Sizes {
            rollout: config.section("rollout")?,
            synthesize: config.section("synthesize")?,
            verify: config.section("verify")?,
            score: config.section("score")?,
        };
        let rounds = rounds.unwrap_or(operations.rounds);
        let chain = Chain::new(&sizes.rollout, &sizes.score.version, rounds, config.has_section("sft"));
        Ok(Asked {
            settings: config.section("cluster")?,
            budget: config.section("budget")?,
            operations,
            sizes,
            chain,
            rounds,
        })
    }

    /// What the store knows of it.
    async fn state(&self, run: Option<&Run>) -> Result<(Progress, Facts), JobError> {
        let progress = match run {
            Some(run) => Progress::read(run, &self.chain).await?,
            None => Progress::none(&self.chain),
        };
        Ok((progress, Facts::read(run, &self.sizes).await?))
    }

    /// Prints what it will take; false if nothing is left. Refuses what would go beyond the budget.
    async fn estimate(
        &self,
        run: Option<&Run>,
        progress: &Progress,
        facts: &Facts,
        max_array: u32,
    ) -> Result<bool, JobError> {
        let settings = ClusterSettings { max_array, ..self.settings.clone() };
        let estimate = Estimate::of(&self.chain, progress, &self.sizes, facts, &settings)?;
        if estimate.lines.is_empty() {
            eprintln!("Everything is done.");
            return Ok(false);
        }
        // Standard output is for what is submitted: it may go to a file.
        eprintln!("{}", estimate.table());
        check_budget(&self.budget, &estimate, run).await?;
        Ok(true)
    }

    fn flags(&self) -> Flags {
        let operations = &self.operations;
        let rollouts = [
            ("--concurrency", operations.concurrency.map(|n| n.to_string())),
            ("--endpoint-key-env", operations.endpoint_key_env.clone()),
        ];
        let rollouts = rollouts.into_iter().filter_map(|(name, value)| Some([name.to_string(), value?])).flatten();
        Flags { jobs: operations.flags(), rollouts: rollouts.collect(), budget: self.budget.flags() }
    }

    /// What Kubernetes is given of the run at an address; without one, of a run that is not there yet.
    fn manifests(&self, run: Option<&Run>, address: String) -> Manifests<'_> {
        Manifests {
            chain: &self.chain,
            sizes: &self.sizes,
            cluster: &self.settings,
            flags: self.flags(),
            run_id: run.map_or_else(|| "new".to_string(), |run| run.id.clone()),
            address,
        }
    }

    /// Where the run lies, or will.
    fn address(&self, wanted: &Wanted, run: Option<&Run>) -> String {
        let address = run.map(Run::address).or_else(|| wanted.run.clone()).or_else(|| self.operations.run.clone());
        address.unwrap_or_default()
    }
}

impl Wanted {
    /// The run, if it is there.
    async fn existing(&self, operations: &Operations) -> Result<Option<Run>, JobError> {
        let Some(address) = self.run.as_ref().or(operations.run.as_ref()) else { return Ok(None) };
        match Run::open(address).await {
            Ok(run) => Ok(Some(run)),
            Err(JobError::NoRun { .. }) => Ok(None),
            Err(e) => Err(e),
        }
    }
}

/// Refuses what would surely go beyond the budget: what was spent, and what is left at the measured rates.
async fn check_budget(budget: &Budget, estimate: &Estimate, run: Option<&Run>) -> Result<(), JobError> {
    let mut spent = match run {
        Some(run) if *budget != Budget::default() => Spent::read(run).await?,
        _ => Spent::default(),
    };
    budget.check(&spent)?;
    spent.core_hours += estimate.total().likely.unwrap_or(0.0);
    budget.check(&spent).map_err(|_| JobError::Config {
        place: "[budget]".into(),
        reason: format!(
            "what is left would likely bring the run to {:.1} core hours; raise core_hours, or submit fewer --rounds",
            spent.core_hours
        ),
    })
}
