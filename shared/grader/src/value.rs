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
    /// `range`: start, stop and step
    Range(i64, i64, i64),
    /// An object told by its class's name and its parts: a dataclass by its fields, a `Decimal`, `Fraction`, `date`, `time`,
    /// `datetime`, `timedelta` or `deque` by parts without a name.
    Record {
        /// The name of its class.
        type_name: String,
        /// Name and value of each part, in the order of the class.
        fields: Vec<(String, Value)>,
    },
    /// A member of an enumeration that is not an `int` or `str` itself
    Enum {
        /// The name of its class.
        type_name: String,
        /// The member's name.
        member: String,
    },
    /// Something that is not data: it equals nothing, not even itself.
    Opaque {
        /// The name of its Python type, as the worker tells it.
        type_name: String,
    },
}

/// The longest range that is written out.
const MAX_ELEMENTS: i64 = 1_000_000;

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
            Value::Range(..) => "range",
            Value::Record { type_name, .. } | Value::Enum { type_name, .. } | Value::Opaque { type_name } => type_name,
        }
    }

    /// Whether Python could put it into a set.
    pub fn is_hashable(&self) -> bool {
        match self {
            Value::List(_) | Value::Set(_) | Value::Dict(_) | Value::Opaque { .. } => false,
            Value::Tuple(items) => items.iter().all(Value::is_hashable),
            Value::Record { fields, .. } => fields.iter().all(|(_, v)| v.is_hashable()),
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
            Value::Record { fields, .. } => fields.iter().any(|(_, v)| v.has_opaque()),
            _ => false,
        }
    }

    /// What `bool(value)` is in Python; `None` where a class of its own would have to say.
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
            Value::Range(start, stop, step) => range_len(*start, *stop, *step) > 0,
            Value::Record { .. } | Value::Enum { .. } | Value::Opaque { .. } => return None,
        })
    }

    /// What `iter(value)` runs over in Python; `None` where there is nothing to iterate.
    pub fn elements(&self) -> Option<Vec<Value>> {
        Some(match self {
            Value::Tuple(items) | Value::List(items) | Value::Set(items) | Value::FrozenSet(items) => items.clone(),
            Value::Dict(pairs) => pairs.iter().map(|(k, _)| k.clone()).collect(),
            Value::Str(s) => s.chars().map(|c| Value::Str(c.to_string())).collect(),
            Value::Bytes(b) => b.iter().map(|b| Value::int(i64::from(*b))).collect(),
            Value::Range(start, stop, step) => {
                let count = i64::try_from(range_len(*start, *stop, *step)).ok().filter(|n| *n <= MAX_ELEMENTS)?;
                let (start, step) = (i128::from(*start), i128::from(*step));
                // Each lies between start and stop; only the way there may leave 64 bits.
                let element = |i: i64| i64::try_from(start + i128::from(i) * step).unwrap_or(*stop);
                (0..count).map(|i| Value::int(element(i))).collect()
            }
            Value::Record { type_name, fields } if type_name == "deque" => match &fields[..] {
                [(_, Value::List(items))] => items.clone(),
                _ => return None,
            },
            _ => return None,
        })
    }
}

/// `len(range(start, stop, step))`; a step of zero, which Python refuses, has no elements.
pub(crate) fn range_len(start: i64, stop: i64, step: i64) -> i128 {
    let (start, stop, step) = (i128::from(start), i128::from(stop), i128::from(step));
    match step {
        0 => 0,
        _ if (stop - start).signum() != step.signum() => 0,
        _ => (stop - start + step - step.signum()) / step,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn ranges_run_to_the_ends_of_64_bits() {
        let (least, most) = (i64::MIN, i64::MAX);
        let ints = |n: &[i64]| Some(n.iter().copied().map(Value::int).collect::<Vec<_>>());
        assert_eq!(Value::Range(least, most, most).elements(), ints(&[least, -1, most - 1]));
        assert_eq!(Value::Range(most, least, least).elements(), ints(&[most, -1]));
        assert_eq!(Value::Range(0, most, 1).elements(), None);
    }
}
