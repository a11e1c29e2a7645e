//! `rollmill conduct`: keeps the order of steps on Kubernetes, which knows none. Runs in a small pod of its own.

use super::Asked;
use rollmill_job::{Drain, Exit, JobError, Run, env};
use rollmill_submit::k8s::{Conductor, Ended, Kubectl};
use std::path::PathBuf;

/// Flags.
#[derive(Clone, Debug, clap::Args)]
#[command(
    after_help = "Example:\n  rollmill conduct --config /etc/rollmill/rollmill.toml --run s3://bucket/exp7 --rounds 3"
)]
pub struct Args {
    /// The configuration, for what the cluster gives to each job
    #[arg(long)]
    config: PathBuf,
    /// The run
    #[arg(long, env = env::RUN, value_name = "URI")]
    run: String,
    /// Rounds (default: `rounds` in [operations])
    #[arg(long)]
    rounds: Option<u32>,
    /// Make steps that failed anew first, as a submission does
    #[arg(long)]
    anew: bool,
}

/// Runs the command.
pub async fn run(args: &Args) -> Result<Exit, JobError> {
    let asked = Asked::read(&args.config, args.rounds)?;
    let run = Run::open(&args.run).await?;
    let drain = Drain::on_signals()?;
    let kubectl = Kubectl::patient(&asked.settings.k8s);
    let manifests = asked.manifests(Some(&run), run.address());
    let conductor = Conductor { manifests: &manifests, kubectl: &kubectl, run: &run };
    said(conductor.conduct(&drain, args.anew).await?)
}

/// How it ended, for people and for schedulers.
pub fn said(ended: Ended) -> Result<Exit, JobError> {
    match ended {
        Ended::Complete => {
            println!("Everything is done.");
            Ok(Exit::Complete)
        }
        Ended::Failed(names) => {
            eprintln!("failed: {}; see `kubectl logs job/NAME`, mend the cause, then submit again", names.join(", "));
            Ok(Exit::ShardFailed)
        }
        Ended::Drained => Ok(Exit::Again),
    }
}
