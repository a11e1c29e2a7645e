//! `terraform/`: its layout, and what its policies say, by the real `terraform` without a network. What needs the provider of AWS is
//! tested where `ROLLMILL_TERRAFORM_PLUGINS` names a folder that `terraform providers mirror` filled.
#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

use rollmill_e2e::{project, said, skip};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program; none where it is not installed.
fn terraform() -> Option<()> {
    match Command::new("terraform").arg("-version").output() {
        Ok(_) => Some(()),
        Err(_) => skip("terraform", "there is no terraform"),
    }
}

/// A copy of a module that may be changed and worked in.
fn copy(module: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("module");
    let copied = Command::new("cp").arg("-r").arg(project().join(module)).arg(&to).status().unwrap();
    assert!(copied.success());
    let _ = std::fs::remove_dir_all(to.join(".terraform"));
    (dir, to)
}

/// What `terraform` says in a folder, and whether all was well.
fn run(folder: &Path, args: &[&str]) -> (bool, String) {
    let mut command = Command::new("terraform");
    command.args(args).current_dir(folder).env("CHECKPOINT_DISABLE", "1").env("TF_IN_AUTOMATION", "1");
    let out = command.output().unwrap();
    (out.status.success(), said(&out))
}

fn change(file: &Path, from: &str, to: &str) {
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.contains(from), "{from} is not in {}", file.display());
    std::fs::write(file, text.replace(from, to)).unwrap();
}

#[test]
fn files_are_laid_out_as_terraform_does_it() {
    if terraform().is_none() {
        return;
    }
    let (_dir, module) = copy("terraform");
    let (right, said) = run(&module, &["fmt", "-check", "-recursive", "-diff"]);
    assert!(right, "{said}");
    change(&module.join("outputs.tf"), "  value", " value");
    assert!(!run(&module, &["fmt", "-check", "-recursive"]).0, "a crooked file passed");
}

#[test]
fn policies_say_what_they_must_and_tests_find_those_that_do_not() {
    if terraform().is_none() {
        return;
    }
    let (_dir, module) = copy("terraform/modules/rights");
    for args in [["init", "-no-color"], ["validate", "-no-color"], ["test", "-no-color"]] {
        let (right, said) = run(&module, &args);
        assert!(right, "{said}");
    }
    let controls = [
        (
            "rights.json",
            r#""reads": ["tables/tasks/*", "tables/trajectories/*", "checkpoints/*"]"#,
            r#""reads": ["tables/task_secrets/*"]"#,
            "rollout_cannot_read_secrets",
        ),
        ("rights.json", r#""sees_secrets": ["#, r#""sees_secrets": ["rollout", "#, "rollout_cannot_read_secrets"),
        (
            "rights.json",
            r#""writes": ["tables/rewards/*","#,
            r#""writes": ["tables/tasks/*","#,
            "jobs_write_only_their_own",
        ),
        ("main.tf", r#""s3:AbortMultipartUpload""#, r#""s3:DeleteObject""#, "jobs_write_only_their_own"),
        ("main.tf", r#""${local.run}/tables/*", "#, "", "records_are_created_once"),
        ("main.tf", r#" if other != job"#, r#" if other == job"#, "nobody_reads_chunks_of_others"),
        (
            "main.tf",
            r#""${local.run}/control/${job}*/chunks/*""#,
            r#""${local.run}/*""#,
            "nobody_reads_chunks_of_others",
        ),
        ("main.tf", r#""s3:if-none-match" = "true""#, r#""s3:if-none-match" = "false""#, "records_are_created_once"),
    ];
    for (file, from, to, test) in controls {
        let (_dir, broken) = copy("terraform/modules/rights");
        change(&broken.join(file), from, to);
        assert!(run(&broken, &["init", "-no-color"]).0);
        let (right, said) = run(&broken, &["test", "-no-color"]);
        let failed = said.lines().any(|line| line.contains(test) && line.ends_with("fail"));
        assert!(!right && failed, "{file}: {from} -> {to} was found by no test\n{said}");
    }
}

#[test]
fn the_whole_is_valid_and_its_own_tests_pass_with_a_mocked_provider() {
    if terraform().is_none() {
        return;
    }
    let Some(plugins) = std::env::var_os("ROLLMILL_TERRAFORM_PLUGINS") else {
        skip::<()>("terraform-providers", "ROLLMILL_TERRAFORM_PLUGINS names no folder of `terraform providers mirror`");
        return;
    };
    for module in ["terraform", "terraform/examples/complete"] {
        let (_dir, copy) = copy("terraform");
        let folder = copy.join(module.trim_start_matches("terraform").trim_start_matches('/'));
        let plugins = format!("-plugin-dir={}", Path::new(&plugins).display());
        for args in [&["init", "-no-color", &plugins][..], &["validate", "-no-color"], &["test", "-no-color"]] {
            let (right, said) = run(&folder, args);
            assert!(right, "{module}: {said}");
        }
    }
}
