//! Cases into the public JSON form.

use super::{Action, Case, Message, Step};
use crate::compare::Comparator;
use crate::value::Value;
use serde_json::{Map, Value as Json};

/// Writes the public JSON form, which [`super::parse_cases`] reads to the same cases.
pub fn render_cases(cases: &[Case]) -> String {
    let rows: Vec<Json> = cases.iter().map(render_case).collect();
    Json::Array(rows).to_string()
}

fn render_case(case: &Case) -> Json {
    let mut row = Map::new();
    call(&mut row, &case.args, &case.kwargs);
    if let Some(predicate) = &case.predicate {
        row.insert("predicate".to_owned(), predicate.as_str().into());
    } else if case.steps.is_empty() {
        let expected = case.expect_exception.is_none().then_some(&case.expected);
        outcome(&mut row, expected, case.comparator, case.expect_exception.as_deref(), case.message.as_ref());
    } else {
        row.insert("steps".to_owned(), Json::Array(case.steps.iter().map(render_step).collect()));
    }
    if !case.mutates.is_empty() {
        let pair = |(at, value): &(usize, Value)| (Value::int(*at as i64), value.clone());
        let pairs = case.mutates.iter().map(pair).collect();
        row.insert("mutates".to_owned(), Value::Dict(pairs).to_literal().into());
    }
    Json::Object(row)
}

fn render_step(step: &Step) -> Json {
    let mut row = Map::new();
    match &step.action {
        Action::Call { method, args, kwargs } => {
            row.insert("call".to_owned(), method.as_str().into());
            call(&mut row, args, kwargs);
        }
        Action::Get(attribute) => {
            row.insert("get".to_owned(), attribute.as_str().into());
        }
    }
    let exception = step.expect_exception.as_deref();
    outcome(&mut row, step.expected.as_ref(), step.comparator, exception, step.message.as_ref());
    Json::Object(row)
}

fn call(row: &mut Map<String, Json>, args: &[Value], kwargs: &[(String, Value)]) {
    row.insert("args".to_owned(), Value::Tuple(args.to_vec()).to_literal().into());
    if !kwargs.is_empty() {
        let pairs = kwargs.iter().map(|(name, value)| (Value::str(name), value.clone())).collect();
        row.insert("kwargs".to_owned(), Value::Dict(pairs).to_literal().into());
    }
}

fn outcome(
    row: &mut Map<String, Json>,
    expected: Option<&Value>,
    comparator: Comparator,
    exception: Option<&str>,
    message: Option<&Message>,
) {
    if let Some(expected) = expected {
        row.insert("expected".to_owned(), expected.to_literal().into());
    }
    if let Some(name) = exception {
        row.insert("exception".to_owned(), name.into());
    }
    match message {
        Some(Message::Exact(text)) => row.insert("message".to_owned(), text.as_str().into()),
        Some(Message::Pattern(pattern)) => row.insert("pattern".to_owned(), pattern.as_str().into()),
        None => None,
    };
    if comparator != Comparator::Exact {
        row.insert("comparator".to_owned(), comparator.to_string().into());
    }
}
