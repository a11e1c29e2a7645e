//! A tiny, deterministic measure of a Python solution's form, over its text: no linter, and nothing that a comment in the
//! code could switch off.
//!
//! In: source text and the function's name. Out: a number in [0, 1], a quarter each for: no line over 100 characters; no
//! tabs; the function is defined exactly once at the top level; no statement with side effects at the top level (imports,
//! definitions, assignments, a docstring and `if __name__ ...` are fine). An empty source earns 0.

/// The longest line that is fine, in characters.
const MAX_LINE: usize = 100;

/// The measure of a source for the function `entry_point` (for `Class.method`, the class).
pub fn style(source: &str, entry_point: &str) -> f64 {
    if source.trim().is_empty() {
        return 0.0;
    }
    let name = entry_point.split('.').next().unwrap_or(entry_point);
    let top = top_level(source);
    let definitions = top.iter().filter(|line| defines(line, name)).count();
    let checks = [
        source.lines().all(|line| line.chars().count() <= MAX_LINE),
        !source.contains('\t'),
        definitions == 1,
        top.iter().all(|line| harmless(line)),
    ];
    checks.iter().filter(|ok| **ok).count() as f64 / checks.len() as f64
}

fn defines(line: &str, name: &str) -> bool {
    let rest = ["def ", "async def ", "class "].iter().find_map(|keyword| line.strip_prefix(keyword));
    let rest = rest.and_then(|r| r.trim_start().strip_prefix(name)).map(str::trim_start);
    rest.is_some_and(|r| r.starts_with(['(', ':', '[']))
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

/// The first lines of statements that begin in column 0, without comments, and without lines inside brackets or
/// triple-quoted strings.
fn top_level(source: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut scan = Scan { depth: 0, triple: None };
    let mut continued = false;
    for line in source.lines() {
        let starts = scan.depth == 0 && scan.triple.is_none() && !continued;
        if starts && !line.trim().is_empty() && !line.starts_with([' ', '\t', '#']) {
            lines.push(line.to_owned());
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
            ("def g(x):\n    return x\n", 0.75),
            ("def f(x):\n    return x\ndef f(x):\n    return 2\n", 0.75),
            ("def f(x):\n    return x\nprint(f(1))\n", 0.75),
            ("def f(x):\n    return x\nf(1).y\n", 0.75),
            (&long, 0.75),
            ("def fx(x):\n    return x\n", 0.75),
            ("# style: ignore\n# noqa\nprint(1)\n\twhile 1: pass\n", 0.25),
        ] {
            assert_eq!(style(source, "f"), want, "{source}");
        }
        assert_eq!(style("class Solution:\n    def f(self): pass\n", "Solution.f"), 1.0);
    }

    proptest::proptest! {
        #[test]
        fn any_text_gives_a_number_in_range(source in r#"[\\"'#()\[\]\n\ta-f :=]{0,80}"#) {
            proptest::prop_assert!((0.0..=1.0).contains(&style(&source, "f")));
        }
    }
}
