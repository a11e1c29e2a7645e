//! Brings files out of a container whose program is dead, by a program of the image under the slot's user.
//!
//! What must hold: nothing of the run lives when the listing begins, so what is listed stays as it is; what is read is bounded.
use std::time::Duration;

use bollard::container::LogOutput;
use futures::StreamExt;
use rollmill_sandbox::{Collected, SandboxError};
use tokio::io::AsyncWriteExt;

use crate::container::Container;
use crate::error::failed;
use crate::listing::Listing;
use crate::program::{self, Exec};

/// Kills all that it may, which is what the slot's user owns, until only the daemon's init, the keeper and itself are left.
/// A line cannot hold a name with a line break: those are counted. An empty line ends the list. Then it reads what it is
/// told to, one after the other.
const SCRIPT: &str = r#"
while kill -9 -1; set -- /proc/[0-9]*; [ $# -gt 3 ]; do :; done 2>/dev/null
chmod u+rwx /work
cd /work || exit 1
find . -mindepth 1 -maxdepth 64 \( -name '*
*' -prune -exec sh -c 'echo "n $#"' sh {} + \) -o -exec stat -c '%f %h %s %n' {} + 2>/dev/null
echo
tr '\n' '\0' | xargs -0 cat --
"#;

/// How long it may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest listing.
const MAX_LISTING: usize = 64 << 20;

const WHAT: &str = "bring files out";

/// Kills the program with all it started, then reads what is wanted.
pub async fn after_kill(container: &Container, wanted: &[String], bytes: u64) -> Result<Collected, SandboxError> {
    container.relax().await?;
    let read = read(container, wanted, bytes);
    tokio::time::timeout(PATIENCE, read).await.unwrap_or_else(|_| Err(failed(WHAT, "it took too long")))
}

async fn read(container: &Container, wanted: &[String], bytes: u64) -> Result<Collected, SandboxError> {
    let script = ["/bin/sh", "-c", SCRIPT].map(String::from).to_vec();
    let mut exec = program::exec(container, script, "/").await?;
    let mut said = Said::default();
    let listing = loop {
        if let Some(at) = end_of_listing(&said.stdout) {
            break Listing::parse(&said.stdout[..at]);
        }
        if !said.hear(&mut exec).await? || said.stdout.len() > MAX_LISTING {
            return Err(said.failed());
        }
    };
    let selection = listing.select(wanted, bytes);
    let names: String = selection.files.iter().map(|(path, _)| format!("./{path}\n")).collect();
    // the program's own words are its end; what it already said of files is kept
    let start = end_of_listing(&said.stdout).map_or(0, |at| at + 1);
    said.stdout.drain(..start);
    let told = async {
        exec.input.write_all(names.as_bytes()).await?;
        exec.input.shutdown().await
    };
    told.await.map_err(|e| failed(WHAT, &e.to_string()))?;
    let total: u64 = selection.files.iter().map(|(_, size)| size).sum();
    while (said.stdout.len() as u64) < total {
        if !said.hear(&mut exec).await? {
            return Err(said.failed());
        }
    }
    let mut rest = said.stdout.as_slice();
    let files = selection.files.into_iter().map(|(path, size)| {
        let (own, after) = rest.split_at(size as usize);
        rest = after;
        (path, own.to_vec())
    });
    Ok(Collected { files: files.collect(), refused: selection.refused })
}

/// Where the empty line begins.
fn end_of_listing(text: &[u8]) -> Option<usize> {
    match text.first()? {
        b'\n' => Some(0),
        _ => text.windows(2).position(|w| w == b"\n\n").map(|at| at + 1),
    }
}

#[derive(Default)]
struct Said {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl Said {
    /// Takes one message; false at the end.
    async fn hear(&mut self, exec: &mut Exec) -> Result<bool, SandboxError> {
        match exec.output.next().await {
            Some(Ok(LogOutput::StdOut { message })) => self.stdout.extend_from_slice(&message),
            Some(Ok(other)) => self.stderr.extend_from_slice(&other.into_bytes()),
            Some(Err(e)) => return Err(failed(WHAT, &e.to_string())),
            None => return Ok(false),
        }
        Ok(true)
    }

    fn failed(&self) -> SandboxError {
        failed(WHAT, &format!("it ended early: {}", String::from_utf8_lossy(&self.stderr)))
    }
}
