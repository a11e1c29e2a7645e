//! Patterns over relative paths: `*` and `?` within one part, `**` for any number of parts.

/// Whether a path matches a pattern, part by part.
pub(super) fn matches(pattern: &str, path: &str) -> bool {
    let pattern: Vec<&str> = pattern.split('/').collect();
    let path: Vec<&str> = path.split('/').collect();
    align(&pattern, &path, |pattern| *pattern == "**", |p, part| part_matches(p, part))
}

fn part_matches(pattern: &str, part: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let part: Vec<char> = part.chars().collect();
    align(&pattern, &part, |p| *p == '*', |p, c| *p == '?' || p == c)
}

/// Matches items to a pattern in which some items stand for any number of others. The last such one is widened when a
/// later item does not fit, so the time is at most the product of both lengths.
fn align<P, T>(pattern: &[P], items: &[T], wild: impl Fn(&P) -> bool, one: impl Fn(&P, &T) -> bool) -> bool {
    let (mut p, mut i) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while let Some(item) = items.get(i) {
        match pattern.get(p) {
            Some(at) if wild(at) => {
                back = Some((p, i));
                p += 1;
            }
            Some(at) if one(at, item) => {
                p += 1;
                i += 1;
            }
            _ => {
                let Some((from, taken)) = back else { return false };
                p = from + 1;
                i = taken + 1;
                back = Some((from, i));
            }
        }
    }
    pattern[p..].iter().all(wild)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, good, bad) in [
            ("src/*.py", vec!["src/a.py", "src/.py"], vec!["src/a/b.py", "a.py", "src/a.pyc", "xsrc/a.py"]),
            ("src/**", vec!["src/a", "src/a/b/c", "src"], vec!["srcs/a", "a/src/b"]),
            ("**/conftest.py", vec!["conftest.py", "a/b/conftest.py"], vec!["conftest.pyx", "aconftest.py"]),
            ("**", vec!["a", "a/b"], vec![]),
            ("**/test_*.py", vec!["test_.py", "x/test_a.py"], vec!["x/test_a/b.py", "tes_a.py"]),
            ("a?c", vec!["abc"], vec!["ac", "a/c", "abcc"]),
            ("a/**/b/**/c", vec!["a/b/c", "a/x/b/b/y/c"], vec!["a/c", "a/b/cc"]),
            ("*a*b*", vec!["ab", "xxaxxbxx", "aab"], vec!["ba", "aaa"]),
        ] {
            good.iter().for_each(|path| assert!(matches(pattern, path), "{pattern} {path}"));
            bad.iter().for_each(|path| assert!(!matches(pattern, path), "{pattern} {path}"));
        }
    }

    #[test]
    fn hostile_patterns_and_paths_end() {
        assert!(!matches(&"*a".repeat(2000), &"a".repeat(1999)));
        assert!(!matches(&format!("{}b", "**/a/".repeat(500)), &"a/".repeat(1000)));
    }
}
