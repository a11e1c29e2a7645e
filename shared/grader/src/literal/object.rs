//! Objects written as their class's name and parts: `Point(x=1, y=2)`, `Color.RED`, `Decimal('1.5')`, `range(3)`.

use super::{LiteralError, Parser};
use crate::value::Value;

/// Classes of the standard library that are told by parts without a name: how many there may be, and how many there are.
const BY_PARTS: &[(&str, usize, usize)] = &[
    ("Decimal", 1, 1),
    ("Fraction", 2, 2),
    ("date", 3, 3),
    ("time", 0, 4),
    ("datetime", 3, 7),
    ("timedelta", 0, 3),
    ("deque", 1, 1),
];

impl Parser<'_> {
    /// What begins with a name that is no word of the literals: `name` is consumed, and began at `start`.
    pub(super) fn object(&mut self, name: &str, start: usize) -> Result<Value, LiteralError> {
        let (owner, last) = name.rsplit_once('.').map_or(("", name), |(owner, last)| (owner, last));
        let is_class = last.starts_with(|c: char| c.is_ascii_uppercase());
        let known = BY_PARTS.iter().any(|(known, ..)| *known == last);
        if self.peek() == Some(b'(') && (last == "range" || known || is_class) {
            self.eat(b'(');
            return self.deeper(|p| p.parts(last, start));
        }
        let class = owner.rsplit('.').next().unwrap_or(owner);
        if self.peek() != Some(b'(') && class.starts_with(|c: char| c.is_ascii_uppercase()) && !last.is_empty() {
            return Ok(Value::Enum { type_name: class.to_owned(), member: last.to_owned() });
        }
        Err(LiteralError { at: start, what: "a name is no literal" })
    }

    fn parts(&mut self, class: &str, start: usize) -> Result<Value, LiteralError> {
        let fail = |what| Err(LiteralError { at: start, what });
        let mut fields: Vec<(String, Value)> = Vec::new();
        while !self.eat(b')') {
            let name = self.keyword();
            if !name.is_empty() && fields.iter().any(|(known, _)| *known == name) {
                return fail("a field is given twice");
            }
            let value = self.expression()?;
            fields.push((name, value));
            if !self.eat(b',') && self.peek() != Some(b')') {
                return Err(self.error("expected , or )"));
            }
        }
        if class == "range" {
            return range(&fields).map_or_else(|| fail("range() takes one to three small integers"), Ok);
        }
        if let Some((_, least, all)) = BY_PARTS.iter().find(|(known, ..)| *known == class) {
            if fields.len() < *least || fields.len() > *all || fields.iter().any(|(name, _)| !name.is_empty()) {
                return fail("parts of this class are given without names, see the documentation of Value::Record");
            }
            fields.resize(*all, (String::new(), Value::int(0)));
            if class == "deque" && !matches!(fields[0].1, Value::List(_)) {
                return fail("a deque is made of a list");
            }
            if class == "Decimal" && !matches!(fields[0].1, Value::Str(_)) {
                return fail("a Decimal is made of a string");
            }
        } else if fields.iter().any(|(name, _)| name.is_empty()) {
            return fail("fields are given by name");
        }
        Ok(Value::Record { type_name: class.to_owned(), fields })
    }

    /// The name before `=`, consumed with it; empty where there is none.
    fn keyword(&mut self) -> String {
        let length = self.rest().iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
        let name = &self.text[self.at..self.at + length];
        let behind = self.text[self.at + length..].trim_start_matches([' ', '\t']);
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || !behind.starts_with('=') {
            return String::new();
        }
        self.at += length;
        self.skip();
        self.eat(b'=');
        name.to_owned()
    }
}

fn range(fields: &[(String, Value)]) -> Option<Value> {
    let bounds: Option<Vec<i64>> = fields
        .iter()
        .map(|(name, value)| match value {
            Value::Int(n) if name.is_empty() => n.as_str().parse().ok(),
            _ => None,
        })
        .collect();
    match bounds?[..] {
        [stop] => Some(Value::Range(0, stop, 1)),
        [start, stop] => Some(Value::Range(start, stop, 1)),
        [_, _, 0] => None,
        [start, stop, step] => Some(Value::Range(start, stop, step)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::literal::parse;

    #[test]
    fn written_and_printed() {
        for (text, want) in [
            ("Point(x=1, y = [2],)", "Point(x=1, y=[2])"),
            ("pkg.Point(x=Point(x=None))", "Point(x=Point(x=None))"),
            ("Empty()", "Empty()"),
            ("Color.RED", "Color.RED"),
            ("[shapes.Color.RED, 1]", "[Color.RED, 1]"),
            ("range(3)", "range(0, 3)"),
            ("range(1, 3)", "range(1, 3)"),
            ("range(3, 1, -1)", "range(3, 1, -1)"),
            ("Decimal('1.50')", "Decimal('1.50')"),
            ("decimal.Decimal('1')", "Decimal('1')"),
            ("Fraction(-1, 2)", "Fraction(-1, 2)"),
            ("datetime.datetime(2020, 1, 2, 3)", "datetime(2020, 1, 2, 3, 0, 0, 0)"),
            ("timedelta(1)", "timedelta(1, 0, 0)"),
            ("deque([1, 2])", "deque([1, 2])"),
        ] {
            assert_eq!(parse(text).unwrap().to_literal(), want, "{text}");
        }
    }

    #[test]
    fn refused() {
        for text in [
            "point(x=1)",
            "Point(1)",
            "Point(x=1, x=2)",
            "Point(x=1 y=2)",
            "Point(x=)",
            "Point(x=1",
            "color.RED",
            "Color.",
            "Color.red.value()",
            "range()",
            "range(1, 2, 0)",
            "range('a')",
            "range(99999999999999999999)",
            "range(stop=1)",
            "Decimal(1)",
            "Decimal(value='1')",
            "date(2020)",
            "deque('ab')",
            "timedelta(hours=1)",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse(&"P(x=".repeat(200_000)).is_err());
    }
}
