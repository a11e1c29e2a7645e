//! The part of Argo's types that is used.
#![allow(missing_docs)] // the fields are Argo's own, and described there

use k8s_openapi::api::core::v1::{PodSecurityContext, Volume};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use serde_json::Value;

/// `argoproj.io/v1alpha1`, `Workflow`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Workflow {
    pub api_version: &'static str,
    pub kind: &'static str,
    pub metadata: ObjectMeta,
    pub spec: WorkflowSpec,
}

/// What it does.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowSpec {
    pub entrypoint: &'static str,
    pub templates: Vec<Template>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub automount_service_account_token: Option<bool>,
    /// Whom Argo's own container is, where pods are to hold no token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executor: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security_context: Option<PodSecurityContext>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volumes: Option<Vec<Volume>>,
}

/// A graph, or a pod.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Template {
    pub name: String,
    /// Labels of its pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dag: Option<Dag>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Parameters>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub daemon: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub init_containers: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_strategy: Option<RetryStrategy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_deadline_seconds: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// Pods at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallelism: Option<u32>,
    /// What Argo has no field for, as text: user namespace, runtime class, profiles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_spec_patch: Option<String>,
}

#[derive(Debug, Serialize)]
pub struct Dag {
    pub tasks: Vec<Task>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    pub name: String,
    pub template: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub with_sequence: Option<Sequence>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Parameters>,
}

/// `0` to `count - 1`.
#[derive(Debug, Serialize)]
pub struct Sequence {
    pub count: String,
}

#[derive(Debug, Serialize)]
pub struct Parameters {
    pub parameters: Vec<Parameter>,
}

#[derive(Debug, Serialize)]
pub struct Parameter {
    pub name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<&'static str>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RetryStrategy {
    pub limit: String,
    pub expression: &'static str,
    pub retry_policy: &'static str,
}
