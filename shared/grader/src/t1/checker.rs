//! Whether what a program wrote is what the task wants. Runs on the trusted side only, over bytes.
//!
//! What must hold: output that is no UTF-8 is never equal to expected text; time is linear in the output but for sorting.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::fmt;
use std::str::FromStr;

/// How output is held against the expected one. Spelled by name: `tokens`, `lines`, `exact`, `unordered_lines`, `json`,
/// `float` or `float(rel=1e-9,abs=1e-6)`, `custom`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Checker {
    /// The same words, whatever white space is between them.
    #[default]
    Tokens,
    /// The same lines; white space at the ends of lines and blank lines at the end are forgiven.
    Lines,
    /// The same bytes.
    Exact,
    /// Words that are numbers agree as in `math.isclose`, all others exactly.
    Float {
        /// Absolute tolerance.
        abs: f64,
        /// Relative tolerance.
        rel: f64,
    },
    /// As `lines`, in any order.
    UnorderedLines,
    /// The same JSON: no order of keys, `1` equals `1.0`.
    Json,
    /// The task's own script decides, see [`crate::t1::Programs::checker`].
    Custom,
}

/// The tolerance of a bare `float`.
const DEFAULT_TOLERANCE: f64 = 1e-6;

impl Checker {
    /// Whether `got` is accepted where `expected` was wanted. `Custom` accepts nothing here: its script is to be asked.
    pub fn accepts(&self, expected: &str, got: &[u8]) -> bool {
        let Ok(got) = std::str::from_utf8(got) else { return false };
        match *self {
            Checker::Tokens => expected.split_whitespace().eq(got.split_whitespace()),
            Checker::Lines => lines(expected) == lines(got),
            Checker::Exact => expected == got,
            Checker::Float { abs, rel } => floats(expected, got, abs, rel),
            Checker::UnorderedLines => sorted(lines(expected)) == sorted(lines(got)),
            Checker::Json => json(expected, got),
            Checker::Custom => false,
        }
    }
}

fn lines(text: &str) -> Vec<&str> {
    text.trim_end().split('\n').map(str::trim_end).collect()
}

fn sorted(mut lines: Vec<&str>) -> Vec<&str> {
    lines.sort_unstable();
    lines
}

fn floats(expected: &str, got: &str, abs: f64, rel: f64) -> bool {
    let mut got = got.split_whitespace();
    expected.split_whitespace().all(|e| got.next().is_some_and(|g| close(e, g, abs, rel))) && got.next().is_none()
}

fn close(expected: &str, got: &str, abs: f64, rel: f64) -> bool {
    if expected == got {
        return true;
    }
    match (expected.parse::<f64>(), got.parse::<f64>()) {
        (Ok(a), Ok(b)) if a.is_finite() && b.is_finite() => (a - b).abs() <= (rel * a.abs().max(b.abs())).max(abs),
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}

/// The parser bounds the depth of what it reads, so recursion over it is safe.
fn json(expected: &str, got: &str) -> bool {
    match (serde_json::from_str(expected), serde_json::from_str(got)) {
        (Ok(a), Ok(b)) => same_json(&a, &b),
        _ => false,
    }
}

fn same_json(a: &Json, b: &Json) -> bool {
    match (a, b) {
        (Json::Number(a), Json::Number(b)) => a == b || (a.is_f64() || b.is_f64()) && a.as_f64() == b.as_f64(),
        (Json::Array(a), Json::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_json(a, b)),
        (Json::Object(a), Json::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same_json(a, b)))
        }
        (a, b) => a == b,
    }
}

/// A spelling that names no checker: mend the task.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown checker {0:?}: use tokens, lines, exact, unordered_lines, json, custom, float or float(rel=1e-9,abs=1e-6)"
)]
pub struct UnknownChecker(pub String);

impl FromStr for Checker {
    type Err = UnknownChecker;

    fn from_str(text: &str) -> Result<Checker, UnknownChecker> {
        Ok(match text {
            "tokens" => Checker::Tokens,
            "lines" => Checker::Lines,
            "exact" => Checker::Exact,
            "unordered_lines" => Checker::UnorderedLines,
            "json" => Checker::Json,
            "custom" => Checker::Custom,
            "float" => Checker::Float { abs: DEFAULT_TOLERANCE, rel: DEFAULT_TOLERANCE },
            _ => tolerances(text).ok_or_else(|| UnknownChecker(text.to_owned()))?,
        })
    }
}

