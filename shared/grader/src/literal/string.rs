//! Strings and bytes: prefixes, escapes, triple quotes, implicit concatenation.

use super::{LiteralError, Parser};
use crate::value::Value;

struct Prefix {
    raw: bool,
    bytes: bool,
}

impl Parser<'_> {
    /// One or more adjacent string literals.
    pub(super) fn strings(&mut self) -> Result<Value, LiteralError> {
        let mut all: Option<(bool, Vec<u8>)> = None;
        loop {
            let at = self.at;
            let (bytes, part) = self.one_string()?;
            match &mut all {
                None => all = Some((bytes, part)),
                Some((kind, text)) if *kind == bytes => text.extend(part),
                Some(_) => return Err(LiteralError { at, what: "bytes and text side by side" }),
            }
            self.skip();
            if !self.at_string() {
                break;
            }
        }
        match all {
            Some((true, bytes)) => Ok(Value::Bytes(bytes)),
            Some((false, text)) => {
                String::from_utf8(text).map(Value::Str).map_err(|_| self.error("text that is not unicode"))
            }
            None => Err(self.error("expected a string")),
        }
    }

    fn at_string(&self) -> bool {
        let letters = self.rest().iter().take_while(|b| b.is_ascii_alphabetic()).count();
        letters <= 2 && matches!(self.rest().get(letters), Some(b'\'' | b'"'))
    }

    fn one_string(&mut self) -> Result<(bool, Vec<u8>), LiteralError> {
        let prefix = self.prefix()?;
        let quote = self.peek().ok_or_else(|| self.error("expected a quote"))?;
        let triple = self.rest().starts_with(&[quote; 3]);
        self.at += if triple { 3 } else { 1 };
        let mut out = Vec::new();
        loop {
            let Some(byte) = self.peek() else { return Err(self.error("a string without an end")) };
            if byte == quote && (!triple || self.rest().starts_with(&[quote; 3])) {
                self.at += if triple { 3 } else { 1 };
                return Ok((prefix.bytes, out));
            }
            match byte {
                b'\\' => self.escape(&prefix, &mut out)?,
                b'\n' | b'\r' if !triple => return Err(self.error("a line break in a string")),
                b'\r' => {
                    // Python reads every line ending as \n.
                    self.at += if self.rest().get(1) == Some(&b'\n') { 2 } else { 1 };
                    out.push(b'\n');
                }
                0x80.. if prefix.bytes => return Err(self.error("bytes can only hold ascii characters")),
                _ => {
                    out.push(byte);
                    self.at += 1;
                }
            }
        }
    }

    fn prefix(&mut self) -> Result<Prefix, LiteralError> {
        let mut prefix = Prefix { raw: false, bytes: false };
        let length = self.rest().iter().take_while(|b| b.is_ascii_alphabetic()).count();
        let word = self.text[self.at..self.at + length].to_ascii_lowercase();
        match word.as_str() {
            "" | "u" => {}
            "r" => prefix.raw = true,
            "b" => prefix.bytes = true,
            "br" | "rb" => prefix = Prefix { raw: true, bytes: true },
            _ => return Err(self.error("an unknown string prefix")),
        }
        self.at += length;
        Ok(prefix)
    }

    fn escape(&mut self, prefix: &Prefix, out: &mut Vec<u8>) -> Result<(), LiteralError> {
        let Some(next) = self.rest().get(1).copied() else { return Err(self.error("a string without an end")) };
        if prefix.raw {
            out.push(b'\\');
            self.at += 1;
            // The character behind a raw backslash is taken as it is, also a quote.
            if matches!(next, b'\'' | b'"' | b'\\') {
                out.push(next);
                self.at += 1;
            }
            return Ok(());
        }
        self.at += 2;
        let simple = match next {
            b'\n' => return Ok(()),
            b'\r' => {
                self.at += usize::from(self.peek() == Some(b'\n'));
                return Ok(());
            }
            b'\\' | b'\'' | b'"' => next,
            b'a' => 7,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'v' => 11,
            b'0'..=b'7' => return self.octal(next, prefix, out),
            b'x' => {
                let code = self.hex(2)?;
                return self.push_code(code, prefix, out);
            }
            b'u' | b'U' if !prefix.bytes => {
                let code = self.hex(if next == b'u' { 4 } else { 8 })?;
                return self.push_code(code, prefix, out);
            }
            b'N' if !prefix.bytes => return Err(self.error("escapes by unicode name are not read")),
            _ => {
                // Unknown escapes stay; the character itself is read by the main loop.
                self.at -= 1;
                b'\\'
            }
        };
        out.push(simple);
        Ok(())
    }

    fn octal(&mut self, first: u8, prefix: &Prefix, out: &mut Vec<u8>) -> Result<(), LiteralError> {
        let mut code = u32::from(first - b'0');
        for _ in 0..2 {
            let Some(digit @ b'0'..=b'7') = self.peek() else { break };
            code = code * 8 + u32::from(digit - b'0');
            self.at += 1;
        }
        self.push_code(if prefix.bytes { code & 0xff } else { code }, prefix, out)
    }

    fn hex(&mut self, digits: usize) -> Result<u32, LiteralError> {
        let text = self.rest().get(..digits).filter(|d| d.iter().all(u8::is_ascii_hexdigit));
        let text = text.ok_or_else(|| self.error("an escape with too few hex digits"))?;
        // Eight hex digits always fit and are checked above.
        let code = text.iter().fold(0u32, |n, d| (n << 4) | (*d as char).to_digit(16).unwrap_or(0));
        self.at += digits;
        Ok(code)
    }

    fn push_code(&self, code: u32, prefix: &Prefix, out: &mut Vec<u8>) -> Result<(), LiteralError> {
        if prefix.bytes {
            out.push(code as u8);
            return Ok(());
        }
        let c = char::from_u32(code).ok_or_else(|| self.error("a lone surrogate or a code beyond unicode"))?;
        out.extend(c.encode_utf8(&mut [0; 4]).bytes());
        Ok(())
    }
}
