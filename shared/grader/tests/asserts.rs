//! Written asserts as calls: the forms that are known, what is rejected, and how much of the public sets is converted.
//! HumanEval and MBPP are read from `ROLLMILL_DATA` or `shared/data` beside the project; without them tests skip by name.

#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

use rollmill_grader::asserts::{AssertSource, CaseText, ConvertError, Rejected, convert_asserts};
use rollmill_grader::{GradeError, Solution, SuiteResult, T0Options, grade};
use std::path::Path;

mod public;
mod sandboxed;

use public::{Row, data, humaneval, mbpp, python};

fn convert(tests: &[&str]) -> Result<Vec<CaseText>, Rejected> {
    convert_for(None, tests)
}

fn convert_for(entry_point: Option<&str>, tests: &[&str]) -> Result<Vec<CaseText>, Rejected> {
    let tests = tests.iter().map(|t| (*t).to_owned()).collect();
    let source = AssertSource { setup: String::new(), tests, entry_point: entry_point.map(str::to_owned) };
    convert_asserts(&python(), &[source]).unwrap().remove(0)
}

#[test]
fn known_forms() {
    for (text, args, expected, comparator) in [
        ("assert f(1, 'a') == [2]", "(1, 'a')", "[2]", "exact"),
        ("assert (3) == f([])", "([],)", "3", "exact"),
        ("assert f()", "()", "True", "truthy"),
        ("assert not f(())", "((),)", "False", "falsy"),
        ("assert f(1) is True", "(1,)", "True", "identical"),
        ("assert f(1) is None", "(1,)", "None", "identical"),
        ("assert f({1: {2}}) == {3, 1}, 'message'", "({1: {2}},)", "{1, 3}", "exact"),
        ("assert abs(f(2) - 1.0/3) < 1e-6", "(2,)", "0.3333333333333333", "approx(abs=1e-06,rel=0.0)"),
        ("assert 0.5 > abs(2 - f(2))", "(2,)", "2", "approx(abs=0.5,rel=0.0)"),
        ("import math\nassert math.isclose(f(2), 4, rel_tol=0.001)", "(2,)", "4", "approx(abs=0.0,rel=0.001)"),
        ("assert set(f([1])) == set([1, 1])", "([1],)", "{1}", "set_eq"),
        ("assert sorted(f(1)) == [1, 2]", "(1,)", "[1, 2]", "unordered"),
        ("assert sorted(f(1)) == sorted([2, 1])", "(1,)", "[1, 2]", "unordered"),
        ("assert list(f(1)) == list(range(3))", "(1,)", "[0, 1, 2]", "sequence"),
        ("assert tuple(f(1)) == (1,)", "(1,)", "(1,)", "sequence"),
        (
            "assert f(3 * 19, -2 ** 2, [0] * 3, 'ab' + 'c') == float('inf')",
            "(57, -4, [0, 0, 0], 'abc')",
            "1e999",
            "exact",
        ),
        ("x = [i ** 2 for i in range(4) if i % 2]\nassert f(x) == sum(x)", "([1, 9],)", "10", "exact"),
        (
            "assert f(tuple([1]), set(), dict(), 'a b'.split()) == ('x'.upper(),)",
            "((1,), set(), {}, ['a', 'b'])",
            "('X',)",
            "exact",
        ),
        ("assert f(float('nan')) == 1j", "(nan,)", "1j", "exact"),
    ] {
        let cases = convert(&[text]).unwrap_or_else(|e| panic!("{text}: {e}"));
        let case = &cases[0];
        assert_eq!(
            (&*case.entry_point, &*case.args, &*case.expected, &*case.comparator),
            ("f", args, expected, comparator),
            "{text}"
        );
    }
}

