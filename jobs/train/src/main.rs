//! `rollmill-train`: one round of training on a run.
//!
//! In: the sealed trajectories and rewards of a round, the checkpoint of the round before; for round 0 demonstrations and the
//! base model. Out: checkpoints, the last of which ends the round. What must hold: a killed trainer carries on from the last committed step to the same bytes; two
//! trainers of one round never mix: the one that loses a manifest's create stops with exit 11.

mod demonstrations;
mod inputs;
mod memory;
mod session;
mod stage;
mod tensorboard;

use clap::Parser;
use rollmill_job::config::Config;
use rollmill_job::{Drain, Exit, JobError, Run, command_line, env};
use rollmill_train::{TrainConfig, TrainError};
use session::Session;

/// Train a round of a run
#[derive(Parser)]
#[command(name = "rollmill-train", version, after_help = "Example:\n  rollmill-train --run runs/demo --round 1")]
struct Cli {
    /// The run
    #[arg(long, env = env::RUN, value_name = "URI", required_unless_present = "check")]
    run: Option<String>,
    /// The round; 0 imitates the demonstrations of [sft] before the first
    #[arg(long, required_unless_present = "check", default_value_t = 0)]
    round: u32,
    /// Only check the [train] section of this configuration
    #[arg(long, value_name = "FILE")]
    check: Option<std::path::PathBuf>,
    /// Threads of libtorch (default: all cores)
    #[arg(long)]
    threads: Option<i32>,
}

fn main() -> Exit {
    let cli: Cli = match command_line() {
        Ok(cli) => cli,
        Err(exit) => return exit,
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build() {
        Ok(runtime) => runtime,
        Err(e) => {
            eprintln!("error: no threads can be started ({e})");
            return Exit::Again;
        }
    };
    match runtime.block_on(train(&cli)) {
        Ok(exit) => exit,
        Err(e) => {
            eprintln!("error: {e}");
            Exit::from(&e)
        }
    }
}

async fn train(cli: &Cli) -> Result<Exit, JobError> {
    if let Some(file) = &cli.check {
        let parsed = Config::read(file)?;
        stage::imitation(&parsed)?;
        let config: TrainConfig = parsed.section("train")?;
        let refused =
            |e: TrainError| JobError::Config { place: format!("{} [train]", file.display()), reason: e.to_string() };
        config.validate().map_err(refused)?;
        return lag_fits(&parsed, &config).map(|()| Exit::Complete);
    }
    let mut run = Run::open(cli.run.as_deref().unwrap_or_default()).await?;
    run.drain = Drain::on_signals()?;
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as i32);
    tch::set_num_threads(cli.threads.unwrap_or(cores).max(1));
    let handle = tokio::runtime::Handle::current();
    let round = cli.round;
    // libtorch computes for seconds at a time: not on a thread that must answer signals.
    let work = tokio::task::spawn_blocking(move || Session::new(run, round, handle).train());
    // A panic is a bug and must end with 101, which it does where it is resumed.
    work.await.unwrap_or_else(|e| std::panic::resume_unwind(e.into_panic()))
}

/// Refuses rounds that would be sampled by a policy too old to be trained on.
fn lag_fits(parsed: &Config, config: &TrainConfig) -> Result<(), JobError> {
    /// The part of `[rollout]` that matters here; the rest is its own job's.
    #[derive(serde::Deserialize)]
    struct Rollout {
        #[serde(default)]
        max_lag: u32,
    }
    let lag = parsed.section::<Rollout>("rollout")?.max_lag;
    if lag <= config.max_age {
        return Ok(());
    }
    let reason = format!(
        "max_lag = {lag} needs [train] max_age of at least {lag}, with an off_policy: rows would be older than may be trained on"
    );
    Err(JobError::Config { place: "[rollout]".into(), reason })
}
