//! The three commands of Slurm that a submission calls.

use crate::program::{self, Failed};
use rollmill_job::JobError;
use std::collections::BTreeMap;

/// Jobs of this user that wait or run, by name; of an array, the array's id.
pub async fn queued() -> Result<BTreeMap<String, u64>, JobError> {
    // Comma-separated states: all that are not over.
    let states = "PENDING,RUNNING,SUSPENDED,COMPLETING,CONFIGURING,REQUEUED,RESIZING,STOPPED,SIGNALING,STAGE_OUT";
    let text = call("squeue", &["--me", "--noheader", "--states", states, "--format", "%j|%F"], None).await?;
    let parse = |line: &str| {
        let (name, id) = line.trim().rsplit_once('|')?;
        Some((name.to_string(), id.parse().ok()?))
    };
    Ok(text.lines().filter_map(parse).collect())
}

/// The largest number of elements an array may have here. The first question to Slurm: where there is none, it says so.
pub async fn max_array() -> Result<u32, JobError> {
    let text = call("scontrol", &["show", "config"], None).await?;
    let line = text.lines().find_map(|line| line.trim().strip_prefix("MaxArraySize"));
    let size = line.and_then(|rest| rest.trim().trim_start_matches('=').trim().parse::<u32>().ok());
    // Indexes stay below it, and 1001 allows 0 to 1000; some cluster may say 0, which allows no array at all.
    Ok(size.map_or(u32::MAX, |size| size.saturating_sub(1).max(1)))
}

/// Submits a script, and says the job's id.
pub async fn submit(script: &str, options: &[String]) -> Result<u64, JobError> {
    let options: Vec<&str> = std::iter::once("--parsable").chain(options.iter().map(String::as_str)).collect();
    let said = call("sbatch", &options, Some(script)).await?;
    let id = said.trim().split(';').next().and_then(|id| id.parse().ok());
    id.ok_or_else(|| JobError::Config { place: "sbatch".into(), reason: format!("answered {said:?}, not a job's id") })
}

async fn call(program: &str, options: &[&str], input: Option<&str>) -> Result<String, JobError> {
    program::call(program, options, input).await.map_err(|failed| {
        let (Failed::Absent(reason) | Failed::Refused(reason)) = failed;
        let reason = format!("{reason}; submit from a machine of the cluster, while its controller answers");
        JobError::Config { place: program.into(), reason }
    })
}