#[test]
fn check_functions_loops_and_positions() {
    let check = "METADATA = {}\ndef check(candidate):\n    for a, b in [(1, 2), (3, 4)]:\n        assert candidate(a) == b\n    assert True, 'ok'\n    assert g(5) and candidate(6)\n";
    let source = AssertSource { tests: vec![check.into()], entry_point: Some("g".into()), ..AssertSource::default() };
    let cases = convert_asserts(&python(), &[source]).unwrap().remove(0).unwrap();
    let args: Vec<&str> = cases.iter().map(|c| &*c.args).collect();
    assert_eq!(args, ["(1,)", "(3,)", "(5,)", "(6,)"]);
    assert!(cases.iter().all(|c| c.entry_point == "g"));
    let cases = convert(&["assert f(1) == 1", "assert f(2) == 2"]).unwrap();
    assert_eq!([cases[0].test, cases[1].test], [0, 1]);
}

#[test]
fn rejected_with_a_reason() {
    for (text, reason) in [
        ("assert f(1) == g(1)", "call of g"),
        ("assert f(1) == f(2)", "compared with itself"),
        ("assert f(x=1) == 1", "keyword arguments"),
        ("assert f(1) != 1", "comparison NotEq"),
        ("assert len(f(1)) == 1", "computed with"),
        ("assert int(f(1)) == 1", "computed with"),
        ("assert f(1)[0] == 1", "computed with"),
        ("assert sorted(f(1), key=len) == []", "by a key"),
        ("assert sorted(f(1)) == [2, 1]", "always fails"),
        ("assert f(1) == 1; assert 1 == 2", "always fails"),
        ("assert f(open('/etc/passwd')) == 1", "call of open"),
        ("assert f(__import__('os').system('true')) == 1", "call of __import__"),
        ("assert f(().__class__) == 1", "attribute __class__"),
        ("assert f(10 ** 10 ** 10) == 1", "power too large"),
        ("assert f('a' * 10 ** 9) == 1", "repetition"),
        ("assert f([0] * 10 ** 5 * 10) == 1", "repetition"),
        ("assert f([i for i in range(10 ** 6)]) == 1", "too large"),
        ("assert f([1 for a in range(9999) for b in range(9999)]) == 1", "too"),
        ("assert f(1 << 10 ** 9) == 1", "shift too large"),
        ("while True: pass\nassert f(1) == 1", "statement While"),
        ("assert f(lambda: 0) == 1", "not a constant: Lambda"),
        ("assert f(int) == 1", "unknown name int"),
        ("assert f(1) == {[]}", "TypeError"),
        ("assert f(1) ==", "not valid python"),
        ("assert f(1/0) == 1", "ZeroDivisionError"),
        ("x = 1", "no assert calls"),
        ("with open('x') as x: pass\nassert f(1) == 1", "statement With"),
        ("assert f(range(3)) == 1", "not data: range"),
    ] {
        let error = convert_for(Some("f"), &[text]).expect_err(text);
        assert!(error.reason.contains(reason), "{text}: {}", error.reason);
    }
    for text in ["assert f(1) == g(1)", "x = 1"] {
        assert!(convert(&[text]).expect_err(text).reason.starts_with("cannot tell which function"), "{text}");
    }
}

#[test]
fn nothing_of_the_input_runs_and_nothing_ends_the_batch() {
    let doubling: String = (0..64).map(|i| format!("x{} = (x{i}, x{i})\n", i + 1)).collect();
    let hostile = [
        format!("x0 = (1,)\n{doubling}assert f(x64) == 1"),
        format!("x0 = (1,)\n{doubling}assert f({{x64}}) == 1"),
        format!("assert f({}1{}) == 1", "(".repeat(5000), ")".repeat(5000)),
        format!("assert f({}1) == 1", "-".repeat(100_000)),
        "import os\nos._exit(3)\nassert f(1) == 1".to_owned(),
    ];
    let mut items: Vec<AssertSource> =
        hostile.iter().map(|t| AssertSource { tests: vec![t.clone()], ..AssertSource::default() }).collect();
    items.push(AssertSource { tests: vec!["assert f(1) == 1".into()], ..AssertSource::default() });
    let results = convert_asserts(&python(), &items).unwrap();
    assert_eq!(results.len(), 6);
    assert!(results[..4].iter().all(Result::is_err), "{results:?}");
    // the exit is a statement that asserts nothing, and it did not run
    assert_eq!(results[4].as_ref().unwrap().len(), 1);
    assert_eq!(results[5].as_ref().unwrap().len(), 1);
}

