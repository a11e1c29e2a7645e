//! Create-only writes whose outcome is always known in the end (invariants 1 and 3).
//!
//! In: a key and bytes that carry a nonce. Out: whether *these* bytes are the object now. Retries send identical bytes,
//! so an object equal to mine is mine, whichever of my tries landed and whatever answer was lost on the way back.

use crate::pause::Pauses;
use crate::{Blobs, Created, Key, StoreError};
use bytes::Bytes;

/// How a create ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Commit {
    /// The object is what I sent.
    Mine,
    /// Another attempt's object is there; these are its bytes.
    Lost(Bytes),
}

/// How often an unknown outcome is tried again before the worker gives up as transient: about six seconds of pauses.
const TRIES: u32 = 10;

/// Creates `key` with `bytes` exactly once, or says who did.
///
/// `bytes` must contain something no other attempt would write (an attempt id or a nonce). Fails only where the store
/// stays unreachable or refuses; then nothing is known and the same call may be made again.
pub async fn create_once(blobs: &dyn Blobs, key: &Key, bytes: Bytes) -> Result<Commit, StoreError> {
    // Racers send different bytes, so they do not march in step.
    let mut pauses = None;
    for left in (0..TRIES).rev() {
        let failure = match blobs.create(key, bytes.clone()).await {
            Ok(Created::New) => return Ok(Commit::Mine),
            Ok(Created::Exists) => None,
            Err(e) if e.is_transient() => Some(e),
            Err(e) => return Err(e),
        };
        match (read_back(blobs, key, &bytes).await, failure) {
            (Ok(Some(commit)), _) => return Ok(commit),
            (Ok(None), Some(e)) | (Err(e), _) if left == 0 || !e.is_transient() => return Err(e),
            // "Exists" and then absent: a 409 for a race that nobody won yet, or a late listing. Again, with the same bytes.
            (Ok(None), _) | (Err(_), _) => {}
        }
        tokio::time::sleep(pauses.get_or_insert_with(|| Pauses::of(&bytes)).next_pause()).await;
    }
    Err(StoreError::Transient {
        store: blobs.address(),
        what: format!("create {key}"),
        reason: "the store says the name is taken but shows no object".into(),
    })
}

async fn read_back(blobs: &dyn Blobs, key: &Key, mine: &Bytes) -> Result<Option<Commit>, StoreError> {
    let found = blobs.get(key).await?;
    Ok(found.map(|found| if found == *mine { Commit::Mine } else { Commit::Lost(found) }))
}