/// `float(abs=...,rel=...)`; a tolerance that is not named is 0.
fn tolerances(text: &str) -> Option<Checker> {
    let (mut abs, mut rel) = (None, None);
    for part in text.strip_prefix("float(")?.strip_suffix(')')?.split(',') {
        let (name, number) = part.split_once('=')?;
        let number = number.trim().parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0)?;
        let slot = match name.trim() {
            "abs" => &mut abs,
            "rel" => &mut rel,
            _ => return None,
        };
        if slot.replace(number).is_some() {
            return None;
        }
    }
    Some(Checker::Float { abs: abs.unwrap_or(0.0), rel: rel.unwrap_or(0.0) })
}

impl fmt::Display for Checker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Checker::Tokens => "tokens",
            Checker::Lines => "lines",
            Checker::Exact => "exact",
            Checker::UnorderedLines => "unordered_lines",
            Checker::Json => "json",
            Checker::Custom => "custom",
            Checker::Float { abs, rel } => return write!(f, "float(rel={rel:?},abs={abs:?})"),
        })
    }
}

impl TryFrom<String> for Checker {
    type Error = UnknownChecker;

    fn try_from(text: String) -> Result<Checker, UnknownChecker> {
        text.parse()
    }
}

impl From<Checker> for String {
    fn from(checker: Checker) -> String {
        checker.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepted_and_not() {
        for (checker, expected, good, bad) in [
            ("tokens", "1 2\n3\n", vec!["1 2 3", "\n1\t2\r\n3  "], vec!["12 3", "1 2", "1 2 3 4", ""]),
            ("lines", "a b\nc\n", vec!["a b\nc", "a b  \r\nc\n\n"], vec!["a b c", "a  b\nc", " a b\nc", "a b\n\nc"]),
            ("exact", "a\n", vec!["a\n"], vec!["a", "a\n\n", "a\r\n"]),
            ("unordered_lines", "b\na\na\n", vec!["a\na\nb", "a\nb\na\n"], vec!["a\nb", "a\nb\nb"]),
            ("float(abs=0.01)", "x 1.5", vec!["x 1.505", "x 15e-1"], vec!["x 1.52", "y 1.5", "x nan", "x", "x 1.5 1"]),
            ("float(rel=0.01)", "100 inf", vec!["101 inf", "100 inf"], vec!["102 inf", "100 -inf", "100 1e308"]),
            (
                "json",
                r#"{"a": [1, 2.0], "b": "x"}"#,
                vec![r#"{"b":"x","a":[1.0,2]}"#],
                vec!["{}", "[", r#"{"a": [1, 2], "b": 1}"#],
            ),
            ("custom", "", vec![], vec!["", "ok"]),
        ] {
            let parsed: Checker = checker.parse().unwrap();
            assert!(good.iter().all(|g| parsed.accepts(expected, g.as_bytes())), "{checker}");
            bad.iter().for_each(|b| assert!(!parsed.accepts(expected, b.as_bytes()), "{checker} {b:?}"));
            assert!(!parsed.accepts(expected, b"\xff"));
            assert_eq!(parsed.to_string().parse(), Ok(parsed));
        }
    }

    #[test]
    fn large_integers_are_not_rounded() {
        assert!(!Checker::Json.accepts("9007199254740993", b"9007199254740992"));
        assert!(!Checker::Json.accepts(&"[".repeat(100_000), "[".repeat(100_000).as_bytes()));
    }

    #[test]
    fn unknown_spellings() {
        for bad in ["", "Tokens", "float(", "float(abs=-1)", "float(abs=nan)", "float(abs=1,abs=2)", "float(x=1)"] {
            assert!(bad.parse::<Checker>().is_err(), "{bad}");
        }
    }

    proptest::proptest! {
        #[test]
        fn every_checker_accepts_the_expected_text_itself(text in "[a-z0-9 .\n\t-]{0,60}") {
            for checker in ["tokens", "lines", "exact", "unordered_lines", "float"] {
                proptest::prop_assert!(checker.parse::<Checker>().unwrap().accepts(&text, text.as_bytes()));
            }
        }

        #[test]
        fn no_bytes_panic(expected in ".{0,40}", got in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..60)) {
            for checker in ["tokens", "lines", "exact", "unordered_lines", "float", "json"] {
                checker.parse::<Checker>().unwrap().accepts(&expected, &got);
            }
        }
    }
}
