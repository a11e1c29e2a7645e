//! A run as Kubernetes objects: an Indexed Job for each step, a Deployment for each endpoint, a conductor that creates them in
//! order; or an Argo Workflow.
//!
//! In: a chain, its state, sizes and settings. Out: objects of typed structs, sound by our own rules, as YAML or in a cluster.
//! What must hold: what is done is not created, what is there already is left alone; a step that is created before its inputs
//! are there waits for them in its first container.

pub mod argo;
mod conduct;
mod conductor;
mod job;
mod kubectl;
mod live;
mod names;
mod pod;
mod rules;
mod settings;

pub use conduct::{Conductor, Ended};
pub use kubectl::Kubectl;
pub use settings::{K8sSettings, SandboxIn};

use crate::chain::{Chain, Node, Step};
use crate::command::Flags;
use crate::estimate::{Elements, Facts, Sizes};
use crate::progress::{Progress, State};
use crate::settings::{ClusterSettings, EndpointSettings};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use names::Names;
use pod::{PodOf, WAIT_SECONDS};
use rollmill_job::JobError;
use rollmill_schema::content_id;

/// One object.
#[derive(Clone, Debug, serde::Serialize)]
#[serde(untagged)]
pub enum Object {
    /// A step, or the conductor.
    Job(Box<Job>),
    /// An endpoint.
    Deployment(Box<Deployment>),
    /// Who may talk to endpoints.
    NetworkPolicy(Box<NetworkPolicy>),
    /// Whom the conductor is.
    ServiceAccount(Box<ServiceAccount>),
    /// What it may do.
    Role(Box<Role>),
    /// That it may.
    RoleBinding(Box<RoleBinding>),
    /// What it reads.
    ConfigMap(Box<ConfigMap>),
    /// The conductor, on a schedule.
    CronJob(Box<CronJob>),
}

/// How order is kept inside the cluster.
#[derive(Clone, Debug)]
pub struct Conduct {
    /// Text of the configuration.
    pub config: String,
    /// Rounds.
    pub rounds: u32,
    /// When it submits anew, as `cron` writes it; once if absent.
    pub schedule: Option<String>,
}

impl Conduct {
    /// Tells submissions with another configuration or other rounds apart.
    pub fn submission(&self) -> String {
        content_id(&[&self.config, &self.rounds.to_string()])
    }
}

/// What is made into objects.
pub struct Manifests<'a> {
    /// The steps.
    pub chain: &'a Chain,
    /// Sizes of steps that nobody has planned.
    pub sizes: &'a Sizes,
    /// `[cluster]`.
    pub cluster: &'a ClusterSettings,
    /// Flags of jobs.
    pub flags: Flags,
    /// Id of the run.
    pub run_id: String,
    /// Its address.
    pub address: String,
}

