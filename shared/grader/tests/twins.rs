//! Twins against objects that are equal to what a test wants: what lies is found, whenever it is asked; and honest suites with
//! equalities of their own lose nothing. The control is the same suite without twins, which pays for every lie.

#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

mod sandboxed;

use rollmill_grader::diff::Files;
use rollmill_grader::t2::TestOutcome::{self, Forged, Passed};
use rollmill_grader::t2::{Framework, PythonSuite, T2Options, grade_repository};
use rollmill_sandbox::Sandbox;
use sandboxed::repository::options;
use sandboxed::{files, sandbox, settled, tools};

const TESTS: &str = r#"
import unittest
from unittest import mock
from unittest.mock import ANY
import calc

class AnyInt:
    def __eq__(self, other):
        return isinstance(other, int)

class Orders(unittest.TestCase):
    def test_fields(self):
        self.assertEqual(calc.order(3), {"id": ANY, "count": 3, "at": mock.ANY})
        assert calc.order(1)["id"] == AnyInt()

    def test_call(self):
        send = mock.Mock()
        calc.announce(send, 2)
        send.assert_called_once_with("order", mock.ANY)
        self.assertEqual(send.call_args, mock.call("order", ANY))

    def test_points(self):
        self.assertEqual(calc.points(2), [calc.Point(0, 0), calc.Point(1, 1)])
        assert calc.points(1)[0] == calc.Point(0, 0)
        self.assertCountEqual(iter(calc.points(1)), [calc.Point(0, 0)])

    def test_tolerance(self):
        self.assertEqual(calc.vector(0.1, 0.2), [0.1, 0.2])
        assert calc.length(3, 4) == 5.0
        self.assertAlmostEqual(float(calc.length(3, 4)), 5)

    def test_modular(self):
        assert calc.modular(9) == 2
        self.assertIn(calc.modular(9), [2, 3])

    def test_list(self):
        self.assertEqual(calc.counted(3), [0, 1, 2])
"#;

const HONEST: &str = r#"
import dataclasses

@dataclasses.dataclass
class Point:
    x: int
    y: int
    note: str = ""

    def __eq__(self, other):
        return isinstance(other, Point) and (self.x, self.y) == (other.x, other.y)

class Close:
    """As arrays compare: item by item, with a tolerance, and no truth of more than one."""

    def __init__(self, *values):
        self.values = values

    def __eq__(self, other):
        other = list(other) if hasattr(other, "__iter__") else [other]
        if not all(isinstance(value, (int, float)) for value in other):
            return False
        return len(other) == len(self.values) and all(abs(a - b) < 1e-6 for a, b in zip(self.values, other))

    __hash__ = None

    def __float__(self):
        return float(self.values[0])

class Modular:
    def __init__(self, n, of):
        self.n, self.of = n % of, of

    def __eq__(self, other):
        return (other - self.n) % self.of == 0

    __hash__ = None

def order(count): return {"id": 17, "count": count, "at": "now"}
def announce(send, count): send("order", {"count": count})
def points(n): return [Point(i, i, "made") for i in range(n)]
def vector(*values): return Close(*values)
def length(x, y): return Close((x * x + y * y) ** 0.5 + 1e-9)
def modular(n): return Modular(n, 7)
def counted(n): return list(range(n))
"#;

/// (name, what is put behind the honest code: a `lie(value)` for every answer).
const LIES: [(&str, &str); 8] = [
    ("mock.ANY", "from unittest import mock\ndef lie(value): return mock.ANY\n"),
    ("another ANY", "from unittest import mock\ndef lie(value): return type(mock.ANY)()\n"),
    (
        "equal the first time",
        "class Lie:\n    asked = False\n    def __eq__(self, o):\n        first, self.asked = not self.asked, True\n        return first\n    __hash__ = None\ndef lie(value): return Lie()\n",
    ),
    (
        "equal every other time",
        "class Lie:\n    n = 0\n    def __eq__(self, o):\n        self.n += 1\n        return self.n % 2 == 1\n    __hash__ = None\ndef lie(value): return Lie()\n",
    ),
    (
        "equal to whatever is of a plain type",
        "class Lie:\n    def __eq__(self, o): return type(o).__module__ == 'builtins'\n    __hash__ = None\ndef lie(value): return Lie()\n",
    ),
    (
        "equal to the first plain value",
        "class Lie:\n    seen = None\n    def __eq__(self, o):\n        if type(o).__module__ != 'builtins': return False\n        first, self.seen = self.seen is None, 1\n        return first\n    __hash__ = None\ndef lie(value): return Lie()\n",
    ),
    (
        "equal to whatever is as long",
        "class Lie:\n    def __eq__(self, o): return type(o) is list and len(o) == 3\n    __hash__ = None\ndef lie(value): return Lie()\n",
    ),
    (
        "only one item lies",
        "class Any:\n    def __eq__(self, o): return True\n    __hash__ = None\ndef lie(value): return [0, Any(), 2] if value == [0, 1, 2] else Any()\n",
    ),
];

const IDS: [&str; 6] = ["fields", "call", "points", "tolerance", "modular", "list"];

fn outcomes(sandbox: &dyn Sandbox, framework: Framework, code: &str, twins: bool) -> Vec<TestOutcome> {
    let tests = files(&[("tests/__init__.py", ""), ("tests/test_calc.py", TESTS)]);
    let id = |name: &&str| match framework {
        Framework::Unittest => format!("tests.test_calc.Orders.test_{name}"),
        Framework::Pytest => format!("tests/test_calc.py::Orders::test_{name}"),
    };
    let ids: Vec<String> = IDS.iter().map(id).collect();
    let suite = PythonSuite {
        framework,
        tests: &tests,
        ids: &ids,
        import_paths: &[String::new()],
        site: &Files::new(),
        without_twin: &[],
        has_tests_b: false,
    };
    let opts = T2Options { twins, ..options() };
    let result = settled(|| grade_repository(sandbox, &files(&[("calc.py", code)]), &suite, &opts)).unwrap();
    assert!(!twins || result.without_twin.is_empty(), "every test has a twin: {result:?}");
    result.verdicts.iter().map(|v| v.outcome).collect()
}

#[test]
fn honest_equalities_lose_nothing() {
    assert_eq!(outcomes(sandbox(), Framework::Unittest, HONEST, true), [Passed; 6]);
    if let Some(sandbox) = tools() {
        assert_eq!(outcomes(sandbox, Framework::Pytest, HONEST, true), [Passed; 6]);
    }
}

#[test]
fn lies_are_found_whenever_they_are_asked() {
    for (name, lie) in LIES {
        let code = format!(
            "{HONEST}\n{lie}\ndef modular(n): return lie(2)\ndef counted(n): return lie([0, 1, 2])\n\
             def length(x, y): return lie(5.0)\n"
        );
        let paid = outcomes(sandbox(), Framework::Unittest, &code, false);
        assert_eq!(paid[5], Passed, "{name} does not pay without twins, so it shows nothing: {paid:?}");
        let got = outcomes(sandbox(), Framework::Unittest, &code, true);
        assert_eq!(got[..3], [Passed; 3], "{name} touches only the others: {got:?}");
        assert!(got[3..].iter().all(|o| *o != Passed) && got[5] == Forged, "{name}: {got:?}");
    }
}
