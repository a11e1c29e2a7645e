//! `[cluster]`: what jobs ask of a scheduler. Operational: no part of an experiment's fingerprint.

use crate::k8s::K8sSettings;
use rollmill_job::JobError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClusterSettings {
    /// Account that is charged.
    pub account: Option<String>,
    /// Partition of jobs that name none.
    pub partition: Option<String>,
    /// Elements of an array, at most; the scheduler's own limit counts too where it says one.
    pub max_array: u32,
    /// Elements of an array that run at once; 0 is all.
    pub throttle: u32,
    /// How often one element is begun before it has failed.
    pub tries: u32,
    /// Seconds before its time limit at which a job is told to save and leave.
    pub signal_seconds: u32,
    /// Shell lines before each command: modules, keys of the store.
    pub setup: Vec<String>,
    /// Path of `rollmill` on the cluster's machines; this program's own if absent.
    pub program: Option<String>,
    /// The endpoint of each checkpoint.
    pub endpoint: EndpointSettings,
    /// Kubernetes alone.
    pub k8s: K8sSettings,
    /// What each job asks for, where that is not the default: `[cluster.jobs.rollout]`.
    pub jobs: BTreeMap<String, Wanted>,
}

/// How a checkpoint is served on a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EndpointSettings {
    /// A shell command instead of `rollmill-serve`; {model}, {checkpoint}, {host} and {port} are filled in.
    pub command: Option<String>,
    /// Address to listen on; any if absent.
    pub host: Option<String>,
    /// Name by which workers reach the machine; its own if absent.
    pub advertise: Option<String>,
}

/// What one job asks for, where that is not the default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Wanted {
    /// Workers at most: elements of the array.
    pub workers: Option<u32>,
    /// Cores of a worker.
    pub cpus: Option<u32>,
    /// Memory of a worker, as the scheduler writes it: `4G`.
    pub memory: Option<String>,
    /// Time limit of a worker, `HH:MM:SS` or `D-HH:MM:SS`.
    pub time: Option<String>,
    /// GPUs of a worker.
    pub gpus: u32,
    /// Its partition.
    pub partition: Option<String>,
    /// Workers at once, instead of the cluster's `throttle`.
    pub throttle: Option<u32>,
    /// Further options for the scheduler, word for word: `--constraint=a100`.
    pub options: Vec<String>,
    /// Further words of the command: `--concurrency`, `64`.
    pub arguments: Vec<String>,
}

/// What a worker of a job gets.
#[derive(Clone, Debug, PartialEq)]
pub struct Resources {
    /// Workers at most.
    pub workers: u32,
    /// Cores of a worker.
    pub cpus: u32,
    /// Memory of a worker.
    pub memory: String,
    /// Its time limit as it was written.
    pub time: String,
    /// The same in seconds.
    pub seconds: u64,
    /// GPUs of a worker.
    pub gpus: u32,
    /// Its partition.
    pub partition: Option<String>,
    /// Workers at once; 0 is all.
    pub throttle: u32,
    /// Further options for the scheduler.
    pub options: Vec<String>,
    /// Further words of the command.
    pub arguments: Vec<String>,
}

/// Workers, cores, memory and time of a job that the configuration says nothing of.
const DEFAULTS: [(&str, u32, u32, &str, &str); 8] = [
    ("synthesize", 1, 1, "2G", "01:00:00"),
    ("verify", 16, 2, "4G", "02:00:00"),
    ("rollout", 32, 2, "4G", "04:00:00"),
    ("score", 16, 2, "4G", "02:00:00"),
    ("train", 1, 8, "32G", "12:00:00"),
    ("evaluate", 1, 1, "4G", "01:00:00"),
    ("endpoint", 1, 8, "32G", "12:00:00"),
    // On Kubernetes alone.
    ("conduct", 1, 1, "512M", "30-00:00:00"),
];

/// Jobs of which one worker does all.
const ALONE: [&str; 5] = ["synthesize", "train", "evaluate", "endpoint", "conduct"];

impl Default for ClusterSettings {
    fn default() -> ClusterSettings {
        ClusterSettings {
            account: None,
            partition: None,
            max_array: 1000,
            throttle: 0,
            tries: 5,
            signal_seconds: 120,
            setup: Vec::new(),
            program: None,
            endpoint: EndpointSettings::default(),
            k8s: K8sSettings::default(),
            jobs: BTreeMap::new(),
        }
    }
}

