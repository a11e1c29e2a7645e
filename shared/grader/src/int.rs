//! Integers of any size, kept as canonical decimal text: an optional `-`, no leading zeros, never `-0`.
//!
//! In: digits from a literal or from a worker's frame. Out: text that Python reads back, exact comparison by equality of
//! the text. What must hold: converting is bounded ([`MAX_DIGITS`]), because it is quadratic and the digits are hostile.

/// The most digits an integer may have on the way in, in any base: the conversion is quadratic.
pub const MAX_DIGITS: usize = 40_000;

const LIMB: u64 = 1_000_000_000;

/// An integer of any size, as canonical decimal text.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Int(String);

impl Int {
    /// Reads `[-]digits`, in decimal, or in hexadecimal behind `0x`; `None` if it is anything else or too long.
    pub fn parse(text: &str) -> Option<Int> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        match digits.strip_prefix("0x") {
            Some(hex) => Int::from_digits(negative, hex, 16),
            None => Int::from_digits(negative, digits, 10),
        }
    }

    /// Reads bare digits of a radix (2, 8, 10 or 16); `None` on a foreign character, no digit, or too many digits.
    pub fn from_digits(negative: bool, digits: &str, radix: u32) -> Option<Int> {
        if digits.is_empty() || digits.len() > MAX_DIGITS || !digits.chars().all(|c| c.is_digit(radix)) {
            return None;
        }
        let decimal = if radix == 10 { digits.to_owned() } else { to_decimal(digits, radix) };
        let trimmed = decimal.trim_start_matches('0');
        Some(match (trimmed, negative) {
            ("", _) => Int("0".to_owned()),
            (digits, true) => Int(format!("-{digits}")),
            (digits, false) => Int(digits.to_owned()),
        })
    }

    /// The integer a float is exactly, if it is one.
    pub fn from_float(x: f64) -> Option<Int> {
        // Rust prints floats exactly, so this is the float's integer with every digit.
        if x.is_finite() && x.fract() == 0.0 { Int::parse(&format!("{x:.0}")) } else { None }
    }

    /// The canonical decimal text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The nearest float; infinite beyond its range.
    pub fn to_f64(&self) -> f64 {
        self.0.parse().unwrap_or(f64::NAN)
    }

    /// The integer with its sign turned.
    pub fn negated(&self) -> Int {
        match self.0.strip_prefix('-') {
            Some(digits) => Int(digits.to_owned()),
            None if self.0 == "0" => self.clone(),
            None => Int(format!("-{}", self.0)),
        }
    }

    /// Whether it is zero.
    pub fn is_zero(&self) -> bool {
        self.0 == "0"
    }
}

impl From<i64> for Int {
    fn from(n: i64) -> Int {
        Int(n.to_string())
    }
}

/// Horner's scheme over limbs of nine decimal digits.
fn to_decimal(digits: &str, radix: u32) -> String {
    let mut limbs: Vec<u64> = vec![0];
    for c in digits.chars() {
        let mut carry = u64::from(c.to_digit(radix).unwrap_or(0));
        for limb in &mut limbs {
            let sum = *limb * u64::from(radix) + carry;
            *limb = sum % LIMB;
            carry = sum / LIMB;
        }
        if carry > 0 {
            limbs.push(carry);
        }
    }
    let mut text = String::with_capacity(limbs.len() * 9);
    for limb in limbs.iter().rev() {
        text.push_str(&format!("{limb:09}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_text() {
        for (given, want) in [
            ("0", "0"),
            ("-0", "0"),
            ("007", "7"),
            ("-0x1f", "-31"),
            ("0xffffffffffffffffffff", "1208925819614629174706175"),
        ] {
            assert_eq!(Int::parse(given).unwrap().as_str(), want, "{given}");
        }
        for bad in ["", "-", "--1", "+1", "1.0", "0x", "0xg", "1_0", "٣"] {
            assert!(Int::parse(bad).is_none(), "{bad}");
        }
        assert!(Int::parse(&"9".repeat(MAX_DIGITS + 1)).is_none());
    }

    #[test]
    fn floats_are_exact() {
        assert_eq!(Int::from_float(1e23).unwrap().as_str(), "99999999999999991611392"); // int(1e23) in Python
        assert_eq!(Int::from_float(-0.0).unwrap().as_str(), "0");
        assert!(Int::from_float(0.5).is_none() && Int::from_float(f64::INFINITY).is_none());
    }
}
