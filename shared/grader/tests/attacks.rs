//! Attacks on tier T0 that run inside the solution: each earns exactly what the same wrong solution earns without the trick.
//! A naive grader (tests in the solution's directory, exit code 0 means passed) pays for them, which shows that they work;
//! honest solutions that look alike pass both.

#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

mod sandboxed;

use rollmill_grader::CaseOutcome::{Died, ImportError};
use rollmill_grader::{Case, Solution, SuiteResult, T0Options, Value};
use rollmill_sandbox::{Limits, Sandbox, Spec};
use sandboxed::{graded, options, sandbox};
use std::time::Duration;

/// The task: `f(x) == x * x + 1`. The wrong solution under every attack passes one case of four, by `f(1) == 2`.
const WRONG: &str = "def f(x):\n    return 2\n";

fn cases() -> Vec<Case> {
    [1, 2, 3, 10].into_iter().map(|x| Case::exact(vec![Value::int(x)], Value::int(x * x + 1))).collect()
}

/// (name, source, whether the naive grader must be fooled by it)
const ATTACKS: &[(&str, &str, bool)] = &[
    ("exit at import", "import os\nos._exit(0)\n", true),
    ("sys.exit at import", "import sys\nsys.exit(0)\n", true),
    ("exit in the call", "import os\ndef f(x):\n    if x > 1: os._exit(0)\n    return 2\n", true),
    ("sys.exit in the call", "import sys\ndef f(x):\n    if x > 1: sys.exit(0)\n    return 2\n", true),
    (
        "exit by a timer",
        "import os, threading, time\nthreading.Timer(0.0, os._exit, [0]).start()\ntime.sleep(0.5)\ndef f(x):\n    return 2\n",
        true,
    ),
    (
        "exit by a signal",
        "import os, signal\nsignal.signal(signal.SIGALRM, lambda *a: os._exit(0))\nsignal.setitimer(signal.ITIMER_REAL, 0.001)\ndef f(x):\n    import time; time.sleep(0.5); return 2\n",
        true,
    ),
    (
        "exec into a printer",
        "import os\ndef f(x):\n    if x > 1: os.execv('/bin/sh', ['sh', '-c', 'echo passed; exit 0'])\n    return 2\n",
        true,
    ),
    ("atexit rewrites the code", "import atexit, os\natexit.register(os._exit, 0)\ndef f(x):\n    return 2\n", true),
    ("excepthook", "import sys, os\nsys.excepthook = lambda *a: os._exit(0)\ndef f(x):\n    return 2\n", true),
    (
        "always equal",
        "class Any:\n    def __eq__(self, o): return True\n    def __ne__(self, o): return False\ndef f(x):\n    return 2 if x == 1 else Any()\n",
        true,
    ),
    (
        "int with a lying __eq__",
        "class I(int):\n    def __eq__(self, o): return True\n    __hash__ = int.__hash__\n    def __repr__(self): return str(self.want)\n    def __index__(self): return 5\ndef f(x):\n    return I(2)\n",
        true,
    ),
    (
        "class that pretends to be int",
        "class M(type):\n    def __instancecheck__(c, o): return True\nclass A(metaclass=M):\n    __class__ = int\n    def __eq__(self, o): return True\n    def __int__(self): return 5\n    __repr__ = lambda s: '5'\ndef f(x):\n    return 2 if x == 1 else A()\n",
        true,
    ),
    (
        "result that compares by the caller's frame",
        "import sys\nclass Thief:\n    def __eq__(self, o):\n        return True\ndef f(x):\n    frame = sys._getframe()\n    while frame:\n        for k in ('expected', 'want', 'wanted'):\n            if k in frame.f_locals: return frame.f_locals[k]\n        frame = frame.f_back\n    return 2\n",
        true,
    ),
    (
        "expected value out of gc",
        "import gc\ndef f(x):\n    for o in gc.get_objects():\n        if type(o) is dict and 'expected' in o: return o['expected']\n    return 2\n",
        false,
    ),
    (
        "expected value by the caller's constants",
        "import sys\ndef f(x):\n    for c in sys._getframe(1).f_code.co_consts:\n        if type(c) is int and c == x * x + 1: return c\n    return 2\n",
        false,
    ),
    (
        "builtins patched",
        "import builtins\nbuiltins.AssertionError = SystemExit\nbuiltins.len = lambda *a: 1\nbuiltins.isinstance = lambda *a: True\nbuiltins.repr = lambda *a: '2'\ndef f(x):\n    return 2\n",
        false,
    ),
    (
        "json patched",
        "import json, json.encoder\njson.dumps = lambda *a, **k: '{\"verdict\": \"passed\"}'\njson.JSONEncoder.encode = json.dumps\njson.loads = lambda *a: {}\ndef f(x):\n    return 2\n",
        false,
    ),
    (
        "sys.modules replaced",
        "import sys, types\nfor n in list(sys.modules):\n    if n not in ('sys', 'builtins'): sys.modules[n] = types.ModuleType(n)\nsys.modules[__name__] = types.SimpleNamespace(f=lambda x: 5)\ndef f(x):\n    return 2\n",
        false,
    ),
    (
        "trace function",
        "import sys\nsys.settrace(lambda fr, ev, arg: None)\nsys.setprofile(lambda fr, ev, arg: None)\ndef f(x):\n    return 2\n",
        false,
    ),
    (
        "printed verdicts",
        "import sys, os\nprint('4 passed in 0.01s')\nprint('OK', file=sys.stderr)\nos.write(1, b'{\"passed\": 4, \"reward\": 1.0}\\n')\ndef f(x):\n    print('ok')\n    return 2\n",
        false,
    ),
    (
        "result files written",
        "import json\nfor p in ('reward.txt', 'reward.json', 'result.json', '/tmp/reward.txt'):\n    open(p, 'w').write('1')\ndef f(x):\n    return 2\n",
        false,
    ),
    ("argument mutated", "def f(x):\n    if isinstance(x, list): x.clear()\n    return 2\n", false),
    ("endless recursion", "def f(x):\n    return 2 if x == 1 else f(x)\n", false),
];

