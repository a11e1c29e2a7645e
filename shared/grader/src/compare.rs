//! Whether what a solution returned is what the task expects. Runs on the trusted side only, over plain data.
//!
//! What must hold: something that is not data never matches; nothing of the solution's code takes part.

use crate::value::Value;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// How a returned value is held against the expected one. Spelled by name: `exact`, `identical`, `approx` or
/// `approx(abs=1e-6,rel=1e-9)`, `sequence`, `unordered`, `set_eq`, `truthy`, `falsy`, `predicate`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Comparator {
    /// Python's `==`: `1 == 1.0 == True`, a tuple is not a list, nested. One deviation: an expected NaN is met by NaN.
    #[default]
    Exact,
    /// As `Exact`, and the types agree at every level (`True` is not `1`), as `is` and a typed contract want.
    Identical,
    /// Numbers agree as in `math.isclose` (`|a-b| <= max(rel*max(|a|,|b|), abs)`), anything else exactly; nested.
    Approx {
        /// Absolute tolerance.
        abs: f64,
        /// Relative tolerance.
        rel: f64,
    },
    /// The same elements in the same order, whatever the outer container is: `list(f(x)) == list(y)`.
    Sequence,
    /// The same elements as often, in any order and container: `sorted(f(x)) == sorted(y)`.
    Unordered,
    /// The same elements, however often: `set(f(x)) == set(y)`.
    SetEq,
    /// `assert f(x)`: the expected value does not matter.
    Truthy,
    /// `assert not f(x)`: the expected value does not matter.
    Falsy,
    /// A function that came with the task decides ([`crate::Case::predicate`]), in a sandbox of its own.
    Predicate,
}

/// The tolerance of a bare `approx`; EvalPlus compares floats with 1e-6 (Liu et al. 2023).
const DEFAULT_TOLERANCE: f64 = 1e-6;

impl Comparator {
    /// Whether `got` is accepted where `expected` was wanted; never by [`Comparator::Predicate`].
    pub fn accepts(&self, expected: &Value, got: &Value) -> bool {
        if got.has_opaque() {
            return false;
        }
        match self {
            Comparator::Exact => equal(expected, got),
            Comparator::Identical => same_types(expected, got) && equal(expected, got),
            Comparator::Approx { abs, rel } => Tolerance { abs: *abs, rel: *rel }.close(expected, got),
            Comparator::Sequence => both(expected, got, |a, b| equal(&Value::List(a), &Value::List(b))),
            Comparator::Unordered => both(expected, got, |a, b| sorted_keys(&a) == sorted_keys(&b)),
            Comparator::SetEq => both(expected, got, |a, b| equal(&Value::Set(a), &Value::Set(b))),
            Comparator::Truthy => got.truth() == Some(true),
            Comparator::Falsy => got.truth() == Some(false),
            Comparator::Predicate => false, // not decided by values alone: `t0` asks the predicate
        }
    }

    /// Whether an iterator that comes back stands for the list of its elements.
    pub(crate) fn wants_elements(&self) -> bool {
        matches!(self, Comparator::Sequence | Comparator::Unordered | Comparator::SetEq)
    }
}

fn equal(a: &Value, b: &Value) -> bool {
    !a.has_opaque() && !b.has_opaque() && a.key() == b.key()
}

fn both(a: &Value, b: &Value, accept: impl FnOnce(Vec<Value>, Vec<Value>) -> bool) -> bool {
    match (a.elements(), b.elements()) {
        (Some(a), Some(b)) => accept(a, b),
        _ => false,
    }
}

fn sorted_keys(items: &[Value]) -> Vec<String> {
    let mut keys: Vec<String> = items.iter().map(Value::key).collect();
    keys.sort_unstable();
    keys
}

