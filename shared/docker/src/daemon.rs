//! The `docker` backend: opening it finds the daemon and the image, sweeps, and proves with one run what holds.
use std::future::Future;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use bollard::models::SystemInfo;
use bollard::{API_DEFAULT_VERSION, Docker as Client};
use rollmill_sandbox::{
    Finished, Isolation, Level, Limits, NamespacesOptions, Sandbox, SandboxError, Session, Slots, Spec,
};

use crate::container::FIRST_FREE_UID;
use crate::error::{asked, failed};
use crate::image::{self, Image};
use crate::owner;
use crate::pool::Pool;
use crate::run::Running;

/// Seconds a request may take.
const REQUEST: u64 = 60;

/// How to open the [`Docker`] backend.
#[derive(Debug, Clone)]
pub struct DockerOptions {
    /// The daemon's socket; by default the one that DOCKER_HOST names, else the usual places of Docker and Podman.
    pub socket: Option<PathBuf>,
    /// The image: its id or digest (`sha256:…`, `name@sha256:…`), or a name, which is pinned to the id it has at opening.
    pub image: String,
    /// The OCI runtime (`runsc`); by default the daemon's.
    pub runtime: Option<String>,
    /// Containers kept started ahead of runs; 0 starts each when it is needed. They are for runs with limits like the last's.
    pub warm: usize,
    /// The weakest level a run may start at.
    pub floor: Level,
    /// Containers alive at once on this machine, over all its processes (1024), and where the slots' locks are kept: the
    /// folder of the `namespaces` backend, which numbers its users alike.
    pub slots: u32,
    /// See `slots`.
    pub cache_dir: PathBuf,
}

impl Default for DockerOptions {
    /// No image yet.
    fn default() -> Self {
        let NamespacesOptions { cache_dir, floor, slots, .. } = NamespacesOptions::default();
        DockerOptions { socket: None, image: String::new(), runtime: None, warm: 0, floor, slots, cache_dir }
    }
}

/// Sandboxes that a container daemon makes.
#[derive(Debug)]
pub struct Docker {
    shared: Arc<Shared>,
    isolation: Isolation,
}

/// What sessions keep alive too.
#[derive(Debug)]
pub struct Shared {
    pub runtime: Runtime,
    pub core: Arc<Core>,
}

/// What containers are made with.
pub struct Core {
    pub client: Client,
    pub image: Image,
    pub runtime: Option<String>,
    /// As a security option takes it.
    pub seccomp: String,
    pub slots: Slots,
    pub pool: Pool,
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core").field("image", &self.image.id).finish_non_exhaustive()
    }
}

impl Docker {
    /// Connects, removes containers whose workers are gone, and runs one program to see that its user, its capabilities and
    /// its system call filter are as they must be.
    pub fn open(opts: DockerOptions) -> Result<Docker, SandboxError> {
        let runtime = Runtime::new()?;
        let slots = Slots::of_daemon(&opts.cache_dir, opts.slots)?;
        let (socket, name) = (opts.socket, opts.image);
        let (client, info, image, podman) = runtime.wait(async move {
            let client = connect(socket.as_deref()).await?;
            let info = client.info().await.map_err(asked("ask what it is"))?;
            let parts = client.version().await.map_err(asked("ask what it is"))?.components.unwrap_or_default();
            owner::sweep(&client).await?;
            let image = image::find(&client, &name).await?;
            Ok((client, info, image, parts.iter().any(|part| part.name.starts_with("Podman"))))
        })?;
        let isolation = isolation(&info, &image, opts.runtime.as_deref())?;
        let core = Core {
            client,
            image,
            runtime: opts.runtime,
            seccomp: if podman { profile_file(&opts.cache_dir)? } else { rollmill_sandbox::docker_profile() },
            slots,
            pool: Pool::new(opts.warm),
        };
        let this = Docker { shared: Arc::new(Shared { runtime, core: Arc::new(core) }), isolation };
        this.prove().map_err(|e| if podman { refused_by_podman(e) } else { e })?;
        match this.isolation.level >= opts.floor {
            true => Ok(this),
            false => {
                let why = this.isolation.notes.join("; ");
                Err(SandboxError::BelowFloor { level: this.isolation.level, floor: opts.floor, why })
            }
        }
    }

