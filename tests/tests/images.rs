//! The images, built from local packages without a registry, and run as a pod would be: as nobody, on a read-only root, with the
//! rights that the manifests of `submit k8s` give.
#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

use rollmill_e2e::{model, program, project, said, skip, small_config, task_ids};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Image both are built on.
const BASE: &str = "rollmill-test-base";

/// A root file system of Debian's packages, as an image of the daemon this test may use. None without either.
fn base() -> Option<()> {
    if std::env::var_os("DOCKER_HOST").is_none() {
        return skip("docker", "DOCKER_HOST is not set");
    }
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or(home)?;
    let tree = cache.join("rollmill/rootfs/named/image-base/tree");
    if !tree.is_dir() {
        return skip("packages", "there is no root image-base (`make test` makes it from Debian's packages)");
    }
    let mut tar = Command::new("tar").arg("-C").arg(tree).args(["-c", "."]).stdout(Stdio::piped()).spawn().unwrap();
    let mut import = Command::new("docker");
    let imported = import.args(["import", "-", BASE]).stdin(tar.stdout.take().unwrap()).output().unwrap();
    assert!(tar.wait().unwrap().success());
    assert!(imported.status.success(), "{imported:?}");
    Some(())
}

/// Builds one with the programs of this test, without symbols; what it says.
fn build(kind: &str, tag: &str) -> String {
    let mut command = Command::new("bash");
    command.arg(project().join("infra/images/build.sh")).args([kind, tag]);
    command.env("BASE", BASE).env("BUILD_NETWORK", "none").env("STRIP", "1").env("ENGINE", "docker");
    let out = command.env("PROGRAMS", program("rollmill").parent().unwrap()).output().unwrap();
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{said}{}", String::from_utf8_lossy(&out.stderr));
    said
}

/// The rights a pod of a job has in the manifests, as flags of `docker run`.
fn rights(job: &str) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let config = small_config(dir.path(), None, 2);
    let claimed = format!("[cluster.k8s]\nclaim = \"runs\"\nclaim_path = {:?}\n", dir.path().display().to_string());
    std::fs::write(&config, std::fs::read_to_string(&config).unwrap() + &claimed).unwrap();
    let mut command = Command::new(program("rollmill"));
    command.args(["submit", "k8s", "--dry-run", "--rounds", "0", "--config"]).arg(&config);
    let out = command.arg("--run").arg(dir.path().join("run")).current_dir(project()).output().unwrap();
    assert!(out.status.success(), "{}", said(&out));
    let text = String::from_utf8(out.stdout).unwrap();
    let document = text.split("---\n").find(|text| text.contains(&format!("name: rm-new-{job}\n"))).unwrap();
    // The worker's, up to those that come before it.
    let worker = document.split("initContainers:").next().unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    let pod = document.split_whitespace().collect::<Vec<_>>().join(" ");
    let user = pod.split("runAsUser: ").nth(1).unwrap().split(' ').next().unwrap();
    let mut flags = vec!["--user".to_string(), format!("{user}:{user}")];
    for (setting, flag) in [
        ("readOnlyRootFilesystem: true", "--read-only"),
        ("allowPrivilegeEscalation: false", "--security-opt=no-new-privileges"),
        ("capabilities: drop: - ALL", "--cap-drop=ALL"),
        ("seccompProfile: type: Unconfined", "--security-opt=seccomp=unconfined"),
        ("appArmorProfile: type: Unconfined", "--security-opt=apparmor=unconfined"),
        ("procMount: Unmasked", "--security-opt=systempaths=unconfined"),
    ] {
        if worker.contains(setting) {
            flags.push(flag.into());
        }
    }
    flags
}

/// A container of an image, without a network, with a run and this project.
fn container(image: &str, flags: &[String], runs: &Path, words: &[&str]) -> Output {
    let mut command = Command::new("docker");
    command.args(["run", "--rm", "--network=none", "--tmpfs=/tmp:exec,size=1g,mode=1777"]).args(flags);
    command.arg("-v").arg(format!("{}:/runs", runs.display()));
    command.arg("-v").arg(format!("{}:/project:ro", project().display())).args(["-w", "/project", image]);
    command.args(words).output().unwrap()
}

