//! A store that counts what is asked of it.

use async_trait::async_trait;
use bytes::Bytes;
use rollmill_store::{Blobs, Created, Entry, Key, StoreError};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Calls by kind: creates, reads, listings, and anything else.
#[derive(Default)]
pub struct Calls([AtomicUsize; 4]);

impl Calls {
    /// The counts so far.
    pub fn now(&self) -> [usize; 4] {
        self.0.each_ref().map(|n| n.load(Ordering::Relaxed))
    }
}

/// A store behind a counter.
pub struct Counting {
    /// The store.
    pub inner: Arc<dyn Blobs>,
    /// The counter.
    pub calls: Arc<Calls>,
}

impl Counting {
    fn count(&self, kind: usize) {
        self.calls.0[kind].fetch_add(1, Ordering::Relaxed);
    }
}

#[async_trait]
impl Blobs for Counting {
    fn address(&self) -> String {
        self.inner.address()
    }
    async fn create(&self, key: &Key, bytes: Bytes) -> Result<Created, StoreError> {
        self.count(0);
        self.inner.create(key, bytes).await
    }
    async fn get(&self, key: &Key) -> Result<Option<Bytes>, StoreError> {
        self.count(1);
        self.inner.get(key).await
    }
    async fn size(&self, key: &Key) -> Result<Option<u64>, StoreError> {
        self.count(3);
        self.inner.size(key).await
    }
    async fn list(&self, prefix: &Key) -> Result<Vec<Entry>, StoreError> {
        self.count(2);
        self.inner.list(prefix).await
    }
    async fn list_page(&self, prefix: &Key, after: Option<&Key>, most: usize) -> Result<Vec<Entry>, StoreError> {
        self.count(2);
        self.inner.list_page(prefix, after, most).await
    }
    async fn delete(&self, key: &Key) -> Result<(), StoreError> {
        self.count(3);
        self.inner.delete(key).await
    }
    async fn upload(&self, key: &Key, file: &Path) -> Result<(), StoreError> {
        self.count(3);
        self.inner.upload(key, file).await
    }
    async fn download(&self, key: &Key, file: &Path) -> Result<(), StoreError> {
        self.count(3);
        self.inner.download(key, file).await
    }
}
