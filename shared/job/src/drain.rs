//! Draining: SIGTERM, SIGINT and SIGUSR1 (a scheduler's warning) ask a worker to save what it has and leave with exit 75.

use crate::JobError;
use std::sync::Arc;
use tokio::sync::watch;

/// A flag that is raised once, and can be awaited.
#[derive(Clone, Debug)]
pub struct Drain {
    raise: Arc<watch::Sender<bool>>,
    raised: watch::Receiver<bool>,
}

impl Default for Drain {
    fn default() -> Drain {
        let (raise, raised) = watch::channel(false);
        Drain { raise: Arc::new(raise), raised }
    }
}

impl Drain {
    /// Raised by the first of the signals above. A second SIGINT ends the process at once, as people expect.
    pub fn on_signals() -> Result<Drain, JobError> {
        Drain::catch()
            .map_err(|e| JobError::Config { place: "signals".into(), reason: format!("cannot be caught ({e})") })
    }

    fn catch() -> std::io::Result<Drain> {
        use tokio::signal::unix::{SignalKind, signal};
        let drain = Drain::default();
        let (mut term, mut int, mut usr1) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?, signal(SignalKind::user_defined1())?);
        let raise = drain.clone();
        tokio::spawn(async move {
            tokio::select! { _ = term.recv() => (), _ = int.recv() => (), _ = usr1.recv() => () }
            eprintln!("draining: saving what is done (the same command carries on)");
            raise.raise();
            // On a terminal a job of `run` gets the same Ctrl-C twice, from the terminal and from its parent: only one
            // that comes later is a person who insists.
            tokio::time::sleep(std::time::Duration::from_millis(500)).await;
            let Ok(mut again) = signal(SignalKind::interrupt()) else { return };
            again.recv().await;
            // A person who insists: nothing that was committed is lost, whenever a process dies.
            #[allow(clippy::disallowed_methods)]
            std::process::exit(130);
        });
        Ok(drain)
    }

    /// Raises the flag.
    pub fn raise(&self) {
        self.raise.send_replace(true);
    }

    /// Whether it is raised.
    pub fn is_raised(&self) -> bool {
        *self.raised.borrow()
    }

    /// Waits until it is raised.
    pub async fn raised(&self) {
        let mut raised = self.raised.clone();
        // The sender lives as long as self: an error cannot happen, and would only mean "never".
        if raised.wait_for(|r| *r).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
