//! `[budget]`: what a run may spend, and what it has spent.
//!
//! In: what workers and trainers reported of themselves. Out: core hours, GPU hours and sampled tokens, held against limits. A
//! worker that was killed reports nothing: what it spent is missing here, and no limit counts it.

use crate::report::{StageReport, reports};
use crate::{JobError, Run, checkpoint, env};
use futures::future::try_join_all;
use rollmill_store::Key;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The section. No limit where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// Hours of cores.
    pub core_hours: Option<f64>,
    /// Hours of GPUs.
    pub gpu_hours: Option<f64>,
    /// Tokens that policies sample.
    pub tokens: Option<u64>,
}

/// What was spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spent {
    /// Hours of cores.
    pub core_hours: f64,
    /// Hours of GPUs.
    pub gpu_hours: f64,
    /// Tokens that policies sampled.
    pub tokens: u64,
}

impl Spent {
    /// Adds up a run.
    pub async fn read(run: &Run) -> Result<Spent, JobError> {
        let control = run.blobs.list(&Key::new("control")?).await?;
        let folder = |key: &Key| key.as_str().rsplit_once('/').map(|(folder, _)| folder.to_string());
        let folders: BTreeSet<String> =
            control.iter().filter_map(|entry| folder(&entry.key)).filter(|name| name.ends_with("/reports")).collect();
        let mut spent = Spent::default();
        for folder in folders {
            for report in reports(run, &Key::new(folder)?).await? {
                spent.add(&report);
            }
        }
        let rounds = checkpoint::rounds_in(&control);
        for manifests in try_join_all(rounds.iter().map(|round| checkpoint::list(run, *round))).await? {
            // A manifest holds the seconds of its round so far.
            if let Some(last) = manifests.last() {
                spent.core_hours += last.seconds * last.cores / 3600.0;
                spent.gpu_hours += last.seconds * f64::from(last.gpus) / 3600.0;
            }
        }
        Ok(spent)
    }

    fn add(&mut self, report: &StageReport) {
        self.core_hours += report.seconds * report.cores / 3600.0;
        self.gpu_hours += report.seconds * f64::from(report.gpus) / 3600.0;
        self.tokens += report.tokens;
    }
}

impl Budget {
    /// Refuses to go on when a limit is reached.
    pub fn check(&self, spent: &Spent) -> Result<(), JobError> {
        let tokens = (self.tokens.map(|n| n as f64), spent.tokens as f64);
        let parts = [
            ("core_hours", self.core_hours, spent.core_hours),
            ("gpu_hours", self.gpu_hours, spent.gpu_hours),
            ("tokens", tokens.0, tokens.1),
        ];
        for (name, limit, spent) in parts {
            if let Some(limit) = limit.filter(|limit| spent >= *limit) {
                let reason = format!("{name} = {limit} is spent ({spent:.2}); raise it and run the same command again");
                return Err(JobError::Config { place: "[budget]".into(), reason });
            }
        }
        Ok(())
    }

    /// The same, read from the store; asks nothing where nothing is limited.
    pub async fn check_run(&self, run: &Run) -> Result<(), JobError> {
        if *self == Budget::default() {
            return Ok(());
        }
        self.check(&Spent::read(run).await?)
    }

    /// The flags by which `rollmill budget` is told of it.
    pub fn flags(&self) -> Vec<String> {
        let flags = [
            ("--core-hours", self.core_hours.map(|n| n.to_string())),
            ("--gpu-hours", self.gpu_hours.map(|n| n.to_string())),
            ("--tokens", self.tokens.map(|n| n.to_string())),
        ];
        flags.into_iter().filter_map(|(name, value)| Some([name.to_string(), value?])).flatten().collect()
    }
}

/// Cores of this process: what the scheduler gave, else what the machine lets it use.
pub fn cores() -> f64 {
    let given = [env::CORES, env::SLURM_CPUS_PER_TASK].into_iter().find_map(|name| env::read(name)?.parse().ok());
    given.unwrap_or_else(|| std::thread::available_parallelism().map_or(1.0, |n| n.get() as f64))
}

/// GPUs of this process, as the scheduler says.
pub fn gpus() -> u32 {
    env::read(env::GPUS).and_then(|n| n.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_is_reached_stops_and_is_named() {
        let report = StageReport {
            attempt: "a".into(),
            items: 1,
            seconds: 1800.0,
            peak_memory_bytes: 0,
            cores: 4.0,
            gpus: 1,
            tokens: 700,
        };
        let mut spent = Spent::default();
        spent.add(&report);
        spent.add(&report);
        assert_eq!(spent, Spent { core_hours: 4.0, gpu_hours: 1.0, tokens: 1400 });
        for (budget, stops) in [
            (Budget::default(), None),
            (Budget { core_hours: Some(4.5), ..Budget::default() }, None),
            (Budget { core_hours: Some(4.0), ..Budget::default() }, Some("core_hours")),
            (Budget { gpu_hours: Some(0.5), ..Budget::default() }, Some("gpu_hours")),
            (Budget { tokens: Some(1400), ..Budget::default() }, Some("tokens")),
        ] {
            let said = budget.check(&spent).err().map(|e| e.to_string());
            assert_eq!(said.is_some(), stops.is_some(), "{said:?}");
            assert!(said.is_none_or(|s| s.contains(stops.unwrap())));
        }
        assert_eq!(Budget { tokens: Some(5), ..Budget::default() }.flags(), ["--tokens", "5"]);
    }
}
