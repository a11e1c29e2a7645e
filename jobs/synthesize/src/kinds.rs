//! Simple JSONL of tasks that are no functions: `kind` is `program`, `server` or `repository`.
//!
//! `test_cases`, and optionally `visible_tests` and `tests_b`, are what the tests of that kind are made of: cases of a program,
//! sessions with a server, or the object of a repository (see `rollmill_grader::suite`). `language` and a program's `checker`
//! stand beside them. Tests B may be a whole suite of another kind, which says its `kind`: functions of a repository asked
//! one by one stand behind its own suite; `main` is the file that holds them.

use crate::lines::{need_text, take_text};
use rollmill_grader::Suite;
use rollmill_schema::Candidate;
use serde_json::{Map, Value, json};

/// Whether a line is of one of these kinds.
pub fn is_other_kind(object: &Map<String, Value>) -> bool {
    object.get("kind").and_then(Value::as_str).is_some_and(|kind| kind != "function")
}

/// One line to a candidate. Fields it does not know go to `metadata`.
pub fn parse_other_kind(mut object: Map<String, Value>) -> Result<Candidate, String> {
    let kind = need_text(&mut object, "kind")?;
    let instruction = need_text(&mut object, "question")?;
    let language = take_text(&mut object, "language")?.unwrap_or_else(|| "python".into());
    let checker = take_text(&mut object, "checker")?;
    let entry_point = take_text(&mut object, "entry_point")?.unwrap_or_default();
    let main = take_text(&mut object, "main")?;
    let form = |tests: Value| match kind.as_str() {
        _ if tests.get("kind").is_some() => Ok(tests),
        "program" => Ok(json!({ "kind": kind, "language": language, "cases": tests, "checker": checker })),
        "server" => Ok(json!({ "kind": kind, "language": language, "sessions": tests })),
        "repository" => match tests {
            Value::Object(mut fields) => {
                fields.insert("kind".into(), kind.clone().into());
                fields.extend(main.clone().map(|main| ("main".to_string(), main.into())));
                Ok(Value::Object(fields))
            }
            _ => Err("must be an object with framework, repository, tests and ids".to_string()),
        },
        other => Err(format!("kind {other:?} is unknown: function, program, server or repository")),
    };
    let mut suite = |field: &'static str| -> Result<Option<String>, String> {
        let Some(tests) = object.remove(field).filter(|v| !v.is_null()) else { return Ok(None) };
        let json = form(tests).map_err(|e| format!("field {field:?}: {e}"))?.to_string();
        Suite::parse(&entry_point, &json).map_err(|e| format!("field {field:?}: {e}"))?;
        Ok(Some(json))
    };
    let tests_a = suite("test_cases")?.ok_or("field \"test_cases\" is missing")?;
    let visible_tests = suite("visible_tests")?.unwrap_or_else(|| "[]".into());
    let tests_b = suite("tests_b")?;
    let text = |object: &mut Map<String, Value>, field: &str, default: &str| {
        take_text(object, field).map(|t| t.unwrap_or_else(|| default.to_string()))
    };
    let reference = match object.remove("reference") {
        // changed files of a repository, by path
        Some(Value::Object(files)) => Some(Value::Object(files).to_string()),
        Some(Value::String(source)) => Some(source),
        _ => None,
    };
    let mut candidate = Candidate {
        source_id: text(&mut object, "task_id", "")?,
        licence: text(&mut object, "licence", "unknown")?,
        language,
        kind,
        ability: text(&mut object, "ability", "general")?,
        difficulty: text(&mut object, "difficulty", "")?,
        group: text(&mut object, "family", "")?,
        instruction,
        entry_point,
        visible_tests,
        tests_a,
        tests_b,
        reference,
        ..Candidate::default()
    };
    candidate.metadata = Value::Object(object).to_string();
    Ok(candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Candidate, String> {
        let object: Map<String, Value> = serde_json::from_str(line).unwrap();
        assert!(is_other_kind(&object));
        parse_other_kind(object)
    }

    #[test]
    fn programs_servers_and_repositories_are_read() {
        let c = parse(
            r#"{"kind": "program", "language": "cpp", "question": "Add.", "task_id": "add", "more": 1,
                "test_cases": [{"stdin": "1 2", "stdout": "3"}], "tests_b": [{"stdin": "2 2", "stdout": "4"}],
                "visible_tests": [{"stdin": "0 0", "stdout": "0"}], "reference": "int main() {}"}"#,
        )
        .unwrap();
        assert_eq!((c.kind.as_str(), c.language.as_str(), c.metadata.as_str()), ("program", "cpp", r#"{"more":1}"#));
        let suite = Suite::parse("", c.tests_b.as_deref().unwrap()).unwrap();
        assert_eq!((suite.kind(), suite.language()), ("program", "cpp"));
        let c = parse(
            r#"{"kind": "repository", "question": "Mend it.", "reference": {"a.py": "x = 2"}, "entry_point": "f",
                "test_cases": {"framework": "unittest", "repository": {"a.py": "x = 1"}, "tests": {"test_a.py": ""},
                               "ids": ["test_a.A.test_x"]},
                "tests_b": {"kind": "tests", "tests": ["assert f() == 2"]}}"#,
        )
        .unwrap();
        assert_eq!(c.reference.as_deref(), Some(r#"{"a.py":"x = 2"}"#));
        assert_eq!(Suite::parse("f", &c.tests_b.unwrap()).unwrap().kind(), "function");
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, want) in [
            (r#"{"kind": "essay", "question": "q", "test_cases": []}"#, "kind \"essay\" is unknown"),
            (r#"{"kind": "program", "question": "q"}"#, "\"test_cases\" is missing"),
            (r#"{"kind": "program", "language": "cobol", "question": "q", "test_cases": []}"#, "cobol"),
            (r#"{"kind": "program", "question": "q", "test_cases": [{"stdin": ""}]}"#, "stdout"),
            (r#"{"kind": "repository", "question": "q", "test_cases": []}"#, "must be an object"),
        ] {
            let e = parse(line).unwrap_err();
            assert!(e.contains(want), "{line}: {e}");
        }
    }
}
