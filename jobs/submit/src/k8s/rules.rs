//! Rules of our own that no schema knows: what is well-formed and yet would lose work, leak a secret or never begin.

use super::Object;
use super::conductor::CONDUCT;
use super::names::JOB;
use super::pod::{WAIT, WORKER};
use super::settings::is_secret;
use k8s_openapi::api::batch::v1::{JobSpec, PodFailurePolicyRule};
use k8s_openapi::api::core::v1::{Container, PodSpec, PodTemplateSpec};

/// Everything that is wrong with an object; nothing if it is sound.
pub fn problems(object: &Object) -> Vec<String> {
    let mut found = Found(Vec::new());
    match object {
        Object::Job(job) => {
            let conductor = job.metadata.labels.iter().flatten().any(|(k, v)| k == JOB && v == CONDUCT);
            match (&job.spec, conductor) {
                (None, _) => found.must(false, "it has no spec"),
                (Some(spec), true) => found.template(&spec.template, true),
                (Some(spec), false) => found.indexed(job.metadata.name.as_deref().unwrap_or_default(), spec),
            }
        }
        Object::CronJob(cron) => {
            match cron.spec.as_ref().and_then(|spec| Some((spec, spec.job_template.spec.as_ref()?))) {
                Some((spec, job)) => {
                    let forbids = spec.concurrency_policy.as_deref() == Some("Forbid");
                    found.must(forbids, "concurrencyPolicy must be Forbid: one conductor is enough");
                    let fields = spec.schedule.split_whitespace().count();
                    found.must(
                        fields == 5 || spec.schedule.starts_with('@'),
                        "its schedule has not five fields, as `0 22 * * *` has",
                    );
                    found.template(&job.template, true);
                }
                None => found.must(false, "it has no spec"),
            }
        }
        Object::Deployment(deployment) => match &deployment.spec {
            Some(spec) => {
                let recreates = spec.strategy.as_ref().is_some_and(|s| s.type_.as_deref() == Some("Recreate"));
                found.must(recreates, "its strategy must be Recreate: two servers at once want two GPUs");
                let pod = spec.template.spec.as_ref();
                let probed = |c: &Container| c.startup_probe.is_some() && c.readiness_probe.is_some();
                let worker = pod.and_then(|pod| pod.containers.first());
                found.must(worker.is_some_and(probed), "it has no probes: workers would ask a server that loads");
                found.template(&spec.template, false);
            }
            None => found.must(false, "it has no spec"),
        },
        _ => {}
    }
    found.0
}

struct Found(Vec<String>);

impl Found {
    fn must(&mut self, holds: bool, what: &str) {
        if !holds {
            self.0.push(what.to_string());
        }
    }

    fn indexed(&mut self, name: &str, spec: &JobSpec) {
        let label = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        let longest = format!("{name}-{}", spec.completions.unwrap_or(0).max(1) - 1);
        self.must(
            !name.is_empty() && longest.len() <= 63 && name.bytes().all(label) && !name.starts_with('-'),
            "its name and an index are no DNS label: pods of it could not be named",
        );
        let indexed = spec.completion_mode.as_deref() == Some("Indexed");
        self.must(indexed, "it is not Indexed: workers would not know their shard");
        self.must(spec.backoff_limit_per_index.is_some(), "without backoffLimitPerIndex one bad shard ends all others");
        self.must(spec.backoff_limit.is_none(), "backoffLimit counts failures of all indexes together");
        self.must(
            spec.pod_replacement_policy.as_deref() == Some("Failed"),
            "podReplacementPolicy must be Failed: otherwise a pod that still saves its work has a second one beside it",
        );
        let positive = |n: Option<i32>| n.is_some_and(|n| n > 0);
        self.must(
            positive(spec.completions) && positive(spec.parallelism),
            "completions and parallelism must be above 0",
        );
        self.must(
            spec.active_deadline_seconds.is_none(),
            "activeDeadlineSeconds of a job counts the time it waits for a place",
        );
        let rules = spec.pod_failure_policy.as_ref().map(|policy| policy.rules.as_slice()).unwrap_or_default();
        self.exit_codes(rules, &spec.template);
        self.template(&spec.template, false);
        let limited = spec.template.spec.as_ref().is_some_and(|pod| pod.active_deadline_seconds.is_some());
        self.must(limited, "its pods have no time limit");
    }

