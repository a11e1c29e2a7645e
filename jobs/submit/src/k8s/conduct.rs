//! Keeps the order of steps that Kubernetes does not know.
//!
//! In: what the cluster holds and how far the store is, again and again. Out: steps created when their inputs are there, endpoints
//! taken away when nobody needs them. What must hold: every decision follows from those two alone, so that a conductor may be
//! killed at any instant and two at once do no harm; what failed is left for a person to see, and holds up only what needs it.

use super::live::{Live, Phase, Server};
use super::{Kubectl, Manifests, Object};
use crate::chain::Step;
use crate::estimate::Facts;
use crate::progress::{Progress, State};
use rollmill_job::{Drain, Exit, JobError, Run};
use std::time::Duration;

/// Looks in a row that may fail, for reasons that may pass, before the conductor ends, to be begun again.
const PATIENCE: u32 = 30;

/// How conducting ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Every step is done.
    Complete,
    /// These failed, and nothing else can go on.
    Failed(Vec<String>),
    /// A signal came.
    Drained,
}

/// What is to be done now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Next {
    /// Nodes to create.
    pub create: Vec<usize>,
    /// Endpoints to take away.
    pub remove: Vec<usize>,
    /// Steps and endpoints that failed.
    pub failed: Vec<usize>,
    /// Endpoints that load.
    pub loading: Vec<usize>,
    /// Whether a step is under way or about to be.
    pub active: bool,
}

/// What is known from one look to the next.
struct Looks {
    progress: Progress,
    to_clean: bool,
    /// What was said of endpoints that load.
    loading: Vec<usize>,
}

/// Conducts a run.
pub struct Conductor<'a> {
    /// Its objects.
    pub manifests: &'a Manifests<'a>,
    /// Its cluster.
    pub kubectl: &'a Kubectl,
    /// The run.
    pub run: &'a Run,
}

