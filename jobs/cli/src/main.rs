//! `rollmill`: the front. Every job is a subcommand; `run` does all rounds on this machine.

mod bucket;
mod budget;
mod checks;
mod doctor;
mod endpoint;
mod gc;
mod grade;
mod init;
mod model;
mod report;
mod run;
mod sandbox;
mod sections;
mod serving;
mod show;
mod status;
mod submit;
mod wait;

use clap::{Parser, Subcommand};
use rollmill_job::{Exit, JobError, command_line};

/// Training data and policies for coding agents, made by independent batch jobs over object storage
#[derive(Parser)]
#[command(
    name = "rollmill",
    version,
    after_help = "Example:\n  rollmill run --config examples/demo.toml\n  \
    rollmill status --run runs/demo\n\nExit codes: 0 complete, 2 usage or plan refused, 10 a shard failed for good, \
    11 work is leased elsewhere, 75 drained or transient (run me again)."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make a run: freeze its configuration and import its base model
    Init(init::Args),
    /// Run all jobs, round after round, on this machine; carries on where it was stopped
    Run(run::Args),
    /// Run all jobs on a cluster
    Submit(submit::Args),
    /// Say what is here, what is missing and what to do
    Doctor(doctor::Args),
    /// Turn task sets into candidates
    Synthesize(rollmill_synthesize::Args),
    /// Check candidates in the sandbox; write tasks, secrets and rejections
    Verify(rollmill_verify::Args),
    /// Serve a checkpoint to workers on other machines, and publish where
    Endpoint(endpoint::Args),
    /// Let a policy act on tasks
    Rollout(rollmill_rollout::Args),
    /// Grade trajectories
    Score(rollmill_score::Args),
    /// Train a round with PPO (starts rollmill-train)
    Train(run::TrainArgs),
    /// Measure a graded set
    Evaluate(rollmill_evaluate::Args),
    /// Grade one solution of one task
    Grade(grade::Args),
    /// What this machine can isolate; root file systems for sandboxes
    Sandbox(sandbox::Args),
    /// Keep the order of a run's steps on Kubernetes (`submit k8s` starts it there)
    Conduct(submit::ConductArgs),
    /// Wait until the inputs of a job are there
    Wait(wait::Args),
    /// What a run has spent, and whether it may go on
    Budget(budget::Args),
    /// How far each stage is
    Status(status::Args),
    /// Say what a run no longer needs, and remove it when asked
    Gc(gc::Args),
    /// Print the tables of a run: before and after, with intervals
    Report(report::Args),
    /// Read one trajectory, or why a task's tests fail
    Show(show::Args),
}

fn main() -> Exit {
    rollmill_sandbox::helper_main_if_asked();
    let cli: Cli = match command_line() {
        Ok(cli) => cli,
        Err(exit) => return exit,
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(e) => {
            eprintln!("error: no threads can be started ({e})");
            return Exit::Again;
        }
    };
    let done = runtime.block_on(dispatch(cli.command));
    // Blocking threads may still wait for a sandbox that dies with this process.
    runtime.shutdown_background();
    match done {
        Ok(exit) => exit,
        Err(e) => {
            eprintln!("error: {e}");
            Exit::from(&e)
        }
    }
}

async fn dispatch(command: Command) -> Result<Exit, JobError> {
    match command {
        Command::Init(args) => init::run(&args).await,
        Command::Run(args) => run::run(&args).await,
        Command::Submit(args) => submit::run(&args).await,
        Command::Doctor(args) => doctor::run(&args).await,
        Command::Synthesize(args) => rollmill_synthesize::run(&args).await,
        Command::Verify(args) => rollmill_verify::run(&args).await,
        Command::Endpoint(args) => endpoint::run(&args).await,
        Command::Rollout(args) => rollmill_rollout::run(&args).await,
        Command::Score(args) => rollmill_score::run(&args).await,
        Command::Train(args) => run::train(&args).await,
        Command::Evaluate(args) => rollmill_evaluate::run(&args).await,
        Command::Grade(args) => grade::run(&args).await,
        Command::Sandbox(args) => sandbox::run(&args).await,
        Command::Conduct(args) => submit::conduct(&args).await,
        Command::Wait(args) => wait::run(&args).await,
        Command::Budget(args) => budget::run(&args).await,
        Command::Status(args) => status::run(&args).await,
        Command::Gc(args) => gc::run(&args).await,
        Command::Report(args) => report::run(&args).await,
        Command::Show(args) => show::run(&args).await,
    }
}
