//! The same chain as an Argo Workflow: a graph of tasks, each a pod for every index. Argo keeps the order, so no pod waits.
//!
//! Typed as far as it is used. What must hold: exit codes decide what is begun again, as everywhere; an endpoint is a daemon in one
//! graph with what acts with it, and ends with that.

mod manifest;

pub use manifest::Workflow;

use super::job::probed;
use super::pod::WORKER;
use super::{JobError, Manifests, unwritable};
use crate::chain::{Node, Step};
use crate::estimate::Facts;
use crate::progress::{Progress, State};
use k8s_openapi::api::core::v1::{Container, EnvVar, PodSecurityContext, PodSpec, Volume};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use manifest::{Dag, Parameter, Parameters, RetryStrategy, Sequence, Task, Template, WorkflowSpec};
use serde_json::{Value, json};

/// 75, 11, a death by a signal and a lost node may pass; all else does not.
const AGAIN: &str =
    "lastRetry.status == 'Error' || asInt(lastRetry.exitCode) in [11, 75] || asInt(lastRetry.exitCode) > 128";
/// A server that was told to leave ends well, and is needed still.
const SERVE_AGAIN: &str =
    "lastRetry.status == 'Error' || asInt(lastRetry.exitCode) in [0, 11, 75] || asInt(lastRetry.exitCode) > 128";

/// Name of the parameter that numbers the pods of a step.
const INDEX: &str = "index";

/// What is left of a run.
pub fn workflow(manifests: &Manifests, progress: &Progress, facts: &Facts) -> Result<Workflow, JobError> {
    let graph = Graph { manifests, progress, facts };
    let (mut tasks, mut templates) = (Vec::new(), Vec::new());
    for at in graph.left() {
        let node = &manifests.chain.nodes[at];
        let name = match node.step {
            Step::Endpoint { .. } => {
                templates.push(graph.policy(at));
                graph.place(at)
            }
            _ => manifests.name(&node.step),
        };
        if node.beside.is_none() {
            tasks.push(Task { dependencies: graph.before(at), ..Task::of(name.clone(), name) });
        }
        templates.extend(graph.templates(at)?);
    }
    let dag = Template { name: "run".into(), dag: Some(Dag { tasks }), ..Template::default() };
    let executor = manifests.cluster.k8s.service_accounts.get("argo").map(|name| json!({ "serviceAccountName": name }));
    let named = manifests.names().meta("argo", "argo");
    let prefix = named.name.as_ref().map(|name| format!("{name}-"));
    let (security_context, volumes) = graph.shared()?;
    Ok(Workflow {
        api_version: "argoproj.io/v1alpha1",
        kind: "Workflow",
        metadata: ObjectMeta { name: None, generate_name: prefix, ..named },
        spec: WorkflowSpec {
            entrypoint: "run",
            templates: std::iter::once(dag).chain(templates).collect(),
            automount_service_account_token: executor.is_some().then_some(false),
            executor,
            security_context,
            volumes,
        },
    })
}

/// The steps that are left, as Argo sees them.
struct Graph<'a> {
    manifests: &'a Manifests<'a>,
    progress: &'a Progress,
    facts: &'a Facts,
}

