//! `rollmill status`: how far each stage is, read from the store alone.

use crate::grade::Format;
use rollmill_job::inspect::{self, StageState};
use rollmill_job::{Exit, JobError, Run, env};
use std::io::IsTerminal;
use std::time::Duration;

/// Flags.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  rollmill status --run runs/demo --format json\n  \
    rollmill status --run s3://bucket/exp7 --watch")]
pub struct Args {
    /// The run
    #[arg(long, env = env::RUN, value_name = "URI")]
    run: String,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Print again every so many seconds until everything planned is sealed
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "5")]
    watch: Option<u64>,
    /// A worker that says nothing for so many seconds is called silent
    #[arg(long, value_name = "SECONDS")]
    lease_seconds: Option<u64>,
}

/// Runs the command.
pub async fn run(args: &Args) -> Result<Exit, JobError> {
    let mut run = Run::open(&args.run).await?;
    run.operations.lease_seconds = args.lease_seconds.unwrap_or(run.operations.lease_seconds);
    loop {
        let stages = inspect::stages(&run).await?;
        if args.watch.is_some() && std::io::stdout().is_terminal() {
            // Clear the screen, cursor home.
            print!("\x1b[2J\x1b[H");
        }
        print_once(&run, &stages, args.format).await?;
        let Some(seconds) = args.watch.filter(|_| stages.iter().any(|s| !s.sealed)) else {
            return Ok(Exit::Complete);
        };
        tokio::time::sleep(Duration::from_secs(seconds.max(1))).await;
    }
}

async fn print_once(run: &Run, stages: &[StageState], format: Format) -> Result<(), JobError> {
    let checkpoints = inspect::checkpoints(run).await?;
    if format == Format::Json {
        let json = serde_json::json!({
            "run": run.id, "address": run.address(), "fingerprint": run.config.fingerprint(),
            "forked_from": run.forked_from, "stages": stages, "checkpoints": checkpoints,
        });
        println!("{json}");
        return Ok(());
    }
    println!("run {} at {}", run.id, run.address());
    if let Some(parent) = &run.forked_from {
        println!("forked from run {} at {} before round {}", parent.run_id, parent.address, parent.round);
    }
    let width = stages.iter().map(|s| s.stage.len()).max().unwrap_or(0).max(24);
    println!(
        "{:<width$} {:>9} {:>13} {:>6} {:>6} {:>6} {:>9} {:>8} {:>9}",
        "stage", "shards", "items", "leased", "failed", "sealed", "items/s", "left", "seconds"
    );
    for s in stages {
        println!(
            "{:<width$} {:>9} {:>13} {:>6} {:>6} {:>6} {:>9} {:>8} {:>9.1}",
            s.stage,
            format!("{}/{}", s.shards_done, s.shards),
            format!("{}/{}", s.items_done, s.items),
            s.leased,
            s.failed,
            if s.sealed { "yes" } else { "no" },
            s.rate.map_or("-".into(), |r| format!("{r:.1}")),
            s.seconds_left.map_or("-".into(), |left| format!("{left:.0}s")),
            s.seconds
        );
        for shard in &s.open {
            let (held, note) = (if shard.held { "held by" } else { "left by" }, &shard.note);
            let straggler = shard.straggler.as_ref().map(|why| format!("  straggler: {why}")).unwrap_or_default();
            let error = note.error.as_ref().map(|e| format!("  last error: {e}")).unwrap_or_default();
            println!(
                "  shard {:05} {held} {} ({}): {}/{} items{straggler}{error}",
                shard.shard,
                shard.worker,
                &shard.attempt[..shard.attempt.len().min(8)],
                note.done,
                note.items
            );
        }
    }
    for c in &checkpoints {
        println!("checkpoint {}{}", c.id, if c.last { "" } else { "  (within the round)" });
    }
    Ok(())
}
