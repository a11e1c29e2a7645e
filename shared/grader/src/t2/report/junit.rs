//! JUnit XML, as pytest, Jest, Gradle and others write it.

use super::{Reported, TestOutcome};

/// Reads the `testcase` elements; an id is `classname::name`, or the name alone where there is no class. Elements that are
/// not closed say nothing; text in comments and CDATA sections is skipped.
pub fn junit(text: &str) -> Reported {
    let mut reported = Reported::default();
    let mut open: Option<(String, TestOutcome)> = None;
    for tag in (Tags { rest: text }) {
        match (tag.name, tag.closes) {
            ("testcase", false) => {
                if let Some((id, _)) = open.take() {
                    reported.note(&id, TestOutcome::Protocol); // one inside another
                }
                let id = id_of(&tag);
                if tag.is_empty {
                    reported.note(&id, TestOutcome::Passed);
                } else {
                    open = Some((id, TestOutcome::Passed));
                }
            }
            ("testcase", true) => {
                if let Some((id, outcome)) = open.take() {
                    reported.note(&id, outcome);
                }
            }
            (name, false) => {
                if let (Some((_, outcome)), Some(worse)) = (open.as_mut(), outcome_of(name)) {
                    *outcome = worse;
                }
            }
            _ => {}
        }
    }
    reported
}

fn outcome_of(element: &str) -> Option<TestOutcome> {
    Some(match element {
        "failure" | "flakyFailure" | "rerunFailure" => TestOutcome::Failed,
        "error" | "flakyError" | "rerunError" => TestOutcome::Errored,
        "skipped" => TestOutcome::Skipped,
        _ => return None,
    })
}

fn id_of(tag: &Tag<'_>) -> String {
    let name = tag.attribute("name").unwrap_or_default();
    match tag.attribute("classname").filter(|class| !class.is_empty()) {
        Some(class) => format!("{class}::{name}"),
        None => name,
    }
}

struct Tag<'a> {
    name: &'a str,
    attributes: &'a str,
    closes: bool,
    is_empty: bool,
}

impl Tag<'_> {
    fn attribute(&self, wanted: &str) -> Option<String> {
        let mut rest = self.attributes;
        loop {
            let (name, after) = rest.split_once('=')?;
            let after = after.trim_start();
            let quote = after.chars().next().filter(|c| matches!(c, '"' | '\''))?;
            let (value, after) = after[1..].split_once(quote)?;
            if name.trim() == wanted {
                return Some(unescape(value));
            }
            rest = after;
        }
    }
}

fn unescape(text: &str) -> String {
    let mut parts = text.split('&');
    let mut out = parts.next().unwrap_or("").to_owned();
    for part in parts {
        let (entity, rest) = part.split_once(';').unwrap_or(("", part));
        let number = |digits: &str, radix| u32::from_str_radix(digits, radix).ok().and_then(char::from_u32);
        let c = match entity {
            "lt" => Some('<'),
            "gt" => Some('>'),
            "amp" => Some('&'),
            "quot" => Some('"'),
            "apos" => Some('\''),
            _ => entity.strip_prefix("#x").map_or_else(
                || entity.strip_prefix('#').and_then(|digits| number(digits, 10)),
                |digits| number(digits, 16),
            ),
        };
        out.push(c.unwrap_or('\u{fffd}'));
        out.push_str(rest);
    }
    out
}

/// The tags of a text, in order, until one does not end.
struct Tags<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Tags<'a> {
    type Item = Tag<'a>;

    fn next(&mut self) -> Option<Tag<'a>> {
        loop {
            let (_, after) = self.rest.split_once('<')?;
            let skipped = [("!--", "-->"), ("![CDATA[", "]]>"), ("?", "?>"), ("!", ">")];
            if let Some((begin, end)) = skipped.into_iter().find(|(begin, _)| after.starts_with(begin)) {
                self.rest = after[begin.len()..].split_once(end)?.1;
                continue;
            }
            let length = end_of_tag(after)?;
            self.rest = &after[length + 1..];
            return Some(tag(&after[..length]));
        }
    }
}

/// Where the `>` is that ends a tag: not one in quotes.
fn end_of_tag(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return Some(at),
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), _) if open == byte => quote = None,
            _ => {}
        }
    }
    None
}

fn tag(inside: &str) -> Tag<'_> {
    let (closes, inside) = inside.strip_prefix('/').map_or((false, inside), |rest| (true, rest));
    let (is_empty, inside) = inside.strip_suffix('/').map_or((false, inside), |rest| (true, rest));
    let end = inside.find(char::is_whitespace).unwrap_or(inside.len());
    Tag { name: &inside[..end], attributes: &inside[end..], closes, is_empty }
}
