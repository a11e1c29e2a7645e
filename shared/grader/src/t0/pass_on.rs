//! What goes from a test to the solution and back, checked on the way.
//!
//! What must hold: nothing passes but requests of the agreed kinds, nodes within the caps, numbers of objects, and the names of
//! built-in exceptions from a list.

use super::GradeError;
use super::protocol::{Answer, Ask, How, With};
use super::tester::{Told, Use};
use super::verdict::CaseOutcome;
use crate::blame::Failure;
use crate::codec::{self, MAX_FRAME, Node};

/// Built-in exceptions that a test may see, which all can be made of one message. `AssertionError`, what skips a test, and
/// what ends a process are not among them.
const RAISED: &[&str] = &[
    "ArithmeticError",
    "AttributeError",
    "BufferError",
    "EOFError",
    "Exception",
    "FileExistsError",
    "FileNotFoundError",
    "FloatingPointError",
    "ImportError",
    "IndexError",
    "KeyError",
    "LookupError",
    "MemoryError",
    "ModuleNotFoundError",
    "NameError",
    "NotImplementedError",
    "OSError",
    "OverflowError",
    "PermissionError",
    "RecursionError",
    "ReferenceError",
    "RuntimeError",
    "StopIteration",
    "SyntaxError",
    "TimeoutError",
    "TypeError",
    "UnboundLocalError",
    "UnicodeError",
    "ValueError",
    "ZeroDivisionError",
];

/// An answer that no test may see: the test is over, and this is its verdict whatever it says.
pub(super) struct Refused {
    pub told: Told,
    pub failure: Failure,
}

/// What a test asks for, once it is sure that it can be sent. An error means that the tests' own process does not keep to
/// what was agreed.
pub(super) fn checked_use(call: Use) -> Result<Use, GradeError> {
    let fail = |e: codec::CodecError| GradeError::Task(format!("arguments of a call: {e}"));
    let check = |nodes: Vec<Node>| {
        let bytes = codec::frame(&nodes)?.len();
        if bytes > MAX_FRAME / 2 { Err(codec::CodecError::FrameTooLong(bytes)) } else { codec::checked(nodes) }
    };
    let args = check(call.args).map_err(fail)?;
    let kwargs = call.kwargs.map(check).transpose().map_err(fail)?;
    Ok(Use { args, kwargs, ..call })
}

/// The request to a worker.
pub(super) fn request_of<'a>(call: &'a Use, entry: &'a str, back: bool) -> Ask<'a> {
    let back = back && matches!(call.how, How::Entry | How::Call | How::Method);
    let with = With { args: &call.args, kwargs: call.kwargs.as_deref(), collect: false, handles: true, back };
    match call.how {
        How::Entry => Ask::Call { entry, with },
        how => Ask::Use { how, on: call.on, name: &call.name, with },
    }
}

/// What a test is told of an answer; outside, what is wrong with the answer's form.
pub(super) fn answer_to(answer: Answer) -> Result<Result<Told, Refused>, &'static str> {
    let refused = |outcome, why: String| {
        let told = Told { end: Some(why.clone()), ..Told::default() };
        Ok(Err(Refused { told, failure: Failure::new(outcome, why) }))
    };
    match answer {
        Answer::Value(nodes) => {
            let nodes = codec::checked(nodes).map_err(|_| "a malformed value")?;
            Ok(Ok(Told { nodes: Some(nodes), ..Told::default() }))
        }
        Answer::Exception { mro, message, line } => match raised(&mro) {
            Some(name) => Ok(Ok(Told { raise: Some(name), message, ..Told::default() })),
            None => refused(CaseOutcome::Exception, line),
        },
        Answer::Unreturnable(why) => refused(CaseOutcome::Unreturnable, why),
        Answer::NoFunction => refused(CaseOutcome::NoFunction, "the function is gone".to_owned()),
        _ => Err("an answer to another question"),
    }
}

/// The nearest built-in exception that a test may see; none if one of those that it must not see is nearer.
fn raised(mro: &[String]) -> Option<&'static str> {
    if mro.iter().any(|name| name == "AssertionError" || name == "Warning") {
        return None;
    }
    mro.iter().find_map(|name| RAISED.iter().find(|known| *known == name)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(mro: &[&str]) -> Option<&'static str> {
        raised(&mro.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn only_listed_exceptions_pass() {
        assert_eq!(told(&["JSONDecodeError", "ValueError", "Exception", "BaseException"]), Some("ValueError"));
        assert_eq!(told(&["MyError", "Exception", "BaseException"]), Some("Exception"));
        for mro in [
            &["AssertionError", "Exception", "BaseException"][..],
            &["Mine", "AssertionError", "Exception", "BaseException"],
            &["SystemExit", "BaseException"],
            &["KeyboardInterrupt", "BaseException"],
            &["GeneratorExit", "BaseException"],
            &["Skipped", "BaseException"],
            &[],
        ] {
            assert_eq!(told(mro), None, "{mro:?}");
        }
    }

    #[test]
    fn values_are_checked_on_the_way() {
        let hex = answer_to(Answer::Value(vec![Node::Int("0xff".into())]));
        assert_eq!(hex.ok().and_then(Result::ok).and_then(|t| t.nodes), Some(vec![Node::Int("255".into())]));
        assert!(answer_to(Answer::Value(vec![Node::List(2)])).is_err());
        assert!(answer_to(Answer::Loaded).is_err());
    }
}
