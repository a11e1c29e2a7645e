//! The pod of one worker: its container, what it may do, and the step that waits for its inputs.
//!
//! What must hold: no process is root or may become it; no secret's value is in a manifest, only its name; a pod that opens
//! sandboxes is allowed exactly what they need, and every other pod nothing; only a conductor holds a token of the API server.

use super::settings::{K8sSettings, SandboxIn};
use crate::settings::{ClusterSettings, Resources};
use k8s_openapi::api::core::v1::{
    AppArmorProfile, Capabilities, Container, EmptyDirVolumeSource, EnvFromSource, EnvVar, EnvVarSource,
    ObjectFieldSelector, PersistentVolumeClaimVolumeSource, PodSecurityContext, PodSpec, ResourceRequirements,
    SeccompProfile, SecretEnvSource, SecurityContext, Toleration, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use std::collections::BTreeMap;

/// Name of the container that works.
pub const WORKER: &str = "rollmill";
/// Name of the one that waits for inputs.
pub const WAIT: &str = "wait";
/// Name of the one that asks whether the budget is spent.
pub const BUDGET: &str = "budget";

/// Seconds a pod waits for its inputs before it leaves its place to others, and comes again.
pub const WAIT_SECONDS: u64 = 300;

/// Who runs inside: nobody of the node.
pub const USER: i64 = 65_532;

/// What a pod is for.
pub struct PodOf<'a> {
    /// `[cluster]`.
    pub cluster: &'a ClusterSettings,
    /// The job, which decides image, account and rights.
    pub job: &'a str,
    /// What it gets.
    pub resources: Resources,
    /// Address of the run.
    pub address: &'a str,
    /// The words after `rollmill`.
    pub command: Vec<String>,
    /// The words after `rollmill wait`; empty: it waits for nothing.
    pub waits_for: Vec<String>,
    /// The words after `rollmill budget`; empty: there is none.
    pub budget: Vec<String>,
}

/// Whether a job runs code that is not trusted.
fn opens_sandboxes(job: &str) -> bool {
    ["verify", "rollout", "score"].contains(&job)
}