    /// What the daemon was told to do is looked at from inside.
    fn prove(&self) -> Result<(), SandboxError> {
        let argv = ["cat", "/proc/self/status"].map(String::from).to_vec();
        let limits = Limits { wall: Duration::from_secs(60), ..Limits::default() };
        let done = self.run(&Spec { argv, limits, ..Spec::default() })?;
        let refused = |what: String| Err(SandboxError::DaemonRefused { what });
        if done.facts.exit != Some(0) {
            let said = String::from_utf8_lossy(&done.stderr).trim().to_string();
            return refused(format!("the image's cat does not run: {:?} {said}", done.facts.exit));
        }
        let status = String::from_utf8_lossy(&done.stdout).into_owned();
        let field = |name: &str| status.lines().find_map(|l| l.strip_prefix(name)).map(str::trim);
        let uid = field("Uid:").and_then(|f| f.split_whitespace().next()?.parse::<u32>().ok());
        if uid.is_none_or(|uid| uid < FIRST_FREE_UID) {
            return refused(format!("a program has user {uid:?} there"));
        }
        let holds = |name: &str, want: &str, must: bool| match field(name) {
            Some(said) => said == want,
            None => !must, // a runtime with a kernel of its own says less
        };
        let zero = "0000000000000000";
        for (name, want, must) in [("CapEff:", zero, true), ("CapBnd:", zero, false), ("NoNewPrivs:", "1", false)] {
            if !holds(name, want, must) {
                return refused(format!("a program has {name} {:?} there", field(name)));
            }
        }
        if !holds("Seccomp:", "2", false) {
            return refused("no seccomp filter holds there".into());
        }
        Ok(())
    }
}

/// An older Podman calls it a failure when it does not know a part of the API: no retry helps.
fn refused_by_podman(error: SandboxError) -> SandboxError {
    match error {
        SandboxError::DaemonFailed { what } => {
            SandboxError::DaemonRefused { what: format!("this Podman lacks a part: {what}") }
        }
        other => other,
    }
}

/// Podman takes the path of a profile where Docker takes the profile. Named after its contents, and there at once as a whole.
fn profile_file(folder: &Path) -> Result<String, SandboxError> {
    let profile = rollmill_sandbox::docker_profile();
    let mut hash = DefaultHasher::new();
    profile.hash(&mut hash);
    let path = folder.join(format!("seccomp-{:016x}.json", hash.finish()));
    let staging = folder.join(format!(".seccomp-{}", std::process::id()));
    let written = std::fs::write(&staging, &profile).and_then(|()| std::fs::rename(&staging, &path));
    let what = format!("cannot write {}", path.display());
    written.map_err(|source| SandboxError::Io { what, source })?;
    Ok(path.display().to_string())
}

fn isolation(info: &SystemInfo, image: &Image, runtime: Option<&str>) -> Result<Isolation, SandboxError> {
    if info.memory_limit != Some(true) || info.pids_limit == Some(false) {
        return Err(SandboxError::DaemonRefused { what: "it cannot limit memory and processes here".into() });
    }
    let known = info.runtimes.clone().unwrap_or_default();
    if let Some(name) = runtime.filter(|name| !known.contains_key(*name)) {
        return Err(SandboxError::DaemonRefused { what: format!("it has no runtime {name}") });
    }
    let runtime = runtime.or(info.default_runtime.as_deref()).unwrap_or("unknown");
    let version = info.server_version.as_deref().unwrap_or("unknown");
    let mut notes = vec![
        format!("runtime {runtime}, server {version}"),
        "disk: half for /work, three eighths for /tmp, an eighth for /dev/shm".into(),
        "signals other than a limit's are told as exit 128 and the signal".into(),
    ];
    if info.swap_limit == Some(false) {
        notes.push("swap is not limited".into());
    }
    Ok(Isolation {
        backend: "docker".into(),
        level: Level::OwnUid,
        cgroup: info.cgroup_version.map_or_else(|| "v1".into(), |v| format!("v{v}")),
        rootfs_digest: image.id.trim_start_matches("sha256:").into(),
        notes,
    })
}

