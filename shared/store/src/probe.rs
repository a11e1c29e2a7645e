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
