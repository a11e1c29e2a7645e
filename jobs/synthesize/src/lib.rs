//! `synthesize`: task sets to the `candidates` table.
//!
//! In: files of the sources named in `[synthesize]`. Out: one candidate a task, with everything known about it; unknown
//! fields survive in `metadata`. What must hold: a bad line is named (file, line, reason), counted, and stops nothing; test
//! code is parsed, never executed.
//!
//! What it does not know: whether a task is any good. That is `verify`'s.

mod asserts;
mod config;
mod humaneval;
mod kinds;
mod lines;
mod mbpp;
mod simple;
mod source;
mod written;

pub use config::{Kind, Source, SynthesizeConfig};
pub use simple::parse_task;
pub use source::{Loaded, SourceError, load};

use async_trait::async_trait;
use rollmill_job::{Exit, ItemError, Job, JobError, Plan, PlanDraft, Run, RunArgs, Stage, WorkerOptions, work};
use rollmill_schema::Candidate;
use std::collections::HashMap;

/// Flags of `rollmill synthesize`.
#[derive(Clone, Debug, clap::Args)]
#[command(
    after_help = "Example:\n  rollmill init --config examples/demo.toml --run runs/demo\n  rollmill synthesize --run runs/demo"
)]
pub struct Args {
    #[command(flatten)]
    run: RunArgs,
}

struct Synthesize {
    candidates: HashMap<String, Candidate>,
}

#[async_trait]
impl Job for Synthesize {
    type Row = Candidate;

    async fn process(&self, key: &str) -> Result<Candidate, ItemError> {
        self.candidates.get(key).cloned().ok_or_else(|| ItemError::Stop("the sources changed since the plan".into()))
    }

    fn failed(&self, _key: &str, _reason: &str) -> Option<Candidate> {
        None
    }
}

/// Runs the job.
pub async fn run(args: &Args) -> Result<Exit, JobError> {
    let run = Run::from_args(&args.run).await?;
    let config: SynthesizeConfig = run.config.section("synthesize")?;
    let loaded = load(&config).map_err(|e| JobError::Config { place: "[synthesize]".into(), reason: e.to_string() })?;
    for problem in &loaded.problems {
        eprintln!("{problem}");
    }
    let total = loaded.candidates.len() + loaded.bad_lines;
    eprintln!("synthesize: {} candidates from {total} lines, {} bad lines", loaded.candidates.len(), loaded.bad_lines);
    if loaded.candidates.is_empty() {
        let reason = "no source gave a usable task; see the lines above".into();
        return Err(JobError::Config { place: "[synthesize]".into(), reason });
    }
    let keys: Vec<String> = loaded.candidates.iter().map(|c| c.task_id.clone()).collect();
    let draft = PlanDraft { keys, shard_size: config.shard_size, inputs: vec![], settings: loaded.digests() };
    let stage = Stage::synthesize();
    let plan = Plan::ensure(&run, &stage, draft).await?;
    let stamp = |mut c: Candidate| {
        c.provenance = run.provenance(0, 0);
        (c.task_id.clone(), c)
    };
    let job = Synthesize { candidates: loaded.candidates.into_iter().map(stamp).collect() };
    Ok(Exit::from(&work(&run, &stage, &plan, &job, WorkerOptions::from(&args.run)).await?))
}