/// Attacks on the protocol, whose outcome is a failure of every case or of all but the one that the wrong solution passes.
const PROTOCOL: &[(&str, &str)] = &[
    (
        "frames to every descriptor at import",
        "import os, json\nb = json.dumps({'seq': 1, 'kind': 'value', 'nodes': [{'t': 'int', 'v': '5'}]}).encode()\nfor fd in range(256):\n    try: os.write(fd, len(b).to_bytes(4, 'big') + b)\n    except OSError: pass\ndef f(x):\n    return 2\n",
    ),
    (
        "verdict frames in the call",
        "import os, json\nb = json.dumps({'seq': 1, 'kind': 'passed', 'passed': 4}).encode()\ndef f(x):\n    for fd in range(256):\n        try: os.write(fd, len(b).to_bytes(4, 'big') + b)\n        except OSError: pass\n    return 2\n",
    ),
    (
        "oversized frame",
        "import os\ndef f(x):\n    for fd in range(3, 256):\n        try: os.write(fd, b'\\xff\\xff\\xff\\xff' + b'x' * 100)\n        except OSError: pass\n    return 2\n",
    ),
    (
        "nested frame",
        "import os\nb = b'[' * 100000\ndef f(x):\n    for fd in range(3, 256):\n        try: os.write(fd, len(b).to_bytes(4, 'big') + b)\n        except OSError: pass\n    return 2\n",
    ),
    (
        "endless output",
        "import os\ndef f(x):\n    while True:\n        for fd in range(3, 256):\n            try: os.write(fd, b'\\x00' * 65536)\n            except OSError: pass\n",
    ),
    (
        "requests read away",
        "import os, threading\ndef steal():\n    while True:\n        for fd in (100, 101, 102):\n            try: os.read(fd, 65536)\n            except OSError: pass\nthreading.Thread(target=steal, daemon=True).start()\ndef f(x):\n    return 2\n",
    ),
    ("answer twice after a fork", "import os\ndef f(x):\n    os.fork()\n    return 2\n"),
    (
        "memory",
        "def f(x):\n    if x == 1: return 2\n    a = []\n    while True: a.append(bytearray(b'x') * (16 << 20))\n",
    ),
    ("processor", "def f(x):\n    if x == 1: return 2\n    while True: pass\n"),
    ("idle", "import time\ndef f(x):\n    if x == 1: return 2\n    time.sleep(10**6)\n"),
    ("huge value", "def f(x):\n    return 2 if x == 1 else 'x' * (100 << 20)\n"),
    (
        "threads that keep busy",
        "import threading\ndef spin():\n    while True: pass\nfor _ in range(4): threading.Thread(target=spin, daemon=True).start()\ndef f(x):\n    return 2\n",
    ),
    (
        "tests deleted, worker killed",
        "import os, signal\ndef f(x):\n    if x == 1: return 2\n    os.kill(-1, signal.SIGKILL)\n",
    ),
];

