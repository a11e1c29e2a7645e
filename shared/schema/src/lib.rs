//! What a row is: one file a table, each with its row type, its fixed Arrow schema, a VERSION and its key.
//!
//! In: rows as Rust structs. Out: Parquet bytes (zstd, small row groups) whose footer names table, version, plan and
//! attempt, and rows again. The same rows give the same bytes.
//!
//! What must hold: a schema changes only by a new VERSION, and old files stay readable (golden files under
//! `tests/golden`, append-only). Text stays text; free metadata is a JSON string; no column has the null type.
//!
//! What it does not know: buckets, plans, leases, clocks.

pub mod admission;
pub mod candidate;
mod columns;
pub mod metric;
pub mod part;
pub mod reward;
pub mod task;
pub mod trajectory;

pub use admission::{Admission, Rejection};
pub use candidate::Candidate;
pub use metric::Metric;
pub use part::{
    Footer, PartError, PartWriter, ROW_GROUP, Row, decode, encode, encode_with_keys, read_footer, read_keys,
};
pub use reward::Reward;
pub use task::{Task, TaskSecret};
pub use trajectory::{StepRow, Trajectory};

/// Where a row comes from. Every table carries these columns.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Provenance {
    /// Id of the run.
    pub run_id: String,
    /// The round, 0 for what is before the first.
    pub round: i32,
    /// The attempt that wrote the row: 128 random bits in hex.
    pub attempt: String,
    /// Version of the code.
    pub code_version: String,
    /// The seed this row's randomness derives from.
    pub seed: i64,
}

/// First 16 hex digits of the SHA-256 of `parts`, each preceded by its length, so that no two lists collide by joining.
pub fn content_id(parts: &[&str]) -> String {
    use sha2::{Digest, Sha256};
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    hex::encode(&hash.finalize()[..8])
}
