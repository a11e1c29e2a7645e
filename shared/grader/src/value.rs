//! Python data as the trusted side holds it.
//!
//! In: literals of tasks and what workers return. Out: Python literals and canonical keys. What must hold: a value is at
//! most about a hundred levels deep (the parser and the decoder see to it), so recursion over it is safe; two values that
//! Python's `==` calls equal have the same key, and the other way round.

use crate::int::Int;

/// A Python value that is plain data. Subclasses of built-in types arrive as their base. `PartialEq` is structural (types
/// count, order in sets counts); Python's equality is [`Value::key`].
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `None`
    None,
    /// `bool`
    Bool(bool),
    /// `int` of any size
    Int(Int),
    /// `float`
    Float(f64),
    /// `complex`: real and imaginary part
    Complex(f64, f64),
    /// `str` without lone surrogates
    Str(String),
    /// `bytes` or `bytearray`
    Bytes(Vec<u8>),
    /// `tuple`
    Tuple(Vec<Value>),
    /// `list`
    List(Vec<Value>),
    /// `set`, elements in no meaningful order
    Set(Vec<Value>),
    /// `frozenset`, elements in no meaningful order
    FrozenSet(Vec<Value>),
    /// `dict`, in insertion order
    Dict(Vec<(Value, Value)>),
    /// Something that is not data: it equals nothing, not even itself.
    Opaque {
        /// The name of its Python type, as the worker tells it.
        type_name: String,
    },
}

impl Value {
    /// A value for an integer.
    pub fn int(n: i64) -> Value {
        Value::Int(Int::from(n))
    }

    /// A value for a string.
    pub fn str(text: &str) -> Value {
        Value::Str(text.to_owned())
    }

    /// The name of the Python type.
    pub fn type_name(&self) -> &str {
        match self {
            Value::None => "NoneType",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Float(_) => "float",
            Value::Complex(..) => "complex",
            Value::Str(_) => "str",
            Value::Bytes(_) => "bytes",
            Value::Tuple(_) => "tuple",
            Value::List(_) => "list",
            Value::Set(_) => "set",
            Value::FrozenSet(_) => "frozenset",
            Value::Dict(_) => "dict",
            Value::Opaque { type_name } => type_name,
        }
    }

    /// Whether Python could put it into a set.
    pub fn is_hashable(&self) -> bool {
        match self {
            Value::List(_) | Value::Set(_) | Value::Dict(_) | Value::Opaque { .. } => false,
            Value::Tuple(items) => items.iter().all(Value::is_hashable),
            _ => true,
        }
    }

    /// Whether something inside is not data.
    pub fn has_opaque(&self) -> bool {
        match self {
            Value::Opaque { .. } => true,
            Value::Tuple(items) | Value::List(items) | Value::Set(items) | Value::FrozenSet(items) => {
                items.iter().any(Value::has_opaque)
            }
            Value::Dict(pairs) => pairs.iter().any(|(k, v)| k.has_opaque() || v.has_opaque()),
            _ => false,
        }
    }

    /// What `bool(value)` is in Python; `None` for something that is not data.
    pub fn truth(&self) -> Option<bool> {
        Some(match self {
            Value::None => false,
            Value::Bool(b) => *b,
            Value::Int(n) => !n.is_zero(),
            Value::Float(x) => *x != 0.0,
            Value::Complex(re, im) => *re != 0.0 || *im != 0.0,
            Value::Str(s) => !s.is_empty(),
            Value::Bytes(b) => !b.is_empty(),
            Value::Tuple(items) | Value::List(items) | Value::Set(items) | Value::FrozenSet(items) => !items.is_empty(),
            Value::Dict(pairs) => !pairs.is_empty(),
            Value::Opaque { .. } => return None,
        })
    }

    /// What `iter(value)` runs over in Python; `None` where there is nothing to iterate.
    pub fn elements(&self) -> Option<Vec<Value>> {
        Some(match self {
            Value::Tuple(items) | Value::List(items) | Value::Set(items) | Value::FrozenSet(items) => items.clone(),
            Value::Dict(pairs) => pairs.iter().map(|(k, _)| k.clone()).collect(),
            Value::Str(s) => s.chars().map(|c| Value::Str(c.to_string())).collect(),
            Value::Bytes(b) => b.iter().map(|b| Value::int(i64::from(*b))).collect(),
            _ => return None,
        })
    }

    /// A text that is the same for two values exactly if Python calls them equal: `1 == 1.0 == True`, a tuple is not a
    /// list, sets and dicts have no order. Two deviations, both on purpose: NaN equals NaN, and an [`Value::Opaque`] has
    /// a key here (callers refuse it first, see [`Value::has_opaque`]).
    pub fn key(&self) -> String {
        let mut out = String::new();
        self.write_key(&mut out);
        out
    }

