//! Runs pods as processes, and keeps the books of Indexed Jobs as their controller does: one pod of an index at a time, begun
//! again as `podFailurePolicy` and `backoffLimitPerIndex` say.

use super::{Pod, State};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Pause between two looks.
const LOOK: Duration = Duration::from_millis(100);
/// How long a pod that is told to leave may take before it is killed.
const GRACE: Duration = Duration::from_secs(20);

/// The kubelet of one node, and the controller of its Jobs.
pub struct Kubelet {
    /// What the API server holds.
    pub state: Arc<Mutex<State>>,
    /// Folder of logs, of `config` for `kubectl`, and of what pods write.
    pub folder: PathBuf,
    /// Folder of the programs of the image.
    pub programs: PathBuf,
    /// Numbers pods, for logs and addresses.
    pub pods: AtomicU32,
}

impl Kubelet {
    /// Runs what is there, until the cluster is stopped and every pod has ended.
    pub fn start(self: Arc<Self>) -> JoinHandle<()> {
        std::thread::spawn(move || {
            loop {
                let mut begun = Vec::new();
                {
                    let mut state = self.state.lock().expect("nobody panicked with it");
                    if state.stopped && state.pods.iter().all(|pod| pod.ended.is_some()) {
                        return;
                    }
                    if !state.stopped {
                        begun = look(&mut state);
                    }
                }
                for (owner, index) in begun {
                    self.begin(&owner, index, true);
                }
                std::thread::sleep(LOOK);
            }
        })
    }

    /// Begins a pod, unless its object is gone.
    pub fn begin(self: &Arc<Self>, owner: &str, index: u32, counted: bool) {
        let mut state = self.state.lock().expect("nobody panicked with it");
        let object = ["jobs", "deployments"].iter().find_map(|kind| {
            let key = (kind.to_string(), owner.to_string());
            Some((key.clone(), state.objects.get(&key)?["spec"]["template"]["spec"].clone()))
        });
        let Some((key, spec)) = object else { return };
        let at = state.pods.len();
        state.pods.push(Pod { owner: owner.into(), index, running: None, ended: None, counted });
        let number = self.pods.fetch_add(1, Ordering::Relaxed);
        let mounts = self.mounts(&state, &spec);
        drop(state);
        let log = self.folder.join(format!("{owner}-{index}-{number:04}.log"));
        let pod = Running { kubelet: self.clone(), key, at, index, number, log, mounts };
        std::thread::spawn(move || {
            let ended = pod.run(&spec);
            let mut state = pod.kubelet.state.lock().expect("nobody panicked with it");
            (state.pods[at].running, state.pods[at].ended) = (None, Some(ended));
        });
    }

    /// Config maps as folders: the path in the pod, and the one here.
    fn mounts(&self, state: &State, spec: &Value) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for volume in spec["volumes"].as_array().into_iter().flatten() {
            let Some(name) = volume["configMap"]["name"].as_str() else { continue };
            let Some(map) = state.objects.get(&("configmaps".to_string(), name.to_string())) else { continue };
            let folder = self.folder.join("maps").join(name);
            std::fs::create_dir_all(&folder).expect("a folder");
            for (file, text) in map["data"].as_object().into_iter().flatten() {
                std::fs::write(folder.join(file), text.as_str().unwrap_or_default()).expect("a file");
            }
            let mounted = spec["containers"].as_array().into_iter().flatten();
            let mounted = mounted.flat_map(|container| container["volumeMounts"].as_array().into_iter().flatten());
            for mount in mounted.filter(|mount| mount["name"] == volume["name"]) {
                let path = mount["mountPath"].as_str().unwrap_or_default().to_string();
                found.push((path, folder.display().to_string()));
            }
        }
        found
    }
}

/// Settles what has ended; pods that are to begin.
fn look(state: &mut State) -> Vec<(String, u32)> {
    let mut begun = Vec::new();
    let keys: Vec<_> = state.objects.keys().cloned().collect();
    for key in keys {
        let object = state.objects[&key].clone();
        let of = |pod: &&Pod| pod.owner == key.1 && pod.counted;
        match key.0.as_str() {
            "jobs" if object["status"]["conditions"].is_null() && object["spec"]["suspend"] != true => {
                let pods: Vec<&Pod> = state.pods.iter().filter(of).collect();
                match settle(&object["spec"], &pods) {
                    Ok(indexes) => begun.extend(indexes.into_iter().map(|index| (key.1.clone(), index))),
                    Err(condition) => {
                        let conditions = json!([{ "type": condition, "status": "True" }]);
                        state.objects.get_mut(&key).expect("it is there")["status"] =
                            json!({ "conditions": conditions });
                    }
                }
            }
            "deployments" if state.pods.iter().filter(of).all(|pod| pod.ended.is_some()) => {
                begun.push((key.1.clone(), 0))
            }
            _ => {}
        }
    }
    begun
}