impl Manifests<'_> {
    fn names(&self) -> Names<'_> {
        Names { run_id: &self.run_id, namespace: &self.cluster.k8s.namespace }
    }

    /// Name of a step's object.
    pub fn name(&self, step: &Step) -> String {
        self.names().name(&step.name())
    }

    /// All steps that are left.
    pub fn steps(&self, progress: &Progress, facts: &Facts) -> Result<Vec<Object>, JobError> {
        let left = self.chain.nodes.iter().zip(&progress.0).filter(|(_, state)| **state != State::Done);
        left.map(|(node, state)| self.step(node, state, facts)).collect()
    }

    /// One step.
    pub fn step(&self, node: &Node, state: &State, facts: &Facts) -> Result<Object, JobError> {
        let step = node.step.name();
        let (of, workers) = self.pod_of(node, state, facts)?;
        let object = match &node.step {
            Step::Endpoint { .. } => Object::Deployment(Box::new(job::endpoint(&self.names(), &step, &of))),
            _ => Object::Job(Box::new(job::indexed_job(&self.names(), &step, &of, workers))),
        };
        sound(object)
    }

    /// The pod of a step, and how many there are of it.
    fn pod_of<'a>(&'a self, node: &'a Node, state: &State, facts: &Facts) -> Result<(PodOf<'a>, u32), JobError> {
        let resources = self.cluster.resources(node.step.job())?;
        let size = self.sizes.of(&node.step, facts);
        let workers = Elements::of(state, &size, &resources, self.cluster.max_array).fold;
        let mut command = self.flags.command(&node.step, &resources, workers, &self.endpoint());
        if let Step::Endpoint { .. } = node.step {
            command.extend(["--port".into(), job::PORT.to_string()]);
        }
        let mut waits_for = self.inputs(node);
        if !waits_for.is_empty() {
            waits_for.splice(0..0, ["wait".into(), "--seconds".into(), WAIT_SECONDS.to_string()]);
        }
        let of = PodOf {
            cluster: self.cluster,
            job: node.step.job(),
            resources,
            address: &self.address,
            command,
            waits_for,
            // A server that refuses to begin would be begun again for ever: those that act with it ask.
            budget: if let Step::Endpoint { .. } = node.step { vec![] } else { self.budget() },
        };
        Ok((of, workers))
    }

    fn budget(&self) -> Vec<String> {
        let flags = &self.flags.budget;
        if flags.is_empty() { vec![] } else { std::iter::once("budget".into()).chain(flags.iter().cloned()).collect() }
    }

    /// A pod has a name that nobody resolves: it listens at its address, which is published.
    fn endpoint(&self) -> EndpointSettings {
        let set = &self.cluster.endpoint;
        EndpointSettings { host: set.host.clone().or_else(|| Some("$(POD_IP)".into())), ..set.clone() }
    }

    /// Flags of `rollmill wait` for what a step reads.
    fn inputs(&self, node: &Node) -> Vec<String> {
        let before = node.after.iter().map(|&at| &self.chain.nodes[at].step);
        let flags = before.filter_map(|step| match step {
            Step::Train { round } => Some(["--trained".to_string(), round.to_string()]),
            step => Some(["--stage".to_string(), step.stage(&self.chain.version)?.name().to_string()]),
        });
        flags.flatten().collect()
    }

    /// What must stand before the first step.
    pub fn ground(&self) -> Vec<Object> {
        vec![Object::NetworkPolicy(Box::new(conductor::only_the_run(&self.names())))]
    }

    /// What the conductor needs, without itself.
    pub fn conductor_ground(&self, conduct: &Conduct) -> Vec<Object> {
        let names = self.names();
        let mut objects = vec![Object::ConfigMap(Box::new(conductor::config(&names, &conduct.config)))];
        let given = self.cluster.k8s.service_accounts.get(conductor::CONDUCT).cloned();
        if given.is_none() {
            objects.push(Object::ServiceAccount(Box::new(conductor::account(&names))));
        }
        let (role, binding) = conductor::may_conduct(&names, &given.unwrap_or_else(|| self.conductor_name()));
        objects.push(Object::Role(Box::new(role)));
        objects.push(Object::RoleBinding(Box::new(binding)));
        objects
    }

    /// The conductor itself.
    pub fn conductor(&self, conduct: &Conduct) -> Result<Object, JobError> {
        let mut command = vec!["conduct".into(), "--config".into(), conductor::CONFIG.to_string()];
        command.extend(["--rounds".into(), conduct.rounds.to_string()]);
        if conduct.schedule.is_some() {
            // Each time is a submission of its own: what failed the last time is tried again.
            command.push("--anew".into());
        }
        let of = PodOf {
            cluster: self.cluster,
            job: conductor::CONDUCT,
            resources: self.cluster.resources(conductor::CONDUCT)?,
            address: &self.address,
            command,
            waits_for: vec![],
            budget: vec![],
        };
        sound(match &conduct.schedule {
            None => Object::Job(Box::new(conductor::job(&self.names(), &of, &conduct.submission()))),
            Some(schedule) => Object::CronJob(Box::new(conductor::cron_job(&self.names(), &of, schedule))),
        })
    }

    /// Name of the conductor.
    pub fn conductor_name(&self) -> String {
        self.names().name(conductor::CONDUCT)
    }

    /// The same as an Argo Workflow.
    pub fn workflow(&self, progress: &Progress, facts: &Facts) -> Result<argo::Workflow, JobError> {
        argo::workflow(self, progress, facts)
    }
}

/// An object that our own rules find nothing wrong with. They stand beside the code that builds it, as a second opinion.
fn sound(object: Object) -> Result<Object, JobError> {
    match rules::problems(&object).as_slice() {
        [] => Ok(object),
        all => Err(JobError::Config { place: "[cluster]".into(), reason: all.join("; ") }),
    }
}

/// An object that cannot be written as text.
fn unwritable(e: impl std::fmt::Display) -> JobError {
    JobError::Config { place: "manifests".into(), reason: e.to_string() }
}

