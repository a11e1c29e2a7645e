//! The trait every backend implements, and its errors. One conformance suite (in `tests/faults`) runs on all.

use crate::Key;
use async_trait::async_trait;
use bytes::Bytes;
use std::path::Path;
use std::time::Duration;

/// What one attempt to create an object answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Created {
    /// The object was created by this call.
    New,
    /// The store says that the name is taken. On a bucket this proves nothing: an earlier try of ours may have landed.
    Exists,
}

/// One object of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its key below the run's prefix.
    pub key: Key,
    /// Its size in bytes.
    pub size: u64,
}

/// How many objects a bucket lists in one request.
pub const PAGE: usize = 1000;

/// What can go wrong with a store. [`StoreError::is_transient`] answers the one question a caller has.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The outcome of a write is unknown, or a read failed for a reason that may pass: try again.
    #[error(
        "{store}: {what} did not get through ({reason}); run the same command again, and check the address and the network if it stays so"
    )]
    Transient {
        /// The store's address.
        store: String,
        /// The operation and key.
        what: String,
        /// What the backend said.
        reason: String,
    },
    /// Credentials are missing, wrong or not sufficient.
    #[error("{store}: {what} was denied ({reason}); check the access key, its secret and the bucket's policy")]
    Denied {
        /// The store's address.
        store: String,
        /// The operation and key.
        what: String,
        /// What the backend said.
        reason: String,
    },
    /// There is nothing to sign requests with.
    #[error(
        "{store}: no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (temporary ones: AWS_SESSION_TOKEN too), or \
        ROLLMILL_INSTANCE_CREDENTIALS=1 on a machine with an instance role"
    )]
    NoCredentials {
        /// The store's address.
        store: String,
    },
    /// One half of a key pair.
    #[error("{store}: half of the credentials: the {missing} is missing")]
    HalfCredentials {
        /// The store's address.
        store: String,
        /// The half that is missing.
        missing: &'static str,
    },
    /// Nothing answers at the address, or the bucket is not there.
    #[error("{store}: cannot be reached ({reason}); check the address, the bucket's name and the endpoint")]
    Unreachable {
        /// The store's address.
        store: String,
        /// What the backend said.
        reason: String,
    },
    /// The store does not honour create-only writes, on which everything rests.
    #[error("{store}: creates one name twice (it ignores If-None-Match), so rows could be lost; use another store")]
    NoConditionalCreate {
        /// The store's address.
        store: String,
    },
    /// The address itself is wrong.
    #[error("{address:?} is no store: {reason}")]
    BadAddress {
        /// What was given.
        address: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The local disk refused.
    #[error("{path}: {source}; check the disk's space and the folder's permissions")]
    Disk {
        /// The file or folder.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A name was not valid: a bug of the caller.
    #[error(transparent)]
    Key(#[from] crate::key::InvalidKey),
}

impl StoreError {
    /// Whether the same call may succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(self, StoreError::Transient { .. })
    }
}

/// Objects by key, below one run's prefix. Everything else in this crate is written against it.
#[async_trait]
pub trait Blobs: Send + Sync {
    /// The address people know it by, without credentials.
    fn address(&self) -> String;

    /// One try to create `key`, whole or not at all, only if the name is free. An error leaves the outcome unknown:
    /// callers use [`crate::create_once`], which reads back.
    async fn create(&self, key: &Key, bytes: Bytes) -> Result<Created, StoreError>;

    /// The whole object, or none.
    async fn get(&self, key: &Key) -> Result<Option<Bytes>, StoreError>;

    /// The object's size, or none if it is absent.
    async fn size(&self, key: &Key) -> Result<Option<u64>, StoreError>;

    /// All objects whose key starts with `prefix/`, sorted by key. Unfinished writes never show.
    async fn list(&self, prefix: &Key) -> Result<Vec<Entry>, StoreError>;

    /// The first `most` objects of [`Blobs::list`] whose key sorts after `after`. On a bucket one request, if `most` is at
    /// most [`PAGE`].
    async fn list_page(&self, prefix: &Key, after: Option<&Key>, most: usize) -> Result<Vec<Entry>, StoreError>;

    /// Removes an object; a missing one is no error. Only `gc` calls this.
    async fn delete(&self, key: &Key) -> Result<(), StoreError>;

    /// Finds what processes that were killed left half written and no listing shows, if it is older than `age`: name and
    /// size of each. Removes them if `remove`. Only `gc` calls this.
    async fn unfinished(&self, _age: Duration, _remove: bool) -> Result<Vec<(String, u64)>, StoreError> {
        Ok(Vec::new())
    }

    /// Uploads a large file to a key below the caller's own attempt prefix. Not create-only, and visible only when
    /// whole: nobody else writes there, and nobody reads it before a manifest names it.
    async fn upload(&self, key: &Key, file: &Path) -> Result<(), StoreError>;

    /// Downloads an object into a local file, which appears whole or not at all.
    async fn download(&self, key: &Key, file: &Path) -> Result<(), StoreError>;
}
