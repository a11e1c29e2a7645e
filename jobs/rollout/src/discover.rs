//! Which checkpoint a round acts with, and where it is served.
//!
//! In: a frozen plan if there is one, flags, and endpoints as published in the store. Out: a round, and an address whose server
//! says that it serves that round's checkpoint. What must hold: workers of one stage act with one checkpoint, which the plan
//! pins; a published address is tried, not believed.

use crate::{Args, RolloutSet, TRAIN};
use rollmill_job::checkpoint::{self, Manifest};
use rollmill_job::{JobError, Plan, Run, Stage, service};
use rollmill_policy::{Endpoint, EndpointConfig};
use std::time::Duration;

/// Pause between two looks for an endpoint.
const LOOK: Duration = Duration::from_secs(3);

/// The round whose checkpoint acts: what the plan pinned, else what was asked for, else the newest there can be.
pub async fn policy_round(run: &Run, set: &RolloutSet, args: &Args, max_lag: u32) -> Result<u32, JobError> {
    let newest = if set.name == TRAIN { args.round - 1 } else { args.round };
    let oldest = if set.name == TRAIN { newest.saturating_sub(max_lag) } else { newest };
    let plan = Plan::read(run, &Stage::rollout(&set.name, args.round)).await?;
    let pinned = plan.as_ref().and_then(checkpoint::pinned);
    let round = args.policy_round.or(pinned).unwrap_or(newest);
    if (oldest..=newest).contains(&round) {
        return Ok(round);
    }
    let reason = format!("{} of round {} may act with rounds {oldest} to {newest}", set.name, args.round);
    Err(JobError::Config { place: format!("--policy-round {round}"), reason })
}

/// Where to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Base address.
    pub url: String,
    /// Whether it may be silent about what it serves: whoever started it said so.
    pub trusted: bool,
}

/// The address that was given, or the first published one that serves the checkpoint.
pub async fn address(run: &Run, manifest: &Manifest, args: &Args) -> Result<Address, JobError> {
    if let Some(url) = &args.endpoint {
        return Ok(Address { url: url.clone(), trusted: args.trust_endpoint });
    }
    let until = run.clock.monotonic() + Duration::from_secs(args.endpoint_wait);
    let mut said = false;
    loop {
        if let Some(url) = healthy(run, manifest).await? {
            return Ok(Address { url, trusted: true });
        }
        let here = run.clock.monotonic() >= until;
        if here || run.drain.is_raised() {
            let reason = format!(
                "no endpoint of round {} was published within {} s; start `rollmill endpoint --round {}`, or name one with --endpoint",
                manifest.round, args.endpoint_wait, manifest.round
            );
            return Err(JobError::Unavailable { reason });
        }
        if !said && !run.quiet {
            eprintln!("rollout: waiting for an endpoint of round {}", manifest.round);
            said = true;
        }
        tokio::select! { () = run.drain.raised() => (), () = tokio::time::sleep(LOOK) => () }
    }
}

/// One of the published servers that answers with the right checkpoint; workers begin at different ones.
async fn healthy(run: &Run, manifest: &Manifest) -> Result<Option<String>, JobError> {
    let mut open = service::open(run, manifest.round).await?;
    if !open.is_empty() {
        let first = run.attempt.as_str().bytes().map(usize::from).sum::<usize>() % open.len();
        open.rotate_left(first);
    }
    for service in open.into_iter().filter(|s| s.checkpoint == manifest.id()) {
        let config = EndpointConfig { url: service.url.clone(), retries: 0, ..EndpointConfig::default() };
        let Ok(endpoint) = Endpoint::new(config) else { continue };
        let health = endpoint.health().await;
        // A server that does not say what it serves was published by whoever started it with this checkpoint.
        if health.is_ok_and(|h| h.checkpoint.is_none_or(|served| served == manifest.id())) {
            return Ok(Some(service.url));
        }
    }
    Ok(None)
}
