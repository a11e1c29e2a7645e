//! Whether an answer of a worker is what a case wants. Runs on the trusted side; only a predicate of the task is asked in a
//! sandbox of its own.

use super::predicate::Predicates;
use super::protocol::Answer;
use super::verdict::{CaseOutcome, clip};
use super::{GradeError, T0Options};
use crate::blame::Failure;
use crate::cases::{Case, Message, Step};
use crate::codec::{self, Node};
use crate::compare::Comparator;
use crate::value::Value;
use rollmill_sandbox::Sandbox;

/// The most characters of a message that a worker sends.
const MESSAGE: usize = 200;

/// What must come of one request.
pub(super) struct Wanted<'a> {
    /// Nothing if any result will do.
    pub expected: Option<&'a Value>,
    pub comparator: Comparator,
    pub exception: Option<&'a str>,
    pub message: Option<&'a Message>,
    /// What becomes of arguments; the answer then tells them behind the result.
    pub mutates: Option<&'a [(usize, Value)]>,
    /// Source, and the arguments that it is told.
    pub predicate: Option<(&'a str, &'a [Node])>,
    /// The case; a predicate's answers are remembered by it.
    pub index: usize,
    /// The result is an object that the next requests are about.
    pub object: bool,
}

impl<'a> Wanted<'a> {
    pub fn of_case(index: usize, case: &'a Case, args: &'a [Node]) -> Wanted<'a> {
        Wanted {
            expected: case.steps.is_empty().then_some(&case.expected),
            comparator: case.comparator,
            exception: case.expect_exception.as_deref(),
            message: case.message.as_ref(),
            mutates: (!case.mutates.is_empty()).then_some(&case.mutates[..]),
            predicate: case.predicate.as_deref().map(|source| (source, args)),
            index,
            object: !case.steps.is_empty(),
        }
    }

    pub fn of_step(step: &'a Step) -> Wanted<'a> {
        Wanted {
            expected: step.expected.as_ref(),
            comparator: step.comparator,
            exception: step.expect_exception.as_deref(),
            message: step.message.as_ref(),
            mutates: None,
            predicate: None,
            index: 0,
            object: false,
        }
    }
}

pub(super) struct Judge<'a> {
    predicates: Predicates<'a>,
}

impl<'a> Judge<'a> {
    pub fn new(sandbox: &'a dyn Sandbox, opts: &'a T0Options) -> Judge<'a> {
        Judge { predicates: Predicates::new(sandbox, opts) }
    }

    /// Ends what runs for it.
    pub fn finish(self) -> Result<(), GradeError> {
        self.predicates.finish()
    }

    /// The number of the object that was asked for, if the answer is what was wanted.
    pub fn judge(&mut self, wanted: &Wanted<'_>, answer: Answer) -> Result<Result<Option<u64>, Failure>, GradeError> {
        Ok(match answer {
            Answer::Value(nodes) => return self.value(wanted, nodes),
            Answer::Exception { mro, message, line } => match wanted.exception {
                Some(name) if mro.iter().any(|n| n == name) && says(wanted.message, &message) => Ok(None),
                _ => Err(Failure::new(CaseOutcome::Exception, line)),
            },
            Answer::Unreturnable(why) => Err(Failure::new(CaseOutcome::Unreturnable, why)),
            Answer::NoFunction => Err(Failure::new(CaseOutcome::NoFunction, "the function is gone")),
            _ => Err(Failure::new(CaseOutcome::Protocol, "an answer to another question")),
        })
    }

    fn value(&mut self, wanted: &Wanted<'_>, nodes: Vec<Node>) -> Result<Result<Option<u64>, Failure>, GradeError> {
        let handle = match nodes[..] {
            [Node::Handle(number, _)] if wanted.object => Some(number),
            _ => None,
        };
        let got = match codec::assemble(nodes) {
            Ok(got) => got,
            Err(error) => return Ok(Err(Failure::new(CaseOutcome::Protocol, error.to_string()))),
        };
        let (got, after) = match (wanted.mutates, got) {
            (None, got) => (got, Vec::new()),
            (Some(_), Value::Tuple(pair)) if pair.len() == 2 => match <[Value; 2]>::try_from(pair) {
                Ok([got, Value::Tuple(after)]) => (got, after),
                _ => return Ok(Err(Failure::new(CaseOutcome::Protocol, "no arguments behind the result"))),
            },
            _ => return Ok(Err(Failure::new(CaseOutcome::Protocol, "no arguments behind the result"))),
        };
        let wrong = || Failure::new(CaseOutcome::Wrong, format!("got {}", clip(&got.to_literal(), 120)));
        if wanted.exception.is_some() {
            return Ok(Err(wrong()));
        }
        if wanted.object {
            return Ok(if handle.is_some() { Ok(handle) } else { Err(wrong()) });
        }
        if let Some((source, args)) = wanted.predicate {
            if let Err(why) = self.predicates.accepts(wanted.index, source, args, &got)? {
                return Ok(Err(Failure::new(CaseOutcome::Wrong, format!("{}{why}", wrong().detail))));
            }
        } else if wanted.expected.is_some_and(|expected| !wanted.comparator.accepts(expected, &got)) {
            return Ok(Err(wrong()));
        }
        Ok(mutated(wanted, &after).map(|()| None))
    }
}

/// Whether arguments are what the call was to make of them.
fn mutated(wanted: &Wanted<'_>, after: &[Value]) -> Result<(), Failure> {
    let comparator = match wanted.comparator {
        approx @ Comparator::Approx { .. } => approx,
        _ => Comparator::Exact,
    };
    for (at, expected) in wanted.mutates.unwrap_or_default() {
        let now = after.get(*at).unwrap_or(&Value::None);
        if !comparator.accepts(expected, now) {
            let detail = format!("argument {} is {} after the call", at + 1, clip(&now.to_literal(), 120));
            return Err(Failure::new(CaseOutcome::Wrong, detail));
        }
    }
    Ok(())
}

/// Whether a message is the one that is wanted, in the form in which a worker tells it.
fn says(wanted: Option<&Message>, message: &str) -> bool {
    let told =
        |text: &str| text.chars().take(MESSAGE).map(|c| if c.is_control() { ' ' } else { c }).collect::<String>();
    match wanted {
        None => true,
        Some(Message::Exact(text)) => told(text) == told(message),
        // One that does not compile was refused where cases are read; elsewhere it matches nothing.
        Some(Message::Pattern(pattern)) => {
            regex_lite::Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(&told(message)))
        }
    }
}
