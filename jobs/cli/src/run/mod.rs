//! `rollmill run`: all jobs, round after round, on this machine. It only starts the commands a scheduler would start, in
//! order, skips what is sealed, and keeps `rollmill-serve` up with the checkpoint each stage needs.

mod child;
mod serve;

pub use child::{program, terminate};

use crate::{init, report, sections};
use child::Children;
use rollmill_job::budget::Budget;
use rollmill_job::gc::{self, GcOptions};
use rollmill_job::{Drain, Exit, JobError, Run, Stage, checkpoint, env, seal};
use rollmill_rollout::{RolloutConfig, RolloutSet, TRAIN};
use serve::Server;
use std::path::PathBuf;
use std::time::Duration;

/// Flags.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  rollmill run --config examples/demo.toml\n  \
    rollmill run --config my.toml --run s3://bucket/exp7 --endpoint http://gpu-node:8000 --rounds 3\n  \
    rollmill run --config other.toml --run runs/fork --from runs/demo --round 2")]
pub struct Args {
    /// The configuration
    #[arg(long)]
    config: PathBuf,
    /// Where the run lies: a folder, or s3://bucket/prefix (default: `run` in [operations])
    #[arg(long, env = env::RUN, value_name = "URI")]
    run: Option<String>,
    /// Fork this run instead of beginning anew: --run becomes a run of its own that begins as this one was before --round
    #[arg(long, value_name = "URI", requires = "round")]
    from: Option<String>,
    /// The first round that the fork does itself
    #[arg(long, requires = "from")]
    round: Option<u32>,
    /// Rounds (default: `rounds` in [operations])
    #[arg(long)]
    rounds: Option<u32>,
    /// Use this endpoint instead of starting rollmill-serve
    #[arg(long, env = env::ENDPOINT)]
    endpoint: Option<String>,
    /// Accept an endpoint that does not say which checkpoint it serves
    #[arg(long, requires = "endpoint")]
    trust_endpoint: bool,
}

/// Flags of `rollmill train`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example:\n  rollmill train --run runs/demo --round 1")]
pub struct TrainArgs {
    /// The run
    #[arg(long, env = env::RUN, value_name = "URI")]
    run: String,
    /// The round
    #[arg(long)]
    round: u32,
    /// Threads of libtorch (default: all cores)
    #[arg(long)]
    threads: Option<u32>,
}

/// Starts `rollmill-train` and waits for it.
pub async fn train(args: &TrainArgs) -> Result<Exit, JobError> {
    let run = Run::open(&args.run).await?;
    let drain = Drain::on_signals()?;
    Children::new(&run, drain).train(args.round, args.threads).await
}

/// Runs the command.
pub async fn run(args: &Args) -> Result<Exit, JobError> {
    let mut run = match args.from.as_deref().zip(args.round) {
        Some((parent, round)) => init::fork(&args.config, args.run.as_deref(), parent, round).await?,
        None => init::make(&args.config, args.run.as_deref()).await?,
    };
    let file = rollmill_job::config::Config::read(&args.config)?;
    run.operations = file.operations()?;
    if args.endpoint.is_some() {
        run.operations.endpoint.clone_from(&args.endpoint);
    }
    run.drain = Drain::on_signals()?;
    let mut pipeline = Pipeline {
        rollout: run.config.section("rollout")?,
        version: run.score_version()?,
        server: Server::new(&run, run.config.section::<sections::ServeConfig>("serve")?),
        children: Children::new(&run, run.drain.clone()),
        rounds: args.rounds.unwrap_or(run.operations.rounds),
        trust_endpoint: args.trust_endpoint,
        budget: file.section("budget")?,
        run,
    };
    let done = pipeline.all().await;
    pipeline.server.stop(&pipeline.run).await;
    match done {
        Ok(()) => {
            report::print(&pipeline.run).await?;
            Ok(Exit::Complete)
        }
        Err(Ended::Exit(exit)) => Ok(exit),
        Err(Ended::Error(e)) => Err(e),
    }
}

/// Why the pipeline did not come to its end.
enum Ended {
    /// A job ended so.
    Exit(Exit),
    Error(JobError),
}

impl From<JobError> for Ended {
    fn from(e: JobError) -> Ended {
        Ended::Error(e)
    }
}

struct Pipeline {
    run: Run,
    rollout: RolloutConfig,
    version: String,
    server: Server,
    children: Children,
    rounds: u32,
    trust_endpoint: bool,
    budget: Budget,
}

