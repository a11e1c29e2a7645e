//! `rollmill wait`: until the inputs of a job are there. For schedulers that know no order of jobs.
//!
//! In: stages and rounds. Out: an exit code: 0 all are there, 75 not yet. What must hold: it asks the store and changes nothing.

use rollmill_job::inspect::{self, Left};
use rollmill_job::{Drain, Exit, JobError, Run, Stage, checkpoint, env};
use std::time::Duration;

/// Pause between two looks.
const LOOK: Duration = Duration::from_secs(5);

/// Flags.
#[derive(Clone, Debug, clap::Args)]
#[command(
    after_help = "Example:\n  rollmill wait --run s3://bucket/exp7 --stage score/v1/train/round-0002 --trained 1"
)]
pub struct Args {
    /// The run
    #[arg(long, env = env::RUN, value_name = "URI")]
    run: String,
    /// Wait for this stage; may be given more than once
    #[arg(long, value_name = "STAGE", value_parser = crate::endpoint::stage)]
    stage: Vec<Stage>,
    /// Wait for the trained checkpoint of this round; may be given more than once
    #[arg(long, value_name = "ROUND")]
    trained: Vec<u32>,
    /// Seconds to wait; without it as long as it takes
    #[arg(long)]
    seconds: Option<u64>,
}

/// Runs the command.
pub async fn run(args: &Args) -> Result<Exit, JobError> {
    let run = Run::open(&args.run).await?;
    let drain = Drain::on_signals()?;
    let until = args.seconds.map(|seconds| run.clock.monotonic() + Duration::from_secs(seconds));
    let mut said = None;
    loop {
        let missing = match missing(&run, args).await {
            Ok(missing) => missing,
            // The store may be away for a moment.
            Err(JobError::Store(e)) if e.is_transient() => Some(e.to_string()),
            Err(e) => return Err(e),
        };
        let Some(missing) = missing else { return Ok(Exit::Complete) };
        if drain.is_raised() || until.is_some_and(|until| run.clock.monotonic() >= until) {
            return Err(JobError::Unavailable { reason: format!("{missing} is not there yet") });
        }
        if said.as_ref() != Some(&missing) {
            eprintln!("wait: {missing} is not there yet");
            said = Some(missing);
        }
        tokio::select! { () = drain.raised() => (), () = tokio::time::sleep(LOOK) => () }
    }
}

/// The first thing that is not there.
async fn missing(run: &Run, args: &Args) -> Result<Option<String>, JobError> {
    for stage in &args.stage {
        if inspect::left(run, stage).await? != Left::Done {
            return Ok(Some(format!("stage {}", stage.name())));
        }
    }
    for round in &args.trained {
        if checkpoint::trained(run, *round).await?.is_none() {
            return Ok(Some(format!("the checkpoint of round {round}")));
        }
    }
    Ok(None)
}
