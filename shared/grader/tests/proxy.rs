//! Written tests in one real sandbox against a solution in another: the forms that are known, what handles tell, what is the
//! task's own fault.

#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

mod sandboxed;

use rollmill_grader::CaseOutcome::*;
use rollmill_grader::{GradeError, Solution, SuiteResult, T0Options, TestSource, grade_tests, t0};
use rollmill_sandbox::{Namespaces, NamespacesOptions, Warm};
use sandboxed::{options, outcomes, proxied, sandbox, settled};
use std::sync::Arc;

fn by_tests(source: &str, tests: &[&str]) -> SuiteResult {
    let tests = TestSource { tests: tests.iter().map(|t| (*t).to_owned()).collect(), ..TestSource::default() };
    proxied(&Solution::from_source(source), "f", &tests, &options())
}

/// One text, with names that it may take from the solution.
fn by_text(source: &str, names: &[&str], test: &str) -> SuiteResult {
    let names = names.iter().map(|n| (*n).to_owned()).collect();
    let tests = TestSource { tests: vec![test.to_owned()], names, ..TestSource::default() };
    proxied(&Solution::from_source(source), "f", &tests, &options())
}

const SQUARE: &str = "def f(x):\n    if x < 0: raise ValueError('negative')\n    return x * x\n";

#[test]
fn asserts_one_by_one() {
    let result = by_tests(
        SQUARE,
        &[
            "assert f(2) == 4",
            "assert f(2) == 5",
            "assert f(1) == 1 and f(3) == 9",
            "f(-1)",
            "x = [f(i) for i in range(9)]\nassert sum(x) == 204",
        ],
    );
    assert_eq!(outcomes(&result), [Passed, Wrong, Passed, Exception, Passed], "{result:?}");
    assert_eq!(result.verdicts[3].detail, "ValueError: negative");
    assert_eq!((result.compiled, result.passed, result.total), (true, 3, 5));
}

#[test]
fn check_functions_with_their_setup() {
    let tests = TestSource {
        setup: "import random\ndef square(x):\n    return x ** 2\ndef f(x):\n    '''only a head'''\n".into(),
        tests: vec!["METADATA = {}\ndef check(candidate):\n    for _ in range(50):\n        x = random.randint(0, 99)\n        assert candidate(x) == square(x) == f(x)\n".into()],
        ..TestSource::default()
    };
    let passed = |source: &str| proxied(&Solution::from_source(source), "f", &tests, &options()).passed;
    assert_eq!(passed(SQUARE), 1);
    assert_eq!(passed("def f(x): return 0\n"), 0);
    assert_eq!(
        passed("def square(x): return 0\ndef f(x): return 0\n"),
        0,
        "a helper of the tests is not the solution's"
    );
}

#[test]
fn classes_of_unittest() {
    let test = "
import unittest
from solution import f
class TestSquare(unittest.TestCase):
    def setUp(self): self.x = 3
    def test_value(self): self.assertEqual(f(self.x), 9)
    def test_raises(self):
        with self.assertRaisesRegex(ValueError, 'neg'): f(-1)
    def test_wrong(self): self.assertEqual(f(2), 5)
    @unittest.skip('later')
    def test_skipped(self): pass
    @unittest.expectedFailure
    def test_expected(self): self.assertEqual(f(2), 5)
    def test_error(self): f(None)
";
    // In the order of unittest: error, expected, raises, skipped, value, wrong.
    let result = by_text(SQUARE, &[], test);
    assert_eq!(outcomes(&result), [Wrong, Wrong, Passed, Wrong, Passed, Wrong], "{result:?}");
}

#[test]
fn tests_of_pytests_kind() {
    let test = "
import pytest
from solution import f
def test_value(): assert f(3) == pytest.approx(9.0000001)
def test_raises():
    with pytest.raises(ValueError, match='neg') as caught: f(-1)
    assert 'negative' in str(caught.value)
def test_does_not_raise():
    with pytest.raises(ValueError): f(1)
@pytest.mark.parametrize('x, y', [(1, 1), (2, 5)])
def test_pairs(x, y): assert f(x) == y
class TestMore:
    def setup_method(self): self.x = 4
    def test_value(self): assert f(self.x) == 16
    @pytest.mark.parametrize('x', [1, 2])
    def test_each(self, x): assert f(x) == x * x
def test_skips(): pytest.skip('later')
";
    let result = by_text(SQUARE, &[], test);
    let want = [Passed, Passed, Wrong, Passed, Wrong, Passed, Passed, Passed, Wrong];
    assert_eq!(outcomes(&result), want, "{result:?}");
}

