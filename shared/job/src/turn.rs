//! The turn to seal a stage: one worker reads a hundred thousand parts, not all that see them at once.
//!
//! It is a lease like a shard's, and like every lease it only saves work: two that both believe in their turn write the same
//! seal or lose to each other at its create.

use crate::patience::Patience;
use crate::{JobError, Run, Stage};
use rollmill_store::lease::{Claim, Lease, Leases};
use serde_json::Value;
use std::time::Duration;

/// A turn that is ours.
pub(crate) struct Turn<'a> {
    run: &'a Run,
    leases: Leases,
    lease: Lease,
    renewed: Duration,
}

impl<'a> Turn<'a> {
    /// Takes the turn, or waits until the stage is sealed or its sealer's lease has run out. None: it is sealed, or we were
    /// asked to leave.
    pub async fn take(run: &'a Run, stage: &Stage) -> Result<Option<Turn<'a>>, JobError> {
        let ttl = Duration::from_secs(run.operations.lease_seconds);
        let mut leases = Leases::new(run.attempt.clone(), format!("pid {}", std::process::id()), ttl);
        let mut patience = Patience::new(run);
        while run.blobs.size(&stage.sealed()?).await?.is_none() {
            let now = run.clock.monotonic();
            match leases.claim(run.blobs.as_ref(), &stage.sealer()?, now, Value::Null).await? {
                Claim::Held(lease) => return Ok(Some(Turn { run, leases, lease, renewed: now })),
                Claim::Busy(_) if run.drain.is_raised() => return Ok(None),
                Claim::Busy(_) => patience.wait().await,
            }
        }
        Ok(None)
    }

    /// Renews the turn when it is time.
    pub async fn keep(&mut self) -> Result<(), JobError> {
        let now = self.run.clock.monotonic();
        if now.saturating_sub(self.renewed) > Duration::from_secs(self.run.operations.lease_seconds) / 3 {
            self.renewed = now;
            // Another that took over only does the same.
            self.leases.renew(self.run.blobs.as_ref(), &mut self.lease, Value::Null).await?;
        }
        Ok(())
    }

    /// Gives the turn back.
    pub async fn leave(self) -> Result<(), JobError> {
        Ok(self.leases.release(self.run.blobs.as_ref(), &self.lease, Value::Null).await?)
    }
}