fn same_types(a: &Value, b: &Value) -> bool {
    let sorted = |items: &[Value]| {
        let mut typed: Vec<(String, String)> = items.iter().map(|i| (i.key(), i.type_name().to_owned())).collect();
        typed.sort_unstable();
        typed
    };
    a.type_name() == b.type_name()
        && match (a, b) {
            (Value::Tuple(x), Value::Tuple(y)) | (Value::List(x), Value::List(y)) => {
                x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same_types(x, y))
            }
            (Value::Set(x), Value::Set(y)) | (Value::FrozenSet(x), Value::FrozenSet(y)) => sorted(x) == sorted(y),
            (Value::Dict(x), Value::Dict(y)) => {
                let by_key = |pairs: &[(Value, Value)]| {
                    let mut pairs: Vec<_> = pairs.iter().map(|(k, v)| (k.key(), k.clone(), v.clone())).collect();
                    pairs.sort_by(|a, b| a.0.cmp(&b.0));
                    pairs
                };
                let (x, y) = (by_key(x), by_key(y));
                x.len() == y.len() && x.iter().zip(&y).all(|(x, y)| same_types(&x.1, &y.1) && same_types(&x.2, &y.2))
            }
            (Value::Record { fields: x, .. }, Value::Record { fields: y, .. }) => {
                x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same_types(&x.1, &y.1))
            }
            _ => true,
        }
}

struct Tolerance {
    abs: f64,
    rel: f64,
}

impl Tolerance {
    fn close(&self, expected: &Value, got: &Value) -> bool {
        if equal(expected, got) {
            return true;
        }
        match (expected, got) {
            (Value::Tuple(a), Value::Tuple(b)) | (Value::List(a), Value::List(b)) => self.all_close(a, b),
            (Value::Set(a) | Value::FrozenSet(a), Value::Set(b) | Value::FrozenSet(b)) => self.sets_close(a, b),
            (Value::Dict(a), Value::Dict(b)) => self.dicts_close(a, b),
            (Value::Record { type_name: a, fields: x }, Value::Record { type_name: b, fields: y }) => {
                let names = |fields: &[(String, Value)]| fields.iter().map(|(n, _)| n.clone()).collect::<Vec<_>>();
                a == b && names(x) == names(y) && x.iter().zip(y).all(|(x, y)| self.close(&x.1, &y.1))
            }
            _ => match (parts(expected), parts(got)) {
                (Some(a), Some(b)) => self.numbers_close(a, b),
                _ => false,
            },
        }
    }

    fn all_close(&self, a: &[Value], b: &[Value]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.close(a, b))
    }

    /// Sets of real numbers are paired in ascending order; other sets must be equal.
    fn sets_close(&self, a: &[Value], b: &[Value]) -> bool {
        let ascending = |items: &[Value]| -> Option<Vec<f64>> {
            let mut reals: Vec<f64> =
                items.iter().map(|i| parts(i).filter(|p| p.1 == 0.0).map(|p| p.0)).collect::<Option<_>>()?;
            reals.sort_by(f64::total_cmp);
            Some(reals)
        };
        match (ascending(a), ascending(b)) {
            (Some(a), Some(b)) => {
                a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| self.numbers_close((*a, 0.0), (*b, 0.0)))
            }
            _ => false,
        }
    }

    /// Keys agree exactly, values closely.
    fn dicts_close(&self, a: &[(Value, Value)], b: &[(Value, Value)]) -> bool {
        let by_key = |pairs: &[(Value, Value)]| {
            pairs.iter().map(|(k, v)| (k.key(), v.clone())).collect::<std::collections::BTreeMap<String, Value>>()
        };
        let (a, b) = (by_key(a), by_key(b));
        a.len() == b.len() && a.iter().zip(&b).all(|((ka, va), (kb, vb))| ka == kb && self.close(va, vb))
    }

    fn numbers_close(&self, a: (f64, f64), b: (f64, f64)) -> bool {
        if [a.0, a.1, b.0, b.1].iter().any(|x| !x.is_finite()) {
            return false; // equal infinities and NaNs were accepted before
        }
        let distance = (a.0 - b.0).hypot(a.1 - b.1);
        distance <= self.abs.max(self.rel * a.0.hypot(a.1).max(b.0.hypot(b.1)))
    }
}

