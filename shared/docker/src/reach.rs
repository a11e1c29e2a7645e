//! Whether a daemon is there at all, for tables of what a machine can do.

use crate::daemon::{Runtime, connect};
use rollmill_sandbox::SandboxError;
use std::path::Path;

/// The daemon that would be used, in words: name, version, runtimes. `socket` as in [`crate::DockerOptions`].
pub fn reach(socket: Option<&Path>) -> Result<String, SandboxError> {
    let socket = socket.map(Path::to_path_buf);
    Runtime::new()?.wait(async move {
        let client = connect(socket.as_deref()).await?;
        let info = client.info().await.map_err(crate::error::asked("ask what it is"))?;
        let mut runtimes: Vec<String> = info.runtimes.unwrap_or_default().into_keys().collect();
        runtimes.sort();
        let version = info.server_version.unwrap_or_else(|| "unknown".into());
        Ok(format!("server {version}, runtimes {}", runtimes.join(", ")))
    })
}
