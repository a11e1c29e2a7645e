//! Protocols that are wrong on purpose. The suite must find each of them, or it finds nothing.

use crate::Line;
use async_trait::async_trait;
use bytes::Bytes;
use rollmill_store::{Blobs, Created, Entry, Key, StoreError};
use std::path::Path;
use std::sync::Arc;

/// How a protocol is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// A create looks whether the name is free, and then writes.
    ExistenceCheck,
    /// A chunk whose number another attempt took counts as written.
    ChunkWithoutRelist,
    /// An answer that was lost counts as a create that was lost: nothing is read back.
    NoReadBack,
}

/// A line with a wrong protocol on it.
pub struct Broken {
    /// The line.
    pub line: Arc<Line>,
    /// What is wrong.
    pub wrong: Wrong,
}

#[async_trait]
impl Blobs for Broken {
    fn address(&self) -> String {
        self.line.address()
    }

    async fn create(&self, key: &Key, bytes: Bytes) -> Result<Created, StoreError> {
        match self.wrong {
            Wrong::ExistenceCheck => {
                if self.line.size(key).await?.is_some() {
                    return Ok(Created::Exists);
                }
                let fault = self.line.next("create", key, bytes.clone());
                self.line.around(fault, self.line.world().overwrite(key, &bytes)).await?;
                Ok(Created::New)
            }
            Wrong::ChunkWithoutRelist => {
                let created = self.line.create(key, bytes).await?;
                Ok(if key.as_str().contains("/chunks/") { Created::New } else { created })
            }
            // What a caller that trusts every answer believes.
            Wrong::NoReadBack => match self.line.create(key, bytes).await {
                Err(e) if e.is_transient() => Ok(Created::New),
                answer => answer,
            },
        }
    }

    async fn get(&self, key: &Key) -> Result<Option<Bytes>, StoreError> {
        self.line.get(key).await
    }

    async fn size(&self, key: &Key) -> Result<Option<u64>, StoreError> {
        self.line.size(key).await
    }

    async fn list(&self, prefix: &Key) -> Result<Vec<Entry>, StoreError> {
        self.line.list(prefix).await
    }

    async fn list_page(&self, prefix: &Key, after: Option<&Key>, most: usize) -> Result<Vec<Entry>, StoreError> {
        self.line.list_page(prefix, after, most).await
    }

    async fn delete(&self, key: &Key) -> Result<(), StoreError> {
        self.line.delete(key).await
    }

    async fn upload(&self, key: &Key, file: &Path) -> Result<(), StoreError> {
        self.line.upload(key, file).await
    }

    async fn download(&self, key: &Key, file: &Path) -> Result<(), StoreError> {
        self.line.download(key, file).await
    }
}
