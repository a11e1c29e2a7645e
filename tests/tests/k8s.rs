//! A run as Kubernetes objects: created, listed and deleted by the real `kubectl`, run as processes by the rules of Indexed Jobs,
//! and held against the published schemas.
#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

use rollmill_e2e::kube::Cluster;
use rollmill_e2e::{Killed, model, program, project, said, skip, small_config, task_ids};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A run on a cluster.
struct Setting {
    cluster: Cluster,
    config: PathBuf,
    address: String,
    dir: tempfile::TempDir,
}

impl Setting {
    /// `change` edits the configuration; `runs`: pods are run.
    fn new(runs: bool, model: Option<&Path>, settings: &Settings) -> Option<Setting> {
        let image = program("rollmill");
        let cluster = Cluster::start(runs.then(|| image.parent().unwrap()))?;
        let dir = tempfile::tempdir().unwrap();
        let config = configured(dir.path(), model, settings);
        let address = dir.path().join("runs/exp7").display().to_string();
        Some(Setting { cluster, config, address, dir })
    }

    fn command(&self, more: &[&str]) -> Command {
        let mut command = self.cluster.command(program("rollmill"));
        command.args(["submit", "k8s", "--config"]).arg(&self.config).args(["--run", &self.address]).args(more);
        command.current_dir(project());
        command
    }

    fn submit(&self, more: &[&str]) -> Output {
        self.command(more).output().unwrap()
    }

    /// The command, which must end with a code; what it printed.
    fn submitted(&self, code: i32, more: &[&str]) -> String {
        let out = self.submit(more);
        let said = said(&out);
        assert_eq!(out.status.code(), Some(code), "{said}\n{}", self.cluster.logs(""));
        said
    }

    fn kubectl(&self, args: &[&str]) -> String {
        let out = self.cluster.command("kubectl").args(args).output().unwrap();
        let said = said(&out);
        assert!(out.status.success(), "kubectl {args:?}: {said}");
        said
    }

    /// How the job of a step has ended, if it has.
    fn ended(&self, step: &str) -> Option<String> {
        let name = self.cluster.names("jobs").into_iter().find(|name| name.ends_with(step))?;
        let condition = self.cluster.object("jobs", &name)?["status"]["conditions"][0]["type"].clone();
        condition.as_str().map(str::to_string)
    }
}

/// What a test adds to its configuration.
#[derive(Default)]
struct Settings {
    /// Instead of the small configuration.
    base: Option<String>,
    /// Lines of `[cluster.k8s]`.
    k8s: &'static str,
    /// Further sections.
    more: String,
}

/// A small configuration whose run lies below a volume claim.
fn configured(dir: &Path, model: Option<&Path>, settings: &Settings) -> PathBuf {
    let config = small_config(dir, model, 2);
    let mut text = settings.base.clone().unwrap_or_else(|| std::fs::read_to_string(&config).unwrap());
    let runs = dir.join("runs").display().to_string();
    text += "[cluster]\ntries = 3\n[cluster.k8s]\nnamespace = \"lab\"\nlook_seconds = 1\nclaim = \"runs\"\n";
    text += &format!("claim_path = {runs:?}\n{}\n", settings.k8s);
    for (job, cpus, workers) in [("verify", 1, 4), ("rollout", 1, 2), ("score", 1, 2)] {
        text += &format!("[cluster.jobs.{job}]\ncpus = {cpus}\nworkers = {workers}\n");
    }
    text += "[cluster.jobs.train]\ncpus = 2\ngpus = 1\n[cluster.jobs.endpoint]\ncpus = 2\n";
    std::fs::write(&config, text + &settings.more).unwrap();
    config
}

