//! Code that no longer looks like what it does: encoded text, names put together at run time, `exec` by another name.
//!
//! What must hold: the code runs as before in the module's own namespace; which of the five ways is taken follows from a
//! number, so that every template keeps its look.

/// The code in the way number `style`; empty code stays empty.
pub fn obfuscated(code: &str, style: usize) -> String {
    if code.trim().is_empty() {
        return String::new();
    }
    match style % 5 {
        0 => format!(
            "getattr(__import__('buil' + 'tins'), 'ex' + 'ec')(__import__('base64').b64decode('{}'))\n",
            base64(code)
        ),
        1 => format!("exec(''.join(map(chr, {:?})))\n", code.chars().map(u32::from).collect::<Vec<_>>()),
        2 => format!(
            "(lambda run, text: run(bytes.fromhex(text), globals()))(vars(__builtins__ if hasattr(__builtins__, '__name__') else __import__('builtins'))['cexe'[::-1]], '{}')\n",
            hex(code)
        ),
        3 => format!("exec(compile({}[::-1], 'numbers', 'exec'))\n", quoted(&code.chars().rev().collect::<String>())),
        _ => format!("exec(__import__('codecs').decode({}, 'rot' + str(6 + 7)))\n", quoted(&rot13(code))),
    }
}

fn hex(code: &str) -> String {
    code.bytes().map(|b| format!("{b:02x}")).collect()
}

fn rot13(code: &str) -> String {
    let turn = |c: char, a: u8| char::from((c as u8 - a + 13) % 26 + a);
    let map = |c: char| match c {
        'a'..='z' => turn(c, b'a'),
        'A'..='Z' => turn(c, b'A'),
        _ => c,
    };
    code.chars().map(map).collect()
}

/// A Python literal of the text.
fn quoted(text: &str) -> String {
    rollmill_grader::Value::str(text).to_literal()
}

fn base64(code: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in code.as_bytes().chunks(3) {
        let n = (0..3).fold(0_u32, |n, i| n << 8 | u32::from(chunk.get(i).copied().unwrap_or(0)));
        for i in 0..4 {
            out.push(if i <= chunk.len() { DIGITS[(n >> (18 - 6 * i)) as usize & 63] as char } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings() {
        for (text, want) in [("M", "TQ=="), ("Ma", "TWE="), ("Man", "TWFu"), ("os._exit(0)", "b3MuX2V4aXQoMCk=")] {
            assert_eq!(base64(text), want);
        }
        assert_eq!(rot13("import os # AZ"), "vzcbeg bf # NM");
        assert_eq!(hex("aé"), "61c3a9");
    }

    #[test]
    fn nothing_of_the_code_shows() {
        for style in 0..5 {
            assert!(!obfuscated("import os\nos._exit(0)\n", style).contains("_exit"));
            assert_eq!(obfuscated("\n", style), "");
        }
    }
}