    fn exit_codes(&mut self, rules: &[PodFailurePolicyRule], template: &PodTemplateSpec) {
        self.must(
            rules.first().is_some_and(|rule| rule.action == "Ignore" && rule.on_pod_conditions.is_some()),
            "an eviction must be ignored before any code is looked at",
        );
        // The first rule that fits decides.
        let action = |container: &str, code: i32| {
            let fits = |rule: &&PodFailurePolicyRule| {
                rule.on_exit_codes.as_ref().is_some_and(|codes| {
                    codes.values.contains(&code) && codes.container_name.as_ref().is_none_or(|name| name == container)
                })
            };
            rules.iter().find(fits).map_or("Count", |rule| rule.action.as_str())
        };
        for (code, wanted) in [(2, "FailJob"), (10, "FailIndex"), (101, "FailIndex"), (11, "Count"), (75, "Count")] {
            self.must(action(WORKER, code) == wanted, &format!("exit {code} must be {wanted}"));
        }
        let waits = template.spec.iter().flat_map(|pod| pod.init_containers.iter().flatten()).any(|c| c.name == WAIT);
        self.must(!waits || action(WAIT, 75) == "Ignore", "a pod that waited in vain must not count as a failure");
    }

    fn template(&mut self, template: &PodTemplateSpec, conducts: bool) {
        let Some(pod) = &template.spec else { return self.must(false, "it has no pod") };
        let never = pod.restart_policy.as_deref() == Some("Never");
        let serves = pod.restart_policy.as_deref() == Some("Always");
        self.must(never || (serves && !conducts), "restartPolicy must be Never: the kubelet would hide exit codes");
        let token = pod.automount_service_account_token == Some(false);
        self.must(token || conducts, "a pod that runs what models wrote holds a token of the API server");
        self.pod(pod);
    }

    fn pod(&mut self, pod: &PodSpec) {
        let user = pod.security_context.as_ref().and_then(|context| context.run_as_user);
        self.must(user.is_some_and(|user| user > 0), "it may be root");
        let shares = [pod.host_network, pod.host_pid, pod.host_ipc];
        self.must(shares.iter().all(|shared| *shared != Some(true)), "it shares namespaces of the node");
        self.must(pod.volumes.iter().flatten().all(|v| v.host_path.is_none()), "it mounts a folder of the node");
        let grace = pod.termination_grace_period_seconds.unwrap_or(30);
        self.must(grace >= 30, "it gets no time to save what it has: signal_seconds must be 30 at least");
        for container in pod.containers.iter().chain(pod.init_containers.iter().flatten()) {
            self.container(container, pod.host_users == Some(false));
        }
    }