#[test]
fn a_missing_python_is_said() {
    let items = [AssertSource::default()];
    assert!(matches!(convert_asserts(Path::new("/nonexistent/python3"), &items), Err(ConvertError::Python { .. })));
    assert!(matches!(convert_asserts(Path::new("/bin/false"), &items), Err(ConvertError::Broken { .. })));
    assert!(convert_asserts(&python(), &[]).unwrap().is_empty());
}

fn converted(rows: Vec<Row>) -> Vec<(Row, Result<Vec<CaseText>, Rejected>)> {
    let sources: Vec<AssertSource> = rows.iter().map(|r| r.source.clone()).collect();
    rows.into_iter().zip(convert_asserts(&python(), &sources).unwrap()).collect()
}

#[test]
fn how_much_of_the_public_sets_is_converted() {
    let Some(folder) = data("how_much_of_the_public_sets_is_converted") else { return };
    let rejected = |rows: Vec<Row>, total: usize| -> Vec<String> {
        assert_eq!(rows.len(), total);
        converted(rows)
            .into_iter()
            .filter_map(|(row, result)| result.err().map(|e| format!("{}: {e}", row.name)))
            .collect()
    };
    let humaneval = rejected(humaneval(&folder), 164);
    assert_eq!(humaneval.len(), 5, "{humaneval:#?}"); // 32, 33, 38, 50, 53: random inputs, or the reference is called
    let mbpp = rejected(mbpp(&folder), 974);
    assert_eq!(mbpp.len(), 6, "{mbpp:#?}"); // 367, 533, 596, 601, 912, 927: objects, types, modules, int() around the call
}

fn grade_source(source: &str, cases: &[CaseText]) -> SuiteResult {
    let sandbox = sandboxed::sandbox();
    let parsed: Vec<_> = cases.iter().map(|c| c.to_case().unwrap()).collect();
    let solution = Solution::from_source(source);
    loop {
        match grade(sandbox, &solution, &cases[0].entry_point, &parsed, &T0Options::default()) {
            Err(GradeError::Overloaded { .. }) => continue,
            result => return result.unwrap(),
        }
    }
}

/// Every 16th reference; all of them with ROLLMILL_ALL_REFERENCES set.
#[test]
fn references_pass_their_converted_tests() {
    let Some(folder) = data("references_pass_their_converted_tests") else { return };
    let step = if std::env::var_os("ROLLMILL_ALL_REFERENCES").is_some() { 1 } else { 16 };
    let rows = humaneval(&folder).into_iter().chain(mbpp(&folder));
    let mut failed = Vec::new();
    for (row, cases) in converted(rows.step_by(step).collect()) {
        let Ok(cases) = cases else { continue };
        let result = grade_source(&row.reference, &cases);
        if result.passed != result.total {
            failed.push(format!("{}: {:?}", row.name, result.verdicts));
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

/// The control to the test above: a solution that returns something else passes none of the same tests.
#[test]
fn something_else_than_the_reference_fails_every_converted_test() {
    let Some(folder) = data("something_else_than_the_reference_fails_every_converted_test") else { return };
    let rows = humaneval(&folder).into_iter().chain(mbpp(&folder));
    for (row, cases) in converted(rows.step_by(64).collect()) {
        let Ok(cases) = cases else { continue };
        let result = grade_source(&format!("def {}(*args): return object()\n", cases[0].entry_point), &cases);
        assert_eq!(result.passed, 0, "{}: {:?}", row.name, result.verdicts);
    }
}
