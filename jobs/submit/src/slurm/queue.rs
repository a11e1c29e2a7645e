//! The three commands of Slurm that a submission calls.

use rollmill_job::JobError;
use std::collections::BTreeMap;
use std::process::Stdio;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

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
    let failed = |reason: String| JobError::Config { place: program.into(), reason };
    let mut command = Command::new(program);
    command.args(options).stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child =
        child.map_err(|e| failed(format!("cannot be started ({e}); submit from a machine of the cluster")))?;
    if let (Some(text), Some(mut stdin)) = (input, child.stdin.take()) {
        stdin.write_all(text.as_bytes()).await.map_err(|e| failed(e.to_string()))?;
    }
    let out = child.wait_with_output().await.map_err(|e| failed(e.to_string()))?;
    let said = String::from_utf8_lossy(&out.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    match out.status.success() {
        true => Ok(String::from_utf8_lossy(&out.stdout).into_owned()),
        false => Err(failed(format!("{said}; submit from a machine of the cluster, while its controller answers"))),
    }
}