/// Indexes to begin now, or how the job has ended.
fn settle(spec: &Value, pods: &[&Pod]) -> Result<Vec<u32>, &'static str> {
    let indexed = spec["completionMode"] == "Indexed";
    let completions = spec["completions"].as_u64().unwrap_or(1) as u32;
    let parallelism = spec["parallelism"].as_u64().unwrap_or(1) as usize;
    let limit = if indexed { &spec["backoffLimitPerIndex"] } else { &spec["backoffLimit"] };
    let limit = limit.as_u64().unwrap_or(6) as usize;
    let rules = spec["podFailurePolicy"]["rules"].as_array().cloned().unwrap_or_default();
    let ends: Vec<(u32, &str)> = pods
        .iter()
        .filter_map(|pod| Some((pod.index, pod.ended.as_ref()?)))
        .map(|(index, (container, code))| {
            (index, if *code == 0 { "Succeeded" } else { action(&rules, container, *code) })
        })
        .collect();
    if ends.iter().any(|(_, action)| *action == "FailJob") {
        return Err("Failed");
    }
    let (mut open, mut failed) = (Vec::new(), false);
    for index in 0..completions {
        let of: Vec<&str> = ends.iter().filter(|(i, _)| *i == index).map(|(_, action)| *action).collect();
        let counted = of.iter().filter(|action| **action == "Count").count();
        match () {
            () if of.contains(&"Succeeded") => {}
            () if of.contains(&"FailIndex") || counted > limit => failed = true,
            () => open.push(index),
        }
    }
    let running: Vec<u32> = pods.iter().filter(|pod| pod.ended.is_none()).map(|pod| pod.index).collect();
    if open.is_empty() && running.is_empty() {
        return Err(if failed { "Failed" } else { "Complete" });
    }
    let free = parallelism.saturating_sub(running.len());
    Ok(open.into_iter().filter(|index| !running.contains(index)).take(free).collect())
}

/// The first rule that fits decides.
fn action<'a>(rules: &'a [Value], container: &str, code: i32) -> &'a str {
    let fits = |rule: &&Value| {
        let codes = &rule["onExitCodes"];
        let named = codes["containerName"].as_str().is_none_or(|name| name == container);
        named && codes["values"].as_array().is_some_and(|values| values.iter().any(|value| *value == code))
    };
    rules.iter().find(fits).and_then(|rule| rule["action"].as_str()).unwrap_or("Count")
}

struct Running {
    kubelet: Arc<Kubelet>,
    key: (String, String),
    at: usize,
    index: u32,
    number: u32,
    log: PathBuf,
    mounts: Vec<(String, String)>,
}

impl Running {
    /// The containers, one after another; the one that decided, and its exit code.
    fn run(&self, spec: &Value) -> (String, i32) {
        let mut last = (String::new(), 0);
        for kind in ["initContainers", "containers"] {
            for container in spec[kind].as_array().into_iter().flatten() {
                let name = container["name"].as_str().unwrap_or_default().to_string();
                last = (name.clone(), self.container(&name, container));
                if last.1 != 0 {
                    return last;
                }
            }
        }
        last
    }

    fn container(&self, name: &str, spec: &Value) -> i32 {
        let address = format!("127.0.1.{}", self.number % 250 + 1);
        let words = |field: &str| spec[field].as_array().cloned().unwrap_or_default();
        let words: Vec<String> = words("command")
            .into_iter()
            .chain(words("args"))
            .map(|word| {
                let word = word.as_str().unwrap_or_default().replace("$(POD_IP)", &address);
                self.mounts.iter().fold(word, |word, (path, here)| word.replace(path, here))
            })
            .collect();
        let log = std::fs::OpenOptions::new().create(true).append(true).open(&self.log).expect("a log");
        let mut command = Command::new(self.kubelet.programs.join(&words[0]));
        command.args(&words[1..]).stdin(Stdio::null());
        command.stdout(log.try_clone().expect("a second handle")).stderr(log);
        for variable in spec["env"].as_array().into_iter().flatten() {
            let value = variable["value"].as_str().unwrap_or(&address);
            command.env(variable["name"].as_str().unwrap_or_default(), value);
        }
        let own = self.log.with_extension("tmp");
        command.env("HOME", &own).env("XDG_CACHE_HOME", own.join("cache"));
        command.env("JOB_COMPLETION_INDEX", self.index.to_string());
        // What a service account is to a pod.
        command.env("KUBECONFIG", self.kubelet.folder.join("config"));
        let child = command.spawn().expect("the program is there");
        let probe = &spec["readinessProbe"]["httpGet"]["port"];
        self.watch(name, child, probe.as_u64().map(|port| format!("{address}:{port}")))
    }

    fn tell_readiness(&self, ready: bool) {
        let mut state = self.kubelet.state.lock().expect("nobody panicked with it");
        if let Some(object) = state.objects.get_mut(&self.key) {
            object["status"]["readyReplicas"] = u32::from(ready).into();
        }
    }

    /// Until it ends, or its object is taken away. `ready`: where it answers when it is ready.
    fn watch(&self, name: &str, mut child: Child, ready: Option<String>) -> i32 {
        let mut told: Option<Instant> = None;
        loop {
            if let Some(address) = &ready {
                self.tell_readiness(answers(address));
            }
            if let Some(status) = child.try_wait().expect("a child can be asked") {
                return status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
            }
            let gone = {
                let mut state = self.kubelet.state.lock().expect("nobody panicked with it");
                state.pods[self.at].running = Some((name.into(), child.id()));
                state.stopped || !state.objects.contains_key(&self.key)
            };
            match told {
                None if gone => {
                    signal(child.id(), libc::SIGTERM);
                    told = Some(Instant::now());
                }
                Some(since) if since.elapsed() > GRACE => drop(child.kill()),
                _ => {}
            }
            std::thread::sleep(LOOK);
        }
    }
}

/// Whether a server says that it is well.
fn answers(address: &str) -> bool {
    let asked = || {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        write!(stream, "GET /health HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
        let mut said = String::new();
        stream.take(64).read_to_string(&mut said)?;
        std::io::Result::Ok(said.starts_with("HTTP/1.1 200"))
    };
    asked().unwrap_or(false)
}

/// Signals a container's process.
pub fn signal(pid: u32, signal: i32) {
    // SAFETY: kill(2) touches no memory. The process is a child that has not been waited for, or has just ended.
    #[allow(unsafe_code)]
    unsafe {
        libc::kill(pid as i32, signal)
    };
}
