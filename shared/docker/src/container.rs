//! One container: made, started with its keeper, limited, removed.
//!
//! What must hold: made for one run; its users are nobody else's; what the set-up needs beyond the limits of the run is there
//! only while no program runs.
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bollard::Docker as Client;
use bollard::container::AttachContainerResults;
use bollard::models::{
    ContainerCreateBody, ContainerUpdateBody, HealthConfig, HostConfig, HostConfigLogConfig, ResourcesUlimits,
};
use bollard::query_parameters::{AttachContainerOptionsBuilder, CreateContainerOptions, RemoveContainerOptionsBuilder};
use rollmill_sandbox::{SandboxError, Slot, Spec};
use tokio::io::AsyncWriteExt;

use crate::daemon::Core;
use crate::error::{asked, failed, is_absent};
use crate::{archive, output, owner};

/// The smallest uid of a program, that of slot 0.
pub const FIRST_FREE_UID: u32 = 100_000;
/// The user of the keepers. They hold nothing, so one will do; programs cannot signal or read them.
const KEEPER_UID: u32 = FIRST_FREE_UID - 1;
/// The daemon's init and the keeper.
const KEEPERS: i64 = 2;
/// What they use, in bytes.
const KEEPER_BYTES: i64 = 2 << 20;
/// Threads and bytes of the runtime's own program while it starts an exec, which are counted in the container.
const STARTING: i64 = 32;
const STARTING_BYTES: i64 = 48 << 20;
/// Files and folders under /work and under /tmp, each.
const INODES: u32 = 32_768;
/// Room for given files is rounded up to this, so that runs with few small files fit the same container.
const ROOM: u64 = 64 << 10;
const PAGE: u64 = 4096;

/// Unpacks pristine files if it is told to, then waits for the end of its input, which comes when this process is gone.
const KEEPER: &str = r#"read -r kind && [ "$kind" = files ] && tar -xmf - -C /pristine && printf .
while read -r line; do :; done"#;

/// What a container is made for: runs of the same shape may use the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    memory: i64,
    pids: i64,
    disk: u64,
    files: u64,
    pristine: u64,
}

impl Shape {
    pub fn of(spec: &Spec) -> Shape {
        let limits = &spec.limits;
        Shape {
            memory: i64::try_from(limits.memory_bytes).unwrap_or(i64::MAX - STARTING_BYTES - KEEPER_BYTES),
            pids: limits.pids.into(),
            disk: limits.disk_bytes,
            files: room(&spec.files),
            pristine: room(&spec.pristine),
        }
    }

    /// The same size as one limit, split: a tmpfs has a size of its own, and containers cannot share one over three folders.
    /// Each belongs to who writes it: runtimes give a mount the mode of the image's folder, whatever was asked for.
    fn tmpfs(&self, uid: u32) -> HashMap<String, String> {
        let inodes = format!("nr_inodes={INODES},exec");
        let (work, tmp) = (whole_pages(self.disk / 2) + self.files, whole_pages(self.disk * 3 / 8));
        let mut all = HashMap::from([
            ("/work".to_string(), format!("size={work},uid={uid},gid={uid},mode=755,{inodes}")),
            ("/tmp".to_string(), format!("size={tmp},uid={uid},gid={uid},mode=755,{inodes}")),
        ]);
        if self.pristine > 0 {
            let size = self.pristine;
            let options = format!("size={size},uid={KEEPER_UID},gid={KEEPER_UID},mode=755,{inodes}");
            all.insert("/pristine".into(), options);
        }
        all
    }

    fn shm(&self) -> u64 {
        whole_pages(self.disk / 8)
    }

    fn ulimits(&self) -> Vec<ResourcesUlimits> {
        let file = i64::try_from(self.disk + self.files).unwrap_or(i64::MAX);
        let all = [("nofile", 256), ("core", 0), ("fsize", file), ("memlock", 0), ("msgqueue", 0)];
        all.map(|(name, n)| ResourcesUlimits { name: Some(name.into()), soft: Some(n), hard: Some(n) }).into()
    }
}

fn room(files: &[(String, Vec<u8>)]) -> u64 {
    let pages: u64 = files.iter().map(|(_, bytes)| whole_pages(bytes.len() as u64) + PAGE).sum();
    pages.next_multiple_of(ROOM)
}

fn whole_pages(bytes: u64) -> u64 {
    bytes.max(1).next_multiple_of(PAGE)
}

/// A started container.
pub struct Container {
    pub client: Client,
    pub id: String,
    pub shape: Shape,
    /// The host pid of its init, as the daemon sees it.
    pub init: i64,
    /// In a lock that is never taken, because a container is looked at from several tasks and the ends of a pipe cannot be.
    keeper: Mutex<AttachContainerResults>,
    slot: Slot,
}

impl Container {
    pub async fn start(core: &Arc<Core>, shape: &Shape) -> Result<Container, SandboxError> {
        let slot = core.slots.take()?;
        let client = core.client.clone();
        let body = body(core, shape, slot.user.host_uid);
        let made = client.create_container(None::<CreateContainerOptions>, body).await;
        let id = made.map_err(asked("make a container"))?.id;
        match attach_and_start(&client, &id).await {
            Ok((keeper, init)) => {
                Ok(Container { client, id, shape: shape.clone(), init, keeper: Mutex::new(keeper), slot })
            }
            Err(error) => {
                remove(&client, &id).await;
                Err(error)
            }
        }
    }

