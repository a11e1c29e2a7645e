//! `rollmill init`: freeze the configuration, import the base model.

use crate::{model, sections};
use rollmill_job::config::Config;
use rollmill_job::{Exit, JobError, Run, env};
use std::path::PathBuf;

/// Flags.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example:\n  rollmill init --config examples/demo.toml --run s3://bucket/demo")]
pub struct Args {
    /// The configuration
    #[arg(long)]
    config: PathBuf,
    /// The run to make: a folder, or s3://bucket/prefix
    #[arg(long, env = env::RUN, value_name = "URI")]
    run: Option<String>,
}

/// Makes the run, or opens it if it is there with the same configuration.
pub async fn make(config_file: &PathBuf, address: Option<&str>) -> Result<Run, JobError> {
    let config = Config::read(config_file)?;
    sections::check(&config)?;
    let operations = config.operations()?;
    let nowhere = || JobError::Config {
        place: "--run".into(),
        reason: "say where the run lies: --run URI, or run = \"...\" in [operations]".into(),
    };
    let address = address.map(str::to_string).or(operations.run).ok_or_else(nowhere)?;
    let policy: sections::PolicyConfig = config.section("policy")?;
    if !policy.model.is_empty() {
        model::find(&policy.model)?;
    }
    let run = Run::init(&address, &config).await?;
    if !policy.model.is_empty() {
        model::import(&run, &policy.model).await?;
    }
    Ok(run)
}

/// Runs the command.
pub async fn run(args: &Args) -> Result<Exit, JobError> {
    let run = make(&args.config, args.run.as_deref()).await?;
    println!("run {} is ready at {}", run.id, run.address());
    Ok(Exit::Complete)
}
