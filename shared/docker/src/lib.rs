//! Untrusted execution in containers of a Docker or Podman daemon.
//!
//! In and out: as `rollmill_sandbox` says. What must hold: each run has a fresh container with the same system calls, users
//! and limits as the `namespaces` backend, which is removed after it; nothing is told as a fact that the daemon only hints at.
//!
//! A container's main process is a *keeper*, a shell under a user of its own that waits on a pipe of this process: when this
//! process is gone, the pipe closes and the container ends. The program is an exec beside it, under the slot's user. What
//! must be there in an image: /bin/sh, env, and for files tar, find, stat, tr, xargs and cat.
//!
//! What the API cannot tell, and what is done about it:
//! - A program ended by a signal has exit code 128 and the signal, like one that exits with that number. So `signal` is only
//!   set where a limit or `finish` killed; otherwise the code is passed on as `exit`.
//! - OOMKilled is said of a container, whichever process was killed. That is what [`rollmill_sandbox::Facts::oom`] means; it is
//!   read from the container's cgroup where this process sees it, because the flag comes late.
//! - An exec's client that goes away leaves its process running: limits end the container, never the connection.
//! - The end of one of the two outputs is not told: a session's `recv` says `Eof` when both are closed.
//!
//! Podman must know owners of a tmpfs and changes of a running container's limits in this API. Podman 4.3 knows neither and is
//! refused at opening; later ones were not tried.
mod archive;
mod collect;
mod container;
mod daemon;
mod error;
mod image;
mod listing;
mod meter;
mod output;
mod owner;
mod pool;
mod program;
mod reach;
mod run;
mod watch;

pub use daemon::{Docker, DockerOptions};
pub use image::import;
pub use reach::reach;
