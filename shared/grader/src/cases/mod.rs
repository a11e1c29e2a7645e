//! Test cases of a function: arguments, what is expected, how it is compared.
//!
//! In: the public JSON form, an array of objects. Out: [`Case`]s, and the same form back. What must hold: an error names the
//! index and the field; [`parse_cases`] reads what [`render_cases`] wrote to the same cases.
//!
//! Fields, all of them strings but `steps`; a literal is a Python literal as [`crate::literal`] reads it:
//!
//! | field | holds |
//! |---|---|
//! | `input` or `args` | a literal, the only argument; or a literal tuple of all positional arguments |
//! | `kwargs` | a literal dict of keyword arguments |
//! | `expected` | the literal that the call returns |
//! | `comparator` | how it is compared, see [`Comparator`]; `exact` if absent |
//! | `exception` | instead of `expected`: the name of what is raised, itself or as a base class |
//! | `message`, `pattern` | with `exception`: its message, or a regular expression found in it (at most 200 characters are compared) |
//! | `predicate` | instead of `expected`: Python text with a function `accept(args, got)` that says whether `got` is right |
//! | `mutates` | a literal dict from the position of an argument to what the call has made of it |
//! | `steps` | instead of `expected`: the call returns an object, and these are done with it, one after the other |
//!
//! A step is `{"call": method, "args", "kwargs"}` or `{"get": attribute}` with `expected` and `comparator`, or `exception`,
//! `message` and `pattern`, or nothing of these, where any result will do.
//!
//! A predicate runs in a sandbox of its own. `args` is the tuple of positional arguments and then the keyword arguments'
//! values; a dataclass arrives as an object with its fields as attributes, `class_name` being the name of its class.

mod parse;
mod render;
mod show;

pub use parse::parse_cases;
pub use render::render_cases;

use crate::compare::Comparator;
use crate::value::Value;

/// One call and what must come of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Positional arguments.
    pub args: Vec<Value>,
    /// Keyword arguments.
    pub kwargs: Vec<(String, Value)>,
    /// What the call returns. It never enters the solution's sandbox.
    pub expected: Value,
    /// How the returned value is held against it.
    pub comparator: Comparator,
    /// The name of the exception that must be raised instead, itself or as a base class.
    pub expect_exception: Option<String>,
    /// What the exception's message must be.
    pub message: Option<Message>,
    /// With [`Comparator::Predicate`]: Python text that defines `accept(args, got)`.
    pub predicate: Option<String>,
    /// Positional arguments as they must be after the call, by position. They are compared exactly, or within the tolerance
    /// of an approximate comparator.
    pub mutates: Vec<(usize, Value)>,
    /// What is done with the object that the call returns; then `expected` does not matter.
    pub steps: Vec<Step>,
}

impl Case {
    /// A case that is compared exactly.
    pub fn exact(args: Vec<Value>, expected: Value) -> Case {
        Case {
            args,
            kwargs: Vec::new(),
            expected,
            comparator: Comparator::Exact,
            expect_exception: None,
            message: None,
            predicate: None,
            mutates: Vec::new(),
            steps: Vec::new(),
        }
    }
}

/// What an exception says, at most its first 200 characters, line breaks as blanks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Exactly this.
    Exact(String),
    /// A regular expression that is found somewhere in it, in the syntax of the crate `regex-lite`.
    Pattern(String),
}

/// One thing done with an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Which thing.
    pub action: Action,
    /// What it returns; any result will do without it.
    pub expected: Option<Value>,
    /// How the returned value is held against it.
    pub comparator: Comparator,
    /// The name of the exception that must be raised instead.
    pub expect_exception: Option<String>,
    /// What the exception's message must be.
    pub message: Option<Message>,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Calls a method.
    Call {
        /// Its name.
        method: String,
        /// Positional arguments.
        args: Vec<Value>,
        /// Keyword arguments.
        kwargs: Vec<(String, Value)>,
    },
    /// Reads an attribute.
    Get(String),
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
        /// The field's name; `steps[1].args` for a field of a step.
        field: String,
        /// What is wrong with it.
        what: String,
    },
}

#[cfg(test)]
mod tests;
