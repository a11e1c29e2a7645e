//! Create-only writes whose outcome is always known in the end (invariants 1 and 3).
//!
//! In: a key and bytes that carry a nonce. Out: whether *these* bytes are the object now. Retries send identical bytes,
//! so an object equal to mine is mine, whichever of my tries landed and whatever answer was lost on the way back.

use crate::{Blobs, Created, Key, StoreError};
use bytes::Bytes;
use std::time::Duration;

/// How a create ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Commit {
    /// The object is what I sent.
    Mine,
    /// Another attempt's object is there; these are its bytes.
    Lost(Bytes),
}

/// How often an unknown outcome is tried again before the worker gives up as transient.
const TRIES: u32 = 8;

/// Creates `key` with `bytes` exactly once, or says who did.
///
/// `bytes` must contain something no other attempt would write (an attempt id or a nonce). Fails only where the store
/// stays unreachable or refuses; then nothing is known and the same call may be made again.
pub async fn create_once(blobs: &dyn Blobs, key: &Key, bytes: Bytes) -> Result<Commit, StoreError> {
    let mut pause = Duration::from_millis(50);
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
            // "Exists" and then absent: a delete by gc or a store's late listing. Again, with the same bytes.
            (Ok(None), _) | (Err(_), _) => {}
        }
        tokio::time::sleep(jitter(pause)).await;
        pause = (pause * 2).min(Duration::from_secs(5));
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

/// Full jitter: between nothing and the whole pause, so that racers do not march in step.
fn jitter(pause: Duration) -> Duration {
    let mut byte = [0u8; 2];
    // Without random bits racers only collide more often.
    let _ = getrandom::fill(&mut byte);
    pause.mul_f64(f64::from(u16::from_le_bytes(byte)) / 65536.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Objects;
    use async_trait::async_trait;
    use std::path::Path;
    use std::sync::Mutex;

    /// What the wrapper does with the next create.
    #[derive(Clone, Copy)]
    enum Fault {
        FailsBefore,
        FailsAfterItHappened,
        SaysExistsThoughItHappened,
    }

    struct Faulty(Objects, Mutex<Vec<Fault>>);

    #[async_trait]
    impl Blobs for Faulty {
        fn address(&self) -> String {
            "faulty".into()
        }
        async fn create(&self, key: &Key, bytes: Bytes) -> Result<Created, StoreError> {
            let fault = self.1.lock().unwrap().pop();
            let torn =
                || StoreError::Transient { store: "faulty".into(), what: "create".into(), reason: "torn".into() };
            match fault {
                None => self.0.create(key, bytes).await,
                Some(Fault::FailsBefore) => Err(torn()),
                Some(Fault::FailsAfterItHappened) => self.0.create(key, bytes).await.and(Err(torn())),
                Some(Fault::SaysExistsThoughItHappened) => self.0.create(key, bytes).await.and(Ok(Created::Exists)),
            }
        }
        async fn get(&self, key: &Key) -> Result<Option<Bytes>, StoreError> {
            self.0.get(key).await
        }
        async fn size(&self, key: &Key) -> Result<Option<u64>, StoreError> {
            self.0.size(key).await
        }
        async fn list(&self, prefix: &Key) -> Result<Vec<crate::Entry>, StoreError> {
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

    #[tokio::test(start_paused = true)]
    async fn a_lost_answer_is_read_back() {
        let key = Key::new("t/part").unwrap();
        for fault in [Fault::FailsBefore, Fault::FailsAfterItHappened, Fault::SaysExistsThoughItHappened] {
            let store = Faulty(Objects::memory(), Mutex::new(vec![fault]));
            assert_eq!(create_once(&store, &key, Bytes::from_static(b"mine")).await.unwrap(), Commit::Mine);
            let store = Faulty(store.0, Mutex::new(vec![fault]));
            let lost = create_once(&store, &key, Bytes::from_static(b"other")).await.unwrap();
            assert_eq!(lost, Commit::Lost(Bytes::from_static(b"mine")));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn trusting_the_answer_alone_loses_rows() {
        // The control: the protocol without the read-back reports a row as lost that landed.
        let store = Faulty(Objects::memory(), Mutex::new(vec![Fault::FailsAfterItHappened]));
        let key = Key::new("t/part").unwrap();
        let naive = store.create(&key, Bytes::from_static(b"mine")).await;
        assert!(naive.is_err() && store.get(&key).await.unwrap().is_some());
    }
}
