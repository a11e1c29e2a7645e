//! `rollmill submit`: a run as jobs of a scheduler.

use crate::{init, sections};
use rollmill_job::budget::{Budget, Spent};
use rollmill_job::config::{Config, Operations};
use rollmill_job::{Exit, JobError, Run, env};
use rollmill_submit::slurm::{self, Shared, Submission, Submitted};
use rollmill_submit::{Chain, ClusterSettings, Estimate, Facts, Progress, Sizes};
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
    Slurm(SlurmArgs),
}

/// Flags of `submit slurm`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  rollmill submit slurm --config my.toml --run s3://bucket/exp7 --dry-run\n  \
    rollmill submit slurm --config my.toml --run s3://bucket/exp7 --rounds 3 --begin 22:00")]
struct SlurmArgs {
    /// The configuration
    #[arg(long)]
    config: PathBuf,
    /// Where the run lies, for all machines: a folder they share, or s3://bucket/prefix (default: `run` in [operations])
    #[arg(long, env = env::RUN, value_name = "URI")]
    run: Option<String>,
    /// Rounds (default: `rounds` in [operations])
    #[arg(long)]
    rounds: Option<u32>,
    /// Print the estimate and the scripts; make and submit nothing
    #[arg(long)]
    dry_run: bool,
    /// Begin at this time, as sbatch takes it: 22:00, now+2hours
    #[arg(long, value_name = "TIME")]
    begin: Option<String>,
    /// Folder of scripts and logs, for all machines (default: slurm/<run> here)
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

/// Runs the command.
pub async fn run(args: &Args) -> Result<Exit, JobError> {
    let To::Slurm(args) = &args.to;
    let config = Config::read(&args.config)?;
    sections::check(&config)?;
    let (operations, settings) = (config.operations()?, config.section::<ClusterSettings>("cluster")?);
    let sizes = Sizes {
        rollout: config.section("rollout")?,
        synthesize: config.section("synthesize")?,
        verify: config.section("verify")?,
        score: config.section("score")?,
    };
    let (run, max_array) = match args.dry_run {
        true => (existing(args, &operations).await?, settings.max_array),
        false => {
            // Before anything is made: this may be no machine of a cluster.
            let limit = slurm::max_array().await?;
            (Some(init::make(&args.config, args.run.as_deref()).await?), settings.max_array.min(limit))
        }
    };
    let rounds = args.rounds.unwrap_or(operations.rounds);
    let chain = Chain::new(&sizes.rollout, &sizes.score.version, rounds, config.has_section("sft"));
    let progress = match &run {
        Some(run) => Progress::read(run, &chain).await?,
        None => Progress::none(&chain),
    };
    let facts = Facts::read(run.as_ref(), &sizes).await?;
    let estimate = Estimate::of(&chain, &progress, &sizes, &facts, &settings)?;
    if estimate.lines.is_empty() {
        println!("Everything is done.");
        return Ok(Exit::Complete);
    }
    println!("{}", estimate.table());
    let budget: Budget = config.section("budget")?;
    check_budget(&budget, &estimate, run.as_ref()).await?;
    let shared = shared(args, &operations, &settings, &budget, run.as_ref())?;
    let submission = Submission {
        chain: &chain,
        progress: &progress,
        sizes: &sizes,
        facts: &facts,
        settings: &settings,
        shared,
        max_array,
        begin: args.begin.clone(),
    };
    if args.dry_run {
        for script in submission.scripts()? {
            println!("# {}.sh\n{}", script.name, script.text);
        }
        return Ok(Exit::Complete);
    }
    let submitted = submission.submit().await?;
    for (node, submitted) in chain.nodes.iter().zip(&submitted) {
        match submitted {
            Submitted::Done => {}
            Submitted::Queued(id) => println!("{:<28} is in the queue already: {id}", node.step.name()),
            Submitted::New(id) => println!("{:<28} {id}", node.step.name()),
        }
    }
    println!(
        "Scripts and logs: {}\nFollow it: rollmill status --watch --run {}",
        submission.shared.logs, submission.shared.address
    );
    Ok(Exit::Complete)
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

/// The run, if it is there.
async fn existing(args: &SlurmArgs, operations: &Operations) -> Result<Option<Run>, JobError> {
    let Some(address) = args.run.as_ref().or(operations.run.as_ref()) else { return Ok(None) };
    match Run::open(address).await {
        Ok(run) => Ok(Some(run)),
        Err(JobError::NoRun { .. }) => Ok(None),
        Err(e) => Err(e),
    }
}

fn shared(
    args: &SlurmArgs,
    operations: &Operations,
    settings: &ClusterSettings,
    budget: &Budget,
    run: Option<&Run>,
) -> Result<Shared, JobError> {
    let nowhere = |e: std::io::Error| JobError::Config { place: "submit".into(), reason: e.to_string() };
    let here = std::env::current_dir().map_err(nowhere)?;
    let program = match &settings.program {
        Some(program) => program.clone(),
        None => std::env::current_exe().map_err(nowhere)?.display().to_string(),
    };
    let run_id = run.map_or_else(|| "new".to_string(), |run| run.id.clone());
    let name = run_id.get(..8).unwrap_or(&run_id).to_string();
    let folder = args.folder.clone().unwrap_or_else(|| Path::new("slurm").join(name));
    let address = run.map(Run::address).or_else(|| args.run.clone()).or_else(|| operations.run.clone());
    Ok(Shared {
        run_id,
        address: address.unwrap_or_default(),
        program,
        logs: here.join(folder).display().to_string(),
        folder: here.display().to_string(),
        flags: operations.flags(),
        rollout_flags: rollout_flags(operations),
        budget: budget.flags(),
    })
}

/// What rollouts are told besides.
fn rollout_flags(operations: &Operations) -> Vec<String> {
    let flags = [
        ("--concurrency", operations.concurrency.map(|n| n.to_string())),
        ("--endpoint-key-env", operations.endpoint_key_env.clone()),
    ];
    flags.into_iter().filter_map(|(name, value)| Some([name.to_string(), value?])).flatten().collect()
}
