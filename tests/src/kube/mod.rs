//! A Kubernetes cluster of one test: an API server in memory that the real `kubectl` talks to, and a kubelet that runs each pod's
//! containers as processes of this machine, by the rules of Indexed Jobs.
//!
//! What it is not: it isolates nothing, knows no images and no volumes, and checks no rights. What must hold: objects are what
//! `kubectl` sent, exit codes do what `podFailurePolicy` says, and no process outlives the test.

mod api;
mod kubelet;

use crate::skip;
use kubelet::Kubelet;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Limits of a test's patience, not of what it tests.
const PATIENCE: Duration = Duration::from_secs(500);

/// One pod, from its first container to its end.
#[derive(Clone, Debug)]
pub struct Pod {
    /// Its Job or Deployment.
    pub owner: String,
    /// Its index.
    pub index: u32,
    /// The container that runs, and its process.
    pub running: Option<(String, u32)>,
    /// The container that decided, and its exit code; of one that was killed, 128 and the signal.
    pub ended: Option<(String, i32)>,
    /// Whether the kubelet is to look at how it ended.
    counted: bool,
}

/// What the API server holds, and the pods.
#[derive(Debug, Default)]
pub struct State {
    objects: BTreeMap<(String, String), Value>,
    pods: Vec<Pod>,
    stopped: bool,
}

/// The cluster.
pub struct Cluster {
    state: Arc<Mutex<State>>,
    folder: tempfile::TempDir,
    kubelet: Arc<Kubelet>,
    runtime: Option<tokio::runtime::Runtime>,
    looking: Option<std::thread::JoinHandle<()>>,
}

impl Cluster {
    /// Starts it; none where there is no `kubectl`. Pods run with the programs of a folder, or never.
    pub fn start(programs: Option<&Path>) -> Option<Cluster> {
        if Command::new("kubectl").args(["version", "--client"]).output().is_err() {
            return skip("kubectl", "there is no kubectl");
        }
        let folder = tempfile::tempdir().expect("a folder");
        let state = Arc::new(Mutex::new(State::default()));
        // Endpoints listen there, each at an address of its own.
        let free = std::net::TcpListener::bind("0.0.0.0:8000").is_ok();
        assert!(free || programs.is_none(), "something listens on port 8000 of this machine");
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let port = runtime.block_on(api::serve(state.clone()));
        let config = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: test\nclusters:\n- name: test\n  cluster:\n    \
             server: http://127.0.0.1:{port}\ncontexts:\n- name: test\n  context:\n    cluster: test\n    user: test\n\
             users:\n- name: test\n  user: {{}}\n"
        );
        std::fs::write(folder.path().join("config"), config).expect("kubeconfig");
        let kubelet = Arc::new(Kubelet {
            state: state.clone(),
            folder: folder.path().to_path_buf(),
            programs: programs.unwrap_or(Path::new("")).to_path_buf(),
            pods: AtomicU32::new(1),
        });
        let looking = programs.map(|_| kubelet.clone().start());
        Some(Cluster { state, folder, kubelet, runtime: Some(runtime), looking })
    }

    /// A command that talks to it.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        // `kubectl` caches what a server can do in its home.
        command.env("KUBECONFIG", self.kubeconfig()).env("HOME", self.folder.path());
        command
    }

    fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("config")
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panicked with it")
    }

    /// Names of the objects of a kind, such as `jobs`.
    pub fn names(&self, kind: &str) -> Vec<String> {
        self.state().objects.keys().filter(|(plural, _)| plural == kind).map(|(_, name)| name.clone()).collect()
    }

    /// An object.
    pub fn object(&self, kind: &str, name: &str) -> Option<Value> {
        self.state().objects.get(&(kind.to_string(), name.to_string())).cloned()
    }

    /// All pods there have been of what has this in its name.
    pub fn pods(&self, owner: &str) -> Vec<Pod> {
        self.state().pods.iter().filter(|pod| pod.owner.contains(owner)).cloned().collect()
    }

    /// Waits until a worker of an index runs; its process.
    pub fn running(&self, owner: &str, index: u32) -> u32 {
        let mut found = None;
        self.wait(&format!("a pod of {owner}, index {index}"), || {
            let worker = |pod: &Pod| pod.running.clone().filter(|(container, _)| container == "rollmill");
            found = self.pods(owner).iter().filter(|pod| pod.index == index).find_map(worker);
            found.is_some()
        });
        found.expect("it was waited for").1
    }

    /// A second pod of an index beside the first, as a lost node leaves it. What it ends with counts for nothing.
    pub fn twin(&self, owner: &str, index: u32) {
        let job = self.names("jobs").into_iter().find(|name| name.contains(owner)).expect("the job is there");
        self.kubelet.begin(&job, index, false);
    }

    /// The time of a CronJob has come; the name of its Job.
    pub fn fire(&self, cron: &str) -> String {
        let (mut state, name) = (self.state(), format!("{cron}-1"));
        let template = state.objects[&("cronjobs".to_string(), cron.to_string())]["spec"]["jobTemplate"].clone();
        let mut job = serde_json::json!({ "apiVersion": "batch/v1", "kind": "Job", "spec": template["spec"] });
        job["metadata"] = template["metadata"].clone();
        job["metadata"]["name"] = name.clone().into();
        state.objects.insert(("jobs".into(), name.clone()), job);
        name
    }

    /// Kills a container's process, as a node that runs out of memory does.
    pub fn kill(&self, pid: u32) {
        kubelet::signal(pid, libc::SIGKILL);
    }

    /// What the pods of an owner said.
    pub fn logs(&self, owner: &str) -> String {
        let files = std::fs::read_dir(self.folder.path()).into_iter().flatten().flatten();
        let mut files: Vec<PathBuf> = files.map(|file| file.path()).collect();
        files.retain(|path| path.extension().is_some_and(|x| x == "log") && path.to_string_lossy().contains(owner));
        files.sort();
        let read = |path: &PathBuf| std::fs::read_to_string(path).unwrap_or_default();
        files.iter().map(|path| format!("{}\n{}\n", path.display(), read(path))).collect()
    }

    /// Waits for something.
    pub fn wait(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let since = Instant::now();
        while !holds() {
            assert!(since.elapsed() < PATIENCE, "waited in vain for {what}\n{}", self.logs(""));
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Ok(mut state) = self.state.lock() {
            state.stopped = true;
        }
        if let Some(looking) = self.looking.take() {
            let _ = looking.join();
        }
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
