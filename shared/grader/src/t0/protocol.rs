//! Requests to a worker and the answers of one, which are hostile bytes.

use super::verdict::clip;
use crate::codec::Node;
use serde::{Deserialize, Serialize};

/// The longest line about an exception, in characters.
const LINE: usize = 280;

#[derive(Debug, Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub(super) enum Ask<'a> {
    /// Whether the worker runs; nothing of the solution is read yet.
    Hello,
    /// Compile the main file; nothing of it runs.
    Compile { main: &'a str },
    /// Run it as a module and look for the function.
    Import { entry: &'a str },
    /// Call the function.
    Call {
        entry: &'a str,
        #[serde(flatten)]
        with: With<'a>,
    },
    /// Do something with an object that the worker keeps, or with a name of the solution's module.
    Use {
        how: How,
        on: Option<u64>,
        name: &'a str,
        #[serde(flatten)]
        with: With<'a>,
    },
}

/// What is done with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum How {
    /// The tested function is called by its name.
    Entry,
    Name,
    Get,
    Set,
    Method,
    Call,
    Item,
    SetItem,
    Iter,
    Next,
    Str,
}

/// Arguments, and in which form the result is wanted.
#[derive(Clone, Debug, Serialize)]
pub(super) struct With<'a> {
    pub args: &'a [Node],
    pub kwargs: Option<&'a [Node]>,
    /// An iterator stands for the list of its elements.
    pub collect: bool,
    /// Objects stay in the worker and are told by a number.
    pub handles: bool,
    /// The result is a pair of the result and the arguments after the call.
    pub back: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct Request<'a> {
    pub seq: u64,
    #[serde(flatten)]
    pub ask: Ask<'a>,
}

#[derive(Debug, PartialEq)]
pub(super) enum Answer {
    Ready,
    Compiled,
    Loaded,
    NoFunction,
    SyntaxError(String),
    ImportError(String),
    Value(Vec<Node>),
    Exception { mro: Vec<String>, message: String, line: String },
    Unreturnable(String),
}

/// One flat object, so that serde streams it instead of buffering a hostile tree.
#[derive(Deserialize)]
struct Envelope {
    seq: u64,
    kind: String,
    nodes: Option<Vec<Node>>,
    #[serde(default)]
    mro: Vec<String>,
    #[serde(default)]
    message: String,
}

/// The answer to request `seq`, or what is wrong with the frame.
pub(super) fn read_answer(body: &[u8], seq: u64) -> Result<Answer, &'static str> {
    let envelope: Envelope = serde_json::from_slice(body).map_err(|_| "a frame of no agreed shape")?;
    if envelope.seq != seq {
        return Err("an answer to another request");
    }
    let line = exception_line(&envelope.mro, &envelope.message);
    Ok(match (envelope.kind.as_str(), envelope.nodes) {
        ("value", Some(nodes)) => Answer::Value(nodes),
        ("exception", None) => Answer::Exception { mro: envelope.mro, message: envelope.message, line },
        ("unreturnable", None) => Answer::Unreturnable(clip(&envelope.message, LINE)),
        ("ready", None) => Answer::Ready,
        ("compiled", None) => Answer::Compiled,
        ("loaded", None) => Answer::Loaded,
        ("no_function", None) => Answer::NoFunction,
        ("syntax_error", None) => Answer::SyntaxError(line),
        ("import_error", None) => Answer::ImportError(line),
        _ => return Err("an answer of no known kind"),
    })
}

/// `ValueError: text` as a person reads it, bounded, without control characters and without addresses, which differ from
/// run to run.
fn exception_line(mro: &[String], message: &str) -> String {
    let name = mro.first().map_or("exception", String::as_str);
    let line = if message.is_empty() { name.to_owned() } else { format!("{name}: {message}") };
    let line: String = line.chars().take(2 * LINE).map(|c| if c.is_control() { ' ' } else { c }).collect();
    clip(&without_addresses(&line), LINE)
}

fn without_addresses(line: &str) -> String {
    let mut parts = line.split("0x");
    let mut out = parts.next().unwrap_or("").to_owned();
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_hexdigit).count();
        out.push_str("0x");
        out.push_str(if digits >= 8 { "…" } else { &part[..digits] });
        out.push_str(&part[digits..]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_checked() {
        assert_eq!(read_answer(br#"{"seq":5,"kind":"loaded"}"#, 5), Ok(Answer::Loaded));
        let value = read_answer(br#"{"kind":"value","nodes":[{"t":"list","v":1},{"t":"none"}],"seq":5}"#, 5);
        assert_eq!(value, Ok(Answer::Value(vec![Node::List(1), Node::None])));
        for bad in [
            &br#"{"seq":4,"kind":"loaded"}"#[..],
            br#"{"seq":5,"kind":"passed"}"#,
            br#"{"seq":5,"kind":"value"}"#,
            br#"{"kind":"loaded"}"#,
            b"\xff",
            b"",
            b"[]",
            br#"{"seq":5,"kind":"value","nodes":[{"t":"list","v":-1}]}"#,
        ] {
            assert!(read_answer(bad, 5).is_err());
        }
    }

    #[test]
    fn exception_lines_are_deterministic_and_bounded() {
        let mro = ["TypeError".to_owned()];
        assert_eq!(exception_line(&mro, "<f at 0x7f00aa11bb22> 0x1f\n!"), "TypeError: <f at 0x…> 0x1f !");
        assert_eq!(exception_line(&[], ""), "exception");
        assert_eq!(exception_line(&mro, &"é".repeat(9999)).chars().count(), LINE);
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_panic(body in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
            let _ = read_answer(&body, 1);
        }
    }
}
