//! What a worker says of its work in its lease terms, so that `status` can read it from the store alone.
//!
//! Times are the worker's own wall clock and for people only: no decision compares them.

use crate::Run;
use serde::{Deserialize, Serialize};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A worker's words on one shard, as stored in a term.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Note {
    /// Items of the shard that are done, those of earlier attempts among them.
    pub done: usize,
    /// Items that earlier attempts had done.
    pub resumed: usize,
    /// Items of the shard.
    pub items: usize,
    /// Seconds since 1970 when this attempt claimed the shard.
    pub since: f64,
    /// Seconds since 1970 when this was written.
    pub at: f64,
    /// The last thing that went wrong.
    pub error: Option<String>,
}

/// The note of the shard that is being worked on.
pub(crate) struct Notebook(Mutex<Note>);

/// Longer errors are cut: a term is small.
const ERROR_CHARS: usize = 500;

impl Notebook {
    pub fn new(run: &Run, items: usize) -> Notebook {
        Notebook(Mutex::new(Note { items, since: run.clock.wall().as_secs_f64(), ..Note::default() }))
    }

    // A note stays readable whatever panicked beside it.
    fn lock(&self) -> MutexGuard<'_, Note> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Earlier attempts had done `n` items.
    pub fn resumed(&self, n: usize) {
        let mut note = self.lock();
        (note.done, note.resumed) = (n, n);
    }

    /// One more item is done.
    pub fn advance(&self) {
        self.lock().done += 1;
    }

    /// Something went wrong.
    pub fn error(&self, text: &str) {
        self.lock().error = Some(text.chars().take(ERROR_CHARS).collect());
    }

    /// The note as it is stored now.
    pub fn write(&self, run: &Run) -> serde_json::Value {
        let mut note = self.lock();
        note.at = run.clock.wall().as_secs_f64();
        // A struct of numbers and a string always serialises; a term without a note would still be a term.
        serde_json::to_value(&*note).unwrap_or_default()
    }
}
