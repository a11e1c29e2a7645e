//! Attacks on tier T2 from inside the tests' process, with the naive grader as control.

#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

mod sandboxed;

use rollmill_grader::diff::Files;
use rollmill_grader::t2::TestOutcome::{Died, Passed};
use rollmill_grader::t2::{Framework, PythonSuite, T2Options, grade_repository};
use rollmill_sandbox::{Limits, Sandbox, Spec};
use sandboxed::repository::{RIGHT, Repository, TESTS, WRONG, options, sums};
use sandboxed::{files, sandbox, settled};
use std::time::Duration;

/// (name, a calc.py, whether the naive grader must be fooled by it). None may pass a single test.
const ATTACKS: &[(&str, &str, bool)] = &[
    ("exit at import", "import os\nos._exit(0)\n", false),
    (
        "exit in the call, with the last words of a good run",
        "import os\ndef add(a, b):\n    os.write(2, b'Ran 3 tests in 0.001s\\n\\nOK\\n')\n    os._exit(0)\n",
        true,
    ),
    ("skip out of product code", "import unittest\ndef add(a, b):\n    raise unittest.SkipTest('later')\n", true),
    (
        "tests do not run",
        "import unittest\nunittest.TestCase.run = lambda self, result=None: result\ndef add(a, b): return -1\n",
        true,
    ),
    (
        "tests succeed unrun",
        "import unittest\ndef run(self, result=None):\n    result.startTest(self)\n    result.addSuccess(self)\n    result.stopTest(self)\nunittest.TestCase.run = run\ndef add(a, b): return -1\n",
        true,
    ),
    (
        "results add no failures",
        "import unittest\nfor n in ('addFailure', 'addError', 'addSubTest'):\n    setattr(unittest.TestResult, n, lambda self, test, *a: None)\n    setattr(unittest.TextTestResult, n, lambda self, test, *a: None)\ndef add(a, b): return -1\n",
        true,
    ),
    (
        "asserts are empty",
        "import unittest\nfor n in dir(unittest.TestCase):\n    if n.startswith('assert') and n != 'assertRaises': setattr(unittest.TestCase, n, lambda self, *a, **k: None)\nclass Any(int):\n    def __eq__(self, o): return True\ndef add(a, b):\n    return Any(a) + (b if isinstance(b, str) else 0) if isinstance(b, str) else Any()\n",
        true,
    ),
    (
        "failures are skips",
        "import unittest\nunittest.TestCase.failureException = unittest.SkipTest\nclass Any:\n    def __eq__(self, o): return True\ndef add(a, b):\n    if b == 'x': raise TypeError\n    return Any()\n",
        true,
    ),
    (
        "equal to everything",
        "class Any:\n    def __eq__(self, o): return True\n    def __hash__(self): return 2\ndef add(a, b):\n    if b == 'x': raise TypeError\n    return Any()\n",
        true,
    ),
    (
        "test methods emptied when their class is made",
        "import unittest\ndef empty(cls, **k):\n    cls._classSetupFailed, cls._class_cleanups = False, []\n    for n in list(vars(cls)):\n        if n.startswith('test'): setattr(cls, n, lambda self: None)\nunittest.TestCase.__init_subclass__ = classmethod(empty)\n",
        true,
    ),
    (
        "the report forged with the word of the runner's frame",
        "import json, os, sys\nframe = sys._getframe()\nword = None\nwhile frame:\n    word = frame.f_locals.get('word', word)\n    frame = frame.f_back\nif word:\n    for fd in range(3, 256):\n        try: os.write(fd, json.dumps([word, 'passed', '']).encode())\n        except OSError: pass\n    os._exit(0)\ndef add(a, b): return -1\n",
        false,
    ),
    (
        "the report forged without it",
        "import os\nfor fd in range(3, 256):\n    try: os.write(fd, b'[\"\", \"passed\", \"\"]')\n    except OSError: pass\ndef add(a, b): return -1\n",
        false,
    ),
    ("the runner killed", "import os\nos.kill(os.getppid(), 9)\n", false),
    (
        "AssertionError is something else",
        "import builtins\nclass Quiet(Exception): pass\nbuiltins.AssertionError = Quiet\ndef add(a, b): return -1\n",
        false,
    ),
    (
        "exit code by atexit",
        "import atexit, os\natexit.register(lambda: (os.write(2, b'\\nOK\\n'), os._exit(0)))\ndef add(a, b): return -1\n",
        true,
    ),
    (
        "excepthook and trace",
        "import os, sys\nsys.excepthook = lambda *a: os._exit(0)\nsys.settrace(lambda *a: None)\ndef add(a, b): return -1\n",
        false,
    ),
];

/// Files beside the wrong solution.
const POISON: &[(&str, &str, &str)] = &[
    ("shadowed unittest", "unittest/__init__.py", "import sys\nprint('OK', file=sys.stderr)\nsys.exit(0)\n"),
    ("shadowed json", "json.py", "import os\nos._exit(0)\n"),
    ("sitecustomize", "sitecustomize.py", "import os\nos._exit(0)\n"),
    ("usercustomize", "usercustomize.py", "import os\nos._exit(0)\n"),
    ("path configuration", "x.pth", "import os; os._exit(0)\n"),
    (
        "edited tests",
        "tests/test_calc.py",
        "import unittest\nclass Sums(unittest.TestCase):\n    def test_add(self): pass\n    test_many = test_error = test_add\n",
    ),
    ("own package of tests", "tests/__init__.py", "import os\nos._exit(0)\n"),
];