/// Documents of YAML, one for each object.
pub fn yaml<T: serde::Serialize>(objects: &[T]) -> Result<String, JobError> {
    let mut text = String::new();
    for object in objects {
        // Without what is absent: typed structs leave it out, values of JSON keep their order.
        let value = serde_json::to_value(object).map_err(unwritable)?;
        text += &format!("---\n{}", serde_saphyr::to_string(&value).map_err(unwritable)?);
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rollmill_rollout::RolloutConfig;

    pub fn sizes() -> Sizes {
        Sizes {
            rollout: RolloutConfig::default(),
            synthesize: Default::default(),
            verify: Default::default(),
            score: Default::default(),
        }
    }

    pub fn manifests<'a>(chain: &'a Chain, sizes: &'a Sizes, cluster: &'a ClusterSettings) -> Manifests<'a> {
        Manifests {
            chain,
            sizes,
            cluster,
            flags: Flags { budget: vec!["--core-hours".into(), "5".into()], ..Flags::default() },
            run_id: "0123456789abcdef".into(),
            address: "s3://bucket/exp7".into(),
        }
    }

    fn made(cluster: &ClusterSettings) -> Vec<serde_json::Value> {
        let sizes = sizes();
        let chain = Chain::new(&sizes.rollout, "v1", 1, false);
        let manifests = manifests(&chain, &sizes, cluster);
        let conduct = Conduct { config: "x = 1".into(), rounds: 1, schedule: None };
        let mut objects = manifests.steps(&Progress::none(&chain), &Facts::default()).unwrap();
        objects.push(manifests.conductor(&conduct).unwrap());
        objects.iter().map(|object| serde_json::to_value(object).unwrap()).collect()
    }

    fn pod_of<'a>(objects: &'a [serde_json::Value], step: &str) -> &'a serde_json::Value {
        let name = format!("rm-01234567-{step}");
        let object = objects.iter().find(|object| object["metadata"]["name"] == name).unwrap();
        &object["spec"]["template"]["spec"]
    }

    #[test]
    fn a_pod_gets_its_command_its_wait_and_its_rights() {
        let objects = made(&ClusterSettings::default());
        let rollout = pod_of(&objects, "rollout-train-0001");
        let words = rollout["containers"][0]["args"].as_array().unwrap();
        assert_eq!(words[..5], ["rollout", "--split", "train", "--round", "1"]);
        let before: Vec<&serde_json::Value> = rollout["initContainers"].as_array().unwrap().iter().collect();
        assert_eq!(before[0]["args"], serde_json::json!(["wait", "--seconds", "300", "--stage", "verify"]));
        assert_eq!(before[1]["args"], serde_json::json!(["budget", "--core-hours", "5"]));
        // Sandboxes need more of the kernel, and nothing else does.
        assert_eq!(rollout["hostUsers"], false);
        assert_eq!(rollout["containers"][0]["securityContext"]["procMount"], "Unmasked");
        assert_eq!(before[0]["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
        let train = pod_of(&objects, "train-0001");
        assert!(train["hostUsers"].is_null() && train["containers"][0]["securityContext"]["procMount"].is_null());
        assert_eq!(train["containers"][0]["image"], "rollmill-gpu:latest");
        let endpoint = pod_of(&objects, "endpoint-0000");
        let words = endpoint["containers"][0]["args"].to_string();
        assert!(words.contains(r#""--host","$(POD_IP)""#) && words.contains(r#""--port","8000""#), "{words}");
        // Who may speak to the API server.
        for (step, token) in [("rollout-train-0001", false), ("endpoint-0000", false), ("conduct", true)] {
            assert_eq!(pod_of(&objects, step)["automountServiceAccountToken"], token, "{step}");
        }
    }

    #[test]
    fn a_gpu_is_asked_for_and_tolerated_where_it_is_wanted() {
        let mut cluster = ClusterSettings::default();
        let wanted = crate::settings::Wanted { gpus: 2, memory: Some("64G".into()), ..Default::default() };
        cluster.jobs.insert("train".into(), wanted);
        cluster.k8s.gpu_node_selector.insert("pool".into(), "gpu".into());
        let objects = made(&cluster);
        let train = pod_of(&objects, "train-0001");
        let limits = &train["containers"][0]["resources"]["limits"];
        assert_eq!((&limits["nvidia.com/gpu"], &limits["memory"]), (&"2".into(), &"64Gi".into()));
        assert_eq!(
            (&train["nodeSelector"]["pool"], &train["tolerations"][0]["key"]),
            (&"gpu".into(), &"nvidia.com/gpu".into())
        );
        assert!(pod_of(&objects, "score-train-0001")["tolerations"].is_null());
    }
}