impl Graph<'_> {
    fn left(&self) -> Vec<usize> {
        (0..self.manifests.chain.nodes.len()).filter(|&at| self.is_left(at)).collect()
    }

    fn is_left(&self, at: usize) -> bool {
        self.progress.0[at] != State::Done
    }

    /// The task by which others know a step: what acts with an endpoint is inside that one's graph.
    fn place(&self, at: usize) -> String {
        let nodes = &self.manifests.chain.nodes;
        match &nodes[nodes[at].beside.unwrap_or(at)].step {
            Step::Endpoint { round, .. } => self.manifests.names().name(&format!("policy-{round:04}")),
            step => self.manifests.name(step),
        }
    }

    fn before(&self, at: usize) -> Vec<String> {
        let before = self.manifests.chain.nodes[at].after.iter().copied().filter(|&before| self.is_left(before));
        let mut places: Vec<String> = before.map(|before| self.place(before)).collect();
        places.dedup();
        places
    }

    /// An endpoint and all that acts with it: a daemon ends with the graph it is in.
    fn policy(&self, endpoint: usize) -> Template {
        let nodes = &self.manifests.chain.nodes;
        let server = self.manifests.name(&nodes[endpoint].step);
        let mut tasks = vec![Task::of(server.clone(), server.clone())];
        for at in self.left().into_iter().filter(|&at| nodes[at].beside == Some(endpoint)) {
            let name = self.manifests.name(&nodes[at].step);
            tasks.push(Task { dependencies: vec![server.clone()], ..Task::of(name.clone(), name) });
        }
        Template { name: self.place(endpoint), dag: Some(Dag { tasks }), ..Template::default() }
    }

    /// The pod of a step and, of an array, the graph that numbers its pods.
    fn templates(&self, at: usize) -> Result<Vec<Template>, JobError> {
        let mut node = self.manifests.chain.nodes[at].clone();
        if let Step::Endpoint { until, .. } = &mut node.step {
            // Argo ends it: to Argo a daemon that ends by itself has failed.
            until.clear();
        }
        let (mut of, workers) = self.manifests.pod_of(&node, &self.progress.0[at], self.facts)?;
        of.waits_for.clear();
        let mut worker = Template::of(self.manifests, &node, &of.pod(), of.resources.seconds)?;
        if !node.step.is_array() {
            return Ok(vec![worker]);
        }
        let name = self.manifests.name(&node.step);
        worker.name = pod_of(&name);
        worker.inputs = Some(parameters(None));
        Ok(vec![Template::array(&name, workers, of.resources.throttle), worker])
    }

    /// What all pods have alike.
    fn shared(&self) -> Result<(Option<PodSecurityContext>, Option<Vec<Volume>>), JobError> {
        let Some(&first) = self.left().first() else { return Ok((None, None)) };
        let node = &self.manifests.chain.nodes[first];
        let pod = self.manifests.pod_of(node, &self.progress.0[first], self.facts)?.0.pod();
        Ok((pod.security_context, pod.volumes))
    }
}

impl Task {
    fn of(name: String, template: String) -> Task {
        Task { name, template, dependencies: vec![], with_sequence: None, arguments: None }
    }
}

impl Template {
    /// All workers of an array: so many, and so many at once.
    fn array(step: &str, workers: u32, throttle: u32) -> Template {
        let task = Task {
            with_sequence: Some(Sequence { count: workers.to_string() }),
            arguments: Some(parameters(Some("{{item}}"))),
            ..Task::of("worker".into(), pod_of(step))
        };
        Template {
            name: step.into(),
            dag: Some(Dag { tasks: vec![task] }),
            parallelism: (throttle > 0).then_some(throttle),
            ..Template::default()
        }
    }

    /// The pod of a step.
    fn of(manifests: &Manifests, node: &Node, pod: &PodSpec, seconds: u64) -> Result<Template, JobError> {
        let serves = matches!(node.step, Step::Endpoint { .. });
        let worker = pod.containers.iter().find(|c| c.name == WORKER).cloned().unwrap_or_default();
        let tries = manifests.cluster.tries;
        let labels = manifests.names().labels(&node.step.name(), node.step.job());
        Ok(Template {
            name: manifests.name(&node.step),
            metadata: Some(json!({ "labels": labels })),
            daemon: serves.then_some(true),
            pod_spec_patch: Some(patch(pod, &worker)),
            container: Some(container(worker, node.step.is_array(), serves)?),
            init_containers: pod.init_containers.iter().flatten().map(value).collect::<Result<_, _>>()?,
            retry_strategy: Some(RetryStrategy {
                limit: (tries - 1).to_string(),
                expression: if serves { SERVE_AGAIN } else { AGAIN },
                retry_policy: "Always",
            }),
            active_deadline_seconds: (!serves).then_some(seconds as i64),
            service_account_name: pod.service_account_name.clone(),
            ..Template::default()
        })
    }
}

fn pod_of(step: &str) -> String {
    format!("{step}-worker")
}

fn parameters(value: Option<&'static str>) -> Parameters {
    Parameters { parameters: vec![Parameter { name: INDEX, value }] }
}

fn value(of: &Container) -> Result<Value, JobError> {
    serde_json::to_value(of).map_err(unwritable)
}

