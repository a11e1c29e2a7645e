//! The public JSON form into cases.

use super::{Action, Case, CasesError, Message, Step};
use crate::compare::{Comparator, UnknownComparator};
use crate::literal;
use crate::value::Value;
use serde::Deserialize;
use serde_json::{Map, Value as Json};

/// Reads the public JSON form; fields beyond it are left to the caller.
pub fn parse_cases(json: &str) -> Result<Vec<Case>, CasesError> {
    let rows: Vec<Map<String, Json>> = serde_json::from_str(json)?;
    rows.iter().enumerate().map(|(index, row)| parse_case(&Fields { row, index, prefix: String::new() })).collect()
}

/// What comes of a call, as far as it is the same for a case and a step.
#[derive(Default)]
struct Outcome {
    expected: Option<Value>,
    comparator: Comparator,
    exception: Option<String>,
    message: Option<Message>,
}

fn parse_case(fields: &Fields<'_>) -> Result<Case, CasesError> {
    let args = match (fields.literal("input")?, fields.args()?) {
        (Some(input), None) => vec![input],
        (None, Some(args)) => args,
        (None, None) => return Err(fields.fail("input", "missing: give input or args")),
        (Some(_), Some(_)) => return Err(fields.fail("args", "given beside input: give one of them")),
    };
    let (steps, predicate) = (fields.steps()?, fields.text("predicate")?);
    let outcome = outcome(fields)?;
    let instead = [("steps", !steps.is_empty()), ("predicate", predicate.is_some())];
    if let Some((field, _)) = instead.iter().find(|(_, given)| *given) {
        let other = outcome.expected.is_some() || outcome.exception.is_some();
        if other || instead.iter().all(|(_, given)| *given) {
            return Err(fields.fail(field, "given beside another thing that is expected: give one of them"));
        }
        if !matches!(outcome.comparator, Comparator::Exact | Comparator::Predicate) {
            return Err(fields.fail("comparator", "compares nothing here: leave it out"));
        }
    } else if outcome.expected.is_none() && outcome.exception.is_none() {
        return Err(fields.fail("expected", "missing"));
    }
    let comparator = match predicate {
        Some(_) => Comparator::Predicate,
        None if outcome.comparator == Comparator::Predicate => return Err(fields.fail("predicate", "missing")),
        None => outcome.comparator,
    };
    Ok(Case {
        mutates: fields.mutates(args.len())?,
        args,
        kwargs: fields.kwargs()?,
        expected: outcome.expected.unwrap_or(Value::None),
        comparator,
        expect_exception: outcome.exception,
        message: outcome.message,
        predicate,
        steps,
    })
}

fn parse_step(fields: &Fields<'_>) -> Result<Step, CasesError> {
    let action = match (fields.name("call")?, fields.name("get")?) {
        (Some(method), None) => {
            Action::Call { method, args: fields.args()?.unwrap_or_default(), kwargs: fields.kwargs()? }
        }
        (None, Some(attribute)) => Action::Get(attribute),
        _ => return Err(fields.fail("call", "give either call or get")),
    };
    let Outcome { expected, comparator, exception: expect_exception, message } = outcome(fields)?;
    if comparator == Comparator::Predicate {
        return Err(fields.fail("comparator", "a step has no predicate"));
    }
    Ok(Step { action, expected, comparator, expect_exception, message })
}

fn outcome(fields: &Fields<'_>) -> Result<Outcome, CasesError> {
    let (expected, exception) = (fields.literal("expected")?, fields.name("exception")?);
    if expected.is_some() && exception.is_some() {
        return Err(fields.fail("exception", "given beside expected: give one of them"));
    }
    let message = match (fields.text("message")?, fields.text("pattern")?) {
        (None, None) => None,
        (Some(_), Some(_)) => return Err(fields.fail("pattern", "given beside message: give one of them")),
        (Some(text), None) => Some(Message::Exact(text)),
        (None, Some(pattern)) => {
            regex_lite::Regex::new(&pattern).map_err(|e| fields.fail("pattern", &e.to_string()))?;
            Some(Message::Pattern(pattern))
        }
    };
    if message.is_some() && exception.is_none() {
        return Err(fields.fail("exception", "missing: a message or pattern needs it"));
    }
    let comparator = match fields.text("comparator")? {
        None => Comparator::Exact,
        Some(name) => name.parse().map_err(|e: UnknownComparator| fields.fail("comparator", &e.to_string()))?,
    };
    Ok(Outcome { expected, comparator, exception, message })
}