    fn container(&mut self, container: &Container, own_users: bool) {
        let name = &container.name;
        let rights = container.security_context.clone().unwrap_or_default();
        self.must(rights.privileged != Some(true), &format!("{name} is privileged"));
        self.must(rights.allow_privilege_escalation == Some(false), &format!("{name} may gain rights"));
        self.must(rights.run_as_non_root == Some(true), &format!("{name} may be root"));
        self.must(rights.read_only_root_filesystem == Some(true), &format!("{name} may write into its image"));
        let capabilities = rights.capabilities.unwrap_or_default();
        let dropped =
            capabilities.drop.unwrap_or_default() == ["ALL"] && capabilities.add.unwrap_or_default().is_empty();
        self.must(dropped, &format!("{name} keeps capabilities"));
        let amounts = container.resources.clone().unwrap_or_default();
        let both = |name: &str| {
            amounts.requests.as_ref().is_some_and(|r| r.contains_key(name))
                && amounts.limits.as_ref().is_some_and(|l| l.contains_key(name))
        };
        self.must(both("cpu") && both("memory"), &format!("{name} asks for no cpu or memory"));
        for variable in container.env.iter().flatten() {
            let shown = is_secret(&variable.name) && variable.value.is_some();
            self.must(!shown, &format!("{name} has {} written out", variable.name));
        }
        let unmasked = rights.proc_mount.as_deref() == Some("Unmasked");
        self.must(!unmasked || own_users, &format!("{name} sees all of /proc as a user of the node"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::k8s::tests::{manifests, sizes};
    use crate::k8s::{Conduct, Manifests};
    use crate::{Chain, ClusterSettings, Facts, Progress};
    use serde_json::{Value, json};

    fn with<T>(use_them: impl FnOnce(&Manifests) -> T) -> T {
        let (sizes, cluster) = (sizes(), ClusterSettings::default());
        let chain = Chain::new(&sizes.rollout, "v1", 1, false);
        use_them(&manifests(&chain, &sizes, &cluster))
    }

    /// The object of a step, and the same as JSON to be broken.
    fn object(step: &str) -> (Object, Value) {
        let found = with(|manifests| {
            let objects = manifests.steps(&Progress::none(manifests.chain), &Facts::default()).unwrap();
            let schedule = Some("0 22 * * *".to_string());
            let conductor = manifests.conductor(&Conduct { config: String::new(), rounds: 1, schedule }).unwrap();
            let mut all = objects.into_iter().chain([conductor]);
            all.find(|object| {
                serde_json::to_value(object).unwrap()["metadata"]["name"] == format!("rm-01234567-{step}")
            })
        });
        let found = found.unwrap();
        let json = serde_json::to_value(&found).unwrap();
        (found, json)
    }

    fn read(kind: &Object, json: Value) -> Object {
        match kind {
            Object::Job(_) => Object::Job(serde_json::from_value(json).unwrap()),
            Object::Deployment(_) => Object::Deployment(serde_json::from_value(json).unwrap()),
            Object::CronJob(_) => Object::CronJob(serde_json::from_value(json).unwrap()),
            other => other.clone(),
        }
    }

    /// Every rule, and a change that only it finds.
    #[test]
    fn every_rule_finds_what_it_is_for() {
        const POD: &str = "/spec/template/spec";
        let rollout = "rollout-train-0001";
        let controls: &[(&str, &str, Value, &str)] = &[
            (rollout, "/metadata/name", json!("Rollout"), "no DNS label"),
            (rollout, "/metadata/name", json!("r".repeat(63)), "no DNS label"),
            (rollout, "/spec/completionMode", json!("NonIndexed"), "not Indexed"),
            (rollout, "/spec/backoffLimitPerIndex", json!(null), "one bad shard"),
            (rollout, "/spec/backoffLimit", json!(6), "all indexes together"),
            (rollout, "/spec/podReplacementPolicy", json!("TerminatingOrFailed"), "must be Failed"),
            (rollout, "/spec/parallelism", json!(0), "above 0"),
            (rollout, "/spec/activeDeadlineSeconds", json!(60), "waits for a place"),
            (rollout, "/spec/podFailurePolicy/rules/0/action", json!("Count"), "eviction"),
            (rollout, "/spec/podFailurePolicy/rules/1/action", json!("Count"), "waited in vain"),
            (rollout, "/spec/podFailurePolicy/rules/1/onExitCodes/containerName", json!(null), "exit 75 must be Count"),
            (rollout, "/spec/podFailurePolicy/rules/2/action", json!("Ignore"), "exit 2 must be FailJob"),
            (rollout, "/spec/podFailurePolicy/rules/3/onExitCodes/values", json!([10]), "exit 101 must be FailIndex"),
            (rollout, &format!("{POD}/activeDeadlineSeconds"), json!(null), "no time limit"),
            (rollout, &format!("{POD}/restartPolicy"), json!("OnFailure"), "hide exit codes"),
            (rollout, &format!("{POD}/automountServiceAccountToken"), json!(true), "token"),
            (rollout, &format!("{POD}/securityContext/runAsUser"), json!(0), "may be root"),
            (rollout, &format!("{POD}/hostPID"), json!(true), "namespaces of the node"),
            (
                rollout,
                &format!("{POD}/volumes/0"),
                json!({ "name": "tmp", "hostPath": { "path": "/" } }),
                "folder of the node",
            ),
            (rollout, &format!("{POD}/terminationGracePeriodSeconds"), json!(5), "no time to save"),
            (rollout, &format!("{POD}/hostUsers"), json!(null), "all of /proc"),
            (rollout, &format!("{POD}/containers/0/securityContext/privileged"), json!(true), "is privileged"),
            (
                rollout,
                &format!("{POD}/containers/0/securityContext/allowPrivilegeEscalation"),
                json!(null),
                "gain rights",
            ),
            (rollout, &format!("{POD}/containers/0/securityContext/readOnlyRootFilesystem"), json!(false), "its image"),
            (
                rollout,
                &format!("{POD}/containers/0/securityContext/capabilities"),
                json!({ "drop": ["ALL"], "add": ["SYS_ADMIN"] }),
                "capabilities",
            ),
            (rollout, &format!("{POD}/initContainers/0/securityContext/runAsNonRoot"), json!(null), "wait may be root"),
            (rollout, &format!("{POD}/containers/0/resources/limits"), json!({ "cpu": "1" }), "no cpu or memory"),
            (rollout, &format!("{POD}/containers/0/env/0"), json!({ "name": "HF_TOKEN", "value": "x" }), "written out"),
            ("endpoint-0000", "/spec/strategy/type", json!("RollingUpdate"), "Recreate"),
            ("endpoint-0000", &format!("{POD}/containers/0/startupProbe"), json!(null), "no probes"),
            ("conduct", "/spec/concurrencyPolicy", json!("Allow"), "Forbid"),
            ("conduct", "/spec/schedule", json!("tonight"), "five fields"),
            ("conduct", "/spec/jobTemplate/spec/template/spec/restartPolicy", json!("Always"), "must be Never"),
        ];
        for (step, path, value, expected) in controls {
            let (sound, mut json) = object(step);
            assert_eq!(problems(&read(&sound, json.clone())), [] as [String; 0]);
            let (parent, field) = path.rsplit_once('/').unwrap();
            let parent = json.pointer_mut(parent).unwrap_or_else(|| panic!("{path} is not there"));
            match parent {
                Value::Array(items) => items[field.parse::<usize>().unwrap()] = value.clone(),
                other => other[field] = value.clone(),
            }
            let found = problems(&read(&sound, json));
            assert!(found.len() == 1 && found[0].contains(expected), "{path}: {found:?}");
        }
    }
}
