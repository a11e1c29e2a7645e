//! How sandboxes are made, in the two forms a person says it: `[operations.sandbox]` of a file, and one flag,
//! `namespaces,root=all,warm=false` or `docker,image=python:3.12-slim`.
//!
//! What it does not know: what a sandbox is. The backend crate reads these words.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// `[operations.sandbox]`: how sandboxes are made. Which isolation was reached, and on which root file system, is in every row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SandboxSettings {
    /// What makes them.
    pub backend: SandboxBackend,
    /// Root file system of the namespaces backend: a name that `rollmill sandbox prepare` was given, or a path; none means
    /// this machine's interpreter.
    pub root: Option<String>,
    /// Whether interpreters are kept loaded and forked for each run (namespaces only).
    pub warm: bool,
    /// Image of the docker backend: its id, its digest, or a name, which is pinned to the id it has when a job starts.
    pub image: Option<String>,
    /// OCI runtime of the docker backend, such as `runsc`; none means the daemon's.
    pub runtime: Option<String>,
    /// Containers the docker backend keeps started ahead of runs.
    pub containers: usize,
}

/// What makes sandboxes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SandboxBackend {
    /// Linux namespaces, without a daemon.
    #[default]
    Namespaces,
    /// Containers of a Docker or Podman daemon.
    Docker,
}

impl Default for SandboxSettings {
    fn default() -> SandboxSettings {
        SandboxSettings {
            backend: SandboxBackend::Namespaces,
            root: None,
            warm: true,
            image: None,
            runtime: None,
            containers: 0,
        }
    }
}

/// A flag that says no sandbox.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}; say namespaces or docker, then root=, warm=, image=, runtime= or containers= after commas")]
pub struct BadSandbox(String);

impl FromStr for SandboxSettings {
    type Err = BadSandbox;

    /// A backend, then `key=value` after commas, with the keys of `[operations.sandbox]`.
    fn from_str(text: &str) -> Result<SandboxSettings, BadSandbox> {
        let mut table = toml::Table::new();
        for (at, word) in text.split(',').enumerate() {
            let (key, value) = if at == 0 { ("backend", word) } else { word.split_once('=').unwrap_or((word, "")) };
            let value = match key {
                "warm" | "containers" => toml::from_str::<toml::Table>(&format!("v = {value}"))
                    .ok()
                    .and_then(|mut parsed| parsed.remove("v"))
                    .ok_or_else(|| BadSandbox(format!("{word:?} has no value of its kind")))?,
                _ => toml::Value::String(value.into()),
            };
            table.insert(key.into(), value);
        }
        SandboxSettings::deserialize(toml::Value::Table(table))
            .map_err(|e| BadSandbox(e.message().trim().replace('\n', " ")))
    }
}

impl fmt::Display for SandboxSettings {
    /// What [`FromStr`] reads to the same settings.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.backend {
            SandboxBackend::Namespaces => "namespaces",
            SandboxBackend::Docker => "docker",
        })?;
        for (key, value) in [("root", &self.root), ("image", &self.image), ("runtime", &self.runtime)] {
            if let Some(value) = value {
                write!(f, ",{key}={value}")?;
            }
        }
        write!(f, ",warm={},containers={}", self.warm, self.containers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_and_a_section_say_the_same() {
        let docker: SandboxSettings = "docker,image=python:3.12-slim,runtime=runsc,containers=2".parse().unwrap();
        assert_eq!((docker.backend, docker.containers), (SandboxBackend::Docker, 2));
        assert_eq!(docker.image.as_deref(), Some("python:3.12-slim"));
        for settings in [docker, "namespaces,root=all,warm=false".parse().unwrap(), SandboxSettings::default()] {
            assert_eq!(settings.to_string().parse(), Ok(settings));
        }
        for (wrong, want) in
            [("podman", "podman"), ("docker,imgae=x", "imgae"), ("namespaces,warm=perhaps", "warm=perhaps")]
        {
            let error = wrong.parse::<SandboxSettings>().unwrap_err().to_string();
            assert!(error.contains(want), "{wrong}: {error}");
        }
    }
}