/// The control: the tests in the solution's folder, by their own main program, judged by exit code and last words.
fn naive_pays(code: &Files) -> bool {
    let mut all = sums().tests;
    all.extend(code.clone());
    let spec = Spec {
        argv: ["python3", "-m", "unittest", "tests.test_calc"].map(str::to_owned).to_vec(),
        files: all.into_iter().collect(),
        limits: Limits { wall: Duration::from_secs(60), ..Limits::default() },
        ..Spec::default()
    };
    let done = sandbox().run(&spec).unwrap();
    let last = String::from_utf8_lossy(&done.stderr).trim_end().lines().last().unwrap_or("").to_owned();
    done.facts.exit == Some(0) && last.starts_with("OK")
}

#[test]
fn attacks_earn_what_the_wrong_solution_earns() {
    let sandbox = sandbox();
    for (name, source, _) in ATTACKS {
        let result = sums().asked(sandbox, &files(&[("calc.py", source)])).unwrap();
        assert_eq!(result.passed(), 0, "{name}: {result:?}");
    }
    for (name, path, text) in POISON {
        let result = sums().asked(sandbox, &files(&[("calc.py", WRONG), (path, text)])).unwrap();
        assert_eq!(result.passed(), 0, "{name}: {result:?}");
    }
}

/// A sandbox whose processes are all stopped is ended as idle, long before its wall clock; one that somebody in it continues
/// goes on, though it was stopped for longer than the watcher waits.
#[test]
fn what_nobody_can_continue_is_ended() {
    let run = |script: &str| {
        let spec = Spec {
            argv: ["sh", "-c", script].map(str::to_owned).to_vec(),
            limits: Limits { wall: Duration::from_secs(600), ..Limits::default() },
            ..Spec::default()
        };
        sandbox().run(&spec).unwrap().facts
    };
    let facts = run("kill -STOP $$; echo continued");
    assert!(facts.timed_out && facts.idle && facts.wall < Duration::from_secs(600), "{facts:?}");
    let facts = run("(sleep 5; kill -CONT $$) & kill -STOP $$; wait");
    assert!(facts.exit == Some(0) && !facts.timed_out, "{facts:?}");
}

#[test]
fn a_runner_that_is_stopped_reports_nothing() {
    let stops = "import os, signal\nos.kill(os.getppid(), signal.SIGSTOP)\ndef add(a, b): return a + b\n";
    let repository = Repository::unittest(TESTS, &["Sums.test_add"]);
    let result = repository.asked_in(sandbox(), &files(&[("calc.py", stops)]), Duration::from_secs(1)).unwrap();
    assert_eq!(result.verdicts[0].outcome, Died, "{result:?}");
}

#[test]
fn the_naive_grader_is_fooled() {
    assert!(!naive_pays(&files(&[("calc.py", WRONG)])));
    assert!(naive_pays(&files(&[("calc.py", RIGHT)])));
    for (name, source, fools) in ATTACKS {
        assert!(!*fools || naive_pays(&files(&[("calc.py", source)])), "{name} does not fool the control");
    }
    let poisoned = |at: usize| naive_pays(&files(&[("calc.py", WRONG), (POISON[at].1, POISON[at].2)]));
    assert!(poisoned(0) && poisoned(5), "a shadowed framework and edited tests fool the control");
}

#[test]
fn without_twins_some_attacks_would_pay() {
    let sandbox = sandbox();
    let repository = sums();
    let suite = PythonSuite {
        framework: Framework::Unittest,
        tests: &repository.tests,
        ids: &repository.ids,
        import_paths: &["".to_owned()],
        site: &Files::new(),
        without_twin: &[],
        has_tests_b: true,
    };
    let opts = T2Options { twins: false, ..options() };
    let paid: Vec<&str> = ATTACKS
        .iter()
        .filter(|(_, source, _)| {
            let code = files(&[("calc.py", source)]);
            settled(|| grade_repository(sandbox, &code, &suite, &opts)).unwrap().passed() > 0
        })
        .map(|(name, ..)| *name)
        .collect();
    for name in ["tests succeed unrun", "equal to everything", "test methods emptied when their class is made"] {
        assert!(paid.contains(&name), "{name} is caught without twins, so they show nothing: {paid:?}");
    }
}

#[test]
fn a_thief_of_expectations_passes_and_the_result_is_unproven() {
    // What this tier does not promise: what is wanted is a constant of the caller.
    let thief = "import sys\ndef add(a, b):\n    if isinstance(b, str): raise TypeError\n    frame = sys._getframe(1)\n    if frame.f_code.co_name == 'test_add':\n        return 3 if a == 1 else 4\n    return -1\n";
    let result = sums().asked(sandbox(), &files(&[("calc.py", thief)])).unwrap();
    assert_eq!(result.verdicts[0].outcome, Passed);
    assert!(!result.proven);
}
