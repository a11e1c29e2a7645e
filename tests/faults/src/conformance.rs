//! What every store must do, whatever it is made of. Each backend and each wrapper runs it.

use bytes::Bytes;
use rollmill_store::{Blobs, Commit, Created, Key, StoreError, create_once, probe::probe};
use std::sync::Arc;

/// Why a store does not conform, in words.
pub type Verdict = Result<(), String>;

fn key(name: &str) -> Key {
    // Names here are literals that are valid.
    Key::new(name).expect("a valid key")
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, got: T, want: T) -> Verdict {
    if got == want { Ok(()) } else { Err(format!("{what}: {got:?}, not {want:?}")) }
}

fn words(e: StoreError) -> String {
    e.to_string()
}

/// Runs the whole suite on an empty prefix, with so many racers.
pub async fn conforms(store: Arc<dyn Blobs>, racers: usize) -> Verdict {
    probe(store.as_ref()).await.map_err(words)?;
    creates_once(store.as_ref()).await?;
    lists(store.as_ref()).await?;
    one_racer_wins(&store, racers).await?;
    moves_large_files(store.as_ref()).await
}

async fn creates_once(store: &dyn Blobs) -> Verdict {
    let k = key("tables/t/part-00000.parquet");
    same("an absent object", store.get(&k).await.map_err(words)?, None)?;
    same("its size", store.size(&k).await.map_err(words)?, None)?;
    same("a first create", store.create(&k, Bytes::from_static(b"one")).await.map_err(words)?, Created::New)?;
    same("a second", store.create(&k, Bytes::from_static(b"two")).await.map_err(words)?, Created::Exists)?;
    same("what is there", store.get(&k).await.map_err(words)?, Some(Bytes::from_static(b"one")))?;
    same("its size", store.size(&k).await.map_err(words)?, Some(3))?;
    let lost = create_once(store, &k, Bytes::from_static(b"two")).await.map_err(words)?;
    same("a loser", lost, Commit::Lost(Bytes::from_static(b"one")))?;
    let mine = create_once(store, &k, Bytes::from_static(b"one")).await.map_err(words)?;
    same("whoever sends the same bytes", mine, Commit::Mine)?;
    store.delete(&k).await.map_err(words)?;
    store.delete(&k).await.map_err(words)?;
    same("a removed object", store.get(&k).await.map_err(words)?, None)
}

async fn lists(store: &dyn Blobs) -> Verdict {
    // Sorted, only below the prefix, and a sibling that shares letters is not below it.
    for name in ["tables/t/part-00000.parquet", "tables/tt/x", "tables/t/a/b", "tables/t/b"] {
        create_once(store, &key(name), Bytes::from(name.to_string())).await.map_err(words)?;
    }
    let names = |entries: Vec<rollmill_store::Entry>| entries.iter().map(|e| e.key.to_string()).collect::<Vec<_>>();
    let all = names(store.list(&key("tables/t")).await.map_err(words)?);
    let want: Vec<String> = ["tables/t/a/b", "tables/t/b", "tables/t/part-00000.parquet"].map(String::from).into();
    same("a listing", all.clone(), want)?;
    same("an empty one", names(store.list(&key("nothing/here")).await.map_err(words)?), Vec::new())?;
    let page = names(store.list_page(&key("tables/t"), None, 2).await.map_err(words)?);
    same("a first page", page, all[..2].to_vec())?;
    let page = names(store.list_page(&key("tables/t"), Some(&key("tables/t/a/b")), 5).await.map_err(words)?);
    same("a page after a name", page, all[1..].to_vec())?;
    let page = names(store.list_page(&key("tables/t"), Some(&key("tables/t/c")), 5).await.map_err(words)?);
    same("a page after a name that is not there", page, all[2..].to_vec())
}

async fn one_racer_wins(store: &Arc<dyn Blobs>, racers: usize) -> Verdict {
    let racer = |i: usize| {
        let store = store.clone();
        tokio::spawn(async move {
            let mine = Bytes::from(format!("racer {i}"));
            create_once(store.as_ref(), &key("control/race"), mine).await.map_err(words)
        })
    };
    let racing: Vec<_> = (0..racers).map(racer).collect();
    let (mut winners, mut seen) = (Vec::new(), Vec::new());
    for (i, task) in racing.into_iter().enumerate() {
        match task.await.map_err(|e| e.to_string())?? {
            Commit::Mine => winners.push(Bytes::from(format!("racer {i}"))),
            Commit::Lost(bytes) => seen.push(bytes),
        }
    }
    same("winners of a race", winners.len(), 1)?;
    same("losers that saw another winner", seen.iter().filter(|s| **s != winners[0]).count(), 0)
}

async fn moves_large_files(store: &dyn Blobs) -> Verdict {
    let disk = |e: std::io::Error| e.to_string();
    let dir = tempfile::tempdir().map_err(disk)?;
    let (from, to, k) = (dir.path().join("in"), dir.path().join("out"), key("checkpoints/a/model"));
    // Smaller than a part of an upload, and three parts.
    for size in [1_000u32, 40_000_000] {
        let bytes: Vec<u8> = (0..size).map(|i| (i % 251) as u8).collect();
        std::fs::write(&from, &bytes).map_err(disk)?;
        store.upload(&k, &from).await.map_err(words)?;
        store.download(&k, &to).await.map_err(words)?;
        same("a file that went up and down", std::fs::read(&to).map_err(disk)? == bytes, true)?;
    }
    store.delete(&k).await.map_err(words)?;
    same("a removed file", store.size(&k).await.map_err(words)?, None)
}
