//! Kills real workers and the real store, then counts rows.
//!
//! In: a seed, a store (a folder, or a SeaweedFS server of its own), how many kills. Out: a tally, and every finding as a
//! line: a lost row, a doubled row, an object whose bytes changed, a seal that is not the tables, a worker that ended with
//! a code it should not end with, a process, mount or cgroup left behind.
//!
//! What must hold: the checker uses nothing of the frame that it checks but the names of things and the format of rows; a
//! run is judged by what a reader sees. When and whom to kill follows from the seed; what a kill then meets depends on the
//! machine, so a finding is reproduced by its seed and some patience.
//!
//! What it does not know: how the frame keeps its promises.

pub mod bench;
pub mod campaign;
pub mod check;
pub mod cost;
pub mod counted;
pub mod fate;
pub mod history;
pub mod jobs;
pub mod phase;
pub mod place;
pub mod process;
pub mod rng;
pub mod rows;
pub mod server;
pub mod stage;
pub mod tally;
pub mod weed;
mod worker;
