//! Keys: relative slash-separated names inside a run's prefix. Checked once, so that no backend can be led out of it.

use std::fmt;

/// The name of one object below a run's prefix, such as `control/verify/plan.json`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(String);

/// Why a string is no key.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "{0:?} is no valid object name: use letters, digits, '.', '_', '-', '=' and single slashes between non-empty parts"
)]
pub struct InvalidKey(pub String);

impl Key {
    /// Checks `name`: non-empty parts of `[A-Za-z0-9._=-]`, none of them `.` or `..` or starting with a dot.
    pub fn new(name: impl Into<String>) -> Result<Key, InvalidKey> {
        let name = name.into();
        let part_ok = |p: &str| {
            !p.is_empty()
                && !p.starts_with('.')
                && p.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b'='))
        };
        if name.len() <= 900 && name.split('/').all(part_ok) { Ok(Key(name)) } else { Err(InvalidKey(name)) }
    }

    /// The key `self/name`.
    pub fn join(&self, name: impl fmt::Display) -> Result<Key, InvalidKey> {
        Key::new(format!("{}/{name}", self.0))
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last part.
    pub fn file_name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_cannot_leave_the_prefix() {
        for bad in ["", "/a", "a/", "a//b", "../a", "a/../b", "a/.staging", "a b", "a\\b", "a\0"] {
            assert!(Key::new(bad).is_err(), "{bad:?}");
        }
        assert!(Key::new("tables/rewards/v1/train/round-0003/part-00017.parquet").is_ok());
    }
}