/// The fields of one object, and where it stands.
struct Fields<'a> {
    row: &'a Map<String, Json>,
    index: usize,
    prefix: String,
}

impl Fields<'_> {
    fn fail(&self, field: &str, what: &str) -> CasesError {
        CasesError::Field { index: self.index, field: format!("{}{field}", self.prefix), what: what.to_owned() }
    }

    fn text(&self, field: &str) -> Result<Option<String>, CasesError> {
        match self.row.get(field) {
            None | Some(Json::Null) => Ok(None),
            Some(Json::String(text)) => Ok(Some(text.clone())),
            Some(other) => {
                let shown: String = other.to_string().chars().take(40).collect();
                Err(self.fail(field, &format!("must be a string that holds a python literal, not {shown}")))
            }
        }
    }

    fn name(&self, field: &str) -> Result<Option<String>, CasesError> {
        match self.text(field)? {
            Some(name) if name.is_empty() => Err(self.fail(field, "empty: give a name")),
            name => Ok(name),
        }
    }

    fn literal(&self, field: &str) -> Result<Option<Value>, CasesError> {
        let text = self.text(field)?;
        text.map(|text| literal::parse(&text).map_err(|e| self.fail(field, &e.to_string()))).transpose()
    }

    fn args(&self) -> Result<Option<Vec<Value>>, CasesError> {
        match self.literal("args")? {
            None => Ok(None),
            Some(Value::Tuple(args)) => Ok(Some(args)),
            Some(other) => {
                Err(self.fail("args", &format!("must be a tuple of all arguments, not a {}", other.type_name())))
            }
        }
    }

    fn pairs(&self, field: &str) -> Result<Vec<(Value, Value)>, CasesError> {
        match self.literal(field)? {
            None => Ok(Vec::new()),
            Some(Value::Dict(pairs)) => Ok(pairs),
            Some(other) => Err(self.fail(field, &format!("must be a dict, not a {}", other.type_name()))),
        }
    }

    fn kwargs(&self) -> Result<Vec<(String, Value)>, CasesError> {
        let pair = |(name, value)| match name {
            Value::Str(name) => Ok((name, value)),
            _ => Err(self.fail("kwargs", "a keyword must be a string")),
        };
        self.pairs("kwargs")?.into_iter().map(pair).collect()
    }

    fn mutates(&self, args: usize) -> Result<Vec<(usize, Value)>, CasesError> {
        let pair = |(at, value): (Value, Value)| match &at {
            Value::Int(n) => n.as_str().parse().ok().filter(|n| *n < args).map(|n| (n, value)),
            _ => None,
        };
        let pairs = self.pairs("mutates")?.into_iter().map(pair).collect::<Option<_>>();
        pairs.ok_or_else(|| self.fail("mutates", "a key must be the position of an argument"))
    }

    fn steps(&self) -> Result<Vec<Step>, CasesError> {
        let Some(steps) = self.row.get("steps") else { return Ok(Vec::new()) };
        let rows: Vec<Map<String, Json>> =
            Vec::deserialize(steps).map_err(|e| self.fail("steps", &format!("must be an array of objects: {e}")))?;
        if rows.is_empty() {
            return Err(self.fail("steps", "empty: give at least one"));
        }
        let fields = |(at, row)| Fields { row, index: self.index, prefix: format!("steps[{at}].") };
        rows.iter().enumerate().map(fields).map(|fields| parse_step(&fields)).collect()
    }
}