/// A folder everybody may write, as a volume of a cluster is.
fn shared() -> tempfile::TempDir {
    let runs = tempfile::tempdir().unwrap();
    let opened = Command::new("chmod").arg("777").arg(runs.path()).status().unwrap();
    assert!(opened.success());
    runs
}

#[test]
fn the_cpu_image_does_a_demo_shard_as_nobody_on_a_read_only_root() {
    if base().is_none() {
        return;
    }
    eprint!("{}", build("cpu", "rollmill-test-cpu"));
    let (flags, runs) = (rights("verify"), shared());
    assert_eq!(flags.len(), 8, "a pod that opens sandboxes has these rights: {flags:?}");
    let config = small_config(runs.path(), None, 2);
    let config = format!("/runs/{}", config.file_name().unwrap().to_str().unwrap());
    let run = |flags: &[String], words: &[&str]| container("rollmill-test-cpu", flags, runs.path(), words);
    for words in [
        &["init", "--config", &config, "--run", "/runs/demo"][..],
        &["synthesize", "--run", "/runs/demo"],
        &["verify", "--run", "/runs/demo", "--shard", "0"],
    ] {
        let out = run(&flags, words);
        assert!(out.status.success(), "{words:?}: {}", said(&out));
    }
    let mut ids = task_ids(&runs.path().join("demo"));
    let all = ids.len();
    ids.sort();
    ids.dedup();
    assert!(all > 0 && ids.len() == all, "{ids:?}");

    // Every right a sandbox needs is needed: without one it is refused, not weakened.
    let checked = |flags: &[String]| said(&run(flags, &["sandbox", "check"]));
    assert!(checked(&flags).contains("level              yes"), "{}", checked(&flags));
    for flag in ["--security-opt=seccomp=unconfined", "--security-opt=systempaths=unconfined"] {
        let fewer: Vec<String> = flags.iter().filter(|f| *f != flag).cloned().collect();
        assert!(fewer.len() < flags.len() && checked(&fewer).contains("level              no"), "{flag} is not needed");
    }
    // As a definition of AWS Batch runs it, which can name no profile: nobody, in a privileged container.
    let batch = ["--user", "65532:65532", "--read-only", "--privileged"].map(String::from);
    assert!(checked(&batch).contains("level              yes"), "{}", checked(&batch));
    // Where nothing is opened, nothing is allowed.
    let mut plain = rights("synthesize");
    assert!(!plain.iter().any(|flag| flag.ends_with("unconfined")), "{plain:?}");
    plain.push("--entrypoint=touch".into());
    let wrote = run(&plain, &["/usr/local/bin/x"]);
    assert!(!wrote.status.success() && said(&wrote).contains("Read-only file system"), "{}", said(&wrote));
}

#[test]
fn the_gpu_image_serves_the_real_model_as_nobody_on_a_read_only_root() {
    let Some(model) = model() else { return };
    if base().is_none() {
        return;
    }
    eprint!("{}", build("gpu", "rollmill-test-gpu"));
    let mut flags = rights("endpoint-0000");
    flags.extend(["-v".into(), format!("{}:/model:ro", model.display())]);
    let runs = shared();
    let config = small_config(runs.path(), None, 2);
    let config = format!("/runs/{}", config.file_name().unwrap().to_str().unwrap());
    flags.push("--entrypoint=rollmill-train".into());
    let out = container("rollmill-test-gpu", &flags, runs.path(), &["--check", &config]);
    assert!(out.status.success(), "{}", said(&out));
    flags.pop();
    flags.extend(["--entrypoint=rollmill-serve".into(), "--detach".into()]);
    let started = container("rollmill-test-gpu", &flags, runs.path(), &["--model", "/model", "--port", "0"]);
    assert!(started.status.success(), "{}", said(&started));
    let id = String::from_utf8(started.stdout).unwrap().trim().to_string();
    let docker = |words: &[&str]| said(&Command::new("docker").args(words).arg(&id).output().unwrap());
    // It loads the model for as long as it takes; one that ends is gone, and its logs with it.
    let mut logs = docker(&["logs"]);
    while !logs.contains("\"listening\"") && docker(&["inspect", "-f", "{{.State.Running}}"]).contains("true") {
        std::thread::sleep(std::time::Duration::from_millis(200));
        logs = docker(&["logs"]);
    }
    docker(&["kill"]);
    assert!(logs.contains("\"listening\""), "{logs}");
}
