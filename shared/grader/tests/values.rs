//! Typed values in a real sandbox: what comes back as data and by which names, subclasses by their base, objects as arguments.

#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

mod sandboxed;

use rollmill_grader::CaseOutcome::*;
use rollmill_grader::{Case, Comparator, Value};
use sandboxed::{case, grade_source, value};

/// Each (what the solution is asked for, expected literal, whether it must pass).
fn check(source: &str, expected: &[(&str, &str, bool)]) {
    let cases: Vec<Case> =
        expected.iter().map(|(what, want, _)| Case::exact(vec![Value::str(what)], value(want))).collect();
    let result = grade_source(source, &cases);
    for (verdict, (what, want, passes)) in result.verdicts.iter().zip(expected) {
        let outcome = if *passes { Passed } else { Wrong };
        assert_eq!(verdict.outcome, outcome, "{what} against {want}: {}", verdict.detail);
    }
}

#[test]
fn dataclasses_are_records_by_their_fields() {
    let source = r#"
import dataclasses, typing
@dataclasses.dataclass
class P:
    x: int
    y: list = dataclasses.field(default_factory=list)
    hidden: int = dataclasses.field(default=0, compare=False)
    shared: typing.ClassVar[int] = 7
@dataclasses.dataclass(frozen=True)
class F:
    x: int
@dataclasses.dataclass
class Sub(P):
    z: int = 0
class Slotted:
    __slots__ = ('x',)
    def __init__(self, x): self.x = x
Slotted = dataclasses.dataclass(type('Slotted', (), {'__slots__': ('x',), '__annotations__': {'x': int}}))
@dataclasses.dataclass
class Liar:
    x: int
    def __getattribute__(self, name): return 7
    def __eq__(self, other): return True
    def __repr__(self): return 'P(x=7)'
@dataclasses.dataclass
class Hidden:
    x: int
    __dict__ = property(lambda self: {'x': 7})
class Plain:
    def __init__(self): self.x = 1
def f(what):
    half = P(1); del half.__dict__['x']
    return {'p': P(1, [2]), 'frozen': {F(1)}, 'sub': Sub(1, [], 9, 3), 'slots': Slotted(1), 'liar': Liar(1), 'hidden': Hidden(1), 'class': P,
        'plain': Plain(), 'half': half, 'in': [P(P(1))]}[what]
"#;
    check(
        source,
        &[
            ("p", "P(x=1, y=[2])", true),
            ("p", "P(x=1.0, y=[2])", true),
            ("p", "P(x=2, y=[2])", false),
            ("p", "P(x=1)", false),
            ("p", "Q(x=1, y=[2])", false),
            ("p", "(1, [2])", false),
            ("frozen", "{F(x=1)}", true),
            ("sub", "Sub(x=1, y=[], z=3)", true),
            ("slots", "Slotted(x=1)", true),
            ("liar", "Liar(x=7)", false),
            ("liar", "Liar(x=1)", true),
            ("hidden", "Hidden(x=7)", false),
            ("hidden", "Hidden(x=1)", false),
            ("class", "P(x=1, y=[])", false),
            ("plain", "Plain(x=1)", false),
            ("half", "P(x=1, y=[])", false),
            ("in", "[P(x=P(x=1, y=[]), y=[])]", true),
        ],
    );
}