/// Real and imaginary part of a number.
fn parts(value: &Value) -> Option<(f64, f64)> {
    match value {
        Value::Bool(b) => Some((f64::from(u8::from(*b)), 0.0)),
        Value::Int(n) => Some((n.to_f64(), 0.0)),
        Value::Float(x) => Some((*x, 0.0)),
        Value::Complex(re, im) => Some((*re, *im)),
        _ => None,
    }
}

/// A comparator's name that means nothing. The task is to be mended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown comparator {0:?}: use exact, identical, approx(abs=..,rel=..), sequence, unordered, set_eq, truthy, falsy or predicate"
)]
pub struct UnknownComparator(pub String);

impl fmt::Display for Comparator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Comparator::Exact => f.write_str("exact"),
            Comparator::Identical => f.write_str("identical"),
            Comparator::Approx { abs, rel } => write!(f, "approx(abs={abs:?},rel={rel:?})"),
            Comparator::Sequence => f.write_str("sequence"),
            Comparator::Unordered => f.write_str("unordered"),
            Comparator::SetEq => f.write_str("set_eq"),
            Comparator::Truthy => f.write_str("truthy"),
            Comparator::Falsy => f.write_str("falsy"),
            Comparator::Predicate => f.write_str("predicate"),
        }
    }
}

impl FromStr for Comparator {
    type Err = UnknownComparator;

    fn from_str(text: &str) -> Result<Comparator, UnknownComparator> {
        let unknown = || UnknownComparator(text.chars().take(60).collect());
        Ok(match text.trim() {
            "exact" => Comparator::Exact,
            "identical" => Comparator::Identical,
            "approx" => Comparator::Approx { abs: DEFAULT_TOLERANCE, rel: DEFAULT_TOLERANCE },
            "sequence" => Comparator::Sequence,
            "unordered" => Comparator::Unordered,
            "set_eq" => Comparator::SetEq,
            "truthy" => Comparator::Truthy,
            "falsy" => Comparator::Falsy,
            "predicate" => Comparator::Predicate,
            other => {
                let inner = other.strip_prefix("approx(").and_then(|t| t.strip_suffix(')')).ok_or_else(unknown)?;
                let (mut abs, mut rel) = (0.0, 0.0);
                for part in inner.split(',') {
                    let (name, number) = part.split_once('=').ok_or_else(unknown)?;
                    let tolerance: f64 = number.trim().parse().map_err(|_| unknown())?;
                    if !tolerance.is_finite() || tolerance < 0.0 {
                        return Err(unknown());
                    }
                    match name.trim() {
                        "abs" => abs = tolerance,
                        "rel" => rel = tolerance,
                        _ => return Err(unknown()),
                    }
                }
                Comparator::Approx { abs, rel }
            }
        })
    }
}

impl TryFrom<String> for Comparator {
    type Error = UnknownComparator;

    fn try_from(text: String) -> Result<Comparator, UnknownComparator> {
        text.parse()
    }
}

