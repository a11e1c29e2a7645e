//! What a cluster holds of a run.

use super::names::SUBMISSION;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use std::collections::BTreeMap;

/// How far a Job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It waits or runs.
    Active,
    /// All of its indexes succeeded.
    Complete,
    /// It will not go on.
    Failed,
}

/// Jobs and endpoints by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// Jobs.
    pub jobs: BTreeMap<String, Phase>,
    /// Deployments, and whether a pod of each is ready.
    pub endpoints: BTreeMap<String, bool>,
    /// What conductors were submitted with.
    pub submissions: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct List {
    items: Vec<Item>,
}

#[derive(Deserialize)]
#[serde(tag = "kind")]
enum Item {
    Job(Box<Job>),
    Deployment(Box<Deployment>),
    #[serde(other)]
    Other,
}

impl Live {
    /// From a list as the API server writes it.
    pub fn parse(json: &str) -> Result<Live, serde_json::Error> {
        let list: List = serde_json::from_str(json)?;
        let mut live = Live::default();
        let name = |metadata: ObjectMeta| metadata.name.unwrap_or_default();
        for item in list.items {
            match item {
                Item::Job(job) => {
                    let phase = phase(&job);
                    let labels = job.metadata.labels.clone().unwrap_or_default();
                    let name = name(job.metadata);
                    if let Some(submission) = labels.get(SUBMISSION) {
                        live.submissions.insert(name.clone(), submission.clone());
                    }
                    live.jobs.insert(name, phase);
                }
                Item::Deployment(deployment) => {
                    let ready = deployment.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or(0) > 0;
                    live.endpoints.insert(name(deployment.metadata), ready);
                }
                Item::Other => {}
            }
        }
        Ok(live)
    }
}

fn phase(job: &Job) -> Phase {
    let conditions = job.status.as_ref().and_then(|status| status.conditions.as_ref());
    let holds = |wanted: &str| conditions.into_iter().flatten().any(|c| c.type_ == wanted && c.status == "True");
    // One that is being taken away is there until it is gone.
    if job.metadata.deletion_timestamp.is_some() {
        return Phase::Active;
    }
    match () {
        () if holds("Failed") => Phase::Failed,
        () if holds("Complete") => Phase::Complete,
        () => Phase::Active,
    }
}
