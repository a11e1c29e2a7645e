//! `rollmill-chaos`: kills workers and the store, then counts rows; measures what the frame costs.

use anyhow::Context;
use clap::{Parser, Subcommand};
use rollmill_chaos::campaign::{self, Settings};
use rollmill_chaos::place::Kind;
use rollmill_chaos::{bench, counted};
use rollmill_job::{Exit, command_line};
use std::path::PathBuf;

/// Kill real workers and the real store, then count rows
#[derive(Parser)]
#[command(
    name = "rollmill-chaos",
    version,
    after_help = "Example:\n  rollmill-chaos kill --store folder --kills 1000 --freezes 20 --seed 1"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Kill workers of many runs, and the server under them, and check every row
    Kill(KillArgs),
    /// A worker of the job that counts its items (started by `kill`)
    Counted(counted::Args),
    /// Measure the frame and the format
    Bench(bench::Args),
}

#[derive(clap::Args)]
struct KillArgs {
    /// Where the runs lie
    #[arg(long, value_enum, default_value_t = Kind::Folder)]
    store: Kind,
    /// Workers to kill with -9
    #[arg(long, default_value_t = 1000)]
    kills: usize,
    /// Workers to freeze beyond their lease
    #[arg(long, default_value_t = 20)]
    freezes: usize,
    /// Times to kill the server with -9 (s3 only)
    #[arg(long, default_value_t = 20)]
    server_kills: usize,
    /// Begin no run after so many minutes, however much was killed
    #[arg(long, default_value_t = 600)]
    minutes: u64,
    /// Workers side by side
    #[arg(long, default_value_t = 4)]
    workers: usize,
    /// Decides who is killed when (default: a random one, which is printed)
    #[arg(long)]
    seed: Option<u64>,
    /// Tasks a run
    #[arg(long, default_value_t = 20)]
    tasks: usize,
    /// A finished run with real trajectories: every third run kills `score` and `evaluate` on them
    #[arg(long, value_name = "FOLDER")]
    trajectories: Option<String>,
    /// The rollmill program (default: beside this one)
    #[arg(long)]
    rollmill: Option<PathBuf>,
}

fn main() -> Exit {
    let cli: Cli = match command_line() {
        Ok(cli) => cli,
        Err(exit) => return exit,
    };
    let done = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(dispatch(cli.command)),
        Err(e) => Err(e.into()),
    };
    done.unwrap_or_else(|e| {
        eprintln!("error: {e:#}");
        Exit::Again
    })
}

async fn dispatch(command: Command) -> anyhow::Result<Exit> {
    match command {
        Command::Kill(args) => kill(args).await,
        Command::Bench(args) => bench::run(&args).await.map(|()| Exit::Complete),
        Command::Counted(args) => Ok(counted::run(&args).await.unwrap_or_else(|e| {
            eprintln!("error: {e}");
            Exit::from(&e)
        })),
    }
}

async fn kill(args: KillArgs) -> anyhow::Result<Exit> {
    let counted = std::env::current_exe()?;
    let beside = counted.parent().context("this program lies in a folder")?.join("rollmill");
    let rollmill = args.rollmill.unwrap_or(beside);
    anyhow::ensure!(rollmill.is_file(), "{} is missing: `make chaos` builds it", rollmill.display());
    let seed = args.seed.unwrap_or_else(|| u64::from(std::process::id()));
    let settings = Settings {
        seed,
        store: args.store,
        kills: args.kills,
        freezes: args.freezes,
        server_kills: args.server_kills,
        at_most: std::time::Duration::from_secs(60 * args.minutes),
        workers: args.workers.max(2),
        rollmill,
        counted,
        project: std::env::current_dir()?,
        trajectories: args.trajectories,
        tasks: args.tasks,
    };
    println!("seed {seed}, store {:?}, {} workers side by side", settings.store, settings.workers);
    let tally = campaign::run(&settings).await?;
    print!("{tally}");
    Ok(if tally.findings.is_empty() { Exit::Complete } else { Exit::ShardFailed })
}
