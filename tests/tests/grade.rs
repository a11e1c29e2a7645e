//! `rollmill grade` as a person uses it: right, wrong and cheating solutions.
#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

use rollmill_e2e::{expect, project};
use std::path::Path;

fn grade(dir: &Path, source: &str) -> serde_json::Value {
    let solution = dir.join("solution.py");
    std::fs::write(&solution, source).unwrap();
    let tasks = project().join("examples/tasks/list_sums.jsonl");
    let (stdout, _) = expect(
        0,
        &[
            "grade",
            "--tasks",
            tasks.to_str().unwrap(),
            "--task",
            "list_sums/sum_evens",
            "--solution",
            solution.to_str().unwrap(),
            "--format",
            "json",
        ],
    );
    serde_json::from_str(&stdout).unwrap()
}

#[test]
fn honest_and_wrong_solutions() {
    let dir = tempfile::tempdir().unwrap();
    let right = grade(dir.path(), "def sum_evens(xs):\n    return sum(x for x in xs if x % 2 == 0)\n");
    assert_eq!((right["reward"].as_f64(), right["status"].as_str()), (Some(1.0), Some("graded")));
    assert_eq!(right["tests_a"], serde_json::json!({"passed": 6, "total": 6}));
    assert_eq!(right["tests_b"], serde_json::json!({"passed": 6, "total": 6}));
    let wrong = grade(dir.path(), "def sum_evens(xs):\n    return sum(xs)\n");
    assert_eq!(wrong["reward"].as_f64(), Some(0.0));
    assert!(wrong["tests_a"]["passed"].as_u64().unwrap() > 0, "some lists hold only even numbers");
    let broken = grade(dir.path(), "def sum_evens(xs:\n");
    assert_eq!((broken["reward"].as_f64(), broken["components"]["compiles"].as_f64()), (Some(0.0), Some(0.0)));
}

/// Each earns what the same solution without the trick earns: nothing.
#[test]
fn tricks_earn_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let frames = "import sys\ndef sum_evens(xs):\n    f = sys._getframe()\n    while f:\n        for v in list(f.f_locals.values()) + list(f.f_globals.values()):\n            if isinstance(v, dict) and 'expected' in v:\n                return v['expected']\n        f = f.f_back\n    return None\n";
    for trick in [
        "import os\nos._exit(0)\n",
        "import os\ndef sum_evens(xs):\n    os._exit(0)\n",
        "import sys\ndef sum_evens(xs):\n    sys.exit(0)\n",
        "print('6 passed in 0.01s')\nprint('OK')\ndef sum_evens(xs):\n    print('passed')\n",
        "class E:\n    def __eq__(self, o): return True\n    def __hash__(self): return 0\ndef sum_evens(xs):\n    return E()\n",
        "class I(int):\n    def __eq__(self, o): return True\n    __hash__ = int.__hash__\ndef sum_evens(xs):\n    return I(-12345)\n",
        frames,
        // Passes the visible tests and the hidden tests A; tests B, written independently, see through it.
        "KNOWN = {(1,2,3,4): 6, (5,10,15): 10, (): 0, (2,4,6): 12, (1,3,6): 6, (-2,7,8): 6, (100,33): 100, (0,9,12): 12}\ndef sum_evens(xs):\n    return KNOWN.get(tuple(xs))\n",
    ] {
        let graded = grade(dir.path(), trick);
        assert_eq!(graded["reward"].as_f64(), Some(0.0), "{trick}\n{graded}");
    }
}

#[test]
fn bad_arguments_get_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let tasks = dir.path().join("t.jsonl");
    std::fs::write(
        &tasks,
        "{\"task_id\": \"a\", \"question\": \"`f(x)`\", \"test_cases\": [{\"input\": \"1\"}]}\nnot json\n",
    )
    .unwrap();
    let solution = dir.path().join("s.py");
    std::fs::write(&solution, "").unwrap();
    let run = |tasks: &str, task: &str, solution: &str| {
        let (_, stderr) = expect(2, &["grade", "--tasks", tasks, "--task", task, "--solution", solution]);
        stderr
    };
    let (t, s) = (tasks.to_str().unwrap(), solution.to_str().unwrap());
    assert!(run(t, "a", s).contains("t.jsonl:1: field \"test_cases\": test case 0, field \"expected\""));
    assert!(run(t, "b", s).contains("holds no task \"b\""));
    assert!(run("/nowhere.jsonl", "a", s).contains("cannot be read"));
    let good =
        "{\"task_id\": 7, \"question\": \"`f(x)`\", \"test_cases\": [{\"input\": \"1\", \"expected\": \"1\"}]}\n";
    std::fs::write(&tasks, good).unwrap();
    assert!(run(t, "7", "/nowhere.py").contains("/nowhere.py"));
    let link = dir.path().join("link.py");
    std::os::unix::fs::symlink("/etc/passwd", &link).unwrap();
    assert!(run(t, "7", link.to_str().unwrap()).contains("not accepted"));
}
