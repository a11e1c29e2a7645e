//! Values back as Python literals, which [`super::parse`] reads to the same value.

use crate::value::Value;

impl Value {
    /// The value as a Python literal (`inf` as `1e999`, NaN as `nan`, something that is not data as `<type>`).
    pub fn to_literal(&self) -> String {
        let mut out = String::new();
        self.print(&mut out);
        out
    }

    fn print(&self, out: &mut String) {
        match self {
            Value::None => out.push_str("None"),
            Value::Bool(true) => out.push_str("True"),
            Value::Bool(false) => out.push_str("False"),
            Value::Int(n) => out.push_str(n.as_str()),
            Value::Float(x) => out.push_str(&float(*x)),
            Value::Complex(re, im) => complex(*re, *im, out),
            Value::Str(s) => quoted(s, out),
            Value::Bytes(b) => bytes(b, out),
            Value::Tuple(items) if items.len() == 1 => list("(", items, ",)", out),
            Value::Tuple(items) => list("(", items, ")", out),
            Value::List(items) => list("[", items, "]", out),
            Value::Set(items) if items.is_empty() => out.push_str("set()"),
            Value::Set(items) => list("{", items, "}", out),
            Value::FrozenSet(items) if items.is_empty() => out.push_str("frozenset()"),
            Value::FrozenSet(items) => list("frozenset({", items, "})", out),
            Value::Dict(pairs) => dict(pairs, out),
            Value::Range(start, stop, 1) => out.push_str(&format!("range({start}, {stop})")),
            Value::Range(start, stop, step) => out.push_str(&format!("range({start}, {stop}, {step})")),
            Value::Record { type_name, fields } => record(type_name, fields, out),
            Value::Enum { type_name, member } => out.push_str(&format!("{type_name}.{member}")),
            Value::Opaque { type_name } => {
                out.push('<');
                out.push_str(type_name);
                out.push('>');
            }
        }
    }
}

fn float(x: f64) -> String {
    if x.is_nan() {
        "nan".to_owned()
    } else if x.is_infinite() {
        if x > 0.0 { "1e999" } else { "-1e999" }.to_owned()
    } else {
        format!("{x:?}")
    }
}

fn complex(re: f64, im: f64, out: &mut String) {
    let imaginary = float(im);
    let sign = if imaginary.starts_with('-') { "" } else { "+" };
    out.push_str(&format!("({}{sign}{imaginary}j)", float(re)));
}

fn list(open: &str, items: &[Value], close: &str, out: &mut String) {
    out.push_str(open);
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        item.print(out);
    }
    out.push_str(close);
}

fn record(type_name: &str, fields: &[(String, Value)], out: &mut String) {
    out.push_str(type_name);
    out.push('(');
    for (i, (name, value)) in fields.iter().enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        if !name.is_empty() {
            out.push_str(name);
            out.push('=');
        }
        value.print(out);
    }
    out.push(')');
}

fn dict(pairs: &[(Value, Value)], out: &mut String) {
    out.push('{');
    for (i, (key, value)) in pairs.iter().enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        key.print(out);
        out.push_str(": ");
        value.print(out);
    }
    out.push('}');
}

fn quoted(text: &str, out: &mut String) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() && (c as u32) < 0x100 => out.push_str(&format!("\\x{:02x}", c as u32)),
            '\u{2028}' | '\u{2029}' | '\u{feff}' => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push(quote);
}

fn bytes(data: &[u8], out: &mut String) {
    out.push_str("b'");
    for byte in data {
        match byte {
            b'\\' => out.push_str("\\\\"),
            b'\'' => out.push_str("\\'"),
            0x20..=0x7e => out.push(*byte as char),
            _ => out.push_str(&format!("\\x{byte:02x}")),
        }
    }
    out.push('\'');
}