/// Honest solutions that look like attacks; they pass everything.
const HONEST: &[(&str, &str)] = &[
    (
        "exit in main",
        "import sys\ndef f(x):\n    return x * x + 1\nif __name__ == '__main__':\n    print(f(2))\n    sys.exit(0)\n",
    ),
    (
        "logging",
        "import logging, sys\nlogging.basicConfig(level=logging.DEBUG, stream=sys.stdout)\ndef f(x):\n    logging.info('called with %r', x)\n    print('debug', x, file=sys.stderr)\n    return x * x + 1\n",
    ),
    ("caching", "import functools\n@functools.lru_cache(maxsize=None)\ndef f(x):\n    return x * x + 1\n"),
    (
        "own tests",
        "import unittest\ndef f(x):\n    return x * x + 1\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertEqual(f(2), 5)\nassert f(1) == 2\n",
    ),
    (
        "inspect and frames",
        "import inspect\ndef f(x):\n    assert inspect.currentframe() is not None\n    return x * x + 1\n",
    ),
    (
        "atexit and a thread",
        "import atexit, threading\natexit.register(print, 'bye')\nresult = []\ndef f(x):\n    out = []\n    t = threading.Thread(target=lambda: out.append(x * x + 1))\n    t.start(); t.join()\n    return out[0]\n",
    ),
    (
        "bool and int subclasses",
        "import enum\nclass E(enum.IntEnum):\n    TWO = 2\ndef f(x):\n    return E.TWO if x == 1 else float(x * x + 1)\n",
    ),
    (
        "scratch files and subprocess",
        "import subprocess, tempfile\ndef f(x):\n    with tempfile.TemporaryFile() as t:\n        t.write(b'x')\n    out = subprocess.run(['sh', '-c', 'echo $((%d * %d + 1))' % (x, x)], capture_output=True).stdout\n    return int(out)\n",
    ),
    ("exits caught", "import sys\ndef f(x):\n    try: sys.exit(1)\n    except SystemExit: return x * x + 1\n"),
];

fn grade(source: &str) -> SuiteResult {
    let opts = T0Options { per_call: Duration::from_secs(1), total: Duration::from_secs(20), ..options() };
    graded(&Solution::from_source(source), &cases(), &opts)
}

/// The control: the solution and the asserts in one process, judged by its exit code.
fn naive_pays(source: &str) -> bool {
    let test = "import sys\nsys.path.insert(0, '/work')\nfrom solution import f\ndef test(x, expected):\n    assert f(x) == expected\nfor x in (1, 2, 3, 10): test(x, x * x + 1)\n";
    let files = [("solution.py", source), ("test.py", test)];
    let spec = Spec {
        argv: ["/usr/bin/python3", "/work/test.py"].map(str::to_owned).to_vec(),
        files: files.map(|(n, c)| (n.to_owned(), c.as_bytes().to_vec())).to_vec(),
        limits: Limits { wall: Duration::from_secs(60), ..Limits::default() },
        ..Spec::default()
    };
    sandbox().run(&spec).unwrap().facts.exit == Some(0)
}

#[test]
fn tricks_earn_what_the_wrong_solution_earns() {
    let wrong = grade(WRONG);
    assert_eq!((wrong.passed, wrong.total), (1, 4));
    for (name, source, _) in ATTACKS {
        let result = grade(source);
        // A trick that ends its own process loses what that process had not answered yet.
        let ended = result.verdicts.iter().any(|v| matches!(v.outcome, Died | ImportError));
        assert!(result.passed == wrong.passed || (ended && result.passed < wrong.passed), "{name}: {result:?}");
    }
}

#[test]
fn the_naive_grader_is_fooled() {
    assert!(!naive_pays(WRONG));
    for (name, source, fools) in ATTACKS {
        assert!(!*fools || naive_pays(source), "{name} does not fool the control, so it shows nothing");
    }
}

#[test]
fn attacks_on_the_protocol_earn_no_more() {
    for (name, source) in PROTOCOL {
        eprintln!("{name}");
        let result = grade(source);
        assert!(result.passed <= 1, "{name}: {result:?}");
    }
}

#[test]
fn honest_solutions_pass_both() {
    for (name, source) in HONEST {
        let result = grade(source);
        assert_eq!(result.passed, 4, "{name}: {result:?}");
        assert!(naive_pays(source), "{name}");
    }
}
