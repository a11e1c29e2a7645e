//! Whose container it is, as labels on it, and the removal of those whose owner is gone.
//!
//! What must hold: a container is swept only when the process that made it cannot be alive: it was on this machine, and this
//! machine was started again since, or its pid is free or has another start time.
use std::collections::HashMap;
use std::fs;

use bollard::Docker;
use bollard::query_parameters::{ListContainersOptionsBuilder, RemoveContainerOptionsBuilder};
use rollmill_sandbox::SandboxError;

use crate::error::asked;

const SANDBOX: &str = "rollmill.sandbox";
const PROCESS: &str = "rollmill.owner.process";
const MACHINE: &str = "rollmill.owner.machine";
const BOOT: &str = "rollmill.owner.boot";

/// The labels of this process's containers.
pub fn labels() -> HashMap<String, String> {
    let process = format!("{} {} {}", pid_namespace(), std::process::id(), start_time(std::process::id()).unwrap_or(0));
    let all = [(SANDBOX, "1".to_string()), (PROCESS, process), (MACHINE, machine()), (BOOT, boot())];
    all.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
}

/// Removes the containers of workers that are gone; returns how many.
pub async fn sweep(client: &Docker) -> Result<usize, SandboxError> {
    let filters = HashMap::from([("label", vec![format!("{SANDBOX}=1")])]);
    let options = ListContainersOptionsBuilder::new().all(true).filters(&filters).build();
    let found = client.list_containers(Some(options)).await.map_err(asked("list containers"))?;
    let mut removed = 0;
    for container in found {
        if let (Some(id), true) = (&container.id, is_gone(&container.labels.unwrap_or_default())) {
            let force = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
            // another worker may be sweeping too
            removed += usize::from(client.remove_container(id, Some(force)).await.is_ok());
        }
    }
    Ok(removed)
}

fn is_gone(labels: &HashMap<String, String>) -> bool {
    let label = |name: &str| labels.get(name).map_or("", String::as_str);
    if label(MACHINE) != machine() {
        return false;
    }
    if label(BOOT) != boot() {
        return true;
    }
    let fields: Vec<&str> = label(PROCESS).split(' ').collect();
    match fields[..] {
        // numbers of another pid namespace say nothing here
        [namespace, pid, start] if namespace == pid_namespace() => {
            pid.parse().ok().and_then(start_time).map(|s| s.to_string()).as_deref() != Some(start)
        }
        _ => false,
    }
}

/// When a process started, in clock ticks since the machine did; field 22 of proc(5).
fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(19)?.parse().ok()
}

fn pid_namespace() -> String {
    fs::read_link("/proc/self/ns/pid").map(|p| p.display().to_string()).unwrap_or_default()
}

fn machine() -> String {
    let read = |path: &str| fs::read_to_string(path).ok().map(|t| t.trim().to_string()).filter(|t| !t.is_empty());
    read("/etc/machine-id").or_else(|| read("/proc/sys/kernel/hostname")).unwrap_or_default()
}

fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|t| t.trim().to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_cannot_be_alive_is_gone() {
        let with = |name: &str, value: String| {
            let mut labels = labels();
            labels.insert(name.into(), value);
            labels
        };
        assert!(!is_gone(&labels()), "this process lives");
        assert!(is_gone(&with(PROCESS, format!("{} {} 1", pid_namespace(), std::process::id()))), "a pid used again");
        assert!(is_gone(&with(PROCESS, format!("{} 4194305 1", pid_namespace()))), "no such pid");
        assert!(is_gone(&with(BOOT, "earlier".into())));
        assert!(!is_gone(&with(PROCESS, "pid:[1] 4194305 1".into())), "another namespace's numbers");
        assert!(!is_gone(&with(MACHINE, "elsewhere".into())));
        assert!(!is_gone(&HashMap::new()));
    }
}
