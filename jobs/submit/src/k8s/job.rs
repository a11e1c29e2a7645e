//! Jobs and endpoints as Kubernetes objects.
//!
//! What must hold: exit codes mean there what they mean here. 75 and 11 are begun again, index by index and a number of times;
//! 10 and 101 end the index; 2 ends the whole job, for no index would fare better; a pod that was evicted counts as none, and
//! neither does one that waited in vain.

use super::names::Names;
use super::pod::{PodOf, WAIT, WAIT_SECONDS, WORKER};
use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, DeploymentStrategy};
use k8s_openapi::api::batch::v1::{
    Job, JobSpec, PodFailurePolicy, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyOnPodConditionsPattern,
    PodFailurePolicyRule,
};
use k8s_openapi::api::core::v1::{Container, ContainerPort, HTTPGetAction, PodTemplateSpec, Probe};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// Port of endpoints: every pod has an address of its own.
pub const PORT: i32 = 8000;

/// Seconds in which a server must be ready: a node is found, an image and a checkpoint are downloaded, a model loads.
const READY_SECONDS: i32 = 3600;

/// An Indexed Job of so many workers.
pub fn indexed_job(names: &Names, step: &str, of: &PodOf, workers: u32) -> Job {
    let throttle = if of.resources.throttle > 0 { of.resources.throttle.min(workers) } else { workers };
    let mut metadata = names.meta(step, of.job);
    let queue = &of.cluster.k8s.queue;
    if let Some(queue) = queue {
        metadata.labels.get_or_insert_default().insert("kueue.x-k8s.io/queue-name".into(), queue.clone());
    }
    Job {
        metadata,
        spec: Some(JobSpec {
            completions: Some(workers as i32),
            parallelism: Some(throttle as i32),
            completion_mode: Some("Indexed".into()),
            backoff_limit_per_index: Some(of.cluster.tries as i32 - 1),
            pod_failure_policy: Some(PodFailurePolicy { rules: failure_rules(of) }),
            pod_replacement_policy: Some("Failed".into()),
            // Kueue lets it begin.
            suspend: queue.is_some().then_some(true),
            ttl_seconds_after_finished: Some(of.cluster.k8s.keep_days as i32 * 86_400),
            template: template(names, step, of),
            ..JobSpec::default()
        }),
        ..Job::default()
    }
}

fn template(names: &Names, step: &str, of: &PodOf) -> PodTemplateSpec {
    let metadata = ObjectMeta { labels: Some(names.labels(step, of.job)), ..ObjectMeta::default() };
    let mut spec = of.pod();
    // A limit of the pod, not of the job: waiting in a queue does not count.
    spec.active_deadline_seconds = Some((of.resources.seconds + WAIT_SECONDS) as i64);
    PodTemplateSpec { metadata: Some(metadata), spec: Some(spec) }
}

fn failure_rules(of: &PodOf) -> Vec<PodFailurePolicyRule> {
    let mut rules = vec![evictions_ignored()];
    if !of.waits_for.is_empty() {
        rules.push(on_codes("Ignore", Some(WAIT), &[75]));
    }
    // Of every container: a spent budget is no worker's, and ends the job too.
    rules.extend([on_codes("FailJob", None, &[2]), on_codes("FailIndex", None, &[10, 101])]);
    rules.push(on_codes("Count", Some(WORKER), &[11, 75]));
    rules
}

/// A pod that a node or the scheduler put out has not failed.
pub fn evictions_ignored() -> PodFailurePolicyRule {
    let evicted = PodFailurePolicyOnPodConditionsPattern { status: "True".into(), type_: "DisruptionTarget".into() };
    PodFailurePolicyRule {
        action: "Ignore".into(),
        on_pod_conditions: Some(vec![evicted]),
        ..PodFailurePolicyRule::default()
    }
}

/// What becomes of a pod of which a container, or any, ended so.
pub fn on_codes(action: &str, container: Option<&str>, values: &[i32]) -> PodFailurePolicyRule {
    PodFailurePolicyRule {
        action: action.into(),
        on_exit_codes: Some(PodFailurePolicyOnExitCodesRequirement {
            container_name: container.map(str::to_string),
            operator: "In".into(),
            values: values.to_vec(),
        }),
        ..PodFailurePolicyRule::default()
    }
}

/// The endpoint of a round, with probes. It ends by itself when the stages that need it are done, and is then taken away.
pub fn endpoint(names: &Names, step: &str, of: &PodOf) -> Deployment {
    let mut template = template(names, step, of);
    if let Some(spec) = &mut template.spec {
        spec.restart_policy = Some("Always".into());
        spec.active_deadline_seconds = None;
        if let Some(worker) = spec.containers.first_mut() {
            probed(worker);
            worker.liveness_probe = Some(health(15, 8));
        }
    }
    let labels = names.labels(step, of.job);
    Deployment {
        metadata: names.meta(step, of.job),
        spec: Some(DeploymentSpec {
            replicas: Some(1),
            selector: LabelSelector { match_labels: Some(labels), ..LabelSelector::default() },
            // Two at once would want the GPU twice.
            strategy: Some(DeploymentStrategy { type_: Some("Recreate".into()), ..DeploymentStrategy::default() }),
            // A server that is not ready by then is told to people, and nobody waits for it any more.
            progress_deadline_seconds: Some(READY_SECONDS),
            template,
            ..DeploymentSpec::default()
        }),
        ..Deployment::default()
    }
}

/// A container whose server is ready when it says so.
pub fn probed(worker: &mut Container) {
    worker.ports = Some(vec![ContainerPort { container_port: PORT, ..ContainerPort::default() }]);
    // Loading a large model takes minutes; until it is done the other probes hold still.
    worker.startup_probe = Some(health(10, 180));
    worker.readiness_probe = Some(health(5, 2));
}

fn health(period_seconds: i32, failure_threshold: i32) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some("/health".into()),
            port: IntOrString::Int(PORT),
            ..HTTPGetAction::default()
        }),
        period_seconds: Some(period_seconds),
        failure_threshold: Some(failure_threshold),
        timeout_seconds: Some(5),
        ..Probe::default()
    }
}
