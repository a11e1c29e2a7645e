//! `rollmill init`: prepare the bucket, freeze the configuration, import the base model.

use crate::{bucket, checks, model, sections};
use rollmill_job::config::Config;
use rollmill_job::{Exit, JobError, Run, env};
use std::path::{Path, PathBuf};

/// Flags.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example:\n  rollmill init --config examples/demo.toml s3://bucket/demo --create-bucket")]
pub struct Args {
    /// The configuration
    #[arg(long)]
    config: PathBuf,
    /// The run to make: a folder, or s3://bucket/prefix
    #[arg(value_name = "URI")]
    address: Option<String>,
    /// The same as a flag
    #[arg(long, env = env::RUN, value_name = "URI")]
    run: Option<String>,
    #[command(flatten)]
    bucket: bucket::BucketArgs,
}

/// A run that can be made: its configuration holds, and so far nothing was created.
struct Draft {
    config: Config,
    address: String,
    /// The base model, or nothing.
    model: String,
}

impl Draft {
    /// The configuration, checked, and where its run lies.
    fn read(config_file: &Path, address: Option<&str>) -> Result<Draft, JobError> {
        let config = Config::read(config_file)?;
        sections::check(&config)?;
        check_train(config_file)?;
        let operations = config.operations()?;
        let nowhere = || JobError::Config {
            place: "--run".into(),
            reason: "say where the run lies: --run URI, or run = \"...\" in [operations]".into(),
        };
        let address = address.map(str::to_string).or(operations.run).ok_or_else(nowhere)?;
        let policy: sections::PolicyConfig = config.section("policy")?;
        Ok(Draft { config, address, model: policy.model })
    }

    /// The same, with a base model that can be imported. A run that has one needs the folder no more.
    async fn check(config_file: &Path, address: Option<&str>) -> Result<Draft, JobError> {
        let draft = Draft::read(config_file, address)?;
        if !draft.model.is_empty()
            && let Err(missing) = model::find(&draft.model)
            && Run::open(&draft.address).await.is_err()
        {
            return Err(missing);
        }
        Ok(draft)
    }

    async fn make(self) -> Result<Run, JobError> {
        let run = Run::init(&self.address, &self.config).await?;
        if !self.model.is_empty() {
            model::import(&run, &self.model).await?;
        }
        Ok(run)
    }
}

/// Makes the run, or opens it if it is there with the same configuration.
pub async fn make(config_file: &Path, address: Option<&str>) -> Result<Run, JobError> {
    Draft::check(config_file, address).await?.make().await
}

/// Makes the run a fork of the one at `parent` before `round`, or opens it if it is there as that. The base model comes
/// with the copy.
pub async fn fork(config_file: &Path, address: Option<&str>, parent: &str, round: u32) -> Result<Run, JobError> {
    let draft = Draft::read(config_file, address)?;
    Run::fork(&Run::open(parent).await?, &draft.address, &draft.config, round).await
}

/// `rollmill-train` knows `[train]`; where it is not built, a mistake there is found when it runs.
fn check_train(config_file: &Path) -> Result<(), JobError> {
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
    let draft = Draft::check(&args.config, args.address()?).await?;
    bucket::set_up(&draft.address, &args.bucket).await?;
    let run = draft.make().await?;
    println!("run {} is ready at {}", run.id, run.address());
    Ok(Exit::Complete)
}

impl Args {
    /// The address, from its place or the flag. The variable behind the flag gives way.
    fn address(&self) -> Result<Option<&str>, JobError> {
        match (&self.address, &self.run) {
            (Some(place), Some(flag)) if place != flag && env::read(env::RUN).as_ref() != Some(flag) => {
                let reason = format!("the run is given twice, as {place} and as --run {flag}");
                Err(JobError::Config { place: "init".into(), reason })
            }
            (place, flag) => Ok(place.as_deref().or(flag.as_deref())),
        }
    }
}
