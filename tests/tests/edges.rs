//! The allowed edges between crates, over `cargo metadata`.
#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Crate, and the crates of this workspace it may use.
const ALLOWED: [(&str, &[&str]); 23] = [
    ("rollmill-store", &[]),
    ("rollmill-bucket", &["rollmill-store"]),
    ("rollmill-schema", &[]),
    ("rollmill-sandbox", &[]),
    ("rollmill-docker", &["rollmill-sandbox"]),
    ("rollmill-sandbox-suite", &["rollmill-sandbox", "rollmill-docker"]),
    ("rollmill-grader", &["rollmill-sandbox"]),
    ("rollmill-policy", &[]),
    ("rollmill-model", &[]),
    ("rollmill-job", &["rollmill-store", "rollmill-schema"]),
    ("rollmill-backend", &["rollmill-job", "rollmill-sandbox", "rollmill-docker", "rollmill-grader"]),
    ("rollmill-synthesize", &["rollmill-job", "rollmill-schema", "rollmill-grader"]),
    (
        "rollmill-verify",
        &["rollmill-job", "rollmill-schema", "rollmill-backend", "rollmill-sandbox", "rollmill-grader"],
    ),
    (
        "rollmill-rollout",
        &[
            "rollmill-job",
            "rollmill-schema",
            "rollmill-backend",
            "rollmill-sandbox",
            "rollmill-grader",
            "rollmill-policy",
        ],
    ),
    ("rollmill-score", &["rollmill-job", "rollmill-schema", "rollmill-backend", "rollmill-sandbox", "rollmill-grader"]),
    ("rollmill-evaluate", &["rollmill-job", "rollmill-schema"]),
    (
        "rollmill-submit",
        &[
            "rollmill-job",
            "rollmill-schema",
            "rollmill-synthesize",
            "rollmill-verify",
            "rollmill-rollout",
            "rollmill-score",
        ],
    ),
    ("rollmill-train", &["rollmill-job", "rollmill-schema", "rollmill-model", "rollmill-policy"]),
    ("rollmill-serve", &["rollmill-model", "rollmill-policy"]),
    ("rollmill-faults", &["rollmill-job", "rollmill-schema", "rollmill-store"]),
    ("rollmill-cheats", &["rollmill-sandbox", "rollmill-grader"]),
    ("rollmill-chaos", &["rollmill-job", "rollmill-schema", "rollmill-store"]),
    (
        "rollmill",
        &[
            "rollmill-job",
            "rollmill-schema",
            "rollmill-store",
            "rollmill-bucket",
            "rollmill-backend",
            "rollmill-sandbox",
            "rollmill-grader",
            "rollmill-policy",
            "rollmill-synthesize",
            "rollmill-verify",
            "rollmill-rollout",
            "rollmill-score",
            "rollmill-evaluate",
            "rollmill-submit",
        ],
    ),
];

/// External crates that some of ours must never reach, by the first part of the name.
const FORBIDDEN: [(&str, &[&str]); 7] = [
    ("rollmill-sandbox", &["tokio", "bollard"]),
    ("rollmill-docker", &["rustls", "tokio-rustls"]),
    ("rollmill-store", &["arrow", "parquet", "aws-sdk-s3"]),
    ("rollmill-bucket", &["arrow", "parquet"]),
    ("rollmill-job", &["aws-sdk-s3"]),
    ("rollmill-schema", &["object_store", "tokio"]),
    ("rollmill", &["tch", "torch-sys"]),
];

fn metadata() -> serde_json::Value {
    // crates that only other platforms use need not be here
    let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let out = Command::new("cargo")
        .args(["metadata", "--format-version", "1", "--offline", "--locked", "--filter-platform", &host])
        .current_dir(rollmill_e2e::project())
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

/// Names of normal dependencies of each crate of the workspace.
fn dependencies(metadata: &serde_json::Value) -> BTreeMap<String, BTreeSet<String>> {
    let members: BTreeSet<&str> =
        metadata["workspace_members"].as_array().unwrap().iter().map(|m| m.as_str().unwrap()).collect();
    let packages = metadata["packages"].as_array().unwrap().iter();
    let own = packages.filter(|p| members.contains(p["id"].as_str().unwrap()));
    own.map(|p| {
        let normal = p["dependencies"].as_array().unwrap().iter().filter(|d| d["kind"].is_null());
        (p["name"].as_str().unwrap().into(), normal.map(|d| d["name"].as_str().unwrap().to_string()).collect())
    })
    .collect()
}

/// Edges that are not allowed.
fn violations(found: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let mut bad = Vec::new();
    for (name, used) in found.iter().filter(|(n, _)| *n != "rollmill-e2e") {
        let Some((_, allowed)) = ALLOWED.iter().find(|(n, _)| n == name) else {
            bad.push(format!("{name} is not in the list of allowed edges"));
            continue;
        };
        let ours = used.iter().filter(|d| d.starts_with("rollmill"));
        bad.extend(ours.filter(|d| !allowed.contains(&d.as_str())).map(|d| format!("{name} -> {d}")));
    }
    bad
}

#[test]
fn crates_use_only_what_they_may() {
    let mut found = dependencies(&metadata());
    assert_eq!(violations(&found), Vec::<String>::new());
    // The control: a forbidden edge is seen.
    found.get_mut("rollmill-schema").unwrap().insert("rollmill-store".into());
    assert_eq!(violations(&found), ["rollmill-schema -> rollmill-store"]);
}

#[test]
fn no_cpu_job_reaches_libtorch() {
    let metadata = metadata();
    let nodes = metadata["resolve"]["nodes"].as_array().unwrap();
    let name_of = |id: &str| {
        let packages = metadata["packages"].as_array().unwrap();
        packages.iter().find(|p| p["id"] == id).unwrap()["name"].as_str().unwrap().to_string()
    };
    let edges: BTreeMap<String, Vec<String>> = nodes
        .iter()
        .map(|n| {
            let normal = n["deps"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|d| d["dep_kinds"].as_array().unwrap().iter().any(|k| k["kind"].is_null()));
            (n["id"].as_str().unwrap().into(), normal.map(|d| d["pkg"].as_str().unwrap().to_string()).collect())
        })
        .collect();
    for (root, forbidden) in FORBIDDEN {
        let mut open: Vec<String> = edges.keys().filter(|id| name_of(id) == root).cloned().collect();
        assert_eq!(open.len(), 1, "{root}");
        let mut seen = BTreeSet::new();
        while let Some(id) = open.pop() {
            if seen.insert(id.clone()) {
                let name = name_of(&id);
                let bad = forbidden.iter().any(|f| name == *f || (*f == "arrow" && name.starts_with("arrow-")));
                assert!(!bad, "{root} reaches {name}");
                open.extend(edges[&id].iter().cloned());
            }
        }
    }
}
