//! Somebody takes the lease of a shard right after every claim, so that no item can be finished under one: a machine so busy
//! that leases always run out. The stage gets done all the same.
#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

use async_trait::async_trait;
use bytes::Bytes;
use rollmill_faults::actors::{self, Toy};
use rollmill_faults::{Line, World, facts, simulate};
use rollmill_job::{Outcome, Plan, WorkerOptions, work};
use rollmill_store::{Blobs, Created, Entry, Key, StoreError};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A store in which every term of a lease is followed at once by one of an attempt that does nothing.
struct Thief(Arc<Line>);

#[async_trait]
impl Blobs for Thief {
    fn address(&self) -> String {
        self.0.address()
    }
    async fn create(&self, key: &Key, bytes: Bytes) -> Result<Created, StoreError> {
        let created = self.0.create(key, bytes.clone()).await?;
        if key.as_str().contains("/leases/") && created == Created::New {
            let (folder, name) = key.as_str().rsplit_once('/').unwrap();
            let number: u32 = name.trim_end_matches(".json").parse().unwrap();
            let ours = String::from_utf8(bytes.to_vec()).unwrap().replace(&format!("{:032x}", 1), &"f".repeat(32));
            self.0.create(&Key::new(format!("{folder}/{:06}.json", number + 1))?, Bytes::from(ours)).await?;
        }
        Ok(created)
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
    async fn list_page(&self, prefix: &Key, after: Option<&Key>, most: usize) -> Result<Vec<Entry>, StoreError> {
        self.0.list_page(prefix, after, most).await
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

#[test]
fn items_longer_than_any_lease_get_done() {
    simulate(async {
        let world = Arc::new(World::default());
        let store = Arc::new(Thief(Line::new(&world, None)));
        rollmill_job::Run::create(store.clone(), &actors::config(), None).await.unwrap();
        let run = actors::open(store, 1, 0.0).await.unwrap();
        // The lease lasts 30 s and is renewed after 10.
        let toy = Toy { item: Duration::from_secs(100), ..Toy::default() };
        let plan = Plan::ensure(&run, &actors::stage(), actors::draft(5, 5)).await.unwrap();
        let stage = actors::stage();
        let working = work(&run, &stage, &plan, &toy, WorkerOptions::default());
        let done = tokio::time::timeout(Duration::from_secs(3600), working).await;
        assert_eq!(done.expect("it gets on, an item a term").unwrap(), Outcome::Complete);
        let finished = toy.finished.lock().unwrap().clone();
        assert_eq!(finished.len(), 5, "no item was done twice: {finished:?}");
        let read = actors::read(Line::new(&world, None), 2).await.unwrap();
        assert_eq!(facts::judge(&world, &[], vec![read]).await, [""; 0]);
    });
}
