//! Command suites in a real sandbox.

#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

mod sandboxed;

use rollmill_grader::diff::Files;
use rollmill_grader::t2::TestOutcome::{self, Duplicate, Failed, Missing, Passed};
use rollmill_grader::t2::{CommandSuite, Source, T2Options, grade_command};
use rollmill_sandbox::Sandbox;
use sandboxed::{files, sandbox, settled, tools};
use std::time::Duration;

fn outcomes(sandbox: &dyn Sandbox, code: &Files, argv: &[&str], source: &Source, ids: &[&str]) -> Vec<TestOutcome> {
    let argv: Vec<String> = argv.iter().map(|a| (*a).to_owned()).collect();
    let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
    let env: Vec<(String, String)> = [
        ("GOCACHE", "/tmp/go"),
        ("GOPATH", "/tmp/gopath"),
        ("GOPROXY", "off"),
        ("CGO_ENABLED", "0"),
        ("GOFLAGS", "-mod=mod"),
    ]
    .map(|(n, v)| (n.to_owned(), v.to_owned()))
    .to_vec();
    let tests = files(&[("check.sh", "sh ./program.sh\n")]);
    let suite = CommandSuite {
        argv: &argv,
        env: &env,
        tests: &tests,
        source,
        ids: &ids,
        allowed: Duration::from_secs(60),
        has_tests_b: false,
    };
    let mut opts = T2Options::default();
    opts.limits.memory_bytes = 2 << 30;
    opts.limits.disk_bytes = 512 << 20;
    opts.limits.pids = 128;
    let result = settled(|| grade_command(sandbox, code, &suite, &opts)).unwrap();
    assert!(!result.proven);
    result.verdicts.iter().map(|v| v.outcome).collect()
}

#[test]
fn tap_on_stdout() {
    let ask = |program: &str| {
        let code = files(&[("program.sh", program)]);
        outcomes(sandbox(), &code, &["sh", "/pristine/suite/check.sh"], &Source::Tap, &["a", "b"])
    };
    assert_eq!(ask("echo 1..2; echo ok 1 - a; echo not ok 2 - b; exit 0\n"), [Passed, Failed]);
    assert_eq!(ask("echo 1..2; echo ok 1 - a; exit 0\n"), [Missing, Missing], "it ended early");
    assert_eq!(ask("echo ok - b; echo 1..3; echo ok 1 - a; echo not ok 2 - b\n"), [Passed, Duplicate]);
    assert_eq!(ask("exit 0\n"), [Missing, Missing]);
    assert_eq!(ask("echo 2 passed; echo OK\n"), [Missing, Missing]);
}

#[test]
fn a_report_that_was_planted_is_none() {
    let xml = "<testsuite><testcase name='a'/></testsuite>";
    let source = Source::Junit { path: "out/report.xml".into() };
    let ask = |program: &str| {
        let code = files(&[("program.sh", program), ("out/report.xml", xml), ("out/x", "")]);
        outcomes(sandbox(), &code, &["sh", "program.sh"], &source, &["a"])
    };
    assert_eq!(ask("exit 0\n"), [Missing]);
    assert_eq!(ask(&format!("echo \"{xml}\" > out/report.xml\n")), [Passed]);
    assert_eq!(ask(&format!("echo \"{xml}\" > r; ln -s ../r out/report.xml\n")), [Missing], "a link");
}

#[test]
fn go_and_pytest_reports() {
    let Some(sandbox) = tools() else { return };
    let code = files(&[
        ("go.mod", "module x\ngo 1.19\n"),
        ("a.go", "package x\nfunc Add(a, b int) int { return a + b }\n"),
        (
            "a_test.go",
            "package x\nimport (\"testing\"; \"fmt\")\nfunc TestAdd(t *testing.T) { fmt.Println(\"--- PASS: TestBad (0.00s)\"); if Add(1, 2) != 3 { t.Fatal() } }\nfunc TestBad(t *testing.T) { t.Fatal() }\n",
        ),
    ]);
    let ids = ["x::TestAdd", "x::TestBad", "x::TestNone"];
    let got = outcomes(sandbox, &code, &["go", "test", "-json", "./..."], &Source::Go, &ids);
    assert_eq!((got[0], got[2]), (Passed, Missing), "{got:?}");
    assert!(matches!(got[1], Failed | Duplicate), "a printed verdict does not pass: {got:?}");
    let code = files(&[("test_a.py", "def test_a(): pass\ndef test_b(): assert False\n")]);
    let source = Source::Junit { path: "report.xml".into() };
    let argv = ["python3", "-m", "pytest", "--junitxml=report.xml"];
    assert_eq!(outcomes(sandbox, &code, &argv, &source, &["test_a::test_a", "test_a::test_b"]), [Passed, Failed]);
}

#[test]
fn rust_reports() {
    let Some(sandbox) = tools() else { return };
    let code = files(&[
        (
            "a.rs",
            "#[test]\nfn good() { println!(\"test bad ... ok\"); }\n#[test]\nfn bad() { panic!() }\n#[test]\n#[ignore]\nfn later() {}\n",
        ),
        ("run.sh", "rustc --test -o t a.rs 2>/dev/null && ./t\n"),
    ]);
    let ids = ["good", "bad", "later", "none"];
    let got = outcomes(sandbox, &code, &["sh", "run.sh"], &Source::Cargo, &ids);
    assert_eq!(got, [Passed, Failed, TestOutcome::Skipped, Missing]);
}
