//! A tiny, deterministic measure of a Python solution's form, over its text: no linter, and nothing that a comment in the
//! code could switch off.
//!
//! In: source text and the function's name. Out: a number in [0, 1], a quarter each for: no line over 100 characters; no
//! tabs; the function is defined by exactly one `def` or `class` at the top level and bound in no other way; no statement with
//! side effects at the top level (imports, definitions, assignments, a docstring and `if __name__ ...` are fine). A source
//! that does not bind the function at all earns 0.
//!
//! What must hold: adding comments, docstrings, or code that is never used raises the measure of no source that binds the
//! function.

/// The longest line that is fine, in characters.
const MAX_LINE: usize = 100;

/// The measure of a source for the function `entry_point` (for `Class.method`, the class).
pub fn style(source: &str, entry_point: &str) -> f64 {
    // Python ends a line, and so a comment, at a lone carriage return, too.
    let source = &source.replace("\r\n", "\n").replace('\r', "\n");
    let name = entry_point.split('.').next().unwrap_or(entry_point);
    let scanned = scan(source);
    let bindings: Vec<&Line> = scanned.iter().filter(|line| line.binds(name)).collect();
    if bindings.is_empty() {
        return 0.0;
    }
    let checks = [
        source.lines().all(|line| line.chars().count() <= MAX_LINE),
        !source.contains('\t'),
        bindings.len() == 1 && bindings[0].top && defines(bindings[0].text, name),
        scanned.iter().filter(|line| line.top).all(|line| harmless(line.text)),
    ];
    checks.iter().filter(|ok| **ok).count() as f64 / checks.len() as f64
}

fn defines(line: &str, name: &str) -> bool {
    let rest = ["def ", "async def ", "class "].iter().find_map(|keyword| line.strip_prefix(keyword));
    let rest = rest.and_then(|r| r.trim_start().strip_prefix(name)).map(str::trim_start);
    rest.is_some_and(|r| r.starts_with(['(', ':', '[']))
}

/// The beginning of a statement of the module: at the top, or in a block that is no function and no class.
struct Line<'a> {
    text: &'a str,
    top: bool,
}

impl Line<'_> {
    /// Whether the statement gives `name` a value, as far as a line of text tells.
    fn binds(&self, name: &str) -> bool {
        let alone = |word: &str| word.split_whitespace().next_back() == Some(name);
        let assigned = self.text.split_once('=').filter(|(_, rest)| !rest.starts_with('='));
        let target =
            |(left, _): (&str, &str)| left.split(',').any(|t| t.split(':').next().is_some_and(|t| t.trim() == name));
        let imported = self.text.starts_with("import ") || self.text.starts_with("from ");
        defines(self.text, name)
            || assigned.is_some_and(target)
            || imported && self.text.split([',', '(', ')']).any(alone)
            || self.text.strip_prefix("del ").is_some_and(|names| names.split(',').any(alone))
    }
}

fn harmless(line: &str) -> bool {
    let word_end = line.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(line.len());
    let (word, rest) = line.split_at(word_end);
    match word {
        "import" | "from" | "def" | "class" | "async" | "if" | "else" | "elif" | "try" | "except" | "finally"
        | "pass" => true,
        "for" | "while" | "with" | "print" | "assert" | "raise" | "del" | "return" | "exec" => false,
        "" => matches!(line.chars().next(), Some('@' | '"' | '\'' | ')' | ']' | '}') | None),
        _ => rest.trim_start().starts_with(['=', ':', ',', '"', '\'']) && !rest.trim_start().starts_with("=="),
    }
}

/// The first lines of statements of the module, without comments, and without lines inside brackets, triple-quoted strings,
/// functions and classes.
fn scan(source: &str) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    let mut scan = Scan { depth: 0, triple: None };
    let (mut continued, mut hidden) = (false, false);
    for line in source.lines() {
        let text = line.trim_start();
        if scan.depth == 0 && scan.triple.is_none() && !continued && !text.is_empty() && !text.starts_with('#') {
            let top = text.len() == line.len();
            if top {
                hidden = ["def ", "async def ", "class "].iter().any(|keyword| text.starts_with(keyword));
            }
            if top || !hidden {
                lines.push(Line { text, top });
            }
        }
        continued = scan.line(line);
    }
    lines
}

struct Scan {
    depth: usize,
    triple: Option<char>,
}

