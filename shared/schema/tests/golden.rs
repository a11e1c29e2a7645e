//! Old files stay readable: every file under `golden/` is a part of some version and decodes to the JSON beside it. Files
//! are only ever added. `ROLLMILL_BLESS=1` writes the files of a new version and touches no existing one.
#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

use bytes::Bytes;
use rollmill_schema::{
    Admission, Candidate, Metric, Provenance, Rejection, Reward, Row, StepRow, Task, TaskSecret, Trajectory, decode,
    encode,
};
use std::path::PathBuf;

fn origin() -> Provenance {
    Provenance { run_id: "r".into(), round: 3, attempt: "aa".into(), code_version: "0.1.0".into(), seed: -7 }
}

fn check<R: Row + PartialEq + std::fmt::Debug>(rows: Vec<R>) {
    let folder = PathBuf::from("tests/golden");
    let file = folder.join(format!("{}-v{}.parquet", R::TABLE, R::VERSION));
    let json = file.with_extension("json");
    if std::env::var_os("ROLLMILL_BLESS").is_some() && !file.exists() {
        std::fs::write(&file, encode(&rows, "plan", "attempt").unwrap()).unwrap();
        std::fs::write(&json, serde_json::to_string_pretty(&rows).unwrap() + "\n").unwrap();
    }
    for version in 1..=R::VERSION {
        let file = folder.join(format!("{}-v{version}.parquet", R::TABLE));
        let (read, footer) = decode::<R>(&Bytes::from(std::fs::read(&file).unwrap())).unwrap();
        let expected = std::fs::read_to_string(file.with_extension("json")).unwrap();
        let expected: Vec<R> = serde_json::from_str(&expected).unwrap();
        assert_eq!(read, expected);
        assert_eq!((footer.plan.as_str(), footer.attempt.as_str()), ("plan", "attempt"));
    }

    // Today's writer: equal rows give equal bytes, and come back equal.
    let bytes = encode(&rows, "p", "a").unwrap();
    assert_eq!(bytes, encode(&rows, "p", "a").unwrap());
    let (again, _) = decode::<R>(&bytes).unwrap();
    assert_eq!(again, rows);
    assert_eq!(decode::<R>(&encode::<R>(&[], "p", "a").unwrap()).unwrap().0.len(), 0);
}

#[test]
fn candidates() {
    let full =
        Candidate { task_id: "t1".into(), tests_b: Some("[]".into()), provenance: origin(), ..Default::default() };
    check(vec![full, Candidate::default()]);
}

#[test]
fn tasks() {
    check(vec![Task {
        task_id: "t1".into(),
        instruction: "dé\u{1F600}".into(),
        provenance: origin(),
        ..Default::default()
    }]);
    check(vec![TaskSecret { task_id: "t1".into(), tests_a_count: 4, provenance: origin(), ..Default::default() }]);
}

#[test]
fn admissions() {
    check(vec![Admission {
        task_id: "t".into(),
        reason: Some("x".into()),
        provenance: origin(),
        ..Default::default()
    }]);
    check(vec![Rejection { task_id: "t".into(), reason: "x".into(), provenance: origin(), ..Default::default() }]);
}

#[test]
fn trajectories() {
    let step = StepRow { phase: "act".into(), ok: true, ms: 12, ..Default::default() };
    check(vec![
        Trajectory {
            trajectory_id: "t1.0".into(),
            steps: vec![step.clone(), step],
            token_ids: vec![1, 2, 3],
            trainable: vec![false, true, true],
            log_probs: vec![0.0, -0.5, -1.25e-7],
            provenance: origin(),
            ..Default::default()
        },
        Trajectory { error_class: Some("infrastructure".into()), ..Default::default() },
    ]);
}

#[test]
fn rewards_and_metrics() {
    check(vec![
        Reward { trajectory_id: "t1.0".into(), total: Some(0.1 + 0.2), solved: Some(false), ..Default::default() },
        Reward { status: "infrastructure".into(), ..Default::default() },
    ]);
    check(vec![Metric { name: "pass@1".into(), value: Some(0.5), ..Default::default() }, Metric::default()]);
}

#[test]
fn foreign_and_newer_files_are_refused() {
    let bytes = encode(&[Metric::default()], "p", "a").unwrap();
    let error = decode::<Task>(&bytes).unwrap_err().to_string();
    assert!(error.contains("found metrics version 1"), "{error}");
    assert!(decode::<Task>(&Bytes::from_static(b"PAR1nonsense")).is_err());
}