impl Sandbox for Docker {
    fn level(&self) -> &Isolation {
        &self.isolation
    }

    fn run(&self, spec: &Spec) -> Result<Finished, SandboxError> {
        Running::begin(&self.shared, spec, false)?.wait_for_end()
    }

    fn start(&self, spec: &Spec) -> Result<Box<dyn Session>, SandboxError> {
        Ok(Box::new(Running::begin(&self.shared, spec, true)?))
    }
}

impl Drop for Docker {
    /// Removes the containers that wait; those of sessions go with their sessions.
    fn drop(&mut self) {
        let core = self.shared.core.clone();
        // on failure the next opening sweeps
        let _ = self.shared.runtime.wait(async move {
            core.pool.close().await;
            Ok(())
        });
    }
}

/// The first daemon found, with the newest API version both know.
pub async fn connect(socket: Option<&Path>) -> Result<Client, SandboxError> {
    let candidates = match (socket, std::env::var("DOCKER_HOST").ok().filter(|h| !h.is_empty())) {
        (Some(path), _) => vec![path.to_path_buf()],
        (None, Some(host)) => match host.strip_prefix("unix://") {
            Some(path) => vec![path.into()],
            None => {
                let what = format!("DOCKER_HOST is {host}, and only sockets of this machine (unix:///path) are used");
                return Err(SandboxError::DaemonRefused { what });
            }
        },
        (None, None) => usual_sockets(),
    };
    let Some(path) = candidates.iter().find(|p| p.exists()) else {
        let looked: Vec<_> = candidates.iter().map(|p| p.display().to_string()).collect();
        return Err(SandboxError::NoDaemon { looked: looked.join(", ") });
    };
    let client = Client::connect_with_unix(&path.to_string_lossy(), REQUEST, API_DEFAULT_VERSION);
    client.map_err(asked("connect"))?.negotiate_version().await.map_err(asked("connect"))
}

fn usual_sockets() -> Vec<PathBuf> {
    let own = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let own = own.into_iter().flat_map(|d| [d.join("docker.sock"), d.join("podman/podman.sock")]);
    [PathBuf::from("/var/run/docker.sock")].into_iter().chain(own).chain(["/run/podman/podman.sock".into()]).collect()
}

/// The threads that talk to the daemon, whichever thread asks.
#[derive(Debug)]
pub struct Runtime(Option<tokio::runtime::Runtime>);

impl Runtime {
    pub fn new() -> Result<Runtime, SandboxError> {
        let built = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("rollmill-docker")
            .enable_all()
            .build();
        let what = "cannot start a thread for the container daemon".to_string();
        built.map(|r| Runtime(Some(r))).map_err(|source| SandboxError::Io { what, source })
    }

    /// Blocks the calling thread, which may belong to another runtime, until the future is done on ours.
    pub fn wait<T: Send + 'static>(
        &self,
        future: impl Future<Output = Result<T, SandboxError>> + Send + 'static,
    ) -> Result<T, SandboxError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.spawn(async move {
            let _ = sender.send(future.await); // nobody waits any more
        });
        receiver.recv().unwrap_or_else(|_| Err(failed("wait for it", "its thread ended")))
    }

    pub fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.0 {
            runtime.spawn(future);
        }
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background(); // the other way blocks, which a thread of a runtime must not
        }
    }
}
