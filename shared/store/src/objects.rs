//! Runs in memory and in S3-compatible buckets, by `object_store`. It moves the bytes; the protocol is ours: creates go out
//! with its retries off, because it reports 409 as "already exists" and a retried create would meet its own first try.

use crate::settings::retry;
use crate::{Blobs, Created, Entry, Key, S3Settings, StoreError};
use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use object_store::aws::S3ConditionalPut;
use object_store::{
    Error as Backend, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, memory::InMemory,
    path::Path as ObjectPath,
};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// Objects of one prefix of an `object_store` backend.
pub struct Objects {
    /// For creates: no retries inside, ours are around it.
    creates: Arc<dyn ObjectStore>,
    /// For everything that may be repeated blindly.
    store: Arc<dyn ObjectStore>,
    prefix: String,
    address: String,
}

/// Largest part of a multipart upload.
const UPLOAD_PART: usize = 16 << 20;

impl Objects {
    /// A store in memory, for tests.
    pub fn memory() -> Objects {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        Objects { creates: store.clone(), store, prefix: "run".into(), address: "memory:".into() }
    }

    /// The run at `s3://bucket/prefix`.
    pub fn s3(bucket: &str, prefix: &str, settings: &S3Settings) -> Result<Objects, StoreError> {
        let address = format!("s3://{bucket}/{prefix}");
        let builder =
            settings.builder(&address)?.with_bucket_name(bucket).with_conditional_put(S3ConditionalPut::ETagMatch);
        let bad = |e: Backend| StoreError::BadAddress { address: address.clone(), reason: e.to_string() };
        let creates = Arc::new(builder.clone().with_retry(retry(0)).build().map_err(bad)?);
        let store = Arc::new(builder.with_retry(retry(4)).build().map_err(bad)?);
        Ok(Objects { creates, store, prefix: prefix.trim_matches('/').into(), address })
    }

    fn path(&self, key: &Key) -> ObjectPath {
        if self.prefix.is_empty() {
            ObjectPath::from(key.as_str())
        } else {
            ObjectPath::from(format!("{}/{key}", self.prefix))
        }
    }

    fn error(&self, what: String, e: Backend) -> StoreError {
        let store = self.address.clone();
        let reason = root_cause(&e);
        match e {
            Backend::PermissionDenied { .. } | Backend::Unauthenticated { .. } => {
                StoreError::Denied { store, what, reason }
            }
            Backend::NotFound { .. } => StoreError::Unreachable { store, reason },
            _ => StoreError::Transient { store, what, reason },
        }
    }

    fn local(path: &Path) -> impl Fn(std::io::Error) -> StoreError {
        move |source| StoreError::Disk { path: path.display().to_string(), source }
    }
}

/// The innermost message: what the server or the socket said, without the wrappers.
pub(crate) fn root_cause(e: &dyn std::error::Error) -> String {
    let mut last = e;
    while let Some(inner) = last.source() {
        last = inner;
    }
    let text = last.to_string();
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(300).collect()
}

#[async_trait]
impl Blobs for Objects {
    fn address(&self) -> String {
        self.address.clone()
    }

    async fn create(&self, key: &Key, bytes: Bytes) -> Result<Created, StoreError> {
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        match self.creates.put_opts(&self.path(key), PutPayload::from_bytes(bytes), options).await {
            Ok(_) => Ok(Created::New),
            Err(Backend::AlreadyExists { .. } | Backend::Precondition { .. }) => Ok(Created::Exists),
            Err(e) => Err(self.error(format!("create {key}"), e)),
        }
    }

    async fn get(&self, key: &Key) -> Result<Option<Bytes>, StoreError> {
        let fetch = async { self.store.get(&self.path(key)).await?.bytes().await };
        match fetch.await {
            Ok(bytes) => Ok(Some(bytes)),
            Err(Backend::NotFound { .. }) => Ok(None),
            Err(e) => Err(self.error(format!("read {key}"), e)),
        }
    }

    async fn size(&self, key: &Key) -> Result<Option<u64>, StoreError> {
        match self.store.head(&self.path(key)).await {
            Ok(meta) => Ok(Some(meta.size)),
            Err(Backend::NotFound { .. }) => Ok(None),
            Err(e) => Err(self.error(format!("look at {key}"), e)),
        }
    }

    async fn list(&self, prefix: &Key) -> Result<Vec<Entry>, StoreError> {
        let found: Vec<_> = self
            .store
            .list(Some(&self.path(prefix)))
            .try_collect()
            .await
            .map_err(|e| self.error(format!("list {prefix}"), e))?;
        let strip = if self.prefix.is_empty() { 0 } else { self.prefix.len() + 1 };
        let mut entries: Vec<Entry> = found
            .into_iter()
            .filter_map(|m| Some(Entry { key: Key::new(m.location.as_ref().get(strip..)?).ok()?, size: m.size }))
            .collect();
        entries.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(entries)
    }

    async fn delete(&self, key: &Key) -> Result<(), StoreError> {
        match self.store.delete(&self.path(key)).await {
            Ok(()) | Err(Backend::NotFound { .. }) => Ok(()),
            Err(e) => Err(self.error(format!("delete {key}"), e)),
        }
    }

    async fn upload(&self, key: &Key, file: &Path) -> Result<(), StoreError> {
        let bytes = tokio::fs::read(file).await.map_err(Self::local(file))?;
        let wrap = |e| self.error(format!("upload {key}"), e);
        let mut upload = self.store.put_multipart(&self.path(key)).await.map_err(wrap)?;
        let bytes = Bytes::from(bytes);
        let mut at = 0;
        loop {
            let end = (at + UPLOAD_PART).min(bytes.len());
            if let Err(e) = upload.put_part(bytes.slice(at..end).into()).await {
                let _ = upload.abort().await;
                return Err(self.error(format!("upload {key}"), e));
            }
            at = end;
            if at == bytes.len() {
                break;
            }
        }
        upload.complete().await.map(|_| ()).map_err(|e| self.error(format!("upload {key}"), e))
    }

    async fn download(&self, key: &Key, file: &Path) -> Result<(), StoreError> {
        let part = file.with_extension("part");
        let wrap = |e| self.error(format!("download {key}"), e);
        let mut stream = self.store.get(&self.path(key)).await.map_err(wrap)?.into_stream();
        let mut out = std::fs::File::create(&part).map_err(Self::local(&part))?;
        while let Some(piece) = stream.next().await {
            out.write_all(&piece.map_err(wrap)?).map_err(Self::local(&part))?;
        }
        out.sync_all().and_then(|()| std::fs::rename(&part, file)).map_err(Self::local(file))
    }
}
