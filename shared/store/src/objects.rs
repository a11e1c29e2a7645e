//! Runs in memory and in S3-compatible buckets, by `object_store`. It moves the bytes; the protocol is ours.
//!
//! Its own retries are off: it reports 409 as "already exists", and a create it retried would meet its own first try. What may
//! be repeated blindly is repeated here with full jitter; creates are repeated by [`crate::create_once`], which reads back.
//! Only uploads keep its retries: they go to names of the attempt's own, and a part that fails need not cost the whole file.
//! How many requests are open at once follows the server's 503 and 429 answers ([`crate::pace`]).

use crate::pace::{Pace, PacedConnector};
use crate::pause::Pauses;
use crate::settings::retry;
use crate::{Blobs, Created, Entry, Key, S3Settings, StoreError};
use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use object_store::aws::S3ConditionalPut;
use object_store::client::{HttpConnector, ReqwestConnector};
use object_store::{
    Error as Backend, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, TagSet,
    memory::InMemory, path::Path as ObjectPath,
};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

/// Objects of one prefix of an `object_store` backend.
pub struct Objects {
    store: Arc<dyn ObjectStore>,
    /// The same with retries of every request.
    uploads: Arc<dyn ObjectStore>,
    prefix: String,
    address: String,
    /// Makes this process's pauses unlike those of others.
    seed: u64,
    tag_chunks: bool,
}

/// Files up to this size are sent whole, larger ones in parts of it.
const UPLOAD_PART: usize = 16 << 20;

/// How often a call that may be repeated blindly is made before the worker gives up as transient.
const TRIES: u32 = 8;

impl Objects {
    /// A store in memory, for tests.
    pub fn memory() -> Objects {
        let store = Arc::new(InMemory::new());
        Objects {
            uploads: store.clone(),
            store,
            prefix: "run".into(),
            address: "memory:".into(),
            seed: 0,
            tag_chunks: false,
        }
    }

    /// The run at `s3://bucket/prefix`.
    pub fn s3(bucket: &str, prefix: &str, settings: &S3Settings) -> Result<Objects, StoreError> {
        let mut bits = [0u8; 8];
        // Without random bits processes only pause in step.
        let _ = getrandom::fill(&mut bits);
        let http = Arc::new(ReqwestConnector::default());
        Objects::s3_over(bucket, prefix, settings, http, u64::from_le_bytes(bits))
    }

    /// The same over another HTTP client and with pauses that follow from `seed`: what fault injection needs.
    pub fn s3_over(
        bucket: &str,
        prefix: &str,
        settings: &S3Settings,
        http: Arc<dyn HttpConnector>,
        seed: u64,
    ) -> Result<Objects, StoreError> {
        let address = format!("s3://{bucket}/{prefix}");
        let builder = settings
            .builder(&address)?
            .with_bucket_name(bucket)
            .with_conditional_put(S3ConditionalPut::ETagMatch)
            .with_http_connector(PacedConnector { inner: http, pace: Arc::new(Pace::default()) });
        let bad = |e: Backend| StoreError::BadAddress { address: address.clone(), reason: e.to_string() };
        let uploads = Arc::new(builder.clone().with_retry(retry(TRIES as usize)).build().map_err(bad)?);
        let store = Arc::new(builder.with_retry(retry(0)).build().map_err(bad)?);
        Ok(Objects {
            store,
            uploads,
            prefix: prefix.trim_matches('/').into(),
            address,
            seed,
            tag_chunks: settings.tag_chunks,
        })
    }

    /// Makes a call that may be repeated blindly until it succeeds or fails for a reason that stays.
    async fn again<T, F>(&self, what: &str, call: impl Fn() -> F + Send) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>> + Send,
    {
        let mut pauses = Pauses::new(self.seed ^ Pauses::seed_of(what.as_bytes()));
        for _ in 1..TRIES {
            match call().await {
                Err(e) if e.is_transient() => tokio::time::sleep(pauses.next_pause()).await,
                done => return done,
            }
        }
        call().await
    }

    fn path(&self, key: &Key) -> ObjectPath {
        if self.prefix.is_empty() {
            ObjectPath::from(key.as_str())
        } else {
            ObjectPath::from(format!("{}/{key}", self.prefix))
        }
    }

    /// Lifecycle rules match the beginning of a name, and `chunks` is a folder in its middle.
    fn tags(&self, key: &Key) -> TagSet {
        let mut tags = TagSet::default();
        if self.tag_chunks && key.as_str().split('/').any(|folder| folder == "chunks") {
            tags.push("rollmill", "chunk");
        }
        tags
    }

    fn error(&self, what: &str, e: Backend) -> StoreError {
        let (store, what) = (self.address.clone(), what.to_string());
        let reason = root_cause(&e);
        match e {
            Backend::PermissionDenied { .. } | Backend::Unauthenticated { .. } => {
                StoreError::Denied { store, what, reason }
            }
            Backend::NotFound { .. } => StoreError::Unreachable { store, reason },
            _ => StoreError::Transient { store, what, reason },
        }
    }

    fn entries(&self, found: Vec<ObjectMeta>) -> Vec<Entry> {
        let strip = if self.prefix.is_empty() { 0 } else { self.prefix.len() + 1 };
        let key = |m: &ObjectMeta| Key::new(m.location.as_ref().get(strip..)?).ok();
        let mut entries: Vec<Entry> = found.iter().filter_map(|m| Some(Entry { key: key(m)?, size: m.size })).collect();
        entries.sort_by(|a, b| a.key.cmp(&b.key));
        entries
    }

