//! Leases: who works on a shard right now. They only save work; correctness never rests on them (invariant 6).
//!
//! A claim is a series of create-only terms, `leases/<shard>/<term>.json`; a renewal is the next number. A lease has expired
//! when its last term has been the same for a time-to-live on the *observer's own* monotonic clock, so no two clocks are
//! ever compared. A holder that drains writes a last term marked released.

use crate::{AttemptId, Blobs, Commit, Key, Nonce, StoreError, create_once};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashMap;
use std::time::Duration;

/// One term of a lease, as stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Term {
    /// Who claims.
    pub attempt: AttemptId,
    /// Makes this record unlike all others.
    pub nonce: Nonce,
    /// Where it runs, for people.
    pub worker: String,
    /// True when the holder gave the shard back before finishing it.
    pub released: bool,
    /// What the holder says of its work, for people; nothing here reads it.
    #[serde(default)]
    pub note: Value,
}

/// A claim this process holds.
#[derive(Clone, Debug)]
pub struct Lease {
    folder: Key,
    term: u64,
}

/// What a try to claim answered.
#[derive(Debug)]
pub enum Claim {
    /// It is ours now.
    Held(Lease),
    /// Another attempt holds it.
    Busy(Term),
}

/// Claims and renews leases, and remembers since when it has seen each foreign term.
pub struct Leases {
    attempt: AttemptId,
    worker: String,
    ttl: Duration,
    seen: HashMap<Key, (u64, Duration)>,
}

impl Leases {
    /// For one process. `ttl` is how long a silent holder keeps its shard.
    pub fn new(attempt: AttemptId, worker: String, ttl: Duration) -> Leases {
        Leases { attempt, worker, ttl, seen: HashMap::new() }
    }

    /// Tries to claim the shard whose terms lie below `folder`. `now` is this process's monotonic clock.
    pub async fn claim(
        &mut self,
        blobs: &dyn Blobs,
        folder: &Key,
        now: Duration,
        note: Value,
    ) -> Result<Claim, StoreError> {
        let next = match last_term(blobs, folder).await? {
            None => 1,
            Some((number, term)) => {
                let since = self.observe(folder, number, now);
                if !term.released && term.attempt != self.attempt && now.saturating_sub(since) < self.ttl {
                    return Ok(Claim::Busy(term));
                }
                number + 1
            }
        };
        match self.write_term(blobs, folder, next, false, note).await? {
            Commit::Mine => Ok(Claim::Held(Lease { folder: folder.clone(), term: next })),
            Commit::Lost(bytes) => Ok(Claim::Busy(parse(&bytes).unwrap_or_else(unknown))),
        }
    }

    /// Writes the next term. False: another attempt took over, and this one should stop working on the shard.
    pub async fn renew(&self, blobs: &dyn Blobs, lease: &mut Lease, note: Value) -> Result<bool, StoreError> {
        let mine = self.write_term(blobs, &lease.folder, lease.term + 1, false, note).await? == Commit::Mine;
        lease.term += u64::from(mine);
        Ok(mine)
    }

    /// Gives the shard back, so that the next worker need not wait for the time-to-live.
    pub async fn release(&self, blobs: &dyn Blobs, lease: &Lease, note: Value) -> Result<(), StoreError> {
        self.write_term(blobs, &lease.folder, lease.term + 1, true, note).await.map(|_| ())
    }

    /// When this process first saw the term `number`.
    fn observe(&mut self, folder: &Key, number: u64, now: Duration) -> Duration {
        let seen = self.seen.entry(folder.clone()).or_insert((number, now));
        if seen.0 != number {
            *seen = (number, now);
        }
        seen.1
    }

    async fn write_term(
        &self,
        blobs: &dyn Blobs,
        folder: &Key,
        number: u64,
        released: bool,
        note: Value,
    ) -> Result<Commit, StoreError> {
        let nonce = Nonce::of(&self.attempt, format!("{folder}/{number} {released}"));
        let term = Term { attempt: self.attempt.clone(), nonce, worker: self.worker.clone(), released, note };
        // A struct of strings, a bool and a JSON value always serialises.
        let bytes = serde_json::to_vec(&term).expect("a term serialises");
        create_once(blobs, &folder.join(format!("{number:06}.json"))?, Bytes::from(bytes)).await
    }
}

fn parse(bytes: &[u8]) -> Option<Term> {
    serde_json::from_slice(bytes).ok()
}

/// An unreadable term counts as held by nobody known: it expires like any other.
fn unknown() -> Term {
    let nobody = || "?".to_string();
    Term {
        attempt: AttemptId::from_text(nobody()),
        nonce: Nonce::from_text(nobody()),
        worker: nobody(),
        released: false,
        note: Value::Null,
    }
}

/// The highest term below `folder`, with its number.
pub async fn last_term(blobs: &dyn Blobs, folder: &Key) -> Result<Option<(u64, Term)>, StoreError> {
    let Some(last) = blobs.list(folder).await?.pop() else { return Ok(None) };
    let number = last.key.file_name().trim_end_matches(".json").parse().unwrap_or(0);
    Ok(Some((number, read_term(blobs, &last.key).await?)))
}

/// The term stored as `key`.
pub async fn read_term(blobs: &dyn Blobs, key: &Key) -> Result<Term, StoreError> {
    Ok(blobs.get(key).await?.and_then(|bytes| parse(&bytes)).unwrap_or_else(unknown))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Objects;

    fn leases(name: &str) -> Leases {
        Leases::new(AttemptId::fresh(), name.into(), Duration::from_secs(30))
    }

    #[tokio::test]
    async fn a_silent_holder_loses_the_shard_after_the_observers_ttl() {
        let store = Objects::memory();
        let folder = Key::new("control/s/leases/00000").unwrap();
        let (mut a, mut b) = (leases("a"), leases("b"));
        let at = Duration::from_secs;
        let Claim::Held(mut held) = a.claim(&store, &folder, at(0), Value::Null).await.unwrap() else { panic!("free") };
        assert!(matches!(b.claim(&store, &folder, at(1000), Value::Null).await.unwrap(), Claim::Busy(_)));
        assert!(a.renew(&store, &mut held, Value::Null).await.unwrap());
        assert!(
            matches!(b.claim(&store, &folder, at(1029), Value::Null).await.unwrap(), Claim::Busy(_)),
            "a new term was seen"
        );
        assert!(matches!(b.claim(&store, &folder, at(1058), Value::Null).await.unwrap(), Claim::Busy(_)));
        assert!(matches!(b.claim(&store, &folder, at(1059), Value::Null).await.unwrap(), Claim::Held(_)));
        assert!(!a.renew(&store, &mut held, Value::Null).await.unwrap(), "fenced");
    }

    #[tokio::test]
    async fn a_released_shard_is_free_at_once() {
        let store = Objects::memory();
        let folder = Key::new("control/s/leases/00000").unwrap();
        let (mut a, mut b) = (leases("a"), leases("b"));
        let Claim::Held(held) = a.claim(&store, &folder, Duration::ZERO, Value::Null).await.unwrap() else {
            panic!("free")
        };
        a.release(&store, &held, Value::Null).await.unwrap();
        assert!(matches!(b.claim(&store, &folder, Duration::ZERO, Value::Null).await.unwrap(), Claim::Held(_)));
    }
}
