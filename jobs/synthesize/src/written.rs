//! Tests that are no literal calls: they stay as they were written, in a suite of kind `tests`, which runs them outside of a
//! solution's process.
//!
//! In: a candidate, the texts of its tests and what stands before them. Out: the candidate with its suites. What must hold: a text
//! that is shown is no hidden test; what the source itself defines before its tests is never taken from a solution.

use crate::asserts::Pending;
use serde_json::json;

/// What of Python may begin a definition at the top of a file.
const DEFINITIONS: [&str; 3] = ["def ", "class ", "async def "];

/// Fills all tests of a candidate as they were written; `reason` says why they are no calls.
pub fn keep(p: &mut Pending, reason: &str) -> Result<(), String> {
    if p.candidate.entry_point.is_empty() {
        p.candidate.entry_point = tested_function(p).ok_or_else(|| {
            format!(
                "{reason}; nor can they run as they are written, for they call no function that the reference defines"
            )
        })?;
    }
    let shown = p.shown.min(p.tests_a.tests.len().saturating_sub(1));
    let (visible, hidden) = p.tests_a.tests.split_at(shown);
    if hidden.is_empty() {
        return Err("no hidden test is left".into());
    }
    p.candidate.visible_tests = if visible.is_empty() { "[]".into() } else { suite(p, visible) };
    p.candidate.tests_a = suite(p, hidden);
    p.candidate.tests_b = tests_b(p);
    Ok(())
}

/// Tests B as they were written, without those that are shown; none where none is left.
pub fn tests_b(p: &Pending) -> Option<String> {
    let is_shown = |text: &str| p.tests_a.tests.iter().take(p.shown).any(|shown| shown.trim() == text.trim());
    let texts: Vec<String> = p.tests_b.iter().flat_map(|b| &b.tests).filter(|t| !is_shown(t)).cloned().collect();
    (!texts.is_empty()).then(|| suite(p, &texts))
}

fn suite(p: &Pending, tests: &[String]) -> String {
    let prelude = &p.before_tests;
    let own = defined(prelude);
    let taken = |name: &&str| {
        *name != p.candidate.entry_point
            && !own.contains(name)
            && tests.iter().chain([prelude]).any(|text| words(text).any(|w| w == *name))
    };
    let reference = p.candidate.reference.as_deref().unwrap_or_default();
    let names: Vec<&str> = defined(reference).into_iter().filter(taken).collect();
    json!({ "kind": "tests", "setup": prelude, "tests": tests, "names": names }).to_string()
}

/// The last function of the reference that the tests call: those before it help it.
fn tested_function(p: &Pending) -> Option<String> {
    let called = |name: &&str| p.tests_a.tests.iter().any(|text| calls(text, name));
    let reference = p.candidate.reference.as_deref()?;
    let functions: Vec<&str> = named_after(reference, "def ").collect();
    functions.into_iter().rev().find(called).map(str::to_owned)
}

fn calls(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        !before.is_some_and(is_word) && text[at + name.len()..].trim_start().starts_with('(')
    })
}

/// Names of functions and classes at the top of a source.
fn defined(source: &str) -> Vec<&str> {
    let mut names: Vec<&str> = DEFINITIONS.iter().flat_map(|keyword| named_after(source, keyword)).collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn named_after<'a>(source: &'a str, keyword: &'a str) -> impl Iterator<Item = &'a str> {
    let rest = source.lines().filter_map(move |line| line.strip_prefix(keyword));
    rest.filter_map(|rest| words(rest).next())
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c| !is_word(c)).filter(|word| !word.is_empty())
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;
    use rollmill_grader::Suite;
    use rollmill_grader::asserts::AssertSource;
    use rollmill_schema::Candidate;

    fn pending(reference: &str, tests_a: &[&str], tests_b: &[&str]) -> Pending {
        let source = |tests: &[&str]| AssertSource {
            tests: tests.iter().map(|t| (*t).to_owned()).collect(),
            ..AssertSource::default()
        };
        let candidate = Candidate { reference: Some(reference.into()), ..Candidate::default() };
        let tests_b = (!tests_b.is_empty()).then(|| source(tests_b));
        Pending { candidate, shown: 1, tests_a: source(tests_a), tests_b, before_tests: String::new() }
    }

    #[test]
    fn the_tested_function_and_what_tests_take_beside_it_are_found() {
        let reference = "class P:\n    pass\ndef part(x): return x\ndef f(x): return part(x)\ndef other(): pass\n";
        let mut p = pending(reference, &["assert f(P()) == 1", "assert f(P())", "assert pf(2)"], &["assert f(int)"]);
        keep(&mut p, "no calls").unwrap();
        let c = &p.candidate;
        assert_eq!(c.entry_point, "f");
        let read = |json: &str| Suite::parse("f", json).unwrap();
        assert_eq!(read(&c.visible_tests).inputs(), ["assert f(P()) == 1"]);
        assert_eq!(read(&c.tests_a).inputs(), ["assert f(P())", "assert pf(2)"]);
        assert_eq!(read(c.tests_b.as_deref().unwrap()).inputs(), ["assert f(int)"]);
        let names = |json: &str| match read(json) {
            Suite::Written { tests, .. } => tests.names,
            other => panic!("{other:?}"),
        };
        assert_eq!(names(&c.tests_a), ["P"]);
        assert!(names(c.tests_b.as_deref().unwrap()).is_empty());
        // What the source defines before its tests is not the solution's to give.
        p.before_tests = "class P:\n    pass\n".into();
        keep(&mut p, "no calls").unwrap();
        assert!(names(&p.candidate.tests_a).is_empty());
    }

    #[test]
    fn a_shown_test_is_no_test_b() {
        let mut p = pending("def f(x): return x\n", &["assert f(1)", "assert f(2)"], &[" assert f(1)"]);
        keep(&mut p, "no calls").unwrap();
        assert_eq!(p.candidate.tests_b, None);
    }

    #[test]
    fn what_stays_impossible_is_said() {
        let mut p = pending("def f(x): return x\n", &["assert g(1) == 2", "assert off(2) == 2"], &[]);
        let reason = keep(&mut p, "unknown name g").unwrap_err();
        assert!(reason.starts_with("unknown name g; nor") && reason.contains("no function"), "{reason}");
        let mut p = pending("def f(x): return x\n", &[], &[]);
        p.candidate.entry_point = "f".into();
        assert_eq!(keep(&mut p, "no calls").unwrap_err(), "no hidden test is left");
    }
}
