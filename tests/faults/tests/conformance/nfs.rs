//! On real NFS: two clients of one export, and a mount that loses answers. `infra/setup/nfs.sh` starts a small machine that has
//! them and sets `ROLLMILL_TEST_NFS`; elsewhere each test is a skip by name.

use bytes::Bytes;
use rollmill_faults::conformance::conforms;
use rollmill_store::{Blobs, Commit, Created, Folder, Key, Nonce, create_once};
use std::path::PathBuf;
use std::sync::Arc;

fn key(name: &str) -> Key {
    Key::new(name).unwrap()
}

/// Mounts of one export: `FIRST:SECOND:LOSSY`, two clients and one whose link and rename answers are lost.
fn mounts() -> Option<[PathBuf; 3]> {
    let Ok(mounts) = std::env::var("ROLLMILL_TEST_NFS") else {
        let required = std::env::var("ROLLMILL_REQUIRE").unwrap_or_default().split(',').any(|s| s == "nfs");
        assert!(!required, "ROLLMILL_REQUIRE names nfs, but ROLLMILL_TEST_NFS gives no mounts");
        eprintln!(
            "skipped: nfs: ROLLMILL_TEST_NFS is not set (`make nfs` runs this test in a machine with an NFS kernel)"
        );
        return None;
    };
    let mounts: Vec<PathBuf> = mounts.split(':').map(PathBuf::from).collect();
    Some(mounts.try_into().expect("ROLLMILL_TEST_NFS is FIRST:SECOND:LOSSY"))
}

/// One run, opened through each mount, and its folder at each.
fn stores(mounts: &[PathBuf; 3]) -> ([Arc<Folder>; 3], [PathBuf; 3]) {
    let run = format!("run-{}", Nonce::fresh());
    let folders = mounts.clone().map(|mount| mount.join(&run));
    // The first makes it; the others must not have missed it before.
    (folders.clone().map(|folder| Arc::new(Folder::open(&folder).unwrap())), folders)
}

#[tokio::test(flavor = "multi_thread")]
async fn nfs_conforms() {
    let Some(mounts) = mounts() else { return };
    let ([one, ..], _) = stores(&mounts);
    conforms(one, 8).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn nfs_a_lost_answer_to_a_link_is_read_back() {
    let Some(mounts) = mounts() else { return };
    let ([one, _, lossy], _) = stores(&mounts);
    // The control: the link alone says that another was first, and it was this one.
    let control = key("control/plan-0.json");
    assert_eq!(lossy.create(&control, Bytes::from_static(b"mine")).await.unwrap(), Created::Exists);
    assert_eq!(one.get(&control).await.unwrap().unwrap(), Bytes::from_static(b"mine"));
    for i in 1..5 {
        let (k, mine) = (key(&format!("control/plan-{i}.json")), Bytes::from(format!("attempt {i}")));
        assert_eq!(create_once(lossy.as_ref(), &k, mine.clone()).await.unwrap(), Commit::Mine);
        assert_eq!(one.get(&k).await.unwrap().unwrap(), mine);
    }
    // A large file is renamed into place; that answer is lost too.
    let file = mounts[0].join(format!("file-{}", Nonce::fresh()));
    std::fs::write(&file, b"weights").unwrap();
    lossy.upload(&key("checkpoints/a/model"), &file).await.unwrap();
    assert_eq!(one.get(&key("checkpoints/a/model")).await.unwrap().unwrap(), Bytes::from_static(b"weights"));
}

#[tokio::test(flavor = "multi_thread")]
async fn nfs_a_client_sees_what_another_made() {
    let Some(mounts) = mounts() else { return };
    let ([one, two, _], folders) = stores(&mounts);
    let mut believed_missing = 0;
    for i in 0..10 {
        // A name in a folder that is there, and one below folders that the second client has missed.
        for name in [format!("tables/t/part-{i:05}.parquet"), format!("control/stage-{i}/leases/00000/1.json")] {
            let (k, bytes) = (key(&name), Bytes::from(format!("row {i}")));
            assert_eq!(two.get(&k).await.unwrap(), None);
            assert_eq!(one.create(&k, bytes.clone()).await.unwrap(), Created::New);
            believed_missing += u32::from(std::fs::read(folders[1].join(&name)).is_err());
            assert_eq!(two.get(&k).await.unwrap(), Some(bytes), "{name}");
            let folder = key(name.rsplit_once('/').unwrap().0);
            assert!(two.list(&folder).await.unwrap().iter().any(|e| e.key == k), "{name}");
            assert_eq!(two.size(&k).await.unwrap(), Some(5), "{name}");
        }
    }
    // The control: a plain read believes that the name is missing. Without this the test would catch nothing.
    assert!(believed_missing > 0, "this client remembers no missing names");
}

#[tokio::test(flavor = "multi_thread")]
async fn nfs_of_racers_on_two_clients_one_wins() {
    let Some(mounts) = mounts() else { return };
    let ([one, two, lossy], _) = stores(&mounts);
    for round in 0..5 {
        let k = key(&format!("control/race-{round}"));
        let racers: Vec<_> = [&one, &two, &lossy, &one, &two]
            .into_iter()
            .enumerate()
            .map(|(i, store)| {
                let (store, k, mine) = (store.clone(), k.clone(), Bytes::from(format!("racer {i}")));
                tokio::spawn(async move { (create_once(store.as_ref(), &k, mine.clone()).await.unwrap(), mine) })
            })
            .collect();
        let (mut winner, mut losers) = (None, Vec::new());
        for racer in racers {
            match racer.await.unwrap() {
                (Commit::Mine, mine) => assert_eq!(winner.replace(mine), None, "two won"),
                (Commit::Lost(other), _) => losers.push(other),
            }
        }
        let winner = winner.expect("one won");
        assert!(losers.len() == 4 && losers.iter().all(|seen| *seen == winner), "{losers:?}");
    }
}