#[test]
fn objects_of_the_standard_library_are_data() {
    let source = r#"
import collections, datetime, decimal, enum, fractions
class Color(enum.Enum):
    RED = 1
    BLUE = 2
    def __eq__(self, other): return True
    __hash__ = None
class Flag(enum.Flag):
    A = 1
    B = 2
class D(decimal.Decimal):
    def __str__(self): return '7'
    def __eq__(self, other): return True
class Q(collections.deque):
    def __iter__(self): return iter([7])
class Day(datetime.date):
    @property
    def year(self): return 7
def f(what):
    utc = datetime.timezone.utc
    return {'enum': Color.RED, 'flags': Flag.A | Flag.B, 'decimal': decimal.Decimal('1.50'), 'own': D('1.5'),
        'fraction': fractions.Fraction(2, 4), 'deque': collections.deque([1, 2], 5), 'queue': Q([1]), 'range': range(0, 5, 2),
        'date': datetime.date(2020, 1, 2), 'day': Day(2020, 1, 2), 'datetime': datetime.datetime(2020, 1, 2, 3),
        'aware': datetime.datetime(2020, 1, 2, tzinfo=utc), 'time': datetime.time(1, 2), 'delta': datetime.timedelta(hours=25),
        'wide': range(0, 1 << 70)}[what]
"#;
    check(
        source,
        &[
            ("enum", "Color.RED", true),
            ("enum", "Color.BLUE", false),
            ("enum", "1", false),
            ("flags", "Flag.A", false),
            ("decimal", "Decimal('1.5')", true),
            ("decimal", "Decimal('1.51')", false),
            ("own", "Decimal('1.5')", true),
            ("own", "Decimal('7')", false),
            ("fraction", "Fraction(1, 2)", true),
            ("fraction", "0.5", false),
            ("deque", "deque([1, 2])", true),
            ("queue", "deque([1])", true),
            ("queue", "deque([7])", false),
            ("range", "range(0, 6, 2)", true),
            ("range", "[0, 2, 4]", false),
            ("date", "datetime.date(2020, 1, 2)", true),
            ("day", "date(2020, 1, 2)", true),
            ("datetime", "datetime(2020, 1, 2, 3)", true),
            ("datetime", "date(2020, 1, 2)", false),
            ("aware", "datetime(2020, 1, 2)", false),
            ("time", "time(1, 2)", true),
            ("delta", "timedelta(1, 3600)", true),
            ("wide", "range(0, 5)", false),
        ],
    );
}

#[test]
fn objects_come_back_as_they_went() {
    let source = "import dataclasses, enum\n@dataclasses.dataclass\nclass P:\n    x: int\nclass Color(enum.Enum):\n    RED = 1\ndef f(x):\n    assert not isinstance(x, str)\n    return x\n";
    let literals = [
        "P(x=[P(x=1)])",
        "Color.RED",
        "range(1, 9, 3)",
        "Decimal('1.50')",
        "Fraction(1, 3)",
        "[date(2020, 1, 2), time(1, 2, 3, 4), datetime(2020, 1, 2, 3, 4, 5, 6), timedelta(1, 2, 3)]",
        "deque([1, 'a'])",
    ];
    let cases: Vec<Case> = literals
        .iter()
        .map(|l| Case { comparator: Comparator::Identical, ..Case::exact(vec![value(l)], value(l)) })
        .collect();
    let result = grade_source(source, &cases);
    assert_eq!(result.passed, result.total, "{result:?}");
    // A class that the solution does not have cannot be made: its own fault, as a call of a missing function.
    let result = grade_source("def f(x): return x\n", &[case("(P(x=1),)", "P(x=1)")]);
    assert_eq!((result.passed, result.verdicts[0].outcome), (0, Exception));
}

#[test]
fn modules_replaced_by_the_solution_do_not_silence_honest_answers() {
    let source = "import sys, types\nfor name in ('decimal', 'fractions', 'datetime', 'dataclasses', 'enum'):\n    sys.modules[name] = types.SimpleNamespace(Decimal=1, Fraction=2, Enum=3)\nclass P: pass\ndef f(x): return [x, 1.5, P()] if x else x\n";
    let result = grade_source(source, &[case("(0,)", "0"), case("(1,)", "[1, 1.5, 1]")]);
    assert_eq!(result.verdicts[0].outcome, Passed, "{result:?}");
    assert_eq!(result.verdicts[1].detail, "got [1, 1.5, <P>]");
}
