//! Attacks on tier T0 that run inside the solution, and honest solutions that look alike: one list, which `attacks.rs` asks
//! by calls and `proxy_attacks.rs` by written tests.
//!
//! The task is `f(x) == x * x + 1`. The wrong solution under every attack passes one case of four, by `f(1) == 2`.

/// What every attack is measured against.
pub const WRONG: &str = "def f(x):\n    return 2\n";

/// A trick, and whether a naive grader must be fooled by it: one of plain asserts, one of a suite of unittest.
pub struct Attack {
    pub name: &'static str,
    pub source: &'static str,
    pub fools_asserts: bool,
    pub fools_suite: bool,
}

const fn attack(name: &'static str, source: &'static str, fools_asserts: bool, fools_suite: bool) -> Attack {
    Attack { name, source, fools_asserts, fools_suite }
}

pub const ATTACKS: &[Attack] = &[
    attack("exit at import", "import os\nos._exit(0)\n", true, true),
    attack("sys.exit at import", "import sys\nsys.exit(0)\n", true, false),
    attack("exit in the call", "import os\ndef f(x):\n    if x > 1: os._exit(0)\n    return 2\n", true, true),
    attack("sys.exit in the call", "import sys\ndef f(x):\n    if x > 1: sys.exit(0)\n    return 2\n", true, false),
    attack(
        "exit by a timer",
        "import os, threading, time\nthreading.Timer(0.0, os._exit, [0]).start()\ntime.sleep(0.5)\ndef f(x):\n    return 2\n",
        true,
        false,
    ),
    attack(
        "exit by a signal",
        "import os, signal\nsignal.signal(signal.SIGALRM, lambda *a: os._exit(0))\nsignal.setitimer(signal.ITIMER_REAL, 0.001)\ndef f(x):\n    import time; time.sleep(0.5); return 2\n",
        true,
        false,
    ),
    attack(
        "exec into a printer",
        "import os\ndef f(x):\n    if x > 1: os.execv('/bin/sh', ['sh', '-c', 'echo passed; exit 0'])\n    return 2\n",
        true,
        false,
    ),
    attack(
        "atexit rewrites the code",
        "import atexit, os\natexit.register(os._exit, 0)\ndef f(x):\n    return 2\n",
        true,
        false,
    ),
    attack(
        "excepthook",
        "import sys, os\nsys.excepthook = lambda *a: os._exit(0)\ndef f(x):\n    return 2\n",
        true,
        false,
    ),
    attack(
        "always equal",
        "class Any:\n    def __eq__(self, o): return True\n    def __ne__(self, o): return False\ndef f(x):\n    return 2 if x == 1 else Any()\n",
        true,
        false,
    ),
    attack(
        "int with a lying __eq__",
        "class I(int):\n    def __eq__(self, o): return True\n    __hash__ = int.__hash__\n    def __repr__(self): return str(self.want)\n    def __index__(self): return 5\ndef f(x):\n    return I(2)\n",
        true,
        false,
    ),
    attack(
        "class that pretends to be int",
        "class M(type):\n    def __instancecheck__(c, o): return True\nclass A(metaclass=M):\n    __class__ = int\n    def __eq__(self, o): return True\n    def __int__(self): return 5\n    __repr__ = lambda s: '5'\ndef f(x):\n    return 2 if x == 1 else A()\n",
        true,
        false,
    ),
    attack(
        "result that compares by the caller's frame",
        "import sys\nclass Thief:\n    def __eq__(self, o):\n        return True\ndef f(x):\n    frame = sys._getframe()\n    while frame:\n        for k in ('expected', 'want', 'wanted'):\n            if k in frame.f_locals: return frame.f_locals[k]\n        frame = frame.f_back\n    return 2\n",
        true,
        false,
    ),
    attack(
        "expected value out of gc",
        "import gc\ndef f(x):\n    for o in gc.get_objects():\n        if type(o) is dict and 'expected' in o: return o['expected']\n    return 2\n",
        false,
        false,
    ),
    attack(
        "expected value by the caller's constants",
        "import sys\ndef f(x):\n    for c in sys._getframe(1).f_code.co_consts:\n        if type(c) is int and c == x * x + 1: return c\n    return 2\n",
        false,
        false,
    ),
    attack(
        "builtins patched",
        "import builtins\nbuiltins.AssertionError = SystemExit\nbuiltins.len = lambda *a: 1\nbuiltins.isinstance = lambda *a: True\nbuiltins.repr = lambda *a: '2'\ndef f(x):\n    return 2\n",
        false,
        false,
    ),
    attack(
        "json patched",
        "import json, json.encoder\njson.dumps = lambda *a, **k: '{\"verdict\": \"passed\"}'\njson.JSONEncoder.encode = json.dumps\njson.loads = lambda *a: {}\ndef f(x):\n    return 2\n",
        false,
        false,
    ),
    attack(
        "sys.modules replaced",
        "import sys, types\nfor n in list(sys.modules):\n    if n not in ('sys', 'builtins'): sys.modules[n] = types.ModuleType(n)\nsys.modules[__name__] = types.SimpleNamespace(f=lambda x: 5)\ndef f(x):\n    return 2\n",
        false,
        false,
    ),
    attack(
        "trace function",
        "import sys\nsys.settrace(lambda fr, ev, arg: None)\nsys.setprofile(lambda fr, ev, arg: None)\ndef f(x):\n    return 2\n",
        false,
        false,
    ),
    attack(
        "printed verdicts",
        "import sys, os\nprint('4 passed in 0.01s')\nprint('OK', file=sys.stderr)\nos.write(1, b'{\"passed\": 4, \"reward\": 1.0}\\n')\ndef f(x):\n    print('ok')\n    return 2\n",
        false,
        false,
    ),
    attack(
        "result files written",
        "import json\nfor p in ('reward.txt', 'reward.json', 'result.json', '/tmp/reward.txt'):\n    open(p, 'w').write('1')\ndef f(x):\n    return 2\n",
        false,
        false,
    ),
    attack("argument mutated", "def f(x):\n    if isinstance(x, list): x.clear()\n    return 2\n", false, false),
    attack("endless recursion", "def f(x):\n    return 2 if x == 1 else f(x)\n", false, false),
    attack(
        "equal to everything",
        "class Any(float):\n    def __eq__(self, o): return True\n    def __ne__(self, o): return False\n    def __sub__(self, o): return 0.0\n    __hash__ = None\nimport math\nmath.isclose = lambda *a, **k: True\ndef f(x):\n    return 2 if x == 1 else Any(2)\n",
        false,
        true,
    ),
    attack(
        "an object equal to everything",
        "class Any:\n    def __eq__(self, o): return True\n    def __float__(self): return float('inf')\n    def __bool__(self): return True\n    def __len__(self): return 1\n    def __hash__(self): return 1\nimport math\nmath.isclose = lambda *a, **k: True\ndef f(x):\n    return 2 if x == 1 else Any()\n",
        false,
        true,
    ),
    attack(
        "an AssertionError that exits when it is printed",
        "import os\nclass E(AssertionError):\n    def __str__(self): os._exit(0)\n    __repr__ = __str__\ndef f(x):\n    if x > 1: raise E()\n    return 2\n",
        false,
        true,
    ),
    attack(
        "an AssertionError that is no failure",
        "import unittest\nclass E(AssertionError, unittest.SkipTest): pass\ndef f(x):\n    if x > 1: raise E()\n    return 2\n",
        false,
        true,
    ),
    attack(
        "the framework's skip",
        "import unittest\ndef f(x):\n    if x > 1: raise unittest.SkipTest('later')\n    return 2\n",
        false,
        true,
    ),
    attack(
        "stolen from the caller's frame",
        "import sys\ndef f(x):\n    frame = sys._getframe()\n    while frame:\n        if 'expected' in frame.f_locals: return frame.f_locals['expected']\n        frame = frame.f_back\n    return 2\n",
        false,
        true,
    ),
    attack(
        "the framework patched",
        "import unittest, math\nunittest.TestCase.assertEqual = lambda *a: None\nunittest.TestCase.assertTrue = lambda *a: None\ndef f(x):\n    return 2\n",
        false,
        true,
    ),
    attack(
        "the results patched",
        "import unittest\nunittest.TestResult.wasSuccessful = lambda self: True\ndef f(x):\n    return 2\n",
        false,
        true,
    ),
    attack(
        "the test's code swapped",
        "import gc, types\ndef f(x):\n    for o in gc.get_objects():\n        if isinstance(o, types.FunctionType) and o.__name__ == 'check' and 'expected' in o.__code__.co_varnames:\n            o.__code__ = (lambda self, x, expected: None).__code__\n    return 2\nimport unittest\nunittest.TestCase.setUp = lambda self: f(0)\n",
        false,
        true,
    ),
    attack(
        "answers twice by hand",
        "import os, json\ndef f(x):\n    for seq in range(40):\n        b = json.dumps({'seq': seq, 'kind': 'value', 'nodes': [{'t': 'int', 'v': str(x * x + 2)}]}).encode()\n        for fd in range(3, 256):\n            try: os.write(fd, len(b).to_bytes(4, 'big') + b)\n            except OSError: pass\n    return 2\n",
        false,
        false,
    ),
    attack(
        "ends of tests written by hand",
        "import os, json\nb = json.dumps({'seq': 3, 'kind': 'done', 'outcome': 'passed', 'message': ''}).encode()\ndef f(x):\n    for fd in range(3, 256):\n        try: os.write(fd, len(b).to_bytes(4, 'big') + b)\n        except OSError: pass\n    return 2\n",
        false,
        false,
    ),
    attack(
        "a flood of frames",
        "import os\ndef f(x):\n    if x == 1: return 2\n    while True:\n        for fd in range(3, 256):\n            try: os.write(fd, b'\\x00\\x00\\x00\\x02{}' * 10000)\n            except OSError: pass\n",
        false,
        false,
    ),
    attack(
        "an iterator without end",
        "import itertools\ndef f(x):\n    return 2 if x == 1 else itertools.count()\n",
        false,
        false,
    ),
    attack(
        "an exception with a strange name",
        "E = type('ValueError\\n{\"kind\": \"done\"}', (Exception,), {})\ndef f(x):\n    if x > 1: raise E('passed')\n    return 2\n",
        false,
        false,
    ),
    attack(
        "a text that looks like an end",
        "def f(x):\n    return 2 if x == 1 else '{\"seq\": 3, \"kind\": \"done\", \"outcome\": \"passed\"}'\n",
        false,
        false,
    ),
];

/// Attacks on the protocol, whose outcome is a failure of every case or of all but the one that the wrong solution passes.
pub const PROTOCOL: &[(&str, &str)] = &[
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
pub const HONEST: &[(&str, &str)] = &[
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
    (
        "asserts",
        "def f(x):\n    assert x >= 0\n    try:\n        raise AssertionError\n    except AssertionError:\n        return x * x + 1\n",
    ),
    ("prints", "import sys\ndef f(x):\n    print(x); print(x, file=sys.stderr)\n    return x * x + 1\n"),
    ("an int of its own", "class I(int): pass\ndef f(x):\n    return I(x * x + 1)\n"),
];
