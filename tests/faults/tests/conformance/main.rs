//! The conformance suite on every store there is: folder, memory, the real SeaweedFS, the fault injectors without a fault,
//! and servers with bad habits, which are refused or survived.
#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

mod nfs;

use rollmill_faults::conformance::conforms;
use rollmill_faults::s3::{Connector, Habits, Server};
use rollmill_faults::{Line, World};
use rollmill_store::{Blobs, Folder, Objects, StoreError, probe::probe};
use std::sync::Arc;

#[tokio::test(flavor = "multi_thread")]
async fn folder() {
    let dir = tempfile::tempdir().unwrap();
    conforms(Arc::new(Folder::open(&dir.path().join("run")).unwrap()), 16).await.unwrap();
    // Readers glob the table folders: no staging file may lie there.
    let left: Vec<_> =
        std::fs::read_dir(dir.path().join("run/tables/t")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3, "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn memory() {
    conforms(Arc::new(Objects::memory()), 64).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_without_a_fault() {
    conforms(Line::new(&Arc::new(World::default()), None), 64).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_in_memory() {
    let store = Connector::new(&Arc::new(Server::default()), None).store().unwrap();
    conforms(Arc::new(store), 64).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn seaweedfs() {
    let Ok(address) = std::env::var("ROLLMILL_TEST_S3") else {
        assert!(
            !std::env::var("ROLLMILL_REQUIRE").unwrap_or_default().split(',').any(|s| s == "s3"),
            "ROLLMILL_REQUIRE names s3, but ROLLMILL_TEST_S3 gives no bucket"
        );
        eprintln!("skipped: no S3 server (ROLLMILL_TEST_S3 is not set)");
        return;
    };
    for racers in [2, 4] {
        let address = format!("{address}/conformance-{}", rollmill_store::Nonce::fresh());
        let store = rollmill_store::open(&address, &rollmill_job::env::s3_settings()).unwrap();
        conforms(store, racers).await.unwrap();
    }
}

fn with_habits(habits: Habits) -> Arc<dyn Blobs> {
    Arc::new(Connector::new(&Arc::new(Server::new(habits)), None).store().unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ignores_if_none_match_is_refused() {
    let store = with_habits(Habits { ignores_if_none_match: true, ..Habits::default() });
    let refused = probe(store.as_ref()).await.unwrap_err();
    assert!(matches!(refused, StoreError::NoConditionalCreate { .. }), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stores_nothing_is_refused() {
    let store = with_habits(Habits { lies: true, ..Habits::default() });
    let refused = probe(store.as_ref()).await.unwrap_err();
    assert!(matches!(refused, StoreError::NoConditionalCreate { .. }), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_409_in_the_middle_of_races_is_survived() {
    conforms(with_habits(Habits { conflicts: 3, ..Habits::default() }), 8).await.unwrap_or_else(|e| {
        // The suite's own bare creates meet no conflict: the probe's create took them.
        panic!("{e}")
    });
}
