//! What stands beside the steps: who keeps their order inside the cluster, what it may do, and who may talk to endpoints.
//!
//! Kubernetes knows no order of Jobs. A conductor is one small pod that creates each step when its inputs are in the store; it can
//! be killed and begins again where the store says. With a schedule, it is a CronJob that submits anew each time.

use super::job::{PORT, evictions_ignored, on_codes};
use super::names::{JOB, Names, RUN, SUBMISSION};
use super::pod::{PodOf, WORKER};
use k8s_openapi::api::batch::v1::{CronJob, CronJobSpec, Job, JobSpec, JobTemplateSpec, PodFailurePolicy};
use k8s_openapi::api::core::v1::{
    ConfigMap, ConfigMapVolumeSource, PodTemplateSpec, ServiceAccount, Volume, VolumeMount,
};
use k8s_openapi::api::networking::v1::{
    NetworkPolicy, NetworkPolicyIngressRule, NetworkPolicyPeer, NetworkPolicyPort, NetworkPolicySpec,
};
use k8s_openapi::api::rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use std::collections::BTreeMap;

/// Job whose image, account and resources a conductor has.
pub const CONDUCT: &str = "conduct";
/// Where it finds the configuration.
pub const CONFIG: &str = "/etc/rollmill/rollmill.toml";

/// The configuration, which says what the cluster gives to each job.
pub fn config(names: &Names, text: &str) -> ConfigMap {
    ConfigMap {
        metadata: names.meta(CONDUCT, CONDUCT),
        data: Some(BTreeMap::from([("rollmill.toml".into(), text.into())])),
        ..ConfigMap::default()
    }
}

/// Whom the conductor is, unless it is somebody the cluster knows already.
pub fn account(names: &Names) -> ServiceAccount {
    ServiceAccount { metadata: names.meta(CONDUCT, CONDUCT), ..ServiceAccount::default() }
}

/// That `account` may create and take away what a run consists of, and nothing else.
pub fn may_conduct(names: &Names, account: &str) -> (Role, RoleBinding) {
    let metadata = names.meta(CONDUCT, CONDUCT);
    let rule = |group: &str, resource: &str| PolicyRule {
        api_groups: Some(vec![group.into()]),
        resources: Some(vec![resource.into()]),
        verbs: ["create", "delete", "get", "list", "watch"].map(String::from).to_vec(),
        ..PolicyRule::default()
    };
    let role =
        Role { metadata: metadata.clone(), rules: Some(vec![rule("batch", "jobs"), rule("apps", "deployments")]) };
    let binding = RoleBinding {
        metadata,
        role_ref: RoleRef {
            api_group: "rbac.authorization.k8s.io".into(),
            kind: "Role".into(),
            name: names.name(CONDUCT),
        },
        subjects: Some(vec![Subject {
            kind: "ServiceAccount".into(),
            name: account.into(),
            namespace: Some(names.namespace.into()),
            ..Subject::default()
        }]),
    };
    (role, binding)
}

/// The conductor. `submission` tells it from one that was submitted with something else.
pub fn job(names: &Names, of: &PodOf, submission: &str) -> Job {
    let mut metadata = names.meta(CONDUCT, CONDUCT);
    metadata.labels.get_or_insert_default().insert(SUBMISSION.into(), submission.into());
    Job { metadata, spec: Some(job_spec(names, of)), ..Job::default() }
}

/// The conductor on a schedule, as `cron` writes it.
pub fn cron_job(names: &Names, of: &PodOf, schedule: &str) -> CronJob {
    CronJob {
        metadata: names.meta(CONDUCT, CONDUCT),
        spec: Some(CronJobSpec {
            schedule: schedule.into(),
            // One that still conducts is enough.
            concurrency_policy: Some("Forbid".into()),
            job_template: JobTemplateSpec { metadata: Some(labelled(names)), spec: Some(job_spec(names, of)) },
            ..CronJobSpec::default()
        }),
        ..CronJob::default()
    }
}

fn labelled(names: &Names) -> ObjectMeta {
    ObjectMeta { labels: Some(names.labels(CONDUCT, CONDUCT)), ..ObjectMeta::default() }
}

fn job_spec(names: &Names, of: &PodOf) -> JobSpec {
    let name = names.name(CONDUCT);
    let mut pod = of.pod();
    pod.service_account_name = pod.service_account_name.or_else(|| Some(name.clone()));
    pod.automount_service_account_token = Some(true);
    let source = ConfigMapVolumeSource { name, ..ConfigMapVolumeSource::default() };
    let volume = Volume { name: "config".into(), config_map: Some(source), ..Volume::default() };
    pod.volumes.get_or_insert_default().push(volume);
    for container in pod.containers.iter_mut().filter(|c| c.name == WORKER) {
        let mount = VolumeMount {
            name: "config".into(),
            mount_path: "/etc/rollmill".into(),
            read_only: Some(true),
            ..VolumeMount::default()
        };
        container.volume_mounts.get_or_insert_default().push(mount);
    }
    JobSpec {
        // It holds no state: to begin again costs nothing, and an API server may be away for a night.
        backoff_limit: Some(100),
        pod_failure_policy: Some(PodFailurePolicy {
            rules: vec![evictions_ignored(), on_codes("FailJob", None, &[2, 10, 101])],
        }),
        ttl_seconds_after_finished: Some(of.cluster.k8s.keep_days as i32 * 86_400),
        template: PodTemplateSpec { metadata: Some(labelled(names)), spec: Some(pod) },
        ..JobSpec::default()
    }
}

/// Endpoints ask for no key: only pods of the same run may talk to them.
pub fn only_the_run(names: &Names) -> NetworkPolicy {
    let of_run = |more: Option<(&str, &str)>| LabelSelector {
        match_labels: Some(
            [(RUN, names.run_id)].into_iter().chain(more).map(|(k, v)| (k.to_string(), v.to_string())).collect(),
        ),
        ..LabelSelector::default()
    };
    NetworkPolicy {
        metadata: names.meta("endpoints", "endpoint"),
        spec: Some(NetworkPolicySpec {
            pod_selector: Some(of_run(Some((JOB, "endpoint")))),
            policy_types: Some(vec!["Ingress".into()]),
            ingress: Some(vec![NetworkPolicyIngressRule {
                from: Some(vec![NetworkPolicyPeer {
                    pod_selector: Some(of_run(None)),
                    ..NetworkPolicyPeer::default()
                }]),
                ports: Some(vec![NetworkPolicyPort {
                    port: Some(IntOrString::Int(PORT)),
                    ..NetworkPolicyPort::default()
                }]),
            }]),
            ..NetworkPolicySpec::default()
        }),
    }
}
