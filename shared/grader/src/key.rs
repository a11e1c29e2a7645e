//! Python's equality as equality of texts.

use crate::int::Int;
use crate::value::{Value, range_len};

impl Value {
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
            Value::Range(start, stop, step) => range_key(*start, *stop, *step, out),
            Value::Record { type_name, fields } => record_key(type_name, fields, out),
            Value::Enum { type_name, member } => {
                out.push_str(&format!("e{}:{type_name}.{}:{member}", type_name.len(), member.len()));
            }
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

/// Two ranges are equal if they run over the same numbers.
fn range_key(start: i64, stop: i64, step: i64, out: &mut String) {
    out.push_str(&match range_len(start, stop, step) {
        0 => "r".to_owned(),
        1 => format!("r{start}"),
        n => format!("r{start},{step},{n}"),
    });
}

fn record_key(type_name: &str, fields: &[(String, Value)], out: &mut String) {
    match (type_name, fields) {
        ("Decimal", [(_, Value::Str(text))]) => return out.push_str(&decimal_key(text)),
        ("Fraction", [(_, n), (_, Value::Int(one))]) if one.as_str() == "1" => return n.write_key(out),
        _ => out.push_str(&format!("R{}:{type_name}(", type_name.len())),
    }
    for (name, value) in fields {
        push_sized(name, out);
        value.write_key(out);
        out.push(',');
    }
    out.push(')');
}

/// `Decimal('1.50')` and `Decimal('15E-1')` are equal, and `Decimal('2')` is 2. Written out only where it is short.
fn decimal_key(text: &str) -> String {
    let verbatim = || format!("D{text}");
    let (negative, rest) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (mantissa, exponent) = rest.split_once(['E', 'e']).unwrap_or((rest, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let Ok(exponent) = exponent.trim_start_matches('+').parse::<i64>() else { return verbatim() };
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return verbatim(); // NaN, Infinity
    }
    let significant = digits.trim_start_matches('0').trim_end_matches('0');
    let zeros = digits.len() - digits.trim_end_matches('0').len();
    let exponent = exponent.saturating_sub(fraction.len() as i64).saturating_add(zeros as i64);
    let sign = if negative { "-" } else { "" };
    match exponent {
        _ if significant.is_empty() => "0".to_owned(),
        0..=400 => format!("{sign}{significant}{}", "0".repeat(exponent as usize)),
        _ => format!("D{sign}{significant}e{exponent}"),
    }
}

#[cfg(test)]
mod tests {
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
            ("range(0, 3, 2)", "range(0, 4, 2)"),
            ("range(5, 1)", "range(0)"),
            ("P(x=1, y=[2])", "P(x=1.0, y=[2])"),
            ("Decimal('1.50')", "Decimal('15E-1')"),
            ("Decimal('-0')", "0"),
            ("Decimal('1E+2')", "100"),
            ("Fraction(3, 1)", "3"),
            ("date(2020, 1, 2)", "datetime.date(2020, 1, 2)"),
            ("datetime(2020, 1, 2)", "datetime(2020, 1, 2, 0, 0)"),
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
            ("range(3)", "[0, 1, 2]"),
            ("range(3)", "range(4)"),
            ("P(x=1)", "Q(x=1)"),
            ("P(x=1)", "P(y=1)"),
            ("P(x=1)", "P(x=1, y=1)"),
            ("Color.RED", "Color.BLUE"),
            ("Color.RED", "'RED'"),
            ("Decimal('NaN')", "Decimal('1')"),
            ("Decimal('1.5')", "Decimal('15')"),
            ("Fraction(1, 2)", "Fraction(2, 1)"),
            ("deque([1])", "[1]"),
            ("0.1", "0.10000000000000002"),
        ] {
            assert_ne!(key(a), key(b), "{a} != {b}");
        }
    }
}
