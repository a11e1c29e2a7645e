//! From an address to a store: a folder's path, `s3://bucket/prefix`, or `memory:` in tests.

use crate::{Blobs, Folder, Objects, S3Settings, StoreError};
use std::path::Path;
use std::sync::Arc;

/// Opens the store at `address`. Nothing is created in a bucket; a folder is made if missing.
pub fn open(address: &str, s3: &S3Settings) -> Result<Arc<dyn Blobs>, StoreError> {
    let bad = |reason: &str| StoreError::BadAddress { address: address.into(), reason: reason.into() };
    if address == "memory:" {
        return Ok(Arc::new(Objects::memory()));
    }
    if let Some(rest) = address.strip_prefix("s3://") {
        let (bucket, prefix) = rest.split_once('/').ok_or_else(|| bad("give a prefix: s3://bucket/prefix"))?;
        if bucket.is_empty() || prefix.trim_matches('/').is_empty() {
            return Err(bad("give a bucket and a prefix: s3://bucket/prefix"));
        }
        return Ok(Arc::new(Objects::s3(bucket, prefix, s3)?));
    }
    let path = address.strip_prefix("file://").unwrap_or(address);
    if path.is_empty() || path.contains("://") {
        return Err(bad("give a folder, or s3://bucket/prefix"));
    }
    Ok(Arc::new(Folder::open(Path::new(path))?))
}
