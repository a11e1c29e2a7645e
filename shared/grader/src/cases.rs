//! Test cases of a function: arguments, what is expected, how it is compared.
//!
//! In: the public JSON form, an array of objects whose values are strings: `input` (one Python literal, the only argument)
//! or `args` (a literal tuple of all arguments); `expected` (a literal) or `exception` (the name of one); optional
//! `comparator`. Out: [`Case`]s, and the same form back. What must hold: an error names the index and the field.

use crate::compare::Comparator;
use crate::literal;
use crate::value::Value;
use serde::Deserialize;
use serde_json::{Map, Value as Json};

/// One call and what must come of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Positional arguments.
    pub args: Vec<Value>,
    /// What the call returns. It never enters the sandbox.
    pub expected: Value,
    /// How the returned value is held against it.
    pub comparator: Comparator,
    /// The name of the exception that must be raised instead, itself or as a base class.
    pub expect_exception: Option<String>,
}

impl Case {
    /// A case that is compared exactly.
    pub fn exact(args: Vec<Value>, expected: Value) -> Case {
        Case { args, expected, comparator: Comparator::Exact, expect_exception: None }
    }
}

/// Why test cases cannot be read. The task is to be given up or mended.
#[derive(Debug, thiserror::Error)]
pub enum CasesError {
    /// Not an array of objects.
    #[error("test cases are not a json array of objects: {0}")]
    Json(#[from] serde_json::Error),
    /// One field of one case.
    #[error("test case {index}, field {field:?}: {what}")]
    Field {
        /// Position in the array, from 0.
        index: usize,
        /// The field's name.
        field: &'static str,
        /// What is wrong with it.
        what: String,
    },
}

#[derive(Deserialize)]
struct Row {
    input: Option<Json>,
    args: Option<Json>,
    expected: Option<Json>,
    exception: Option<Json>,
    comparator: Option<Json>,
}

/// Reads the public JSON form; fields beyond it are left to the caller.
pub fn parse_cases(json: &str) -> Result<Vec<Case>, CasesError> {
    let rows: Vec<Row> = serde_json::from_str(json)?;
    rows.into_iter().enumerate().map(|(index, row)| parse_case(index, row)).collect()
}

fn parse_case(index: usize, row: Row) -> Result<Case, CasesError> {
    let fail = |field: &'static str, what: String| CasesError::Field { index, field, what };
    let text = |field: &'static str, json: Option<Json>| match json {
        None => Ok(None),
        Some(Json::String(text)) => Ok(Some(text)),
        Some(other) => Err(fail(field, format!("must be a string that holds a python literal, not {}", clip(&other)))),
    };
    let value = |field: &'static str, text: &str| literal::parse(text).map_err(|e| fail(field, e.to_string()));
    let args = match (text("input", row.input)?, text("args", row.args)?) {
        (Some(input), None) => vec![value("input", &input)?],
        (None, Some(args)) => match value("args", &args)? {
            Value::Tuple(args) => args,
            other => {
                return Err(fail("args", format!("must be a tuple of all arguments, not a {}", other.type_name())));
            }
        },
        (None, None) => return Err(fail("input", "missing: give input or args".to_owned())),
        (Some(_), Some(_)) => return Err(fail("args", "given beside input: give one of them".to_owned())),
    };
    let (expected, expect_exception) = match (text("expected", row.expected)?, text("exception", row.exception)?) {
        (Some(expected), None) => (value("expected", &expected)?, None),
        (None, Some(name)) if !name.is_empty() => (Value::None, Some(name)),
        (None, _) => return Err(fail("expected", "missing".to_owned())),
        (Some(_), Some(_)) => return Err(fail("exception", "given beside expected: give one of them".to_owned())),
    };
    let comparator = match text("comparator", row.comparator)? {
        None => Comparator::Exact,
        Some(name) => name.parse().map_err(|e: crate::compare::UnknownComparator| fail("comparator", e.to_string()))?,
    };
    Ok(Case { args, expected, comparator, expect_exception })
}

fn clip(json: &Json) -> String {
    json.to_string().chars().take(40).collect()
}

/// Writes the public JSON form, which [`parse_cases`] reads to the same cases.
pub fn render_cases(cases: &[Case]) -> String {
    let rows: Vec<Json> = cases.iter().map(render_case).collect();
    Json::Array(rows).to_string()
}

fn render_case(case: &Case) -> Json {
    let mut row = Map::new();
    row.insert("args".to_owned(), Value::Tuple(case.args.clone()).to_literal().into());
    match &case.expect_exception {
        Some(name) => row.insert("exception".to_owned(), name.as_str().into()),
        None => row.insert("expected".to_owned(), case.expected.to_literal().into()),
    };
    if case.comparator != Comparator::Exact {
        row.insert("comparator".to_owned(), case.comparator.to_string().into());
    }
    Json::Object(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_form() {
        let json = r#"[{"input": "(1, 2)", "expected": "3"}, {"args": "(1, [2])", "expected": "{1: None}", "comparator": "approx(abs=0.1)", "more": 1},
            {"args": "()", "exception": "ValueError"}]"#;
        let cases = parse_cases(json).unwrap();
        assert_eq!(cases[0].args, vec![Value::Tuple(vec![Value::int(1), Value::int(2)])]);
        assert_eq!(cases[1].args.len(), 2);
        assert_eq!(cases[2].expect_exception.as_deref(), Some("ValueError"));
        assert_eq!(parse_cases(&render_cases(&cases)).unwrap(), cases);
    }

    #[test]
    fn errors_name_index_and_field() {
        for (bad, want) in [
            (r#"{"expected": "1"}"#, "test case 1, field \"input\": missing"),
            (r#"{"input": "1"}"#, "test case 1, field \"expected\": missing"),
            (r#"{"input": "x", "expected": "1"}"#, "test case 1, field \"input\": a name is no literal at byte 0"),
            (r#"{"input": 1, "expected": "1"}"#, "test case 1, field \"input\": must be a string"),
            (r#"{"args": "[1]", "expected": "1"}"#, "test case 1, field \"args\": must be a tuple"),
            (
                r#"{"input": "1", "expected": "1", "comparator": "fuzzy"}"#,
                "test case 1, field \"comparator\": unknown comparator",
            ),
        ] {
            let error = parse_cases(&format!(r#"[{{"input": "1", "expected": "1"}}, {bad}]"#)).unwrap_err().to_string();
            assert!(error.starts_with(want), "{error}");
        }
        assert!(matches!(parse_cases("{}"), Err(CasesError::Json(_))));
    }
}
