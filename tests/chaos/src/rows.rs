//! Parts as a reader sees them: keys, who wrote each row, and whether the footer says the truth.

use bytes::Bytes;
use rollmill_schema::part::data_hash;
use rollmill_schema::{
    Admission, Candidate, Footer, Metric, Rejection, Reward, Row, Task, TaskSecret, Trajectory, decode,
};

/// What matters of a part.
#[derive(Clone, Debug)]
pub struct PartRows {
    /// Key of each row, in order.
    pub keys: Vec<String>,
    /// The attempt that made each row.
    pub attempts: Vec<String>,
    /// The footer.
    pub footer: Footer,
    /// Whether the footer's hash is that of the rows.
    pub hash_fits: bool,
}

/// Reads a part or chunk of `table`.
pub fn read(table: &str, bytes: &Bytes) -> Result<PartRows, String> {
    match table {
        Candidate::TABLE => of::<Candidate>(bytes, |r| &r.provenance.attempt),
        Admission::TABLE => of::<Admission>(bytes, |r| &r.provenance.attempt),
        Task::TABLE => of::<Task>(bytes, |r| &r.provenance.attempt),
        TaskSecret::TABLE => of::<TaskSecret>(bytes, |r| &r.provenance.attempt),
        Rejection::TABLE => of::<Rejection>(bytes, |r| &r.provenance.attempt),
        Trajectory::TABLE => of::<Trajectory>(bytes, |r| &r.provenance.attempt),
        Reward::TABLE => of::<Reward>(bytes, |r| &r.provenance.attempt),
        Metric::TABLE => of::<Metric>(bytes, |r| &r.provenance.attempt),
        other => Err(format!("there is no table {other:?}")),
    }
}

fn of<R: Row>(bytes: &Bytes, attempt: impl Fn(&R) -> &String) -> Result<PartRows, String> {
    let (rows, footer) = decode::<R>(bytes).map_err(|e| e.to_string())?;
    let hash = data_hash(&rows).map_err(|e| e.to_string())?;
    Ok(PartRows {
        keys: rows.iter().map(Row::key).collect(),
        attempts: rows.iter().map(|r| attempt(r).clone()).collect(),
        hash_fits: footer.data_hash == hash,
        footer,
    })
}
