//! One run on the caller's thread: begins it, speaks to it, and waits for what the watch on the other side makes of it.
//!
//! What must hold: every wait is bounded; dropping a run at any point ends and removes its container.
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use rollmill_sandbox::{Finished, Received, SandboxError, Session, Spec};
use tokio::io::AsyncWriteExt;
use tokio::sync::{mpsc, oneshot};

use crate::container::Shape;
use crate::daemon::Shared;
use crate::error::failed;
use crate::output::Heard;
use crate::pool::Pool;
use crate::program::{self, Input};
use crate::watch::Watch;

/// How long the end after a limit may take on an overloaded machine.
const GRACE: Duration = Duration::from_secs(180);

/// Bytes for the program, and where to say that they were taken.
type Send = (Vec<u8>, SyncSender<()>);

/// A watched program, and the caller's ends.
pub struct Running {
    heard: Arc<Heard>,
    stdin: Option<mpsc::UnboundedSender<Send>>,
    /// Dropped to end the run.
    keep: Option<oneshot::Sender<()>>,
    done: Receiver<Result<Finished, SandboxError>>,
    give_up: Instant,
    ended: bool,
    _shared: Arc<Shared>,
}

impl Running {
    pub fn begin(shared: &Arc<Shared>, spec: &Spec, with_stdin: bool) -> Result<Running, SandboxError> {
        program::check(spec)?;
        let (core, given) = (shared.core.clone(), spec.clone());
        let (program, input) = shared.runtime.wait(async move {
            let mut program = program::start(&core, &given).await?;
            let (_, none) = tokio::io::duplex(1);
            let input: Input = std::mem::replace(&mut program.exec.input, Box::pin(none));
            Ok((program, input))
        })?;
        let heard = Arc::new(Heard::new(spec.limits.output_bytes, with_stdin));
        let (keep, asked) = oneshot::channel();
        let (told, done) = sync_channel(1);
        let (stdin, to_write) = mpsc::unbounded_channel();
        shared.runtime.spawn(write(input, to_write));
        let watch = Watch::new(program, heard.clone(), asked, spec);
        shared.runtime.spawn(async move {
            let _ = told.send(watch.until_gone().await); // nobody waits where the run was given up
        });
        shared.runtime.spawn(Pool::fill(shared.core.clone(), Shape::of(spec)));
        Ok(Running {
            heard,
            stdin: with_stdin.then_some(stdin),
            keep: Some(keep),
            done,
            give_up: Instant::now() + spec.limits.wall + GRACE,
            ended: false,
            _shared: shared.clone(),
        })
    }

    /// Until a limit or the program itself ends the run.
    pub fn wait_for_end(mut self) -> Result<Finished, SandboxError> {
        self.stdin = None;
        self.end_by(self.give_up)
    }

    fn end_by(&mut self, give_up: Instant) -> Result<Finished, SandboxError> {
        let answer = self.done.recv_timeout(give_up.saturating_duration_since(Instant::now()));
        self.ended = !matches!(answer, Err(RecvTimeoutError::Timeout));
        answer.unwrap_or_else(|e| Err(failed("wait for the end of a container", &e.to_string())))
    }
}

/// Passes on what is sent, in order; ends the program's input when the sender is gone.
async fn write(mut input: Input, mut to_write: mpsc::UnboundedReceiver<Send>) {
    while let Some((bytes, taken)) = to_write.recv().await {
        let written = async {
            input.write_all(&bytes).await?;
            input.flush().await
        };
        // a program that is gone takes nothing: its output says so
        let _ = written.await;
        let _ = taken.send(());
    }
    let _ = input.shutdown().await;
}

impl Session for Running {
    fn send(&mut self, bytes: &[u8], deadline: Instant) -> Result<(), SandboxError> {
        let Some(stdin) = &self.stdin else { return Ok(()) };
        let (taken, wait) = sync_channel(1);
        let sent = stdin.send((bytes.to_vec(), taken)).is_ok();
        let left = deadline.saturating_duration_since(Instant::now());
        if !sent || wait.recv_timeout(left).is_err() {
            self.stdin = None; // half a message was taken: nothing sensible can follow
        }
        Ok(())
    }

    fn recv(&mut self, max: usize, deadline: Instant) -> Result<Received, SandboxError> {
        Ok(self.heard.recv(max, deadline))
    }

    fn finish(mut self: Box<Self>) -> Result<Finished, SandboxError> {
        self.heard.stop_receiving();
        self.keep = None;
        self.end_by(Instant::now() + GRACE)
    }
}

impl Drop for Running {
    /// The watch removes the container, and is waited for.
    fn drop(&mut self) {
        self.heard.stop_receiving();
        self.keep = None;
        if !self.ended {
            let _ = self.done.recv_timeout(GRACE); // longer: the next sweep finds it
        }
    }
}