impl Pipeline {
    async fn all(&mut self) -> Result<(), Ended> {
        self.stage(&Stage::synthesize(), &["synthesize"]).await?;
        self.stage(&Stage::verify(), &["verify"]).await?;
        self.imitate().await?;
        self.evaluate(0).await?;
        for round in 1..=self.rounds {
            self.rollout(TRAIN, round, round - 1).await?;
            self.score(TRAIN, round).await?;
            match checkpoint::last_of_round(&self.run, round).await? {
                // Killed between the commit and its projection, the trainer left no metrics: writing them again is free.
                Some(manifest) => checkpoint::project_metrics(&self.run, &manifest).await?,
                None if self.run.drain.is_raised() => return Err(Ended::Exit(Exit::Again)),
                None => {
                    self.budget.check_run(&self.run).await?;
                    // The trainer needs the memory and the cores.
                    self.server.stop(&self.run).await;
                    let threads = self.run.operations.threads;
                    done(self.children.train(round, threads).await?)?;
                }
            }
            self.evaluate(round).await?;
            self.clean_up().await?;
        }
        Ok(())
    }

    /// Removes what `rollmill gc --apply` would, where the configuration asks for it.
    async fn clean_up(&self) -> Result<(), Ended> {
        if let Some(keep) = self.run.operations.keep_checkpoints {
            let older_than = Duration::from_secs(24 * 3600);
            let options = GcOptions { keep_checkpoints: Some(keep.max(1)), older_than, apply: true };
            gc::collect(&self.run, options).await?;
        }
        Ok(())
    }

    /// The stage before the first round, where the configuration has one.
    async fn imitate(&mut self) -> Result<(), Ended> {
        let wanted = self.run.config.has_section("sft");
        let trained = checkpoint::trained(&self.run, 0).await?.is_some();
        if !wanted || trained {
            return Ok(());
        }
        if self.run.drain.is_raised() {
            return Err(Ended::Exit(Exit::Again));
        }
        done(self.children.train(0, self.run.operations.threads).await?)
    }

    /// Samples, scores and measures every evaluation set that is due after `round`.
    async fn evaluate(&mut self, round: u32) -> Result<(), Ended> {
        let due = |s: &&RolloutSet| s.when.is_due(round, self.rounds);
        let names: Vec<String> = self.rollout.sets.iter().filter(due).map(|s| s.name.clone()).collect();
        for name in names {
            self.rollout(&name, round, round).await?;
            self.score(&name, round).await?;
            let stage = Stage::evaluate(&self.version, &name, round);
            self.stage(&stage, &["evaluate", "--split", &name, "--round", &round.to_string()]).await?;
        }
        Ok(())
    }

    async fn rollout(&mut self, set: &str, round: u32, policy_round: u32) -> Result<(), Ended> {
        let stage = Stage::rollout(set, round);
        if seal::read(&self.run, &stage).await?.is_some() {
            return Ok(());
        }
        let (endpoint, concurrency) = self.server.endpoint(&self.run, policy_round).await?;
        let (round, concurrency) = (round.to_string(), concurrency.to_string());
        let mut args = vec!["rollout", "--split", set, "--round", &round, "--endpoint", &endpoint];
        args.extend(["--concurrency", &concurrency]);
        if self.trust_endpoint {
            args.push("--trust-endpoint");
        }
        let key = self.run.operations.endpoint_key_env.clone();
        if let Some(key) = &key {
            args.extend(["--endpoint-key-env", key]);
        }
        self.stage(&stage, &args).await
    }

    async fn score(&mut self, set: &str, round: u32) -> Result<(), Ended> {
        let stage = Stage::score(&self.version, set, round);
        self.stage(&stage, &["score", "--split", set, "--round", &round.to_string()]).await
    }

    /// Runs one job unless its stage is sealed.
    async fn stage(&mut self, stage: &Stage, args: &[&str]) -> Result<(), Ended> {
        if seal::read(&self.run, stage).await?.is_some() {
            return Ok(());
        }
        if self.run.drain.is_raised() {
            return Err(Ended::Exit(Exit::Again));
        }
        self.budget.check_run(&self.run).await?;
        done(self.children.job(args).await?)
    }
}

fn done(exit: Exit) -> Result<(), Ended> {
    if exit == Exit::Complete { Ok(()) } else { Err(Ended::Exit(exit)) }
}