/// As Argo takes it: without a name of ours, and numbered as an Indexed Job would.
fn container(mut of: Container, array: bool, serves: bool) -> Result<Value, JobError> {
    if array {
        let index = format!("{{{{inputs.parameters.{INDEX}}}}}");
        let number = EnvVar { name: "JOB_COMPLETION_INDEX".into(), value: Some(index), ..EnvVar::default() };
        of.env.get_or_insert_default().push(number);
    }
    if serves {
        probed(&mut of);
    }
    if let Some(rights) = &mut of.security_context {
        (rights.app_armor_profile, rights.proc_mount) = (None, None);
    }
    let mut all = value(&of)?;
    if let Some(fields) = all.as_object_mut() {
        fields.remove("name");
    }
    Ok(all)
}

/// Argo merges it into the pod.
fn patch(pod: &PodSpec, worker: &Container) -> String {
    let rights = worker.security_context.clone().unwrap_or_default();
    let mut main = json!({ "name": "main" });
    if rights.proc_mount.is_some() {
        main["securityContext"] =
            json!({ "procMount": rights.proc_mount, "appArmorProfile": rights.app_armor_profile });
    }
    let all = json!({
        "hostUsers": pod.host_users,
        "runtimeClassName": pod.runtime_class_name,
        "nodeSelector": pod.node_selector,
        "tolerations": pod.tolerations,
        "terminationGracePeriodSeconds": pod.termination_grace_period_seconds,
        "containers": [main],
    });
    let set = all.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    Value::Object(set.map(|(k, v)| (k.clone(), v.clone())).collect()).to_string()
}

#[cfg(test)]
mod tests {
    use crate::k8s::tests::{manifests, sizes};
    use crate::{Chain, ClusterSettings, Facts, Progress, State};
    use serde_json::Value;

    /// The template of a name, without the run's prefix.
    fn template<'a>(workflow: &'a Value, name: &str) -> &'a Value {
        let templates = workflow["spec"]["templates"].as_array().unwrap();
        let named = |template: &&Value| template["name"].as_str().unwrap().trim_start_matches("rm-01234567-") == name;
        templates.iter().find(named).unwrap_or_else(|| panic!("no template {name}"))
    }

    fn tasks(template: &Value) -> String {
        let tasks = template["dag"]["tasks"].as_array().unwrap().iter();
        let text = tasks.map(|task| {
            let before: Vec<&str> =
                task["dependencies"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            format!("{}({})", task["name"].as_str().unwrap(), before.join(" "))
        });
        text.collect::<Vec<_>>().join(" ").replace("rm-01234567-", "")
    }

    #[test]
    fn an_endpoint_is_a_daemon_in_one_graph_with_what_acts_with_it() {
        let (sizes, cluster) = (sizes(), ClusterSettings::default());
        let chain = Chain::new(&sizes.rollout, "v1", 1, false);
        let made = |progress: &Progress| {
            let workflow = manifests(&chain, &sizes, &cluster).workflow(progress, &Facts::default()).unwrap();
            serde_json::to_value(workflow).unwrap()
        };
        let mut progress = Progress::none(&chain);
        let workflow = made(&progress);
        assert!(
            tasks(template(&workflow, "run")).starts_with(
                "synthesize() verify(synthesize) policy-0000(verify) score-train-0001(policy-0000) score-heldout-0000(policy-0000)"
            ),
            "{}",
            tasks(template(&workflow, "run"))
        );
        assert_eq!(
            tasks(template(&workflow, "policy-0000")),
            "endpoint-0000() rollout-train-0001(endpoint-0000) rollout-heldout-0000(endpoint-0000)"
        );
        let endpoint = template(&workflow, "endpoint-0000");
        assert_eq!(endpoint["daemon"], true);
        assert!(endpoint["activeDeadlineSeconds"].is_null(), "it serves for as long as it is needed");
        let words = endpoint["container"]["args"].to_string();
        assert!(!words.contains("--until"), "a daemon that ends by itself has failed: {words}");
        let worker = template(&workflow, "rollout-train-0001-worker");
        assert!(worker["container"]["env"].to_string().contains("{{inputs.parameters.index}}"));
        // What is done is in no graph, and nothing waits for it.
        for at in 0..2 {
            progress.0[at] = State::Done;
        }
        assert!(tasks(template(&made(&progress), "run")).starts_with("policy-0000() "));
    }
}
