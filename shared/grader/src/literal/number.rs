//! Numbers: integers in four bases, floats, imaginary numbers, with underscores where Python allows them.

use super::{LiteralError, Parser};
use crate::int::Int;
use crate::value::Value;

impl Parser<'_> {
    pub(super) fn number(&mut self) -> Result<Value, LiteralError> {
        let value = match self.rest() {
            [b'0', b'x' | b'X', ..] => self.based(16)?,
            [b'0', b'o' | b'O', ..] => self.based(8)?,
            [b'0', b'b' | b'B', ..] => self.based(2)?,
            _ => self.decimal()?,
        };
        if self.peek().is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'.' || !b.is_ascii()) {
            return Err(self.error("a number runs into other text"));
        }
        self.skip();
        Ok(value)
    }

    fn based(&mut self, radix: u32) -> Result<Value, LiteralError> {
        self.at += 2;
        if self.peek() == Some(b'_') {
            self.at += 1;
        }
        let digits = self.digits(|b| (b as char).is_digit(radix))?;
        self.int(&digits, radix)
    }

    fn decimal(&mut self) -> Result<Value, LiteralError> {
        let start = self.at;
        let whole = if self.peek() == Some(b'.') { String::new() } else { self.digits(|b| b.is_ascii_digit())? };
        let mut text = whole.clone();
        let mut float = false;
        if self.peek() == Some(b'.') {
            float = true;
            self.at += 1;
            text.push('.');
            if self.peek().is_some_and(|b| b.is_ascii_digit()) {
                text += &self.digits(|b| b.is_ascii_digit())?;
            } else if whole.is_empty() {
                return Err(self.error("a point without digits"));
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            float = true;
            self.at += 1;
            text.push('e');
            if let Some(sign @ (b'+' | b'-')) = self.peek() {
                self.at += 1;
                text.push(sign as char);
            }
            text += &self.digits(|b| b.is_ascii_digit())?;
        }
        let imaginary = matches!(self.peek(), Some(b'j' | b'J'));
        if !float && !imaginary {
            if whole.starts_with('0') && whole.bytes().any(|b| b != b'0') {
                return Err(LiteralError { at: start, what: "an integer with leading zeros" });
            }
            return self.int(&whole, 10);
        }
        let x: f64 = text.parse().map_err(|_| LiteralError { at: start, what: "a malformed float" })?;
        if imaginary {
            self.at += 1;
            return Ok(Value::Complex(0.0, x));
        }
        Ok(Value::Float(x))
    }

    fn int(&self, digits: &str, radix: u32) -> Result<Value, LiteralError> {
        Int::from_digits(false, digits, radix)
            .map(Value::Int)
            .ok_or_else(|| self.error("an integer with too many digits"))
    }

    /// Digits with single underscores between them, which are dropped.
    fn digits(&mut self, is_digit: impl Fn(u8) -> bool) -> Result<String, LiteralError> {
        let mut out = String::new();
        while let Some(byte) = self.peek() {
            let between = byte == b'_' && !out.is_empty() && self.rest().get(1).is_some_and(|b| is_digit(*b));
            if is_digit(byte) {
                out.push(byte as char);
            } else if !between {
                break;
            }
            self.at += 1;
        }
        if out.is_empty() { Err(self.error("expected digits")) } else { Ok(out) }
    }
}