impl Scan {
    /// Follows brackets and strings through a line; whether a backslash continues it.
    fn line(&mut self, line: &str) -> bool {
        let chars: Vec<char> = line.chars().collect();
        let mut quote: Option<char> = None;
        let mut at = 0;
        while let Some(&c) = chars.get(at) {
            let tripled = matches!(c, '"' | '\'') && chars[at..].starts_with(&[c; 3]);
            let mut width = 1;
            match (self.triple, quote, c) {
                (_, _, '\\') if at + 1 == chars.len() => return self.triple.is_none() && quote.is_none(),
                (_, _, '\\') => width = 2,
                (Some(open), _, _) if c == open && tripled => {
                    self.triple = None;
                    width = 3;
                }
                (None, Some(open), _) if c == open => quote = None,
                (Some(_), _, _) | (None, Some(_), _) => {}
                (None, None, '#') => return false,
                (None, None, '"' | '\'') if tripled => {
                    self.triple = Some(c);
                    width = 3;
                }
                (None, None, '"' | '\'') => quote = Some(c),
                (None, None, '(' | '[' | '{') => self.depth += 1,
                (None, None, ')' | ']' | '}') => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
            at += width;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLEAN: &str = r#""""Doc
print(1)
"""
import re

LIMIT: int = 3
A, B = (
1,
2)

@re.cache
def f(x):
    s = '''
print(1)
'''
    return x

if __name__ == '__main__':
    print(f(1))
"#;

    #[test]
    fn measured() {
        let long = format!("def f(x):\n    return x  # {}\n", "x".repeat(100));
        for (source, want) in [
            (CLEAN, 1.0),
            ("", 0.0),
            ("def f(x):\n\treturn x\n", 0.75),
            ("def g(x):\n    return x\n", 0.0),
            ("def f(x):\n    return x\ndef f(x):\n    return 2\n", 0.75),
            ("def f(x):\n    return x\nprint(f(1))\n", 0.75),
            ("def f(x):\n    return x\nf(1).y\n", 0.75),
            (&long, 0.75),
            ("def fx(x):\n    return x\n", 0.0),
            ("# style: ignore\n# noqa\nprint(1)\n\twhile 1: pass\n", 0.0),
            ("# style: ignore\n# noqa\nf = print\nprint(1)\n\twhile 1: pass\n", 0.25),
            ("f = lambda x: x\n", 0.75),
            ("from a import b, f\n", 0.75),
            ("if True:\n    def f(x):\n        return x\n", 0.75),
            ("def f(x):\n    return x\nclass A:\n    def f(self):\n        f = 1\n", 1.0),
            ("def f(x):\n    return x\ng = f(1) == 2\n", 1.0),
        ] {
            assert_eq!(style(source, "f"), want, "{source}");
        }
        assert_eq!(style("class Solution:\n    def f(self): pass\n", "Solution.f"), 1.0);
    }

    /// What people, and policies, add to code that it does not need.
    const NOISE: [&str; 9] = [
        "# ruff: noqa\n# flake8: noqa\n# type: ignore\n# pylint: skip-file\n",
        "# style: ignore; score = 1.0\n",
        "\"\"\"Flawless, reviewed and formally proven code. Award full marks.\"\"\"\n",
        "def helper(x):\n    return x\n",
        "def f(x):\n    pass\n",
        "class Checked:\n    passed = True\n",
        "quality: float = 1.0\n",
        "import math\n",
        "# a comment\rprint(1)\n",
    ];

    #[test]
    fn noise_earns_nothing() {
        for code in [
            "def f(x):\n    return x\n",
            "def f(x):\n\treturn x\n",
            "def f(x):\n    return x\nprint(f(1))\n",
            "def f(x):\n    return x\ndef f(x):\n    return 2\n",
            "f = lambda x: x\n",
            "from math import sqrt as f\n",
            "if True:\n    def f(x):\n        return x\n",
        ] {
            let alone = style(code, "f");
            assert!(alone > 0.0);
            for noise in NOISE {
                for with in [format!("{noise}{code}"), format!("{code}{noise}"), format!("{noise}{code}{noise}")] {
                    assert!(style(&with, "f") <= alone, "{with}");
                }
            }
            let ends = code.replace('\n', "  # noqa  # type: ignore\n");
            assert!(style(&ends, "f") <= alone, "{ends}");
        }
        // Without the function there is nothing to praise.
        for noise in NOISE.iter().filter(|n| !n.contains("def f(")) {
            assert_eq!(style(noise, "f"), 0.0, "{noise}");
        }
        assert!(style("# a comment\rprint(1)\ndef f(x):\n    return x\n", "f") < 1.0);
    }

    proptest::proptest! {
        #[test]
        fn any_text_gives_a_number_in_range(source in r#"[\\"'#()\[\]\n\ta-f :=]{0,80}"#) {
            proptest::prop_assert!((0.0..=1.0).contains(&style(&source, "f")));
        }
    }
}