impl PodOf<'_> {
    fn settings(&self) -> &K8sSettings {
        &self.cluster.k8s
    }

    fn needs_namespaces(&self) -> bool {
        opens_sandboxes(self.job) && self.settings().sandbox == SandboxIn::Namespaces
    }

    /// The pod.
    pub fn pod(&self) -> PodSpec {
        let settings = self.settings();
        let gpu = self.resources.gpus > 0;
        let selector = if gpu { &settings.gpu_node_selector } else { &settings.node_selector };
        let before = [(WAIT, &self.waits_for), (BUDGET, &self.budget)];
        let before = before.into_iter().filter(|(_, words)| !words.is_empty());
        let before: Vec<Container> =
            before.map(|(name, words)| self.container(name, words.clone(), small_resources())).collect();
        PodSpec {
            containers: vec![self.container(WORKER, self.command.clone(), self.worker_resources())],
            init_containers: (!before.is_empty()).then_some(before),
            restart_policy: Some("Never".into()),
            service_account_name: settings.service_accounts.get(self.job).cloned(),
            automount_service_account_token: Some(false),
            // A user namespace of the pod's own, without which /proc cannot be mounted inside it.
            host_users: self.needs_namespaces().then_some(false),
            security_context: Some(PodSecurityContext {
                run_as_non_root: Some(true),
                run_as_user: Some(USER),
                run_as_group: Some(USER),
                fs_group: Some(USER),
                ..PodSecurityContext::default()
            }),
            runtime_class_name: settings.runtime_class.clone().filter(|_| opens_sandboxes(self.job)),
            node_selector: (!selector.is_empty()).then(|| selector.clone()),
            tolerations: gpu.then(|| vec![self.tolerates_gpu()]),
            // To save what it has when it is evicted, or its time is over.
            termination_grace_period_seconds: Some(i64::from(self.cluster.signal_seconds)),
            volumes: Some(self.volumes()),
            ..PodSpec::default()
        }
    }

    fn container(&self, name: &str, words: Vec<String>, resources: ResourceRequirements) -> Container {
        let settings = self.settings();
        let heavy = ["train", "endpoint"].contains(&self.job);
        let secret = settings.secret.as_ref().map(|name| EnvFromSource {
            secret_ref: Some(SecretEnvSource { name: name.clone(), optional: Some(false) }),
            ..EnvFromSource::default()
        });
        Container {
            name: name.into(),
            image: Some(if heavy { &settings.gpu_image } else { &settings.image }.clone()),
            command: Some(vec!["rollmill".into()]),
            args: Some(words),
            env: Some(self.env()),
            env_from: secret.map(|secret| vec![secret]),
            resources: Some(resources),
            security_context: Some(rights(name == WORKER && self.needs_namespaces())),
            volume_mounts: Some(self.mounts()),
            ..Container::default()
        }
    }

    fn volumes(&self) -> Vec<Volume> {
        let tmp = EmptyDirVolumeSource::default();
        let mut volumes = vec![Volume { name: "tmp".into(), empty_dir: Some(tmp), ..Volume::default() }];
        if let Some(claim_name) = self.settings().claim.clone() {
            let claim = PersistentVolumeClaimVolumeSource { claim_name, ..Default::default() };
            let name = "run".into();
            volumes.push(Volume { name, persistent_volume_claim: Some(claim), ..Volume::default() });
        }
        volumes
    }

    fn mounts(&self) -> Vec<VolumeMount> {
        let at = |name: &str, path: &str| VolumeMount {
            name: name.into(),
            mount_path: path.into(),
            ..VolumeMount::default()
        };
        let run = self.settings().claim.as_ref().map(|_| at("run", &self.settings().claim_path));
        std::iter::once(at("tmp", "/tmp")).chain(run).collect()
    }

    fn env(&self) -> Vec<EnvVar> {
        let own = [
            ("ROLLMILL_RUN", self.address.to_string()),
            ("ROLLMILL_CORES", self.resources.cpus.to_string()),
            ("ROLLMILL_GPUS", self.resources.gpus.to_string()),
            ("OMP_NUM_THREADS", self.resources.cpus.to_string()),
            // The root file system is read-only: caches and temporary files go here.
            ("HOME", "/tmp".into()),
            ("XDG_CACHE_HOME", "/tmp/cache".into()),
        ];
        let own = own.map(|(name, value)| (name.to_string(), value)).into_iter();
        let all = own.chain(self.settings().env.clone());
        let mut env: Vec<EnvVar> =
            all.map(|(name, value)| EnvVar { name, value: Some(value), ..EnvVar::default() }).collect();
        if self.job == "endpoint" {
            let field = ObjectFieldSelector { field_path: "status.podIP".into(), ..ObjectFieldSelector::default() };
            env.push(EnvVar {
                name: "POD_IP".into(),
                value_from: Some(EnvVarSource { field_ref: Some(field), ..EnvVarSource::default() }),
                ..EnvVar::default()
            });
        }
        env
    }

    fn worker_resources(&self) -> ResourceRequirements {
        let mut amounts = BTreeMap::from([
            ("cpu".to_string(), Quantity(self.resources.cpus.to_string())),
            ("memory".to_string(), Quantity(quantity_of(&self.resources.memory))),
        ]);
        if self.resources.gpus > 0 {
            amounts.insert(self.settings().gpu_resource.clone(), Quantity(self.resources.gpus.to_string()));
        }
        asked(amounts)
    }

    fn tolerates_gpu(&self) -> Toleration {
        Toleration {
            key: Some(self.settings().gpu_resource.clone()),
            operator: Some("Exists".into()),
            effect: Some("NoSchedule".into()),
            ..Toleration::default()
        }
    }
}

/// What the kernel lets a container do. Inside a user namespace of its own a process may open further ones, and mount there;
/// the default profiles of seccomp and AppArmor forbid both, and a `/proc` with masked parts cannot be mounted anew.
fn rights(namespaces: bool) -> SecurityContext {
    let profile = if namespaces { "Unconfined" } else { "RuntimeDefault" };
    SecurityContext {
        allow_privilege_escalation: Some(false),
        privileged: Some(false),
        run_as_non_root: Some(true),
        read_only_root_filesystem: Some(true),
        capabilities: Some(Capabilities { drop: Some(vec!["ALL".into()]), ..Capabilities::default() }),
        seccomp_profile: Some(SeccompProfile { type_: profile.into(), ..SeccompProfile::default() }),
        app_armor_profile: namespaces
            .then(|| AppArmorProfile { type_: "Unconfined".into(), ..AppArmorProfile::default() }),
        proc_mount: namespaces.then(|| "Unmasked".into()),
        ..SecurityContext::default()
    }
}

/// Waiting takes next to nothing.
fn small_resources() -> ResourceRequirements {
    asked(BTreeMap::from([("cpu".into(), Quantity("50m".into())), ("memory".into(), Quantity("128Mi".into()))]))
}

fn asked(amounts: BTreeMap<String, Quantity>) -> ResourceRequirements {
    ResourceRequirements { requests: Some(amounts.clone()), limits: Some(amounts), ..ResourceRequirements::default() }
}

/// `4G` as Slurm means it, which is 4 GiB.
fn quantity_of(memory: &str) -> String {
    match memory.chars().last() {
        Some(unit @ ('K' | 'M' | 'G' | 'T')) => format!("{}{unit}i", &memory[..memory.len() - 1]),
        _ => memory.into(),
    }
}
