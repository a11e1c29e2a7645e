//! Faults for the store and the frame, enumerated rather than hoped for.
//!
//! In: an actor, such as a worker's whole life, as a future over a store. Out: what the store held afterwards, as plain facts
//! that [`invariants`] judges.
//!
//! Everything runs on one thread with paused time, injected clocks and given attempts, so that a life is a fixed sequence of
//! store calls: fault k hits the same call in every run. [`Line`] is one actor's way to the shared [`World`] and does to
//! call k what it is told; [`s3`] is the same one layer below, under `object_store`, where answers are HTTP.
//!
//! What it does not know: sandboxes, models, real time.

pub mod actors;
pub mod broken;
pub mod cloud;
pub mod conformance;
pub mod drive;
pub mod facts;
pub mod invariants;
pub mod line;
pub mod s3;
pub mod scale;
pub mod world;

pub use drive::{Ending, drive, simulate};
pub use line::{Fault, Line};
pub use world::World;
