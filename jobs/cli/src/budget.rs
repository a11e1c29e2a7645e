//! `rollmill budget`: what a run has spent, and whether it may go on. Batch scripts ask it before each job.

use rollmill_job::budget::{Budget, Spent};
use rollmill_job::{Exit, JobError, Run, env};

/// Flags.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example:\n  rollmill budget --run s3://bucket/exp7 --core-hours 200 --gpu-hours 40")]
pub struct Args {
    /// The run
    #[arg(long, env = env::RUN, value_name = "URI")]
    run: String,
    /// Hours of cores it may spend
    #[arg(long, value_name = "HOURS")]
    core_hours: Option<f64>,
    /// Hours of GPUs it may spend
    #[arg(long, value_name = "HOURS")]
    gpu_hours: Option<f64>,
    /// Tokens its policies may sample
    #[arg(long)]
    tokens: Option<u64>,
}

/// Runs the command.
pub async fn run(args: &Args) -> Result<Exit, JobError> {
    let spent = Spent::read(&Run::open(&args.run).await?).await?;
    println!(
        "spent: {:.2} core hours, {:.2} GPU hours, {} tokens sampled",
        spent.core_hours, spent.gpu_hours, spent.tokens
    );
    Budget { core_hours: args.core_hours, gpu_hours: args.gpu_hours, tokens: args.tokens }.check(&spent)?;
    Ok(Exit::Complete)
}
