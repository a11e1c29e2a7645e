//! Calls of a scheduler's own programs.

use rollmill_job::JobError;
use std::process::Stdio;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// What a program printed, given `input`. `advice` is for people whom it refused.
pub async fn call(program: &str, options: &[&str], input: Option<&str>, advice: &str) -> Result<String, JobError> {
    let failed = |reason: String| JobError::Config { place: program.into(), reason };
    let mut command = Command::new(program);
    command.args(options).stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true).spawn();
    let mut child = child.map_err(|e| failed(format!("cannot be started ({e}); {advice}")))?;
    let written = match (input, child.stdin.take()) {
        (Some(text), Some(mut stdin)) => stdin.write_all(text.as_bytes()).await,
        _ => Ok(()),
    };
    let out = child.wait_with_output().await.map_err(|e| failed(e.to_string()))?;
    if !out.status.success() {
        let said = String::from_utf8_lossy(&out.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
        return Err(failed(format!("{said}; {advice}")));
    }
    written.map_err(|e| failed(format!("took no input ({e})")))?;
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}
