//! A worker takes its shards from the index that its scheduler gives it: Slurm, Kubernetes, AWS Batch.
#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

use rollmill_e2e::{expect, program, project, small_config, task_ids};
use std::process::Command;

#[test]
fn workers_of_every_scheduler_do_the_shards_of_their_index_and_no_others() {
    let dir = tempfile::tempdir().unwrap();
    let config = small_config(dir.path(), None, 2);
    let small = std::fs::read_to_string(&config).unwrap().replace("[verify]", "[verify]\nshard_size = 2");
    std::fs::write(&config, small).unwrap();
    let run = dir.path().join("run");
    let address = run.to_str().unwrap();
    expect(0, &["init", "--config", config.to_str().unwrap(), "--run", address]);
    expect(0, &["synthesize", "--run", address]);
    let parts = || {
        let (status, _) = expect(0, &["status", "--format", "json", "--run", address]);
        let status: serde_json::Value = serde_json::from_str(&status).unwrap();
        let stages = status["stages"].as_array().unwrap();
        stages.iter().find(|stage| stage["stage"] == "verify").map_or(0, |stage| stage["shards_done"].as_u64().unwrap())
    };
    // Ten candidates are five shards: 0 and 3, 1 and 4, 2.
    let indexes = [("AWS_BATCH_JOB_ARRAY_INDEX", 1, 2), ("JOB_COMPLETION_INDEX", 2, 3), ("SLURM_ARRAY_TASK_ID", 0, 5)];
    for (variable, index, after) in indexes {
        let mut command = Command::new(program("rollmill"));
        command.args(["verify", "--fold", "3", "--run", address]).env(variable, index.to_string());
        let out = command.current_dir(project()).output().unwrap();
        assert!(out.status.success(), "{variable}: {}", String::from_utf8_lossy(&out.stderr));
        assert_eq!(parts(), after, "{variable}");
    }
    assert_eq!(task_ids(&run).len(), 10);
}
