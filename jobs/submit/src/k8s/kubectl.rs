//! A cluster, through `kubectl`: it knows how people and pods prove who they are.

use super::live::Live;
use super::names::RUN;
use super::{K8sSettings, Object};
use crate::program;
use rollmill_job::JobError;

/// The program, and where it is to look.
#[derive(Clone, Debug)]
pub struct Kubectl {
    place: Vec<String>,
}

impl Kubectl {
    /// For the namespace and context of the settings.
    pub fn new(settings: &K8sSettings) -> Kubectl {
        let context = settings.context.iter().flat_map(|context| ["--context".to_string(), context.clone()]);
        Kubectl { place: context.chain(["--namespace".into(), settings.namespace.clone()]).collect() }
    }

    async fn call(&self, words: &[&str], input: Option<&str>) -> Result<String, JobError> {
        let all: Vec<&str> = self.place.iter().map(String::as_str).chain(words.iter().copied()).collect();
        let advice = "see that `kubectl get jobs` works here, then run the same command again";
        program::call("kubectl", &all, input, advice).await
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
        if live.jobs.contains_key(name) || live.endpoints.contains(name) { Ok(()) } else { Err(refused) }
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

    /// Takes an object away, its pods first.
    pub async fn delete(&self, kind: &str, name: &str) -> Result<(), JobError> {
        self.call(&["delete", kind, name, "--ignore-not-found", "--cascade=foreground"], None).await.map(drop)
    }
}

fn json<T: serde::Serialize>(object: &T) -> Result<String, JobError> {
    serde_json::to_string(object).map_err(|e| JobError::Config { place: "manifests".into(), reason: e.to_string() })
}

impl Kubectl {
    /// Creates an Argo Workflow.
    pub async fn create_workflow(&self, workflow: &super::argo::Workflow) -> Result<String, JobError> {
        self.call(&["create", "--filename", "-", "--output", "name"], Some(&json(workflow)?)).await
    }
}
