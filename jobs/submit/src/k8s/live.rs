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
    /// It is being taken away.
    Going,
    /// All of its indexes succeeded.
    Complete,
    /// It will not go on.
    Failed,
}

/// How far a server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// No pod of it is ready.
    Loading,
    /// One is.
    Ready,
    /// None was in time.
    Failed,
}

/// Jobs and endpoints by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// Jobs.
    pub jobs: BTreeMap<String, Phase>,
    /// Deployments.
    pub endpoints: BTreeMap<String, Server>,
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
                    let server = server(&deployment);
                    live.endpoints.insert(name(deployment.metadata), server);
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
    match () {
        () if job.metadata.deletion_timestamp.is_some() => Phase::Going,
        () if holds("Failed") => Phase::Failed,
        () if holds("Complete") => Phase::Complete,
        () => Phase::Active,
    }
}

fn server(deployment: &Deployment) -> Server {
    let status = deployment.status.as_ref();
    let mut conditions = status.and_then(|status| status.conditions.as_ref()).into_iter().flatten();
    match () {
        () if status.and_then(|status| status.ready_replicas).unwrap_or(0) > 0 => Server::Ready,
        () if conditions.any(|c| c.type_ == "Progressing" && c.status == "False") => Server::Failed,
        () => Server::Loading,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn states_are_read_from_what_an_api_server_says() {
        let job = |name: &str, status: serde_json::Value, going: bool| {
            let gone = going.then_some("2026-11-30T15:00:00Z");
            json!({ "apiVersion": "batch/v1", "kind": "Job", "status": status,
                "metadata": { "name": name, "deletionTimestamp": gone, "labels": { SUBMISSION: "x" } } })
        };
        let failed = json!({ "conditions": [{ "type": "FailureTarget", "status": "True" }, { "type": "Failed", "status": "True" }] });
        let server = |name: &str, status: serde_json::Value| json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name }, "status": status });
        let late = json!({ "conditions": [{ "type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded" }] });
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": [
            job("waits", json!({}), false),
            job("failed", failed.clone(), false),
            job("going", failed, true),
            job("done", json!({ "conditions": [{ "type": "Complete", "status": "True" }] }), false),
            server("loads", json!({ "replicas": 1 })),
            server("ready", json!({ "replicas": 1, "readyReplicas": 1 })),
            server("late", late),
        ] });
        let live = Live::parse(&list.to_string()).unwrap();
        let phases: Vec<(&str, Phase)> = live.jobs.iter().map(|(name, phase)| (name.as_str(), *phase)).collect();
        assert_eq!(
            phases,
            [("done", Phase::Complete), ("failed", Phase::Failed), ("going", Phase::Going), ("waits", Phase::Active)]
        );
        let servers: Vec<Server> = live.endpoints.values().copied().collect();
        assert_eq!(servers, [Server::Failed, Server::Loading, Server::Ready]);
        assert_eq!(live.submissions["waits"], "x");
    }
}