/// What would be submitted of a run that is not there yet.
fn manifests(settings: &Settings, more: &[&str]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let config = configured(dir.path(), None, settings);
    let run = dir.path().join("runs/exp7");
    let mut command = Command::new(program("rollmill"));
    command.args(["submit", "k8s", "--dry-run", "--rounds", "2", "--config"]).arg(config).arg("--run").arg(run);
    let out = command.args(more).current_dir(project()).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

/// Everything a cluster may be told.
fn everything() -> Settings {
    Settings {
        base: None,
        k8s: r#"
secret = "store-keys"
queue = "lab"
runtime_class = "gvisor"
sandbox = "runtime"
node_selector = { pool = "cpu" }
gpu_node_selector = { pool = "gpu" }
service_accounts = { rollout = "rollmill-rollout", argo = "argo-executor" }
env = { AWS_REGION = "eu-west-1" }"#,
        more: "[budget]\ncore_hours = 100.0\n".into(),
    }
}

/// A Python with the published schemas.
fn schemas() -> Option<PathBuf> {
    let found = std::env::var_os("ROLLMILL_SCHEMAS").map(PathBuf::from).filter(|python| python.is_file());
    found.or_else(|| skip("schemas", "ROLLMILL_SCHEMAS is no Python with schemas (`make test` sets it up)"))
}

/// What a program says of a file, and whether it found it right.
fn judged(command: &mut Command, text: &str) -> (bool, String) {
    let file = tempfile::NamedTempFile::with_suffix(".yaml").unwrap();
    std::fs::write(file.path(), text).unwrap();
    let out = command.arg(file.path()).output().unwrap();
    (out.status.success(), said(&out))
}

#[test]
fn manifests_are_right_by_the_published_schemas_and_a_slip_is_not() {
    let Some(python) = schemas() else { return };
    let of = [manifests(&everything(), &["--schedule", "0 22 * * *"]), manifests(&Settings::default(), &[])];
    for version in ["1.33", "1.37"] {
        let strict = || {
            let mut command = Command::new(python.with_file_name("kubernetes-validate"));
            command.args(["--strict", "--quiet", "-k", version]);
            command
        };
        for text in &of {
            let (right, said) = judged(&mut strict(), text);
            assert!(right, "{said}\n{text}");
            for (what, slip) in [("backoffLimitPerIndex:", "backofLimitPerIndex:"), ("completions: ", "completions: x")]
            {
                assert!(text.contains(what));
                let (right, _) = judged(&mut strict(), &text.replace(what, slip));
                assert!(!right, "{slip} passed by {version}");
            }
        }
    }
}

#[test]
fn a_workflow_is_right_by_the_schema_of_argo_and_a_slip_is_not() {
    let Some(python) = schemas() else { return };
    let judge = || {
        let mut command = Command::new(&python);
        command.arg(project().join("tests/schemas/argo.py"));
        command
    };
    for settings in [everything(), Settings::default()] {
        let text = manifests(&settings, &["--argo"]);
        let (right, said) = judged(&mut judge(), &text);
        assert!(right, "{said}");
        let slips = [
            ("retryStrategy:", "retryStratgy:"),
            ("withSequence:", "withSequenze:"),
            ("template: rm", "template: x"),
            ("daemon: true", "deamon: true"),
        ];
        for (what, slip) in slips {
            assert!(text.contains(what), "{what}");
            let (right, _) = judged(&mut judge(), &text.replace(what, slip));
            assert!(!right, "{slip} passed");
        }
    }
}

#[test]
fn kubectl_creates_lists_and_deletes_what_is_printed() {
    let Some(setting) = Setting::new(false, None, &everything()) else { return };
    let file = setting.dir.path().join("run.yaml");
    std::fs::write(&file, manifests(&everything(), &["--schedule", "0 22 * * *"])).unwrap();
    let file = file.to_str().unwrap();
    let made = setting.kubectl(&["create", "-f", file]);
    for kind in [
        "job.batch/",
        "cronjob.batch/",
        "deployment.apps/",
        "networkpolicy.networking.k8s.io/",
        "role.rbac",
        "configmap/",
    ] {
        assert!(made.contains(kind), "{kind}\n{made}");
    }
    let listed = setting.kubectl(&[
        "--namespace",
        "lab",
        "get",
        "jobs,deployments,cronjobs",
        "-l",
        "rollmill/run=new",
        "-o",
        "name",
    ]);
    assert!(listed.contains("rollout-train-0002") && listed.contains("endpoint-0001"), "{listed}");
    assert_eq!(
        listed.lines().count(),
        setting.cluster.names("jobs").len() + setting.cluster.names("deployments").len() + 1
    );
    setting.kubectl(&["delete", "-f", file]);
    for kind in ["jobs", "deployments", "cronjobs", "configmaps", "roles"] {
        assert_eq!(setting.cluster.names(kind), [] as [String; 0]);
    }
}

#[test]
fn a_submission_leaves_a_conductor_and_a_second_one_adds_nothing() {
    let Some(setting) = Setting::new(false, None, &Settings::default()) else { return };
    setting.submitted(0, &["--rounds", "2"]);
    let jobs = setting.cluster.names("jobs");
    assert!(jobs.len() == 1 && jobs[0].ends_with("-conduct"), "{jobs:?}");
    let before = setting.cluster.object("jobs", &jobs[0]);
    setting.submitted(0, &["--rounds", "2"]);
    assert_eq!((setting.cluster.names("jobs"), &setting.cluster.object("jobs", &jobs[0])), (jobs.clone(), &before));
    // With other rounds it is another submission, which replaces the conductor.
    setting.submitted(0, &["--rounds", "1"]);
    assert_ne!(setting.cluster.object("jobs", &jobs[0]), before);
    for again in ["", " is under way"] {
        let made = setting.submitted(0, &["--rounds", "2", "--argo"]);
        let line = made.lines().find(|line| line.starts_with("workflow.argoproj.io/rm-")).unwrap_or_default();
        assert!(line.ends_with(again) && line.contains("under way") != again.is_empty(), "{made}");
    }
    let refused = setting.submitted(2, &["--schedule", "tonight"]);
    assert!(refused.contains("five fields"), "{refused}");
}

#[test]
fn a_folder_no_pod_reaches_and_a_secret_written_out_are_refused() {
    let Some(mut setting) = Setting::new(false, None, &Settings::default()) else { return };
    setting.address = "/elsewhere/exp7".into();
    assert!(setting.submitted(2, &[]).contains("pods reach no folder of this machine"));
    let shown = Settings { k8s: "env = { AWS_SECRET_ACCESS_KEY = \"hunter2\" }", ..Settings::default() };
    let Some(setting) = Setting::new(false, None, &shown) else { return };
    let said = setting.submitted(2, &[]);
    assert!(said.contains("looks like a secret") && !said.contains("hunter2"), "{said}");
}

/// Tasks of `examples/learn`, to be verified alone: nothing needs a model, and it takes long enough for things to happen.
fn verification(repeats: u32) -> Settings {
    let base = format!(
        r#"[[synthesize.sources]]
kind = "jsonl"
path = "examples/learn/train"
[verify]
repeats = {repeats}
heldout = 0.0
shard_size = 40
[rollout]
sets = []
[operations]
rounds = 0
chunk_items = 4
lease_seconds = 4
"#
    );
    Settings { base: Some(base), ..Settings::default() }
}

#[test]
fn pods_that_are_killed_and_two_of_one_index_at_once_cost_no_row() {
    let Some(setting) = Setting::new(true, None, &verification(8)) else { return };
    let conducting = Killed(setting.command(&["--here"]).stderr(Stdio::inherit()).spawn().unwrap());
    let pid = setting.cluster.running("-verify", 1);
    setting.cluster.twin("-verify", 1);
    setting.cluster.twin("-verify", 2);
    setting.cluster.kill(pid);
    setting.cluster.wait("the end of verify", || setting.ended("-verify").is_some());
    assert_eq!(setting.ended("-verify").as_deref(), Some("Complete"), "{}", setting.cluster.logs("verify"));
    let pods = setting.cluster.pods("-verify");
    let killed = pods.iter().filter(|pod| pod.ended == Some(("rollmill".into(), 137))).count();
    assert!(killed == 1 && pods.iter().filter(|pod| pod.index == 1).count() >= 3, "{pods:?}");
    drop(conducting);
    assert!(setting.submitted(0, &["--here"]).contains("Everything is done."));
    let mut ids = task_ids(Path::new(&setting.address));
    let all = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!((ids.len(), all), (263, 263));
}

#[test]
fn what_failed_ends_the_conductor_and_is_made_anew_once_it_is_mended() {
    let spent = Settings { more: "[budget]\ncore_hours = 0.0000001\n".into(), ..verification(2) };
    let Some(setting) = Setting::new(true, None, &spent) else { return };
    let rollmill = |words: &[&str]| {
        let mut command = setting.cluster.command(program("rollmill"));
        command.args(words).args(["--run", &setting.address]).current_dir(project()).output().unwrap()
    };
    let config = setting.config.to_str().unwrap();
    // A submission would refuse: `synthesize` has spent it by then. The first pod finds out.
    assert!(rollmill(&["init", "--config", config]).status.success() && rollmill(&["synthesize"]).status.success());
    let out = rollmill(&["conduct", "--config", config]);
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.code() == Some(10) && said.contains("-verify") && said.contains("submit again"), "{said}");
    assert_eq!(setting.ended("-verify").as_deref(), Some("Failed"));
    // The first that refuses ends the job; the others are on their way.
    let pods = || setting.cluster.pods("-verify");
    setting.cluster.wait("the end of all pods", || pods().iter().all(|pod| pod.ended.is_some()));
    assert!(pods().iter().all(|pod| pod.ended == Some(("budget".into(), 2))), "{:?}", pods());
    assert_eq!(setting.submit(&["--here"]).status.code(), Some(2));
    let raised = std::fs::read_to_string(&setting.config).unwrap().replace("0.0000001", "100.0");
    std::fs::write(&setting.config, raised).unwrap();
    let verify = setting.cluster.names("jobs").into_iter().find(|name| name.ends_with("-verify")).unwrap();
    let failed = setting.cluster.object("jobs", &verify).unwrap();
    // Each night is a submission of its own: it finds the job as a night before left it.
    let said = setting.submitted(0, &["--schedule", "0 22 * * *"]);
    assert!(said.contains("-verify had ended without finishing; it is made anew"), "{said}");
    let file = setting.dir.path().join("failed.json");
    std::fs::write(&file, failed.to_string()).unwrap();
    setting.kubectl(&["create", "-f", file.to_str().unwrap()]);
    let cron = setting.cluster.names("cronjobs").remove(0);
    let job = setting.cluster.fire(&cron);
    setting.cluster.wait("the end of the night", || setting.ended(&job).is_some());
    let said = setting.cluster.logs(&job);
    assert!(said.contains("made anew") && said.contains("Everything is done."), "{said}");
    assert_eq!(
        (setting.ended(&job).as_deref(), setting.ended("-verify").as_deref()),
        (Some("Complete"), Some("Complete"))
    );
}