const ACCOUNT: &str = "
import dataclasses
@dataclasses.dataclass
class Account:
    owner: str
    balance: int = 0
    def deposit(self, amount):
        if amount <= 0: raise ValueError('amount')
        self.balance += amount
        return self.balance
    def history(self):
        yield from range(self.balance)
    def __getitem__(self, key): return [self.owner, key]
    def __setitem__(self, key, value): self.balance = value
    def __str__(self): return 'account of ' + self.owner
    def __len__(self): return 3
    def __bool__(self): return True
    def __eq__(self, other): return True
    def __hash__(self): return 1
    def __contains__(self, x): return True
    def __lt__(self, x): return True
def f(account): return account.balance
def make(n): return lambda x: x + n
";

#[test]
fn objects_stay_with_the_solution_and_are_used_by_number() {
    let test = "
def test_state():
    a = Account('ann', balance=2)
    assert a.deposit(3) == 5 and a.balance == 5 and f(a) == 5
    a.balance = 7
    assert f(a) == 7
    a['x'] = 9
    assert a.balance == 9 and a['y'] == ['ann', 'y']
    assert str(a) == 'account of ann'
def test_raises():
    try: Account('ann').deposit(0)
    except ValueError as e: assert str(e) == 'amount'
    else: assert False
def test_iterators():
    a = Account('ann', 3)
    assert list(a.history()) == [0, 1, 2] and sum(x for x in a.history()) == 3
    it = iter(a.history())
    assert next(it) == 0 and next(it, None) == 1
def test_functions():
    assert make(2)(3) == 5
def test_attributes():
    try: Account('ann').missing
    except AttributeError: pass
    else: assert False
";
    let result = by_text(ACCOUNT, &["Account", "make"], test);
    assert_eq!(outcomes(&result), [Passed; 5], "{result:?}");
}

#[test]
fn handles_never_tell_comparison_truth_hash_or_length() {
    for body in [
        "a == 1",
        "1 == a",
        "a != 1",
        "a < 1",
        "1 >= a",
        "bool(a)",
        "not a",
        "a or 1",
        "hash(a)",
        "{a}",
        "{a: 1}",
        "a in [1]",
        "[1].count(a)",
        "1 in a",
        "len(a)",
        "a == a",
        "sorted([a, a])",
    ] {
        for swallow in ["", "try:\n        @\n    except BaseException:\n        pass\n    "] {
            let test = format!("def test():\n    a = Account('ann')\n    {}", swallow.replace('@', body));
            let test = if swallow.is_empty() { format!("{test}{body}\n") } else { test };
            let result = by_text(ACCOUNT, &["Account"], &test);
            // The length is not there at all: a test may see that, as with any object without one.
            let seen = body == "len(a)" && !swallow.is_empty();
            assert_eq!(result.passed, u32::from(seen), "{test}: {result:?}");
        }
    }
}

#[test]
fn names_and_types() {
    let source =
        "import sys\ndef f(items, kind): return [i for i in items if not isinstance(i, kind)]\ndef other(): return 1\n";
    let result = by_tests(
        source,
        &[
            "assert f((4, 'a'), int) == ['a']",
            "assert f([sys.maxsize], str) == [sys.maxsize]",
            "assert other() == 1",
            "import solution\nassert solution.f([], int) == []",
            "import solution\nsolution.other()",
        ],
    );
    assert_eq!(outcomes(&result), [Passed, Passed, Exception, Passed, Exception], "{result:?}");
    let result = by_text("class f:\n    def g(self, x): return x + 1\n", &[], "assert f().g(1) == 2");
    assert_eq!(result.passed, 1, "{result:?}");
    let tests = TestSource {
        tests: vec!["assert g(1) == 2".into(), "def check(candidate):\n    assert candidate(1) == 2\n".into()],
        ..TestSource::default()
    };
    let method = Solution::from_source("class Solution:\n    def g(self, x): return x + 1\n");
    let result = proxied(&method, "Solution.g", &tests, &options());
    assert_eq!(outcomes(&result), [Exception, Passed], "{result:?}");
}