impl Conductor<'_> {
    /// Takes away what a person has seen fail, so that it is created anew.
    pub async fn clean(&self) -> Result<(), JobError> {
        // The cluster first: a job that has ended by then has left all its work in the store.
        let live = self.kubectl.live(&self.run.id).await?;
        let progress = Progress::read(self.run, self.manifests.chain).await?;
        for (node, _) in self.manifests.chain.nodes.iter().zip(&progress.0).filter(|(_, s)| **s != State::Done) {
            let name = self.manifests.name(&node.step);
            if live.jobs.get(&name).is_some_and(|phase| *phase != Phase::Active) {
                self.kubectl.delete_job(&name).await?;
            } else if live.endpoints.get(&name) == Some(&Server::Failed) {
                self.kubectl.delete_endpoint(&name).await?;
            } else {
                continue;
            }
            eprintln!("{name} had ended without finishing; it is made anew");
        }
        Ok(())
    }

    /// Puts a conductor into the cluster. One that conducts the same submission is left alone, every other is replaced.
    pub async fn begin(&self, conductor: &Object, submission: &str) -> Result<(), JobError> {
        let (run_id, name) = (&self.run.id, self.manifests.conductor_name());
        let live = self.kubectl.live(run_id).await?;
        match live.jobs.get(&name) {
            Some(Phase::Active) if live.submissions.get(&name).is_some_and(|s| s == submission) => return Ok(()),
            Some(_) => self.kubectl.delete_job(&name).await?,
            None => {}
        }
        self.kubectl.create(conductor, &name, run_id).await
    }

    /// Until everything is done, or nothing can go on. `anew`: what failed is taken away first.
    pub async fn conduct(&self, drain: &Drain, anew: bool) -> Result<Ended, JobError> {
        let pause = Duration::from_secs(self.manifests.cluster.k8s.look_seconds.max(1));
        let mut looks = Looks { progress: Progress::none(self.manifests.chain), to_clean: anew, loading: Vec::new() };
        let mut failures = 0;
        loop {
            match self.look(&mut looks).await {
                Ok(Some(ended)) => return Ok(ended),
                Ok(None) => failures = 0,
                Err(error) => {
                    failures += 1;
                    if failures == PATIENCE || Exit::from(&error) != Exit::Again {
                        return Err(error);
                    }
                    eprintln!("conduct: {error}");
                }
            }
            tokio::select! {
                () = drain.raised() => return Ok(Ended::Drained),
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// One look, and what follows from it.
    async fn look(&self, looks: &mut Looks) -> Result<Option<Ended>, JobError> {
        if looks.to_clean {
            self.clean().await?;
            looks.to_clean = false;
        }
        let live = self.kubectl.live(&self.run.id).await?;
        let (progress, nodes) = (&mut looks.progress, &self.manifests.chain.nodes);
        progress.advance(self.run, self.manifests.chain).await?;
        let next = next(self.manifests, progress, &live);
        let names = |of: &[usize]| of.iter().map(|&at| self.manifests.name(&nodes[at].step)).collect::<Vec<_>>();
        if next.loading != looks.loading {
            names(&next.loading).iter().for_each(|name| eprintln!("conduct: {name} is not ready yet"));
            looks.loading.clone_from(&next.loading);
        }
        for name in names(&next.remove) {
            self.kubectl.delete_endpoint(&name).await?;
            eprintln!("conduct: {name} is taken away");
        }
        self.create(&next.create, progress).await?;
        Ok(match () {
            () if !next.remove.is_empty() => None,
            () if progress.0.iter().all(|state| *state == State::Done) => Some(Ended::Complete),
            () if !next.active => Some(Ended::Failed(names(&next.failed))),
            () => None,
        })
    }

    /// Creates steps. One that is refused holds up no other.
    async fn create(&self, nodes: &[usize], progress: &Progress) -> Result<(), JobError> {
        if nodes.is_empty() {
            return Ok(());
        }
        let facts = Facts::read(Some(self.run), self.manifests.sizes).await?;
        let mut refused = None;
        for &at in nodes {
            let node = &self.manifests.chain.nodes[at];
            let object = self.manifests.step(node, &progress.0[at], &facts)?;
            let name = self.manifests.name(&node.step);
            match self.kubectl.create(&object, &name, &self.run.id).await {
                Ok(()) => eprintln!("conduct: {name} was created"),
                Err(error) => {
                    eprintln!("conduct: {name} was refused");
                    refused = Some(error);
                }
            }
        }
        refused.map_or(Ok(()), Err)
    }
}

/// What follows from how far the store is and what the cluster holds.
fn next(manifests: &Manifests, progress: &Progress, live: &Live) -> Next {
    let nodes = &manifests.chain.nodes;
    let done = |at: usize| progress.0[at] == State::Done;
    let phase = |at: usize| live.jobs.get(&manifests.name(&nodes[at].step)).copied();
    let mut next = Next::default();
    for (at, node) in nodes.iter().enumerate() {
        let ready = node.after.iter().all(|&before| done(before));
        let server_of = |at: usize| live.endpoints.get(&manifests.name(&nodes[at].step)).copied();
        if let Step::Endpoint { .. } = node.step {
            let wanted = ready && users(manifests, at).any(|user| !done(user) && !has_failed(phase(user)));
            match (wanted, server_of(at)) {
                (true, None) => next.create.push(at),
                (true, Some(Server::Loading)) => next.loading.push(at),
                // Left for a person to see.
                (true, Some(Server::Failed)) => next.failed.push(at),
                (false, Some(_)) => next.remove.push(at),
                _ => {}
            }
            continue;
        }
        // Pods that wait for a server hold their places and use up their tries.
        let server = node.beside.map(|endpoint| server_of(endpoint).unwrap_or(Server::Loading));
        match (phase(at), server.unwrap_or(Server::Ready)) {
            _ if done(at) || !ready => {}
            (None, Server::Failed) => {}
            (None, Server::Loading) => next.active = true,
            (None, Server::Ready) => {
                next.create.push(at);
                next.active = true;
            }
            (Some(Phase::Active | Phase::Going), _) => next.active = true,
            // A job whose pods all ended well and whose stage is not sealed has failed all the same.
            (Some(Phase::Complete | Phase::Failed), _) => next.failed.push(at),
        }
    }
    next
}

fn has_failed(phase: Option<Phase>) -> bool {
    matches!(phase, Some(Phase::Complete | Phase::Failed))
}

/// Steps that act with an endpoint.
fn users<'a>(manifests: &'a Manifests, endpoint: usize) -> impl Iterator<Item = usize> + 'a {
    let nodes = manifests.chain.nodes.iter().enumerate();
    nodes.filter(move |(_, node)| node.beside == Some(endpoint)).map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::k8s::tests::{manifests, sizes};
    use crate::{Chain, ClusterSettings};
    use proptest::prelude::*;

    fn names(chain: &Chain, of: &[usize]) -> String {
        of.iter().map(|&at| chain.nodes[at].step.name()).collect::<Vec<_>>().join(" ")
    }

    /// A chain of one round of which all before a step is done.
    fn until(chain: &Chain, step: &str) -> Progress {
        let at = chain.nodes.iter().position(|node| node.step.name() == step).unwrap();
        let mut progress = Progress::none(chain);
        // What comes before it in any way.
        let mut before = chain.nodes[at].after.clone();
        while let Some(at) = before.pop() {
            progress.0[at] = State::Done;
            before.extend(&chain.nodes[at].after);
        }
        progress
    }

    #[test]
    fn a_step_is_created_when_its_inputs_are_there_and_its_endpoint_beside_it() {
        let (sizes, cluster) = (sizes(), ClusterSettings::default());
        let chain = Chain::new(&sizes.rollout, "v1", 1, false);
        let manifests = manifests(&chain, &sizes, &cluster);
        let first = next(&manifests, &Progress::none(&chain), &Live::default());
        assert_eq!(names(&chain, &first.create), "synthesize");
        let mut progress = until(&chain, "rollout-train-0001");
        let serving = next(&manifests, &progress, &Live::default());
        assert_eq!((names(&chain, &serving.create), serving.active), ("endpoint-0000".into(), true));
        let endpoint = manifests.name(&chain.nodes[serving.create[0]].step);
        let mut live = Live { endpoints: [(endpoint.clone(), Server::Loading)].into(), ..Live::default() };
        let loading = next(&manifests, &progress, &live);
        assert!(loading.create.is_empty() && loading.active, "nobody waits for a server that loads");
        assert_eq!(names(&chain, &loading.loading), "endpoint-0000");
        live.endpoints.insert(endpoint.clone(), Server::Failed);
        let never = next(&manifests, &progress, &live);
        assert!(!never.active && never.create.is_empty() && names(&chain, &never.failed) == "endpoint-0000");
        live.endpoints.insert(endpoint, Server::Ready);
        let acting = next(&manifests, &progress, &live);
        assert_eq!(names(&chain, &acting.create), "rollout-train-0001 rollout-heldout-0000");
        for (at, phase) in acting.create.iter().zip([Phase::Failed, Phase::Active]) {
            live.jobs.insert(manifests.name(&chain.nodes[*at].step), phase);
        }
        let one_failed = next(&manifests, &progress, &live);
        assert_eq!((names(&chain, &one_failed.create), one_failed.active), (String::new(), true));
        assert_eq!(names(&chain, &one_failed.failed), "rollout-train-0001");
        assert!(one_failed.remove.is_empty(), "the other still needs its endpoint");
        // The other is done: what it was for goes on, and the endpoint serves nobody.
        progress.0[acting.create[1]] = State::Done;
        let other_done = next(&manifests, &progress, &live);
        assert_eq!(names(&chain, &other_done.create), "score-heldout-0000");
        assert_eq!(names(&chain, &other_done.remove), "endpoint-0000");
        // A job whose pods all ended well before its stage was read, and is still open, has failed too.
        live.jobs.insert(manifests.name(&Step::Score { set: "heldout".into(), round: 0 }), Phase::Complete);
        live.endpoints.clear();
        let stuck = next(&manifests, &progress, &live);
        assert!(!stuck.active && stuck.create.is_empty() && stuck.failed.len() == 2);
    }

    proptest! {
        /// Whatever ends in whatever order, every step is created once, after its inputs, and no endpoint is left.
        #[test]
        fn every_chain_comes_to_its_end(rounds in 0u32..4, lag in 0u32..3, order in proptest::collection::vec(any::<u16>(), 300)) {
            let mut sizes = sizes();
            sizes.rollout.max_lag = lag;
            let cluster = ClusterSettings::default();
            let chain = Chain::new(&sizes.rollout, "v1", rounds, false);
            let manifests = manifests(&chain, &sizes, &cluster);
            let (mut progress, mut live) = (Progress::none(&chain), Live::default());
            for pick in order {
                let next = next(&manifests, &progress, &live);
                for at in next.remove {
                    live.endpoints.remove(&manifests.name(&chain.nodes[at].step));
                }
                for at in next.create {
                    let name = manifests.name(&chain.nodes[at].step);
                    prop_assert!(chain.nodes[at].after.iter().all(|&before| progress.0[before] == State::Done));
                    match chain.nodes[at].step {
                        Step::Endpoint { .. } => prop_assert_eq!(live.endpoints.insert(name, Server::Loading), None),
                        _ => prop_assert_eq!(live.jobs.insert(name, Phase::Active), None),
                    }
                }
                // A server has loaded at some time.
                if pick % 2 == 0 {
                    live.endpoints.values_mut().for_each(|server| *server = Server::Ready);
                }
                let active: Vec<usize> = (0..chain.nodes.len())
                    .filter(|&at| live.jobs.get(&manifests.name(&chain.nodes[at].step)) == Some(&Phase::Active))
                    .collect();
                if let Some(&at) = active.get(pick as usize % active.len().max(1)) {
                    live.jobs.insert(manifests.name(&chain.nodes[at].step), Phase::Complete);
                    progress.0[at] = State::Done;
                }
                // An endpoint is done when its stages are.
                for (at, node) in chain.nodes.iter().enumerate() {
                    if let Step::Endpoint { .. } = node.step
                        && users(&manifests, at).all(|user| progress.0[user] == State::Done)
                    {
                        progress.0[at] = State::Done;
                    }
                }
            }
            prop_assert!(progress.0.iter().all(|state| *state == State::Done), "{:?}", progress);
            prop_assert!(live.endpoints.is_empty());
        }
    }
}
