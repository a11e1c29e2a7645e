//! `rollmill init`: freeze the configuration, import the base model.

use crate::{checks, model, sections};
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
pub async fn make(config_file: &std::path::Path, address: Option<&str>) -> Result<Run, JobError> {
    let (config, address) = read(config_file, address)?;
    let policy: sections::PolicyConfig = config.section("policy")?;
    // Before a run is made; one that has its base model needs the folder no more.
    if !policy.model.is_empty() && Run::open(&address).await.is_err() {
        model::find(&policy.model)?;
    }
    let run = Run::init(&address, &config).await?;
    if !policy.model.is_empty() {
        model::import(&run, &policy.model).await?;
    }
    Ok(run)
}

/// Makes the run a fork of the one at `parent` before `round`, or opens it if it is there as that.
pub async fn fork(
    config_file: &std::path::Path,
    address: Option<&str>,
    parent: &str,
    round: u32,
) -> Result<Run, JobError> {
    let (config, address) = read(config_file, address)?;
    Run::fork(&Run::open(parent).await?, &address, &config, round).await
}

/// The configuration, checked, and where its run lies.
fn read(config_file: &std::path::Path, address: Option<&str>) -> Result<(Config, String), JobError> {
    let config = Config::read(config_file)?;
    sections::check(&config)?;
    check_train(config_file)?;
    let nowhere = || JobError::Config {
        place: "--run".into(),
        reason: "say where the run lies: --run URI, or run = \"...\" in [operations]".into(),
    };
    let address = address.map(str::to_string).or(config.operations()?.run).ok_or_else(nowhere)?;
    Ok((config, address))
}

/// `rollmill-train` knows `[train]`; where it is not built, a mistake there is found when it runs.
fn check_train(config_file: &std::path::Path) -> Result<(), JobError> {
    let Some(program) = checks::beside("rollmill-train") else { return Ok(()) };
    let failed = |reason: String| JobError::Config { place: "rollmill-train".into(), reason };
    let out = std::process::Command::new(program).arg("--check").arg(config_file).output();
    let out = out.map_err(|e| failed(format!("cannot be started ({e})")))?;
    let text = String::from_utf8_lossy(&out.stderr);
    let text = text.trim().trim_start_matches("error: ").to_string();
    if out.status.success() { Ok(()) } else { Err(failed(text)) }
}

/// Runs the command.
pub async fn run(args: &Args) -> Result<Exit, JobError> {
    let run = make(&args.config, args.run.as_deref()).await?;
    println!("run {} is ready at {}", run.id, run.address());
    Ok(Exit::Complete)
}
