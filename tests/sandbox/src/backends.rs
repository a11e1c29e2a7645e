//! The backends of this machine. One that is not there is a skip with its name, and a failure where ROLLMILL_REQUIRE names it.
use rollmill_docker::{Docker, DockerOptions};
use rollmill_sandbox::{Namespaces, NamespacesOptions, RootSource, Sandbox, SandboxError, prepare};

/// A backend under test.
pub struct Backend {
    /// As the table says it: backend, level, who holds memory and processes.
    pub name: String,
    /// Itself.
    pub sandbox: Box<dyn Sandbox>,
}

impl Backend {
    fn new(sandbox: Box<dyn Sandbox>) -> Backend {
        let at = sandbox.level();
        Backend { name: format!("{} ({}, cgroup {})", at.backend, at.level, at.cgroup), sandbox }
    }
}

/// All that open here: namespaces with and without cgroups, and docker.
pub fn backends() -> Vec<Backend> {
    [namespaces(true), namespaces(false), containers()].into_iter().flatten().collect()
}

/// Namespaces, with cgroups where this machine gives them, or without.
pub fn namespaces(cgroups: bool) -> Option<Backend> {
    match Namespaces::open(NamespacesOptions { cgroups, ..NamespacesOptions::default() }) {
        Ok(opened) => Some(Backend::new(Box::new(opened))),
        Err(error) => skip("namespaces", &error.to_string()),
    }
}

/// Docker, with a new container for each run.
pub fn containers() -> Option<Backend> {
    docker(0).map(|d| Backend::new(Box::new(d)))
}

/// A container backend with an image of the namespaces backend's root, at the daemon that DOCKER_HOST names
/// (`infra/setup/docker.sh` starts one); never at one that this machine uses for other things.
pub fn docker(warm: usize) -> Option<Docker> {
    if std::env::var_os("DOCKER_HOST").is_none() {
        return skip("docker", "DOCKER_HOST is not set");
    }
    match open_docker(warm) {
        Ok(docker) => Some(docker),
        Err(error) => skip("docker", &error.to_string()),
    }
}

fn open_docker(warm: usize) -> Result<Docker, SandboxError> {
    let tree = prepare("host", &RootSource::Host, &NamespacesOptions::default().cache_dir)?.tree;
    // named after the tree's fingerprint, so that it is made once for a daemon
    let print = tree.parent().and_then(|p| p.file_name()).map_or("root".into(), |n| n.to_string_lossy());
    let image = format!("rollmill-root:{print}");
    let open = || Docker::open(DockerOptions { image: image.clone(), warm, ..DockerOptions::default() });
    match open() {
        Err(SandboxError::NoImage { .. }) => {
            rollmill_docker::import(None, &tree, &image)?;
            open()
        }
        other => other,
    }
}

fn skip<T>(name: &str, why: &str) -> Option<T> {
    let required = std::env::var("ROLLMILL_REQUIRE").unwrap_or_default().split(',').any(|n| n == name);
    assert!(!required, "ROLLMILL_REQUIRE names {name}, but {why}");
    eprintln!("skipped: {name}: {why}");
    None
}
