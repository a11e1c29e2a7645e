//! A job in the real frame whose items say when they begin and when they are done, so that work done twice can be counted
//! item by item. The jobs of Rollmill cannot tell: their items leave no trace before their chunk.

use async_trait::async_trait;
use rollmill_job::{Exit, ItemError, Job, JobError, Plan, PlanDraft, Run, RunArgs, Stage, WorkerOptions, work};
use rollmill_schema::{Metric, Row};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

const ITEMS: usize = 48;
const SHARD: usize = 8;
const ITEM_TAKES: Duration = Duration::from_millis(25);

/// Flags of the worker.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    run: RunArgs,
    /// Where items say what becomes of them, one line each
    #[arg(long)]
    log: PathBuf,
}

/// Its stage.
pub fn stage() -> Stage {
    Stage::evaluate("v1", "counted", 0)
}

struct Counted {
    run: Run,
    log: std::fs::File,
}

impl Counted {
    fn say(&self, what: &str, key: &str) -> Result<(), ItemError> {
        // One write below the size of a page to a file opened for appending: lines of several workers do not mix.
        let line = format!("{} {what} {key}\n", std::process::id());
        (&self.log).write_all(line.as_bytes()).map_err(|e| ItemError::Stop(format!("the log cannot be written ({e})")))
    }
}

#[async_trait]
impl Job for Counted {
    type Row = Metric;

    async fn process(&self, key: &str) -> Result<Metric, ItemError> {
        self.say("begins", key)?;
        tokio::time::sleep(ITEM_TAKES).await;
        self.say("ends", key)?;
        let name = key.split('|').next().unwrap_or_default().to_string();
        Ok(Metric { name, scope: "all".into(), provenance: self.run.provenance(0, 0), ..Metric::default() })
    }

    fn failed(&self, _key: &str, _reason: &str) -> Option<Metric> {
        None
    }
}

/// Runs the worker.
pub async fn run(args: &Args) -> Result<Exit, JobError> {
    let run = Run::from_args(&args.run).await?;
    let key = |i| Metric { name: format!("m{i}"), scope: "all".into(), ..Metric::default() }.key();
    let settings = serde_json::json!({});
    let draft = PlanDraft { keys: (0..ITEMS).map(key).collect(), shard_size: SHARD, inputs: vec![], settings };
    let stage = stage();
    let plan = Plan::ensure(&run, &stage, draft).await?;
    let bad = |e: std::io::Error| JobError::Config { place: args.log.display().to_string(), reason: e.to_string() };
    let log = std::fs::File::options().create(true).append(true).open(&args.log).map_err(bad)?;
    let job = Counted { run: run.clone(), log };
    Ok(Exit::from(&work(&run, &stage, &plan, &job, WorkerOptions::from(&args.run)).await?))
}

/// What the log says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// Keys that each worker, by pid, began and did not end; then those it ended.
    pub by_worker: BTreeMap<u32, (BTreeSet<String>, BTreeSet<String>)>,
    /// How often each key was begun.
    pub begun: BTreeMap<String, usize>,
}

impl Log {
    /// Reads a log; one that is not there yet is empty.
    pub fn read(path: &Path) -> Log {
        let mut log = Log::default();
        for line in std::fs::read_to_string(path).unwrap_or_default().lines() {
            let mut words = line.split(' ');
            let (Some(pid), Some(what), Some(key)) = (words.next(), words.next(), words.next()) else { continue };
            let Ok(pid) = pid.parse() else { continue };
            let (begun, ended) = log.by_worker.entry(pid).or_default();
            if what == "begins" {
                begun.insert(key.into());
                *log.begun.entry(key.into()).or_default() += 1;
            } else {
                begun.remove(key);
                ended.insert(key.into());
            }
        }
        log
    }

    /// Of the worker `pid`: finished items that are not among the `saved`, and items in flight.
    pub fn lost(&self, pid: u32, saved: &BTreeSet<String>) -> (usize, usize) {
        self.by_worker.get(&pid).map_or((0, 0), |(begun, ended)| (ended.difference(saved).count(), begun.len()))
    }

    /// How often items were begun beyond once each.
    pub fn redone(&self) -> usize {
        self.begun.values().map(|n| n - 1).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_worker_lost_is_counted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        assert_eq!(Log::read(&path), Log::default());
        std::fs::write(&path, "7 begins a\n7 ends a\n7 begins b\n7 ends b\n7 begins c\n8 begins b\n").unwrap();
        let log = Log::read(&path);
        assert_eq!(log.lost(7, &BTreeSet::from(["a".to_string()])), (1, 1));
        assert_eq!((log.lost(9, &BTreeSet::new()), log.redone()), ((0, 0), 1));
    }
}
