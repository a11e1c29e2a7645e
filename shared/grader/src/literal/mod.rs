//! A parser of Python literals, as `ast.literal_eval` reads them, and the way back.
//!
//! In: text from task files (untrusted). Out: a [`Value`], or an error with its byte position. What must hold: bounded
//! depth and size, no panic on any text, sets and dicts free of duplicates as Python would leave them.
//!
//! Objects are written as their class's name and parts: `Point(x=1, y=2)` (a dataclass, fields by name), `Color.RED`,
//! `range(0, 3)`, `Decimal('1.5')`, `Fraction(1, 2)`, `date(2020, 1, 2)`, `time(..)`, `datetime(..)`, `timedelta(days,
//! seconds, microseconds)`, `deque([1])`. A class's name begins with a capital, whatever module is written before it.
//!
//! Beyond `ast.literal_eval`: bare `inf` and `nan` (also `infj`, `nanj`), `float('inf')`, `frozenset({..})`, comments and
//! line breaks anywhere. Short of it: `\N{name}` and lone surrogates are errors.

mod number;
mod object;
mod print;
mod string;

use crate::value::Value;
use std::collections::HashMap;

/// How deep brackets may nest.
pub const MAX_DEPTH: usize = 100;
/// How long a literal may be, in bytes.
pub const MAX_BYTES: usize = 4 << 20;

/// Why a text is no literal, and where. The task is to be given up or mended; trying again changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {at}: write a python literal")]
pub struct LiteralError {
    /// Byte offset into the text.
    pub at: usize,
    /// What is wrong there.
    pub what: &'static str,
}

/// Reads one Python literal; a bare `1, 2` is a tuple, as in Python.
pub fn parse(text: &str) -> Result<Value, LiteralError> {
    if text.len() > MAX_BYTES {
        return Err(LiteralError { at: MAX_BYTES, what: "literal is too long" });
    }
    let mut parser = Parser { text, at: 0, depth: 0 };
    parser.skip();
    let first = parser.expression()?;
    let value = if parser.peek() == Some(b',') { parser.bare_tuple(first)? } else { first };
    if parser.at < text.len() { Err(parser.error("unexpected text after the literal")) } else { Ok(value) }
}

