//! The bucket around a run: made, checked and kept clean. What `object_store` cannot do, by `aws-sdk-s3`.
//!
//! In: an `s3://` address, settings and [`Wishes`]. Out: a [`Report`] of what is there, what was set and what the credentials
//! may do; and [`Bucket::abandoned_uploads`] with [`Bucket::abort_uploads`] for a sweep.
//!
//! What must hold: nothing is created or switched on unless it was asked for, but for one lifecycle rule of ours below the run's
//! prefix; rules of others are written back as they were read. A server that lacks an API is reported, not an error.
//!
//! What it does not know: runs, rows, jobs. The bytes of a run go through `rollmill-store`.

mod bucket;
mod error;
mod fault;
mod lifecycle;
mod prepare;
mod report;
mod rights;
mod uploads;

pub use bucket::Bucket;
pub use error::BucketError;
pub use prepare::{Wishes, prepare};
pub use report::{Answer, Line, Report};
pub use uploads::{Sweep, Swept, Upload};