impl From<Comparator> for String {
    fn from(comparator: Comparator) -> String {
        comparator.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::literal::parse;

    fn accepts(comparator: &str, expected: &str, got: &str) -> bool {
        let comparator: Comparator = comparator.parse().unwrap();
        assert_eq!(comparator.to_string().parse::<Comparator>().unwrap(), comparator);
        comparator.accepts(&parse(expected).unwrap(), &parse(got).unwrap())
    }

    #[test]
    fn accepted_and_refused() {
        for (comparator, expected, got, want) in [
            ("exact", "1", "True", true),
            ("exact", "nan", "nan", true),
            ("exact", "[nan]", "[nan]", true),
            ("exact", "1", "nan", false),
            ("exact", "(1, 2)", "[1, 2]", false),
            ("identical", "True", "1", false),
            ("identical", "True", "True", true),
            ("identical", "[1, 2.0]", "[1, 2]", false),
            ("identical", "{1: 2}", "{1: 2}", true),
            ("identical", "{1: 2}", "{1: 2.0}", false),
            ("identical", "{1}", "{True}", false),
            ("identical", "{2, 1}", "{1, 2}", true),
            ("approx", "1.0", "1.0000001", true),
            ("approx", "1.0", "1.1", false),
            ("approx", "[1, (2.0,)]", "[1.0, (2.0000001,)]", true),
            ("approx", "inf", "1e308", false),
            ("approx", "inf", "inf", true),
            ("approx", "1.0", "nan", false),
            ("approx", "{'a': 1.0}", "{'a': 1.0000001}", true),
            ("approx", "{'a': 1.0}", "{'b': 1.0}", false),
            ("approx", "{1.0, 2.0}", "{2.0000001, 1.0}", true),
            ("approx", "'a'", "'a'", true),
            ("approx", "'a'", "'b'", false),
            ("approx", "1", "'1'", false),
            ("approx", "P(x=1.0)", "P(x=1.0000001)", true),
            ("approx", "P(x=1.0)", "Q(x=1.0000001)", false),
            ("approx", "P(x=1.0)", "P(y=1.0)", false),
            ("identical", "P(x=1)", "P(x=True)", false),
            ("identical", "Color.RED", "Color.RED", true),
            ("sequence", "[0, 1]", "range(2)", true),
            ("sequence", "[0, 1]", "deque([0, 1])", true),
            ("unordered", "[0, 1]", "range(10)", false),
            ("truthy", "True", "range(1)", true),
            ("truthy", "True", "P(x=1)", false),
            ("falsy", "True", "P(x=1)", false),
            ("approx(abs=0.5)", "1", "1.5", true),
            ("approx(abs=0.5)", "1", "1.6", false),
            ("approx(rel=0.1)", "100", "109", true),
            ("approx(rel=0.1)", "100", "89", false),
            ("approx", "1e308", "-1e308", false),
            ("sequence", "[1, 2]", "(1, 2)", true),
            ("sequence", "[1, 2]", "(2, 1)", false),
            ("sequence", "'ab'", "['a', 'b']", true),
            ("unordered", "[1, 2, 2]", "(2, 1, 2)", true),
            ("unordered", "[1, 2, 2]", "[1, 1, 2]", false),
            ("unordered", "[]", "0", false),
            ("set_eq", "[1, 2, 2]", "(2, 1)", true),
            ("set_eq", "[1]", "[2]", false),
            ("truthy", "True", "[0]", true),
            ("truthy", "True", "0.0", false),
            ("falsy", "False", "''", true),
            ("falsy", "False", "'x'", false),
        ] {
            assert_eq!(accepts(comparator, expected, got), want, "{comparator}: expected {expected}, got {got}");
        }
    }

    #[test]
    fn things_that_are_no_data_never_match() {
        let opaque = Value::Opaque { type_name: "AlwaysEqual".into() };
        for name in ["exact", "identical", "approx", "sequence", "unordered", "set_eq", "truthy", "falsy", "predicate"]
        {
            let comparator: Comparator = name.parse().unwrap();
            assert!(!comparator.accepts(&opaque, &opaque), "{name}");
            assert!(!comparator.accepts(&Value::List(vec![]), &Value::List(vec![opaque.clone()])), "{name}");
        }
    }

    #[test]
    fn names() {
        for bad in [
            "",
            "Exact",
            "approx()",
            "approx(abs=x)",
            "approx(abs=-1)",
            "approx(abs=inf)",
            "approx(foo=1)",
            "approx(abs=1",
        ] {
            assert!(bad.parse::<Comparator>().is_err(), "{bad}");
        }
        assert_eq!(serde_json::to_string(&Comparator::SetEq).unwrap(), r#""set_eq""#);
        assert_eq!(
            serde_json::from_str::<Comparator>(r#""approx(abs=0.5)""#).unwrap(),
            Comparator::Approx { abs: 0.5, rel: 0.0 }
        );
    }
}
