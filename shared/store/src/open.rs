//! From an address to a store: a folder's path, `s3://bucket/prefix`, or `memory:` in tests.

use crate::{Blobs, Folder, Objects, S3Settings, StoreError};
use std::path::Path;
use std::sync::Arc;

/// Bucket and prefix of an `s3://` address; none for an address of another kind.
pub fn bucket_of(address: &str) -> Result<Option<(&str, &str)>, StoreError> {
    let Some(rest) = address.strip_prefix("s3://") else { return Ok(None) };
    let bad = |reason: &str| StoreError::BadAddress { address: address.into(), reason: reason.into() };
    let (bucket, prefix) = rest.split_once('/').ok_or_else(|| bad("give a prefix: s3://bucket/prefix"))?;
    let prefix = prefix.trim_matches('/');
    if bucket.is_empty() || prefix.is_empty() {
        return Err(bad("give a bucket and a prefix: s3://bucket/prefix"));
    }
    Ok(Some((bucket, prefix)))
}

/// Opens the store at `address`. Nothing is created in a bucket; a folder is made if missing.
pub fn open(address: &str, s3: &S3Settings) -> Result<Arc<dyn Blobs>, StoreError> {
    if address == "memory:" {
        return Ok(Arc::new(Objects::memory()));
    }
    if let Some((bucket, prefix)) = bucket_of(address)? {
        return Ok(Arc::new(Objects::s3(bucket, prefix, s3)?));
    }
    let path = address.strip_prefix("file://").unwrap_or(address);
    if path.is_empty() || path.contains("://") {
        let reason = "give a folder, or s3://bucket/prefix".into();
        return Err(StoreError::BadAddress { address: address.into(), reason });
    }
    Ok(Arc::new(Folder::open(Path::new(path))?))
}