    fn write_key(&self, out: &mut String) {
        match self {
            Value::None => out.push('N'),
            Value::Bool(b) => number_key(f64::from(u8::from(*b)), out),
            Value::Int(n) => out.push_str(n.as_str()),
            Value::Float(x) => number_key(*x, out),
            Value::Complex(re, im) if *im == 0.0 => number_key(*re, out),
            Value::Complex(re, im) => {
                out.push('c');
                number_key(*re, out);
                out.push('&');
                number_key(*im, out);
            }
            Value::Str(s) => out.push_str(&format!("s{}:{s}", s.len())),
            Value::Bytes(b) => out.push_str(&format!("b{b:?}")),
            Value::Tuple(items) => list_key('(', items, out),
            Value::List(items) => list_key('[', items, out),
            Value::Set(items) | Value::FrozenSet(items) => {
                let mut keys: Vec<String> = items.iter().map(Value::key).collect();
                keys.sort_unstable();
                keys.dedup();
                out.push('{');
                keys.iter().for_each(|key| push_sized(key, out));
                out.push('}');
            }
            Value::Dict(pairs) => dict_key(pairs, out),
            Value::Opaque { type_name } => out.push_str(&format!("o{}:{type_name}", type_name.len())),
        }
    }
}

fn number_key(x: f64, out: &mut String) {
    match Int::from_float(x) {
        Some(n) => out.push_str(n.as_str()),
        None if x.is_nan() => out.push_str("nan"),
        None => out.push_str(&format!("{x:?}")),
    }
}

fn list_key(open: char, items: &[Value], out: &mut String) {
    out.push(open);
    for item in items {
        item.write_key(out);
        out.push(',');
    }
    out.push(')');
}

/// Keys with their lengths, so that no text inside can pretend to be structure.
fn push_sized(key: &str, out: &mut String) {
    out.push_str(&format!("{}:{key},", key.len()));
}

fn dict_key(pairs: &[(Value, Value)], out: &mut String) {
    // A BTreeMap sorts, and of two equal keys the later one wins, as in Python.
    let sorted: std::collections::BTreeMap<String, String> = pairs.iter().map(|(k, v)| (k.key(), v.key())).collect();
    out.push('d');
    for (k, v) in &sorted {
        push_sized(k, out);
        push_sized(v, out);
    }
    out.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(literal: &str) -> String {
        crate::literal::parse(literal).unwrap().key()
    }

    #[test]
    fn python_equality() {
        // Each pair was asked of CPython 3.11.
        for (a, b) in [
            ("1", "1.0"),
            ("True", "1"),
            ("0", "False"),
            ("-0.0", "0"),
            ("(1+0j)", "1"),
            ("{1, 2}", "frozenset({2, 1.0})"),
            ("{1: 'a', 2: 'b'}", "{2: 'b', 1.0: 'a'}"),
            ("[1, [2]]", "[True, [2.0]]"),
            ("1e23", "99999999999999991611392"),
            ("'a' 'b'", "'ab'"),
            ("{(1, 2)}", "{(1.0, 2)}"),
        ] {
            assert_eq!(key(a), key(b), "{a} == {b}");
        }
        for (a, b) in [
            ("1", "'1'"),
            ("(1,)", "[1]"),
            ("''", "b''"),
            ("None", "0"),
            ("None", "False"),
            ("[]", "()"),
            ("{}", "set()"),
            ("1e23", "100000000000000000000000"),
            ("[12]", "[1, 2]"),
            ("['a,b']", "['a', 'b']"),
            ("9007199254740993", "9007199254740992.0"),
            ("[[1], 2]", "[[1, 2]]"),
            ("(1,)", "1"),
            ("{'a': 1}", "{'a': 2}"),
            ("['s1:a']", "['s1', 'a']"),
            ("inf", "-inf"),
            ("0.1", "0.10000000000000002"),
        ] {
            assert_ne!(key(a), key(b), "{a} != {b}");
        }
    }

    #[test]
    fn truth_as_python() {
        for (literal, truth) in [
            ("0", false),
            ("0.0", false),
            ("''", false),
            ("'0'", true),
            ("[]", false),
            ("[0]", true),
            ("None", false),
            ("0j", false),
            ("nan", true),
        ] {
            assert_eq!(crate::literal::parse(literal).unwrap().truth(), Some(truth), "{literal}");
        }
        assert_eq!(Value::Opaque { type_name: "x".into() }.truth(), None);
    }
}
