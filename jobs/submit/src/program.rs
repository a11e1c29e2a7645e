//! Calls of a scheduler's own programs.

use std::io::ErrorKind;
use std::process::Stdio;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// Why a call gave nothing.
pub enum Failed {
    /// The program is not here.
    Absent(String),
    /// It refused, or reached nobody.
    Refused(String),
}

/// What a program printed, given `input`.
pub async fn call(program: &str, options: &[&str], input: Option<&str>) -> Result<String, Failed> {
    let mut command = Command::new(program);
    command.args(options).stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true).spawn();
    let mut child = child.map_err(|e| {
        let reason = format!("cannot be started ({e})");
        match e.kind() {
            ErrorKind::NotFound | ErrorKind::PermissionDenied => Failed::Absent(reason),
            // Too many processes, no memory.
            _ => Failed::Refused(reason),
        }
    })?;
    let written = match (input, child.stdin.take()) {
        (Some(text), Some(mut stdin)) => stdin.write_all(text.as_bytes()).await,
        _ => Ok(()),
    };
    let out = child.wait_with_output().await.map_err(|e| Failed::Refused(e.to_string()))?;
    if !out.status.success() {
        let said = String::from_utf8_lossy(&out.stderr);
        return Err(Failed::Refused(said.split_whitespace().collect::<Vec<_>>().join(" ")));
    }
    written.map_err(|e| Failed::Refused(format!("took no input ({e})")))?;
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}
