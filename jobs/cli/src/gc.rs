//! `rollmill gc`: says what a run no longer needs, and removes it when asked.

use crate::bucket;
use crate::grade::Format;
use rollmill_job::gc::{self, Garbage, GcOptions, Why};
use rollmill_job::{Exit, JobError, Run, env};
use std::collections::BTreeMap;
use std::time::Duration;

/// Flags.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  rollmill gc --run runs/demo\n  \
    rollmill gc --run s3://bucket/exp7 --keep-checkpoints 2 --apply")]
pub struct Args {
    /// The run
    #[arg(long, env = env::RUN, value_name = "URI")]
    run: String,
    /// Remove what is found; without it nothing is touched
    #[arg(long)]
    apply: bool,
    /// Retire the last checkpoints of all rounds but so many newest (default: keep all)
    #[arg(long, value_name = "ROUNDS", value_parser = clap::value_parser!(u32).range(1..))]
    keep_checkpoints: Option<u32>,
    /// Leave unfinished writes alone that are younger than so many hours
    #[arg(long, value_name = "HOURS", default_value_t = 24)]
    older_than: u64,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Runs the command.
pub async fn run(args: &Args) -> Result<Exit, JobError> {
    let run = Run::open(&args.run).await?;
    let older_than = Duration::from_secs(args.older_than.saturating_mul(3600));
    let options = GcOptions { keep_checkpoints: args.keep_checkpoints, older_than, apply: args.apply };
    let mut found = gc::collect(&run, options).await?;
    // No listing of objects shows them, and only the bucket's own interface ends them. Their sizes are not told.
    let uploads = bucket::abandoned_uploads(&args.run, run.clock.as_ref(), older_than, args.apply).await?;
    found.extend(uploads.into_iter().map(|name| Garbage { name, bytes: 0, why: Why::Unfinished }));
    match args.format {
        Format::Json => println!("{}", serde_json::json!({"applied": args.apply, "garbage": found})),
        Format::Text => print(&found, args.apply),
    }
    Ok(Exit::Complete)
}

fn print(found: &[Garbage], applied: bool) {
    let mut sums: BTreeMap<Why, (usize, u64)> = BTreeMap::new();
    for garbage in found {
        let sum = sums.entry(garbage.why).or_default();
        *sum = (sum.0 + 1, sum.1 + garbage.bytes);
    }
    for (why, (count, bytes)) in &sums {
        let what = match why {
            Why::Chunk => "chunks of sealed stages",
            Why::Lease => "lease terms of sealed stages",
            Why::LostCheckpoint => "files of checkpoints that lost",
            Why::RetiredCheckpoint => "files of retired checkpoints",
            Why::Unfinished => "unfinished writes",
        };
        println!("{count:>9}  {:>10.1} MB  {what}", *bytes as f64 / 1e6);
    }
    match (found.is_empty(), applied) {
        (true, _) => println!("nothing to remove"),
        (false, true) => println!("removed"),
        (false, false) => println!("nothing was touched; `--apply` removes it"),
    }
}
