//! The store that all actors of one case share: memory, with a diary of what landed.

use bytes::Bytes;
use rollmill_store::{Blobs, Created, Entry, Key, Objects, StoreError};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Something that changed in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// An object landed.
    Wrote {
        /// Its key.
        key: String,
        /// Its bytes.
        bytes: Bytes,
        /// What was there before.
        over: Option<Bytes>,
    },
    /// An object went.
    Removed {
        /// Its key.
        key: String,
    },
}

/// The shared store.
pub struct World {
    store: Objects,
    events: Mutex<Vec<Event>>,
}

impl Default for World {
    fn default() -> World {
        World { store: Objects::memory(), events: Mutex::new(Vec::new()) }
    }
}

impl World {
    // The diary stays readable whatever panicked beside it.
    fn diary(&self) -> MutexGuard<'_, Vec<Event>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wrote(&self, key: &Key, bytes: &Bytes, over: Option<Bytes>) {
        self.diary().push(Event::Wrote { key: key.to_string(), bytes: bytes.clone(), over });
    }

    /// Everything that changed, in order.
    pub fn events(&self) -> Vec<Event> {
        self.diary().clone()
    }

    /// The store itself, for reads.
    pub fn store(&self) -> &Objects {
        &self.store
    }

    /// Creates an object if the name is free.
    pub async fn create(&self, key: &Key, bytes: &Bytes) -> Result<Created, StoreError> {
        let created = self.store.create(key, bytes.clone()).await?;
        if created == Created::New {
            self.wrote(key, bytes, None);
        }
        Ok(created)
    }

    /// Writes an object whatever is there: what an attempt's own uploads do, and broken protocols.
    pub async fn overwrite(&self, key: &Key, bytes: &Bytes) -> Result<(), StoreError> {
        let over = self.store.get(key).await?;
        self.store.delete(key).await?;
        self.store.create(key, bytes.clone()).await?;
        self.wrote(key, bytes, over);
        Ok(())
    }

    /// Removes an object.
    pub async fn remove(&self, key: &Key) -> Result<(), StoreError> {
        if self.store.size(key).await?.is_some() {
            self.store.delete(key).await?;
            self.diary().push(Event::Removed { key: key.to_string() });
        }
        Ok(())
    }

    /// Everything that is there now.
    pub async fn contents(&self) -> Result<Vec<(Entry, Bytes)>, StoreError> {
        let mut found = Vec::new();
        for folder in ["control", "tables", "checkpoints"] {
            for entry in self.store.list(&Key::new(folder)?).await? {
                if let Some(bytes) = self.store.get(&entry.key).await? {
                    found.push((entry, bytes));
                }
            }
        }
        Ok(found)
    }
}
