//! Simple JSONL: `question` and `test_cases`, with Python literals as texts.

use crate::kinds::{is_other_kind, parse_other_kind};
use crate::lines::{need_text, take_text};
use rollmill_grader::{Case, parse_cases, render_cases};
use rollmill_schema::Candidate;
use serde_json::{Map, Value};

/// One line to a candidate, with all `test_cases` as tests A. Fields it does not know go to `metadata`.
pub fn parse_task(mut object: Map<String, Value>) -> Result<Candidate, String> {
    if is_other_kind(&object) {
        return parse_other_kind(object);
    }
    object.remove("kind");
    let instruction = need_text(&mut object, "question")?;
    let entry_point = match take_text(&mut object, "entry_point")? {
        Some(name) => name,
        None => named_function(&instruction)
            .ok_or("field \"entry_point\" is missing and the question names no function: `name(args)`")?,
    };
    let tests_a = take_cases(&mut object, "test_cases")?.ok_or("field \"test_cases\" is missing")?;
    if tests_a.is_empty() {
        return Err("field \"test_cases\" is empty".into());
    }
    let visible = take_cases(&mut object, "visible_tests")?.unwrap_or_default();
    let tests_b = take_cases(&mut object, "tests_b")?.filter(|b| !b.is_empty());
    let text = |object: &mut Map<String, Value>, field: &str, default: &str| {
        take_text(object, field).map(|t| t.unwrap_or_else(|| default.to_string()))
    };
    let mut candidate = Candidate {
        source_id: text(&mut object, "task_id", "")?,
        licence: text(&mut object, "licence", "unknown")?,
        language: "python".into(),
        kind: "function".into(),
        ability: text(&mut object, "ability", "general")?,
        difficulty: text(&mut object, "difficulty", "")?,
        group: text(&mut object, "family", "")?,
        instruction,
        entry_point,
        visible_tests: render_cases(&visible),
        tests_a: render_cases(&tests_a),
        tests_b: tests_b.as_deref().map(render_cases),
        reference: take_text(&mut object, "reference")?,
        ..Candidate::default()
    };
    candidate.metadata = Value::Object(object).to_string();
    Ok(candidate)
}

/// Where a set shows no test, the first of `test_cases` is shown; it stays a hidden test A only if it is the only one.
pub(crate) fn show_first(mut candidate: Candidate) -> Candidate {
    let visible = parse_cases(&candidate.visible_tests).unwrap_or_default();
    // Both were written by `render_cases` above; tests of other kinds stay as they are.
    if let (true, Ok(mut tests_a)) = (visible.is_empty(), parse_cases(&candidate.tests_a)) {
        let hidden = tests_a.split_off(1.min(tests_a.len().saturating_sub(1)));
        candidate.visible_tests = render_cases(if tests_a.is_empty() { &hidden[..1] } else { &tests_a });
        candidate.tests_a = render_cases(&hidden);
    }
    candidate
}

fn take_cases(object: &mut Map<String, Value>, field: &str) -> Result<Option<Vec<Case>>, String> {
    let Some(value) = object.remove(field).filter(|v| !v.is_null()) else { return Ok(None) };
    parse_cases(&value.to_string()).map(Some).map_err(|e| format!("field {field:?}: {e}"))
}

/// The first `name(` inside backticks, or else after the word "function".
fn named_function(question: &str) -> Option<String> {
    let in_ticks = question.split('`').skip(1).step_by(2).find_map(identifier_before_call);
    in_ticks.or_else(|| identifier_before_call(question.split("function").nth(1)?))
}

fn identifier_before_call(text: &str) -> Option<String> {
    let name = text.split('(').next()?.trim().rsplit(char::is_whitespace).next()?;
    let valid = text.contains('(')
        && name.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    valid.then(|| name.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Result<Candidate, String> {
        parse_task(serde_json::from_str(json).unwrap())
    }

    #[test]
    fn the_name_may_stand_in_the_question() {
        let tests = r#""test_cases": [{"input": "1", "expected": "2"}, {"input": "2", "expected": "3"}]"#;
        let c = parse(&format!(r#"{{"question": "Write `inc(x)` that adds one.", {tests}, "extra": {{"a": 1}}}}"#))
            .unwrap();
        assert_eq!(parse_cases(&c.tests_a).unwrap().len(), 2);
        let c = show_first(c);
        assert_eq!((c.entry_point.as_str(), c.metadata.as_str()), ("inc", r#"{"extra":{"a":1}}"#));
        assert_eq!(parse_cases(&c.visible_tests).unwrap().len(), 1);
        assert_eq!(parse_cases(&c.tests_a).unwrap().len(), 1);
        let c = parse(&format!(r#"{{"question": "Write a function inc(x) that adds one.", {tests}}}"#)).unwrap();
        assert_eq!(c.entry_point, "inc");
    }

    #[test]
    fn errors_say_which_field() {
        for (json, want) in [
            (r#"{"test_cases": []}"#, "\"question\" is missing"),
            (r#"{"question": "f"}"#, "\"entry_point\" is missing"),
            (r#"{"question": "f", "entry_point": "f"}"#, "\"test_cases\" is missing"),
            (r#"{"question": "f", "entry_point": "f", "test_cases": []}"#, "is empty"),
            (r#"{"question": "f", "entry_point": "f", "test_cases": [{"input": "1"}]}"#, "field \"expected\""),
            (
                r#"{"question": "f", "entry_point": "f", "test_cases": [{"input": "open(1)", "expected": "1"}]}"#,
                "test case 0",
            ),
        ] {
            let e = parse(json).unwrap_err();
            assert!(e.contains(want), "{json}: {e}");
        }
    }
}
