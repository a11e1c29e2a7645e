//! One suite, run on every backend. S3 is the real SeaweedFS server, started by the end-to-end package, which sets
//! `ROLLMILL_TEST_S3` to a run's address; here folder and memory; NFS in `nfs.rs`.
#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

mod nfs;

use bytes::Bytes;
use rollmill_store::{Blobs, Commit, Created, Folder, Key, Objects, create_once, probe::probe};
use std::sync::Arc;

fn key(name: &str) -> Key {
    Key::new(name).unwrap()
}

async fn conforms(store: Arc<dyn Blobs>) {
    probe(store.as_ref()).await.unwrap();
    let k = key("tables/t/part-00000.parquet");
    assert_eq!(store.get(&k).await.unwrap(), None);
    assert_eq!(store.size(&k).await.unwrap(), None);
    assert_eq!(store.create(&k, Bytes::from_static(b"one")).await.unwrap(), Created::New);
    assert_eq!(store.create(&k, Bytes::from_static(b"two")).await.unwrap(), Created::Exists);
    assert_eq!(store.get(&k).await.unwrap().unwrap(), Bytes::from_static(b"one"));
    assert_eq!(store.size(&k).await.unwrap(), Some(3));
    let lost = create_once(store.as_ref(), &k, Bytes::from_static(b"two")).await.unwrap();
    assert_eq!(lost, Commit::Lost(Bytes::from_static(b"one")));

    // Listing: sorted, only below the prefix, and a sibling that shares letters is not below it.
    store.create(&key("tables/tt/x"), Bytes::new()).await.unwrap();
    store.create(&key("tables/t/a/b"), Bytes::new()).await.unwrap();
    let names: Vec<String> = store.list(&key("tables/t")).await.unwrap().iter().map(|e| e.key.to_string()).collect();
    assert_eq!(names, ["tables/t/a/b", "tables/t/part-00000.parquet"]);
    assert!(store.list(&key("nothing/here")).await.unwrap().is_empty());

    // Racers: exactly one wins.
    let racers = (0..4).map(|i| {
        let store = store.clone();
        tokio::spawn(async move {
            create_once(store.as_ref(), &key("control/race"), Bytes::from(format!("racer {i}"))).await.unwrap()
        })
    });
    let mut winners = 0;
    for racer in racers.collect::<Vec<_>>() {
        winners += u32::from(racer.await.unwrap() == Commit::Mine);
    }
    assert_eq!(winners, 1);

    // Large files and deletes.
    let dir = tempfile::tempdir().unwrap();
    let big: Vec<u8> = (0..40_000_000u32).map(|i| (i % 251) as u8).collect();
    std::fs::write(dir.path().join("in"), &big).unwrap();
    store.upload(&key("checkpoints/a/model"), &dir.path().join("in")).await.unwrap();
    store.download(&key("checkpoints/a/model"), &dir.path().join("out")).await.unwrap();
    assert!(std::fs::read(dir.path().join("out")).unwrap() == big);
    store.delete(&key("checkpoints/a/model")).await.unwrap();
    store.delete(&key("checkpoints/a/model")).await.unwrap();
    assert_eq!(store.get(&key("checkpoints/a/model")).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn folder() {
    let dir = tempfile::tempdir().unwrap();
    conforms(Arc::new(Folder::open(&dir.path().join("run")).unwrap())).await;
    // Readers glob the table folders: no staging file may lie there.
    let left: Vec<_> =
        std::fs::read_dir(dir.path().join("run/tables/t")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn memory() {
    conforms(Arc::new(Objects::memory())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s3() {
    let Ok(address) = std::env::var("ROLLMILL_TEST_S3") else {
        assert!(
            !std::env::var("ROLLMILL_REQUIRE").unwrap_or_default().split(',').any(|s| s == "s3"),
            "ROLLMILL_REQUIRE names s3, but ROLLMILL_TEST_S3 gives no bucket"
        );
        eprintln!("skipped: no S3 server (ROLLMILL_TEST_S3 is not set)");
        return;
    };
    let settings = rollmill_store::S3Settings {
        endpoint: std::env::var("AWS_ENDPOINT_URL").ok(),
        access_key: std::env::var("AWS_ACCESS_KEY_ID").ok(),
        secret_key: std::env::var("AWS_SECRET_ACCESS_KEY").ok(),
        ..rollmill_store::S3Settings::default()
    };
    let address = format!("{address}/conformance-{}", rollmill_store::Nonce::fresh());
    conforms(rollmill_store::open(&address, &settings).unwrap()).await;
}