impl ClusterSettings {
    /// What a worker of `job` gets.
    pub fn resources(&self, job: &str) -> Result<Resources, JobError> {
        let default = DEFAULTS.iter().find(|(name, ..)| *name == job);
        let &(_, workers, cpus, memory, time) = default.ok_or_else(|| bad(job, "no such job"))?;
        let wanted = self.jobs.get(job).cloned().unwrap_or_default();
        let time = wanted.time.unwrap_or_else(|| time.into());
        let seconds = seconds(&time).ok_or_else(|| bad(job, "time must be HH:MM:SS or D-HH:MM:SS"))?;
        Ok(Resources {
            workers: if ALONE.contains(&job) { 1 } else { wanted.workers.unwrap_or(workers) },
            cpus: wanted.cpus.unwrap_or(cpus),
            memory: wanted.memory.unwrap_or_else(|| memory.into()),
            time,
            seconds,
            gpus: wanted.gpus,
            partition: wanted.partition.or_else(|| self.partition.clone()),
            throttle: wanted.throttle.unwrap_or(self.throttle),
            options: wanted.options,
            arguments: wanted.arguments,
        })
    }

    /// Refuses settings that cannot work.
    pub fn check(&self) -> Result<(), JobError> {
        if self.tries == 0 || self.max_array == 0 {
            return Err(JobError::Config {
                place: "[cluster]".into(),
                reason: "tries and max_array must be above 0".into(),
            });
        }
        self.k8s.check()?;
        for (job, wanted) in &self.jobs {
            let got = self.resources(job)?;
            if got.workers == 0 || got.cpus == 0 {
                return Err(bad(job, "workers and cpus must be above 0"));
            }
            if ALONE.contains(&job.as_str()) && wanted.workers.is_some_and(|workers| workers != 1) {
                return Err(bad(job, "one worker does all of it: leave workers out"));
            }
            if got.seconds <= u64::from(self.signal_seconds) {
                return Err(bad(job, "time is below signal_seconds: no worker would get to work"));
            }
        }
        Ok(())
    }
}

fn bad(job: &str, reason: &str) -> JobError {
    JobError::Config { place: format!("[cluster.jobs.{job}]"), reason: reason.into() }
}

/// `D-HH:MM:SS` or `HH:MM:SS` in seconds.
fn seconds(time: &str) -> Option<u64> {
    let (days, clock) = time.split_once('-').unwrap_or(("0", time));
    let parts: Vec<u64> = clock.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let [hours, minutes, seconds] = parts.as_slice() else { return None };
    let hours = days.parse::<u64>().ok()?.checked_mul(24)?.checked_add(*hours)?;
    (*minutes < 60 && *seconds < 60).then_some(())?;
    hours.checked_mul(3600)?.checked_add(minutes * 60 + seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> ClusterSettings {
        let config = rollmill_job::config::Config::parse(text, "test").unwrap();
        config.section("cluster").unwrap()
    }

    #[test]
    fn a_job_gets_what_it_asks_for_and_the_default_otherwise() {
        let settings = parse(
            "[cluster]\npartition = 'cpu'\nthrottle = 8\n[cluster.jobs.train]\ngpus = 4\npartition = 'gpu'\ntime = '1-00:30:00'",
        );
        let (train, rollout) = (settings.resources("train").unwrap(), settings.resources("rollout").unwrap());
        assert_eq!((train.gpus, train.partition.as_deref(), train.seconds), (4, Some("gpu"), 88_200));
        assert_eq!((rollout.workers, rollout.partition.as_deref(), rollout.throttle), (32, Some("cpu"), 8));
        settings.check().unwrap();
    }

    /// The configuration in a page of the documentation, up to where the text goes on.
    fn documented(page: &str, until: &str) -> ClusterSettings {
        let section = page.split("## The configuration").nth(1).unwrap().split(until).next().unwrap();
        let lines: Vec<&str> = section.lines().filter_map(|line| line.strip_prefix("    ")).collect();
        let settings = parse(&lines.join("\n"));
        settings.check().unwrap();
        settings
    }

    #[test]
    fn the_configurations_of_the_documentation_are_some() {
        let slurm = documented(include_str!("../../../docs/slurm.md"), "- **Arrays.**");
        assert_eq!(slurm.resources("rollout").unwrap().arguments, ["--concurrency", "32"]);
        let k8s = documented(include_str!("../../../docs/kubernetes.md"), "- **Exit codes**");
        assert_eq!((k8s.k8s.queue.as_deref(), k8s.resources("train").unwrap().gpus), (Some("lab"), 1));
    }

    #[test]
    fn what_cannot_work_is_refused_with_its_place() {
        for (text, place) in [
            ("[cluster.jobs.roll]\ncpus = 1", "[cluster.jobs.roll]"),
            ("[cluster.jobs.train]\nworkers = 2", "leave workers out"),
            ("[cluster.jobs.score]\nworkers = 0", "[cluster.jobs.score]"),
            ("[cluster.jobs.score]\ntime = '90:00'", "HH:MM:SS"),
            ("[cluster.jobs.score]\ntime = '00:01:00'", "signal_seconds"),
            ("[cluster]\ntries = 0", "tries"),
            ("[cluster.k8s]\nsandbox = 'runtime'", "runtime_class"),
            ("[cluster.k8s]\nenv = { HF_TOKEN = 'x' }", "env.HF_TOKEN looks like a secret"),
        ] {
            let error = parse(text).check().unwrap_err().to_string();
            assert!(error.contains(place), "{text}: {error}");
        }
    }
}