#[test]
fn a_round_with_the_real_model_is_conducted_inside_the_cluster() {
    let Some(model) = model() else { return };
    let dir = tempfile::tempdir().unwrap();
    let small = std::fs::read_to_string(small_config(dir.path(), Some(&model), 2)).unwrap();
    let settings =
        Settings { base: Some(small.replace("[verify]", "[verify]\nshard_size = 5")), ..Settings::default() };
    let Some(setting) = Setting::new(true, Some(&model), &settings) else { return };
    setting.submitted(0, &["--rounds", "1"]);
    // The conductor may be killed at any instant.
    let pid = setting.cluster.running("-rollout-train-0001", 0);
    let conductor = setting.cluster.running("-conduct", 0);
    setting.cluster.kill(conductor);
    setting.cluster.kill(pid);
    setting.cluster.wait("the end of the conductor", || setting.ended("-conduct").is_some());
    assert_eq!(setting.ended("-conduct").as_deref(), Some("Complete"), "{}", setting.cluster.logs(""));
    assert_eq!(setting.cluster.names("deployments"), [] as [String; 0], "endpoints are taken away");
    // The conductor has no sources, and knows from the store how many workers verify has use for.
    assert!(setting.cluster.pods("-verify").iter().any(|pod| pod.index == 1), "two shards are two pods");
    for step in ["-train-0001", "-rollout-heldout-0001", "-evaluate-heldout-0000", "-evaluate-heldout-0001"] {
        assert_eq!(setting.ended(step).as_deref(), Some("Complete"), "{step}");
    }
    assert!(setting.submitted(0, &["--rounds", "1"]).contains("Everything is done."));
}
