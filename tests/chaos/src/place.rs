//! Where runs lie: an address for workers, the variables they need, and the bytes for the checker.

use rollmill_store::{Blobs, S3Settings};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// The kind of store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// A folder.
    Folder,
    /// A SeaweedFS server that the harness starts.
    S3,
}

/// One run's place.
#[derive(Clone)]
pub struct Place {
    /// What `--run` gets.
    pub address: String,
    /// How to reach it.
    pub settings: S3Settings,
    /// The bytes.
    pub blobs: Arc<dyn Blobs>,
}

impl Place {
    /// A run in a folder.
    pub fn folder(path: &Path) -> anyhow::Result<Place> {
        Place::open(path.display().to_string(), S3Settings::default())
    }

    /// A run at an address.
    pub fn open(address: String, settings: S3Settings) -> anyhow::Result<Place> {
        let blobs = rollmill_store::open(&address, &settings)?;
        Ok(Place { address, settings, blobs })
    }

    /// Tells a worker how to reach the store, and keeps a scheduler's index around the harness from it.
    pub fn tell(&self, command: &mut Command) {
        use rollmill_job::env;
        for name in [env::SLURM_ARRAY_TASK_ID, env::JOB_COMPLETION_INDEX, env::AWS_BATCH_JOB_ARRAY_INDEX, env::RUN] {
            command.env_remove(name);
        }
        let values = [
            (env::AWS_ENDPOINT_URL, &self.settings.endpoint),
            (env::AWS_REGION, &self.settings.region),
            (env::AWS_ACCESS_KEY_ID, &self.settings.access_key),
            (env::AWS_SECRET_ACCESS_KEY, &self.settings.secret_key),
        ];
        for (name, value) in values {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
    }
}
