//! TAP, the Test Anything Protocol, versions 12 to 14.

use super::{Reported, TestOutcome};

/// Reads the lines of the outermost level; an id is a test's description. A text whose plan is missing, or names another
/// number of tests than there are, says nothing: its program may have ended early.
pub fn tap(text: &str) -> Reported {
    let mut reported = Reported::default();
    let (mut plan, mut lines) = (None, 0u64);
    for line in text.lines() {
        if line.starts_with("Bail out!") {
            return Reported::default();
        }
        if let Some(count) = line.strip_prefix("1..") {
            let count = count.split_whitespace().next().and_then(|n| n.parse::<u64>().ok());
            if plan.is_some() || count.is_none() {
                return Reported::default();
            }
            plan = count;
        } else if let Some((ok, rest)) = test_line(line) {
            lines += 1;
            let (id, outcome) = described(ok, rest);
            reported.note(&id, outcome);
        }
    }
    if plan == Some(lines) { reported } else { Reported::default() }
}

fn test_line(line: &str) -> Option<(bool, &str)> {
    let (ok, rest) = match line.strip_prefix("not ok") {
        Some(rest) => (false, rest),
        None => (true, line.strip_prefix("ok")?),
    };
    (rest.is_empty() || rest.starts_with(' ')).then_some((ok, rest))
}

fn described(ok: bool, rest: &str) -> (String, TestOutcome) {
    let rest = rest.trim_start().trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
    let rest = rest.strip_prefix("- ").unwrap_or(rest);
    let (description, directive) = rest.rsplit_once(" # ").unwrap_or((rest, ""));
    let directive = directive.trim_start().to_ascii_lowercase();
    match (directive.starts_with("skip"), directive.starts_with("todo"), ok) {
        (true, ..) => (description.trim().to_owned(), TestOutcome::Skipped),
        (_, true, _) => (description.trim().to_owned(), TestOutcome::Xfailed),
        (.., true) => (rest.trim().to_owned(), TestOutcome::Passed),
        (.., false) => (rest.trim().to_owned(), TestOutcome::Failed),
    }
}