    async fn upload_in_parts(&self, key: &Key, file: &Path) -> Result<(), StoreError> {
        let wrap = |e| self.error(&format!("upload {key}"), e);
        let mut source = std::fs::File::open(file).map_err(Self::local(file))?;
        let mut upload = self.uploads.put_multipart(&self.path(key)).await.map_err(wrap)?;
        // An upload that is gone may have been completed by a request whose answer was lost: the whole file goes again.
        let gone = |e: Backend| match e {
            Backend::NotFound { .. } => {
                let (store, what) = (self.address.clone(), format!("upload {key}"));
                StoreError::Transient { store, what, reason: "the upload was completed or ended by another".into() }
            }
            e => wrap(e),
        };
        let sent = async {
            loop {
                let mut part = Vec::new();
                Read::by_ref(&mut source).take(UPLOAD_PART as u64).read_to_end(&mut part).map_err(Self::local(file))?;
                if part.is_empty() {
                    return upload.complete().await.map_err(gone);
                }
                upload.put_part(part.into()).await.map_err(gone)?;
            }
        };
        let sent = sent.await;
        if sent.is_err() {
            // What stays after a kill here is swept by the bucket's lifecycle rule and by gc.
            let _ = upload.abort().await;
        }
        sent.map(|_| ())
    }

    async fn download_into(&self, key: &Key, part: &Path) -> Result<(), StoreError> {
        let wrap = |e| self.error(&format!("download {key}"), e);
        let mut stream = self.store.get(&self.path(key)).await.map_err(wrap)?.into_stream();
        let mut out = std::fs::File::create(part).map_err(Self::local(part))?;
        while let Some(piece) = stream.next().await {
            out.write_all(&piece.map_err(wrap)?).map_err(Self::local(part))?;
        }
        out.sync_all().map_err(Self::local(part))
    }

    fn local(path: &Path) -> impl Fn(std::io::Error) -> StoreError {
        move |source| StoreError::Disk { path: path.display().to_string(), source }
    }
}

fn absent<T>(answer: Result<T, Backend>) -> Result<Option<T>, Backend> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(Backend::NotFound { .. }) => Ok(None),
        Err(e) => Err(e),
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
        let options = PutOptions { mode: PutMode::Create, tags: self.tags(key), ..PutOptions::default() };
        match self.store.put_opts(&self.path(key), PutPayload::from_bytes(bytes), options).await {
            Ok(_) => Ok(Created::New),
            Err(Backend::AlreadyExists { .. } | Backend::Precondition { .. }) => Ok(Created::Exists),
            Err(e) => Err(self.error(&format!("create {key}"), e)),
        }
    }

    async fn get(&self, key: &Key) -> Result<Option<Bytes>, StoreError> {
        let (path, what) = (&self.path(key), &format!("read {key}"));
        let fetch = || async {
            let found = async { self.store.get(path).await?.bytes().await };
            absent(found.await).map_err(|e| self.error(what, e))
        };
        self.again(what, fetch).await
    }

    async fn size(&self, key: &Key) -> Result<Option<u64>, StoreError> {
        let (path, what) = (&self.path(key), &format!("look at {key}"));
        let look = || async { absent(self.store.head(path).await).map_err(|e| self.error(what, e)) };
        Ok(self.again(what, look).await?.map(|meta| meta.size))
    }

    async fn list(&self, prefix: &Key) -> Result<Vec<Entry>, StoreError> {
        let (path, what) = (&self.path(prefix), &format!("list {prefix}"));
        let all = || async { self.store.list(Some(path)).try_collect().await.map_err(|e| self.error(what, e)) };
        Ok(self.entries(self.again(what, all).await?))
    }

    async fn list_page(&self, prefix: &Key, after: Option<&Key>, most: usize) -> Result<Vec<Entry>, StoreError> {
        let (path, what) = (&self.path(prefix), &format!("list {prefix}"));
        let after = &after.map(|key| self.path(key));
        let page = || async move {
            let found = match after {
                Some(after) => self.store.list_with_offset(Some(path), after),
                None => self.store.list(Some(path)),
            };
            found.take(most).try_collect().await.map_err(|e| self.error(what, e))
        };
        Ok(self.entries(self.again(what, page).await?))
    }

    async fn delete(&self, key: &Key) -> Result<(), StoreError> {
        let (path, what) = (&self.path(key), &format!("delete {key}"));
        let remove = || async { absent(self.store.delete(path).await).map_err(|e| self.error(what, e)) };
        self.again(what, remove).await.map(|_| ())
    }

    async fn upload(&self, key: &Key, file: &Path) -> Result<(), StoreError> {
        let what = &format!("upload {key}");
        let size = std::fs::metadata(file).map_err(Self::local(file))?.len();
        if size > UPLOAD_PART as u64 {
            return self.again(what, || self.upload_in_parts(key, file)).await;
        }
        let (path, bytes) = (&self.path(key), &Bytes::from(std::fs::read(file).map_err(Self::local(file))?));
        let put = || async { self.store.put(path, bytes.clone().into()).await.map_err(|e| self.error(what, e)) };
        self.again(what, put).await.map(|_| ())
    }

    async fn download(&self, key: &Key, file: &Path) -> Result<(), StoreError> {
        let part = &file.with_extension("part");
        self.again(&format!("download {key}"), || self.download_into(key, part)).await?;
        std::fs::rename(part, file).map_err(Self::local(file))
    }
}
