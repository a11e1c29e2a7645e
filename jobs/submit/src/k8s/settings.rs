//! `[cluster.k8s]`: where images come from and what pods may do.

use rollmill_job::JobError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct K8sSettings {
    /// Context of `kubectl`; its current one if absent.
    pub context: Option<String>,
    /// Namespace of everything.
    pub namespace: String,
    /// Image of all jobs but training and serving.
    pub image: String,
    /// Image of training and serving.
    pub gpu_image: String,
    /// Secret whose keys become environment variables: the store's credentials. Only its name is written anywhere.
    pub secret: Option<String>,
    /// A volume claim of many writers, where the run lies in a folder instead of a bucket.
    pub claim: Option<String>,
    /// Where pods see it: the run's address lies below, here as well.
    pub claim_path: String,
    /// Environment variables that are no secret: `AWS_ENDPOINT_URL`, `AWS_REGION`.
    pub env: BTreeMap<String, String>,
    /// Service accounts by job, where a cloud gives roles to accounts: `rollout = "rollmill-rollout"`.
    pub service_accounts: BTreeMap<String, String>,
    /// How sandboxes are made inside pods.
    pub sandbox: SandboxIn,
    /// Runtime class of pods that open sandboxes, such as `gvisor`.
    pub runtime_class: Option<String>,
    /// Queue of Kueue that admits jobs.
    pub queue: Option<String>,
    /// Labels of nodes that pods may run on.
    pub node_selector: BTreeMap<String, String>,
    /// The same for pods with a GPU.
    pub gpu_node_selector: BTreeMap<String, String>,
    /// Name of the GPU resource.
    pub gpu_resource: String,
    /// Seconds between two looks of a conductor.
    pub look_seconds: u64,
    /// Days after which jobs that ended, well or not, are removed from the API server; the store keeps what they did.
    pub keep_days: u32,
}

/// What a pod is allowed so that sandboxes work in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SandboxIn {
    /// Namespaces inside the pod's own user namespace: no seccomp profile in the way of `unshare`, and a `/proc` that can be
    /// mounted anew. Needs Kubernetes 1.33 and a runtime with user namespaces.
    #[default]
    Namespaces,
    /// Whatever the runtime class isolates; the pod is as restricted as any.
    Runtime,
}

impl Default for K8sSettings {
    fn default() -> K8sSettings {
        K8sSettings {
            context: None,
            namespace: "default".into(),
            image: "rollmill:latest".into(),
            gpu_image: "rollmill-gpu:latest".into(),
            secret: None,
            claim: None,
            claim_path: "/runs".into(),
            env: BTreeMap::new(),
            service_accounts: BTreeMap::new(),
            sandbox: SandboxIn::Namespaces,
            runtime_class: None,
            queue: None,
            node_selector: BTreeMap::new(),
            gpu_node_selector: BTreeMap::new(),
            gpu_resource: "nvidia.com/gpu".into(),
            look_seconds: 10,
            keep_days: 7,
        }
    }
}

/// Whether the value of a variable of this name is surely a secret.
pub fn is_secret(name: &str) -> bool {
    let name = name.to_uppercase();
    ["SECRET", "TOKEN", "PASSWORD", "ACCESS_KEY", "API_KEY"].iter().any(|word| name.contains(word))
}

impl K8sSettings {
    /// Refuses settings that cannot work, or would show a secret.
    pub fn check(&self) -> Result<(), JobError> {
        let bad = |reason: String| Err(JobError::Config { place: "[cluster.k8s]".into(), reason });
        if let Some(name) = self.env.keys().find(|name| is_secret(name)) {
            return bad(format!(
                "env.{name} looks like a secret: put it into a Secret, and that one's name under secret"
            ));
        }
        if self.sandbox == SandboxIn::Runtime && self.runtime_class.is_none() {
            return bad("sandbox = \"runtime\" needs a runtime_class, such as gvisor".into());
        }
        if !(1..=365).contains(&self.keep_days) {
            return bad("keep_days must be 1 to 365: a job that is removed at once is begun again".into());
        }
        Ok(())
    }

    /// Refuses a run that no pod would reach.
    pub fn check_address(&self, address: &str) -> Result<(), JobError> {
        let below = self.claim.is_some() && Path::new(address).starts_with(&self.claim_path);
        if address.starts_with("s3://") || below {
            return Ok(());
        }
        let reason = "pods reach no folder of this machine; use s3://bucket/prefix, or a folder below [cluster.k8s] \
                      claim_path on a claim";
        Err(JobError::Config { place: format!("--run {address}"), reason: reason.into() })
    }
}
