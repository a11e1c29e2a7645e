//! Untrusted execution.
//!
//! In: a [`Spec`] (command line, environment, files, [`Limits`]). Out: [`Finished`], what the program wrote and the
//! [`Facts`] about how it ended. What must hold: the program sees nothing of this machine but a private
//! read-only root (the host's interpreter copied, packages or an image, see [`prepare`]), has no network, cannot outlive its run, and every limit that acted is reported as a fact read
//! from the kernel, never guessed from an exit code. Each error of this crate is infrastructure, never the program's fault.
//!
//! [`Namespaces`] is the backend that needs no daemon and no root. A small single-threaded helper process
//! ([`helper_main_if_asked`]) clones and watches each sandbox, so that nothing is allocated after a clone of a threaded
//! process and nothing is left running when the caller is killed.

mod api;
mod cgroup;
mod check;
mod error;
mod helper;
mod machine;
mod namespaces;
mod rootfs;
mod sys;
pub mod toolchain;
mod wire;

pub use api::{Collected, Facts, Finished, Isolation, Level, Limits, Received, Refusal, Sandbox, Session, Spec};
pub use check::{Check, State, check};
pub use error::SandboxError;
pub use helper::{docker_profile, helper_main_if_asked, is_idle};
pub use namespaces::{Namespaces, NamespacesOptions, Slot, Slots, Warm, WarmOptions};
pub use rootfs::{Root, RootFs, RootSource, prepare, prepared};
