//! A cluster, through `kubectl`: it knows how people and pods prove who they are.
//!
//! What it refuses is final for a person, who can mend it. A conductor asks again: an API server may be away, a quota full.

use super::argo::Workflow;
use super::live::Live;
use super::names::RUN;
use super::{K8sSettings, Object, unwritable};
use crate::program::{self, Failed};
use rollmill_job::{JobError, env};

/// The program, and where it is to look.
#[derive(Clone, Debug)]
pub struct Kubectl {
    place: Vec<String>,
    patient: bool,
}

impl Kubectl {
    /// For the namespace and context of the settings, as a person calls it: what is refused is final.
    pub fn new(settings: &K8sSettings) -> Kubectl {
        let context = settings.context.iter().flat_map(|context| ["--context".to_string(), context.clone()]);
        Kubectl { place: context.chain(["--namespace".into(), settings.namespace.clone()]).collect(), patient: false }
    }

    /// For a conductor: what is refused now may be done later. In a pod there is no context: its own account is taken.
    pub fn patient(settings: &K8sSettings) -> Kubectl {
        let here = env::read(env::KUBERNETES_SERVICE_HOST).is_none();
        let context = settings.context.clone().filter(|_| here);
        Kubectl { patient: true, ..Kubectl::new(&K8sSettings { context, ..settings.clone() }) }
    }

    async fn call(&self, words: &[&str], input: Option<&str>) -> Result<String, JobError> {
        let all: Vec<&str> = self.place.iter().map(String::as_str).chain(words.iter().copied()).collect();
        let refused = |reason: String| JobError::Config { place: "kubectl".into(), reason };
        program::call("kubectl", &all, input).await.map_err(|failed| match failed {
            Failed::Absent(reason) => {
                refused(format!("{reason}; install it where you submit, and in the image of the conductor"))
            }
            Failed::Refused(said) if self.patient => {
                JobError::Unavailable { reason: format!("kubectl {}: {said}", words.first().unwrap_or(&"")) }
            }
            Failed::Refused(said) => {
                refused(format!("{said}; see that `kubectl {}` works here", words[..words.len().min(2)].join(" ")))
            }
        })
    }

    /// What there is of a run.
    pub async fn live(&self, run_id: &str) -> Result<Live, JobError> {
        let selector = format!("{RUN}={run_id}");
        let text = self.call(&["get", "jobs,deployments", "--selector", &selector, "--output", "json"], None).await?;
        Live::parse(&text).map_err(|e| JobError::Config {
            place: "kubectl".into(),
            reason: format!("its answer is no list of jobs ({e}); this version cannot be used"),
        })
    }

    /// Creates an object. That another was faster is no error: it is there.
    pub async fn create(&self, object: &Object, name: &str, run_id: &str) -> Result<(), JobError> {
        let Err(refused) = self.call(&["create", "--filename", "-"], Some(&json(object)?)).await else { return Ok(()) };
        let live = self.live(run_id).await?;
        if live.jobs.contains_key(name) || live.endpoints.contains_key(name) { Ok(()) } else { Err(refused) }
    }

    /// Brings objects to the state that is wanted, whether or not they are there.
    pub async fn apply(&self, objects: &[Object]) -> Result<(), JobError> {
        for object in objects {
            let words =
                ["apply", "--server-side", "--force-conflicts", "--field-manager", "rollmill", "--filename", "-"];
            self.call(&words, Some(&json(object)?)).await?;
        }
        Ok(())
    }

    /// Takes a Job away, its pods first. One whose node is lost takes longer than anybody waits.
    pub async fn delete_job(&self, name: &str) -> Result<(), JobError> {
        let words = ["delete", "job", name, "--ignore-not-found", "--cascade=foreground", "--timeout=120s"];
        self.call(&words, None).await.map(drop)
    }

    /// Begins to take an endpoint away. Whoever looks again sees when it is gone.
    pub async fn delete_endpoint(&self, name: &str) -> Result<(), JobError> {
        self.call(&["delete", "deployment", name, "--ignore-not-found", "--wait=false"], None).await.map(drop)
    }

    /// Creates an Argo Workflow, unless one of the run is under way; its name.
    pub async fn create_workflow(&self, workflow: &Workflow, run_id: &str) -> Result<String, JobError> {
        let selector = format!("{RUN}={run_id},workflows.argoproj.io/completed!=true");
        let there = self.call(&["get", "workflows", "--selector", &selector, "--output", "name"], None).await?;
        if !there.trim().is_empty() {
            return Ok(format!("{} is under way", there.trim()));
        }
        let made = self.call(&["create", "--filename", "-", "--output", "name"], Some(&json(workflow)?)).await?;
        Ok(made.trim().to_string())
    }
}

fn json<T: serde::Serialize>(object: &T) -> Result<String, JobError> {
    serde_json::to_string(object).map_err(unwritable)
}