    /// `uid:gid` of programs.
    pub fn user(&self) -> String {
        format!("{0}:{0}", self.slot.user.host_uid)
    }

    /// Hands files to the keeper, which unpacks them where only it may write.
    pub async fn put_pristine(&mut self, files: &[(String, Vec<u8>)]) -> Result<(), SandboxError> {
        if files.is_empty() {
            return Ok(());
        }
        let what = "write the files under /pristine";
        let archive = archive::of_files(files).map_err(|e| failed(what, &e.to_string()))?;
        let keeper = self.keeper.get_mut().unwrap_or_else(PoisonError::into_inner);
        let sent = async {
            keeper.input.write_all(b"files\n").await?;
            keeper.input.write_all(&archive).await?;
            keeper.input.flush().await
        };
        sent.await.map_err(|e| failed(what, &e.to_string()))?;
        output::until_ready(&mut keeper.output, what).await
    }

    /// The limits of the run, which hold for what the program may start.
    pub async fn limit(&self) -> Result<(), SandboxError> {
        self.update(KEEPERS, KEEPER_BYTES).await
    }

    /// Room for one more exec.
    pub async fn relax(&self) -> Result<(), SandboxError> {
        self.update(KEEPERS + STARTING, KEEPER_BYTES + STARTING_BYTES).await
    }

    async fn update(&self, pids: i64, bytes: i64) -> Result<(), SandboxError> {
        let memory = Some(self.shape.memory + bytes);
        let pids_limit = Some(self.shape.pids + pids);
        let change = ContainerUpdateBody { memory, memory_swap: memory, pids_limit, ..Default::default() };
        self.client.update_container(&self.id, change).await.map_err(asked("limit a container"))
    }

    /// Kills all of its processes and removes it. A failure is left to the next sweep.
    pub async fn remove(self) {
        remove(&self.client, &self.id).await;
    }
}

async fn remove(client: &Client, id: &str) {
    let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
    match client.remove_container(id, Some(options.clone())).await {
        Err(e) if !is_absent(&e) => drop(client.remove_container(id, Some(options)).await), // once more, then a sweep
        _ => {}
    }
}

async fn attach_and_start(client: &Client, id: &str) -> Result<(AttachContainerResults, i64), SandboxError> {
    let options = AttachContainerOptionsBuilder::new().stream(true).stdin(true).stdout(true).stderr(true).build();
    let keeper = client.attach_container(id, Some(options)).await.map_err(asked("attach to a container"))?;
    client.start_container(id, None).await.map_err(asked("start a container"))?;
    let about = client.inspect_container(id, None).await.map_err(asked("look at a container"))?;
    let init = about.state.and_then(|s| s.pid).unwrap_or(0);
    Ok((keeper, init))
}

fn body(core: &Core, shape: &Shape, uid: u32) -> ContainerCreateBody {
    let memory = Some(shape.memory + KEEPER_BYTES + STARTING_BYTES);
    let host = HostConfig {
        runtime: core.runtime.clone(),
        init: Some(true),
        network_mode: Some("none".into()),
        ipc_mode: Some("private".into()),
        readonly_rootfs: Some(true),
        cap_drop: Some(vec!["ALL".into()]),
        security_opt: Some(vec!["no-new-privileges".into(), format!("seccomp={}", core.seccomp)]),
        memory,
        memory_swap: memory,
        pids_limit: Some(shape.pids + KEEPERS + STARTING),
        oom_score_adj: Some(500),
        ulimits: Some(shape.ulimits()),
        tmpfs: Some(shape.tmpfs(uid)),
        shm_size: i64::try_from(shape.shm()).ok(),
        log_config: Some(HostConfigLogConfig { typ: Some("none".into()), config: None }),
        ..Default::default()
    };
    ContainerCreateBody {
        image: Some(core.image.id.clone()),
        entrypoint: Some(["/bin/sh", "-c", KEEPER].map(String::from).to_vec()),
        user: Some(format!("{KEEPER_UID}:{KEEPER_UID}")),
        hostname: Some("sandbox".into()),
        working_dir: Some("/work".into()),
        network_disabled: Some(true),
        open_stdin: Some(true),
        stdin_once: Some(true),
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        healthcheck: Some(HealthConfig { test: Some(vec!["NONE".into()]), ..Default::default() }),
        labels: Some(owner::labels()),
        host_config: Some(host),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_the_disk_add_up_to_the_limit() {
        let mut spec = Spec::default();
        spec.limits.disk_bytes = 16 << 20;
        let shape = Shape::of(&spec);
        let sizes: u64 = shape
            .tmpfs(100_001)
            .values()
            .map(|o| o.split(',').find_map(|f| f.strip_prefix("size=")).unwrap().parse::<u64>().unwrap())
            .sum();
        assert_eq!(sizes + shape.shm(), 16 << 20);
        assert!(!shape.tmpfs(1).contains_key("/pristine"));
    }

    #[test]
    fn small_files_make_the_same_shape() {
        let with = |bytes: usize| Shape::of(&Spec { files: vec![("a".into(), vec![0; bytes])], ..Spec::default() });
        assert_eq!(with(1), with(50_000));
        assert_ne!(with(1), with(1 << 20));
        assert_ne!(with(1), Shape::of(&Spec::default()));
    }
}
