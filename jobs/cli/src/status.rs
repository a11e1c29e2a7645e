//! `rollmill status`: how far each stage is, read from the store alone.

use crate::grade::Format;
use rollmill_job::{Exit, JobError, Run, env, inspect};

/// Flags.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example:\n  rollmill status --run runs/demo --format json")]
pub struct Args {
    /// The run
    #[arg(long, env = env::RUN, value_name = "URI")]
    run: String,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Runs the command.
pub async fn run(args: &Args) -> Result<Exit, JobError> {
    let run = Run::open(&args.run).await?;
    let stages = inspect::stages(&run).await?;
    let checkpoints = inspect::checkpoints(&run).await?;
    if args.format == Format::Json {
        let json = serde_json::json!({
            "run": run.id, "address": run.address(), "fingerprint": run.config.fingerprint(),
            "stages": stages, "checkpoints": checkpoints,
        });
        println!("{json}");
        return Ok(Exit::Complete);
    }
    println!("run {} at {}", run.id, run.address());
    println!("{:<34} {:>9} {:>9} {:>7} {:>9} {:>9}", "stage", "shards", "items", "leased", "sealed", "seconds");
    for s in &stages {
        let shards = format!("{}/{}", s.shards_done, s.shards);
        let sealed = if s.sealed { "yes" } else { "no" };
        println!("{:<34} {shards:>9} {:>9} {:>7} {sealed:>9} {:>9.1}", s.stage, s.items, s.leased, s.seconds);
    }
    for c in &checkpoints {
        println!("checkpoint {}{}", c.id, if c.last { "" } else { "  (within the round)" });
    }
    Ok(Exit::Complete)
}
