//! Refuses a store on which nothing here would be right (invariant 10): one key is created twice; the second must fail and
//! the first one's bytes must stay.

use crate::{Blobs, Commit, Created, Key, Nonce, StoreError, create_once};
use bytes::Bytes;

/// Checks reachability, rights and create-only semantics with two small objects of this process's own, then removes them.
pub async fn probe(blobs: &dyn Blobs) -> Result<(), StoreError> {
    let key = Key::new(format!("control/probe/{}", Nonce::fresh()))?;
    let (first, second) = (Bytes::from(Nonce::fresh().to_string()), Bytes::from(Nonce::fresh().to_string()));
    let refused = || StoreError::NoConditionalCreate { store: blobs.address() };
    if create_once(blobs, &key, first.clone()).await? != Commit::Mine {
        return Err(refused());
    }
    let again = blobs.create(&key, second).await;
    let kept = blobs.get(&key).await?;
    let _ = blobs.delete(&key).await;
    match again {
        Ok(Created::New) => Err(refused()),
        Ok(Created::Exists) if kept.as_ref() == Some(&first) => Ok(()),
        Ok(Created::Exists) => Err(refused()),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Entry, Objects};
    use async_trait::async_trait;
    use std::path::Path;

    /// A server that ignores `If-None-Match`: every create succeeds and overwrites.
    struct Overwrites(Objects);

    #[async_trait]
    impl Blobs for Overwrites {
        fn address(&self) -> String {
            "s3://careless/run".into()
        }
        async fn create(&self, key: &Key, bytes: Bytes) -> Result<Created, StoreError> {
            self.0.delete(key).await?;
            self.0.create(key, bytes).await
        }
        async fn get(&self, key: &Key) -> Result<Option<Bytes>, StoreError> {
            self.0.get(key).await
        }
        async fn size(&self, key: &Key) -> Result<Option<u64>, StoreError> {
            self.0.size(key).await
        }
        async fn list(&self, prefix: &Key) -> Result<Vec<Entry>, StoreError> {
            self.0.list(prefix).await
        }
        async fn delete(&self, key: &Key) -> Result<(), StoreError> {
            self.0.delete(key).await
        }
        async fn upload(&self, key: &Key, file: &Path) -> Result<(), StoreError> {
            self.0.upload(key, file).await
        }
        async fn download(&self, key: &Key, file: &Path) -> Result<(), StoreError> {
            self.0.download(key, file).await
        }
    }

    #[tokio::test]
    async fn a_store_that_overwrites_is_refused() {
        let careless = Overwrites(Objects::memory());
        let refused = probe(&careless).await.unwrap_err();
        assert!(matches!(refused, StoreError::NoConditionalCreate { .. }), "{refused}");
        assert!(probe(&Objects::memory()).await.is_ok());
    }
}
