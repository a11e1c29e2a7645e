//! What can go wrong with weights, configs and the cache.
//!
//! [`ModelError::is_transient`] answers "retry or stop?": only reading and writing may heal; a bad file or a bad
//! request stays bad.

use std::path::{Path, PathBuf};

/// Why a model could not be read, written or run.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The file system refused.
    #[error("{path}: {source}; check that the path exists and is accessible")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file exists but is not what it should be; the detail says what to do.
    #[error("{path}: {detail}")]
    Bad {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong and what to do about it.
        detail: String,
    },
    /// A step does not fit the cache or the vocabulary; the detail says which limit.
    #[error("{0}")]
    Step(String),
    /// Adapters that this network cannot have; the detail says what to change.
    #[error("lora: {0}")]
    Lora(String),
    /// libtorch refused an operation.
    #[error("libtorch: {0}; check that the device has enough free memory")]
    Torch(#[from] tch::TchError),
}

impl ModelError {
    /// True where trying again may help (input and output only).
    pub fn is_transient(&self) -> bool {
        matches!(self, ModelError::Io { .. })
    }

    pub(crate) fn io(path: &Path, source: std::io::Error) -> Self {
        ModelError::Io { path: path.to_path_buf(), source }
    }

    pub(crate) fn bad(path: &Path, detail: impl Into<String>) -> Self {
        ModelError::Bad { path: path.to_path_buf(), detail: detail.into() }
    }
}
