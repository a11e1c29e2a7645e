//! `rollmill init` on a bucket of the real S3 server, as a user meets it.
#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

use rollmill_e2e::{bucket, program};
use std::io::{Read, Write};
use std::process::Command;

/// `rollmill` with the server's variables, changed by `env`; an empty value unsets. Exit code, output, errors.
fn rollmill(args: &[&str], env: &[(&str, &str)]) -> (Option<i32>, String, String) {
    let mut command = Command::new(program("rollmill"));
    command.args(args);
    for (name, value) in env {
        if value.is_empty() {
            command.env_remove(name)
        } else {
            command.env(name, value)
        };
    }
    let out = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (out.status.code(), text(out.stdout), text(out.stderr))
}

/// A folder with a configuration that needs no model, and the address of a run in a bucket that nobody has made.
fn fresh() -> (tempfile::TempDir, String, String) {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("empty.toml");
    std::fs::write(&config, "").unwrap();
    let unique = dir.path().file_name().unwrap().to_str().unwrap().trim_start_matches('.').to_lowercase();
    let config = config.to_str().unwrap().to_string();
    (dir, config, format!("s3://init-{unique}/exp1"))
}

/// The answer on a line of the report.
fn answer<'a>(report: &'a str, name: &str) -> &'a str {
    let line = report.lines().find(|l| l.starts_with(name)).unwrap_or_else(|| panic!("no {name}\n{report}"));
    line[name.len()..].split_whitespace().next().unwrap_or_default()
}

/// The command ended with `code` and one line that holds `said`.
fn one_line((code, stdout, stderr): (Option<i32>, String, String), expected: i32, said: &str) {
    assert_eq!(code, Some(expected), "{stdout}{stderr}");
    assert!(stderr.lines().count() == 1 && stderr.contains(said), "{stderr}");
}

#[test]
fn a_bucket_is_made_and_a_second_init_changes_nothing() {
    if bucket().is_none() {
        return;
    }
    let (_dir, config, address) = fresh();
    one_line(rollmill(&["init", "--config", &config, &address], &[]), 2, "--create-bucket");
    one_line(rollmill(&["status", "--run", &address], &[]), 2, "holds no run");
    let (code, first, stderr) = rollmill(&["init", "--config", &config, &address, "--create-bucket"], &[]);
    assert_eq!(code, Some(0), "{stderr}");
    for right in ["list", "read", "create-only write", "delete", "multipart", "bucket settings"] {
        assert_eq!(answer(&first, right), "yes", "{first}");
    }
    let (code, second, stderr) = rollmill(&["init", "--config", &config, "--run", &address], &[]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(!second.contains("made now") && !second.contains("added"), "{second}");
    // The same run: its id is random, and stands in the last line.
    assert_eq!(first.lines().last(), second.lines().last());
    // Given twice, and given for a folder.
    let twice = ["init", "--config", &config, &address, "--run", "s3://elsewhere/x"];
    one_line(rollmill(&twice, &[]), 2, "given twice");
    let (code, ..) = rollmill(&["init", "--config", &config, &address], &[("ROLLMILL_RUN", "s3://elsewhere/x")]);
    assert_eq!(code, Some(0), "the command line wins over the variable");
    one_line(rollmill(&["init", "--config", &config, "nowhere", "--create-bucket"], &[]), 2, "for s3:// addresses");
}

#[test]
fn what_is_wrong_with_credentials_is_one_line() {
    if bucket().is_none() {
        return;
    }
    let (dir, config, address) = fresh();
    let init = ["init", "--config", &config, &address];
    let make = [&init[..], &["--create-bucket"]].concat();
    assert_eq!(rollmill(&make, &[]).0, Some(0));
    one_line(rollmill(&init, &[("AWS_SECRET_ACCESS_KEY", "wrong")]), 2, "denied");
    one_line(rollmill(&init, &[("AWS_ACCESS_KEY_ID", "nobody")]), 2, "denied");
    // None at all, and half of them: for every command, before anything is asked of the network.
    let none = [("AWS_ACCESS_KEY_ID", ""), ("AWS_SECRET_ACCESS_KEY", "")];
    one_line(rollmill(&init, &none), 2, "no credentials; set AWS_ACCESS_KEY_ID");
    one_line(rollmill(&["status", "--run", &address], &none), 2, "no credentials; set AWS_ACCESS_KEY_ID");
    one_line(rollmill(&["status", "--run", &address], &none[..1]), 2, "AWS_ACCESS_KEY_ID) is missing");
    // Keys that may only read.
    let reader = std::env::var("ROLLMILL_TEST_S3_READER").unwrap();
    let (id, secret) = reader.split_once(':').unwrap();
    let reader = [("AWS_ACCESS_KEY_ID", id), ("AWS_SECRET_ACCESS_KEY", secret)];
    let (code, report, stderr) = rollmill(&init, &reader);
    assert_eq!((code, stderr.lines().count()), (Some(2), 1), "{report}{stderr}");
    assert!(stderr.contains("create-only write") && stderr.contains("ask the bucket's owner"), "{stderr}");
    for (right, expected) in [("list", "yes"), ("read", "yes"), ("create-only write", "no"), ("delete", "no")] {
        assert_eq!(answer(&report, right), expected, "{report}");
    }
    // Reading is enough to look.
    assert_eq!(rollmill(&["status", "--run", &address], &reader).0, Some(0));
    // Temporary keys, from an agent as EKS has it.
    let token = dir.path().join("token");
    std::fs::write(&token, "token").unwrap();
    let agent = agent();
    let role = [
        none[0],
        none[1],
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", &agent),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", token.to_str().unwrap()),
    ];
    let (code, report, stderr) = rollmill(&init, &role);
    assert_eq!(code, Some(0), "{report}{stderr}");
}

/// Answers every request with the server's keys, as the pod agent of EKS does; its address.
fn agent() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/credentials", listener.local_addr().unwrap());
    let keys = serde_json::json!({
        "AccessKeyId": std::env::var("AWS_ACCESS_KEY_ID").unwrap(),
        "SecretAccessKey": std::env::var("AWS_SECRET_ACCESS_KEY").unwrap(),
        "Token": "", "Expiration": "2100-01-01T00:00:00Z", "RoleArn": "arn:test", "Code": "Success",
    })
    .to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = Vec::new();
            let mut byte = [0u8; 1];
            while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
                request.push(byte[0]);
            }
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length:";
            let _ = write!(stream, "{head} {}\r\n\r\n{keys}", keys.len());
        }
    });
    address
}