#[test]
fn mutated_arguments_come_back_where_the_tests_want_it() {
    let test = "x = [3, 1, 2]\nd = {}\nf(x, d)\nassert x == [1, 2, 3] and d == {'n': 3}";
    let mut tests = TestSource { tests: vec![test.to_owned()], ..TestSource::default() };
    let solution = Solution::from_source("def f(x, d):\n    x.sort()\n    d['n'] = len(x)\n");
    assert_eq!(proxied(&solution, "f", &tests, &options()).passed, 0);
    tests.mutates = true;
    assert_eq!(proxied(&solution, "f", &tests, &options()).passed, 1);
    // The trick against which it is off: the inputs are spoiled so that the recomputed expectation agrees.
    tests.tests = vec!["x = [3, 1, 2]\nassert f(x, {}) == sorted(x)".to_owned()];
    let spoiler = Solution::from_source("def f(x, d):\n    x.clear()\n    return []\n");
    assert_eq!(proxied(&spoiler, "f", &tests, &options()).passed, 1);
    tests.mutates = false;
    assert_eq!(proxied(&spoiler, "f", &tests, &options()).passed, 0);
}

#[test]
fn arguments_that_are_no_data_end_the_test() {
    let result = by_tests(
        "def f(x): return 1\n",
        &[
            "f(lambda: 0)",
            "try: f(object())\nexcept BaseException: pass",
            "f([10 ** 30000, {1: (b'x', 2j)}])",
            "f(open)",
        ],
    );
    assert_eq!(outcomes(&result), [Wrong, Wrong, Passed, Wrong], "{result:?}");
    assert!(result.verdicts[0].detail.contains("an argument is a function"), "{result:?}");
}

#[test]
fn tests_that_cannot_be_used_are_the_tasks_fault() {
    let solution = Solution::from_source(SQUARE);
    for test in [
        "def f(",
        "def test(): pass\nimport nothing_of_that_name",
        "def test(): pass\nf(1)",
        "def test(): pass\nimport os; os._exit(0)",
        "def test_x(tmp_path): pass\nimport pytest\n@pytest.fixture\ndef y(): pass",
        "class Test: pass",
    ] {
        let tests = TestSource { tests: vec![test.to_owned()], ..TestSource::default() };
        let error = settled(|| grade_tests(sandbox(), &solution, "f", &tests, &options())).unwrap_err();
        assert!(matches!(error, GradeError::Task(_)) && !error.is_transient(), "{test}: {error}");
    }
    let none = settled(|| grade_tests(sandbox(), &solution, "f", &TestSource::default(), &options())).unwrap_err();
    assert!(matches!(none, GradeError::Task(_)));
}

#[test]
fn random_inputs_are_the_same_for_every_solution() {
    let test = "import random\nx = random.random()\nassert f(x) == x";
    let echo = |opts: &T0Options| {
        let tests = TestSource { tests: vec![test.replace("== x", "== 0")], ..TestSource::default() };
        let told = Solution::from_source("def f(x): raise ValueError(repr(x))\n");
        proxied(&told, "f", &tests, opts).verdicts[0].detail.clone()
    };
    assert_eq!(echo(&options()), echo(&options()));
    assert_ne!(echo(&options()), echo(&T0Options { seed: 1, ..options() }));
}

#[test]
fn solutions_that_cannot_be_loaded() {
    for (source, outcome) in [
        ("def f(x:\n", SyntaxError),
        ("def g(x): return x", NoFunction),
        ("raise ValueError('no')", ImportError),
        ("import os; os._exit(0)", Died),
    ] {
        let result = by_tests(source, &["assert f(1) == 1", "assert True"]);
        assert_eq!((outcomes(&result), result.passed), (vec![outcome; 2], 0), "{source}: {result:?}");
    }
}

/// What jobs use: interpreters kept loaded, from which both processes of a suite are forked.
#[test]
fn loaded_interpreters_run_both_sides() {
    let cold = Arc::new(Namespaces::open(NamespacesOptions::default()).unwrap());
    let warm = Warm::new(cold, vec![t0::interpreter()]);
    let tests = TestSource {
        tests: vec![
            "import pytest\ndef test():\n    with pytest.raises(ValueError): f(-1)\n    assert f(3) == 9\n".into(),
        ],
        ..TestSource::default()
    };
    let by = |source: &str| {
        let solution = Solution::from_source(source);
        settled(|| grade_tests(&warm, &solution, "f", &tests, &options())).unwrap().passed
    };
    assert_eq!([by(SQUARE), by("def f(x): return 9\n"), by(SQUARE)], [1, 0, 1]);
}
