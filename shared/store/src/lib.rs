//! Bytes of a run: where they lie, how they come to exist exactly once, who works on them now.
//!
//! In: keys and bytes. Out: objects that exist whole or not at all, created at most once and never overwritten.
//!
//! What holds, whatever is killed and whenever (the invariants of ARCHITECTURE.md, "The store"):
//! - [`create::create_once`] tells *committed by me* from *lost to another* also when the store's answer was lost: an
//!   unknown outcome is read back and compared with the bytes that were sent, which carry a nonce.
//! - Nothing here needs a clock or a lease to be right: [`lease`] only saves work.
//! - A store that ignores `If-None-Match` is refused by [`probe::probe`].
//!
//! What it does not know: rows, Arrow, Parquet, jobs, rounds. Keys and bytes only.

pub mod blobs;
pub mod create;
pub mod folder;
pub mod key;
pub mod lease;
pub mod nonce;
mod objects;
pub mod open;
pub mod pace;
mod pause;
pub mod probe;
mod settings;

pub use blobs::{Blobs, Created, Entry, PAGE, StoreError};
pub use create::{Commit, create_once};
pub use folder::Folder;
pub use key::Key;
pub use nonce::{AttemptId, Nonce};
pub use objects::Objects;
pub use open::{bucket_of, open};
pub use settings::{Keys, Role, S3Settings};