/// Invariant: after every rule, white space and comments behind it are consumed.
pub(crate) struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn error(&self, what: &'static str) -> LiteralError {
        LiteralError { at: self.at, what }
    }

    fn rest(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.at..]
    }

    fn peek(&self) -> Option<u8> {
        self.rest().first().copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        if there {
            self.at += 1;
            self.skip();
        }
        there
    }

    fn skip(&mut self) {
        while let Some(byte) = self.peek() {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' | 0x0c => self.at += 1,
                b'\\' if matches!(self.rest().get(1), Some(b'\n' | b'\r')) => self.at += 2,
                b'#' => self.at += self.rest().iter().position(|b| *b == b'\n').unwrap_or(self.rest().len()),
                _ => return,
            }
        }
    }

    fn deeper<T>(&mut self, rule: impl FnOnce(&mut Self) -> Result<T, LiteralError>) -> Result<T, LiteralError> {
        if self.depth >= MAX_DEPTH {
            return Err(self.error("nested too deeply"));
        }
        self.depth += 1;
        let result = rule(self);
        self.depth -= 1;
        result
    }

    /// A signed atom, or a real number plus or minus an imaginary one.
    fn expression(&mut self) -> Result<Value, LiteralError> {
        let left = self.signed()?;
        let minus = match self.peek() {
            Some(b'+') => false,
            Some(b'-') => true,
            _ => return Ok(left),
        };
        let real = match &left {
            Value::Int(n) => n.to_f64(),
            Value::Float(x) => *x,
            _ => return Err(self.error("only a number and an imaginary number can be added")),
        };
        self.eat(if minus { b'-' } else { b'+' });
        let at = self.at;
        match self.atom()? {
            Value::Complex(0.0, im) => Ok(Value::Complex(real, if minus { -im } else { im })),
            _ => Err(LiteralError { at, what: "only a number and an imaginary number can be added" }),
        }
    }

    fn signed(&mut self) -> Result<Value, LiteralError> {
        if self.eat(b'-') {
            let value = self.deeper(Self::signed)?;
            return match value {
                Value::Int(n) => Ok(Value::Int(n.negated())),
                Value::Float(x) => Ok(Value::Float(-x)),
                Value::Complex(re, im) => Ok(Value::Complex(-re, -im)),
                _ => Err(self.error("a sign needs a number")),
            };
        }
        if self.eat(b'+') {
            let value = self.deeper(Self::signed)?;
            let number = matches!(value, Value::Int(_) | Value::Float(_) | Value::Complex(..));
            return if number { Ok(value) } else { Err(self.error("a sign needs a number")) };
        }
        self.atom()
    }

    fn atom(&mut self) -> Result<Value, LiteralError> {
        match self.peek() {
            None => Err(self.error("unexpected end")),
            Some(b'(') => self.deeper(Self::parenthesis),
            Some(b'[') => {
                self.eat(b'[');
                Ok(Value::List(self.deeper(|p| p.items(b']'))?))
            }
            Some(b'{') => self.deeper(Self::brace),
            Some(b'0'..=b'9' | b'.') => self.number(),
            Some(b'\'' | b'"') => self.strings(),
            Some(byte) if byte.is_ascii_alphabetic() || byte == b'_' => self.word(),
            Some(_) => Err(self.error("unexpected character")),
        }
    }

    fn word(&mut self) -> Result<Value, LiteralError> {
        let start = self.at;
        let length = self.rest().iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
        let word = &self.text[start..start + length];
        if matches!(self.rest().get(length), Some(b'\'' | b'"')) {
            return self.strings();
        }
        self.at += length;
        self.skip();
        match word {
            "None" => Ok(Value::None),
            "True" => Ok(Value::Bool(true)),
            "False" => Ok(Value::Bool(false)),
            "inf" | "Infinity" => Ok(Value::Float(f64::INFINITY)),
            "nan" | "NaN" => Ok(Value::Float(f64::NAN)),
            "infj" => Ok(Value::Complex(0.0, f64::INFINITY)),
            "nanj" => Ok(Value::Complex(0.0, f64::NAN)),
            "set" | "frozenset" | "float" if self.peek() == Some(b'(') => {
                self.eat(b'(');
                self.deeper(|p| p.constructor(word))
            }
            _ => {
                // A dotted name, so that `datetime.date(..)` and `Color.RED` are read.
                while self.peek() == Some(b'.') && self.rest().get(1).is_some_and(u8::is_ascii_alphabetic) {
                    self.at += 1;
                    self.at += self.rest().iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
                }
                let name = self.text[start..self.at].trim_end().to_owned();
                self.skip();
                self.object(&name, start)
            }
        }
    }

    /// `set()`, `frozenset()`, `frozenset({..})`, `float('inf')`.
    fn constructor(&mut self, word: &str) -> Result<Value, LiteralError> {
        let at = self.at;
        let mut items = self.items(b')')?;
        let argument = items.pop();
        if !items.is_empty() {
            return Err(LiteralError { at, what: "one argument at most" });
        }
        let contents = match (word, argument) {
            ("float", Some(Value::Str(text))) => {
                return match text.trim().to_ascii_lowercase().as_str() {
                    "inf" | "infinity" | "+inf" => Ok(Value::Float(f64::INFINITY)),
                    "-inf" | "-infinity" => Ok(Value::Float(f64::NEG_INFINITY)),
                    "nan" => Ok(Value::Float(f64::NAN)),
                    _ => Err(LiteralError { at, what: "float() takes 'inf', '-inf' or 'nan' here" }),
                };
            }
            ("float", _) => return Err(LiteralError { at, what: "float() takes 'inf', '-inf' or 'nan' here" }),
            (_, None) => Vec::new(),
            (_, Some(Value::Set(items) | Value::FrozenSet(items) | Value::List(items) | Value::Tuple(items))) => items,
            _ => return Err(LiteralError { at, what: "a set is made of a set, a list or a tuple" }),
        };
        let contents = self.distinct(contents)?;
        Ok(if word == "set" { Value::Set(contents) } else { Value::FrozenSet(contents) })
    }

    fn parenthesis(&mut self) -> Result<Value, LiteralError> {
        self.eat(b'(');
        if self.eat(b')') {
            return Ok(Value::Tuple(Vec::new()));
        }
        let first = self.expression()?;
        if self.eat(b')') {
            return Ok(first);
        }
        if !self.eat(b',') {
            return Err(self.error("expected , or )"));
        }
        let mut items = vec![first];
        items.extend(self.items(b')')?);
        Ok(Value::Tuple(items))
    }

    fn bare_tuple(&mut self, first: Value) -> Result<Value, LiteralError> {
        let mut items = vec![first];
        while self.eat(b',') {
            if self.at == self.text.len() {
                break;
            }
            items.push(self.expression()?);
        }
        Ok(Value::Tuple(items))
    }

    /// Comma-separated expressions up to the closing bracket, whose opening one is consumed.
    fn items(&mut self, close: u8) -> Result<Vec<Value>, LiteralError> {
        let mut items = Vec::new();
        loop {
            if self.eat(close) {
                return Ok(items);
            }
            items.push(self.expression()?);
            if !self.eat(b',') && self.peek() != Some(close) {
                return Err(self.error("expected , or a closing bracket"));
            }
        }
    }

    fn brace(&mut self) -> Result<Value, LiteralError> {
        self.eat(b'{');
        if self.eat(b'}') {
            return Ok(Value::Dict(Vec::new()));
        }
        let first = self.expression()?;
        if self.peek() == Some(b':') {
            return self.dict(first);
        }
        let mut items = vec![first];
        if self.eat(b',') {
            items.extend(self.items(b'}')?);
        } else if !self.eat(b'}') {
            return Err(self.error("expected , or }"));
        }
        Ok(Value::Set(self.distinct(items)?))
    }

    fn dict(&mut self, first: Value) -> Result<Value, LiteralError> {
        let mut pairs: Vec<(Value, Value)> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        let mut key = first;
        loop {
            if !key.is_hashable() {
                return Err(self.error("an unhashable dict key"));
            }
            if !self.eat(b':') {
                return Err(self.error("expected :"));
            }
            let value = self.expression()?;
            let place = *places.entry(key.key()).or_insert(pairs.len());
            match pairs.get_mut(place) {
                Some(pair) => pair.1 = value,
                None => pairs.push((key, value)),
            }
            let comma = self.eat(b',');
            if self.eat(b'}') {
                return Ok(Value::Dict(pairs));
            }
            if !comma {
                return Err(self.error("expected , or }"));
            }
            key = self.expression()?;
        }
    }

    fn distinct(&self, items: Vec<Value>) -> Result<Vec<Value>, LiteralError> {
        if !items.iter().all(Value::is_hashable) {
            return Err(self.error("an unhashable set element"));
        }
        let mut seen = std::collections::HashSet::new();
        Ok(items.into_iter().filter(|item| seen.insert(item.key())).collect())
    }
}

#[cfg(test)]
pub(crate) mod tests;
