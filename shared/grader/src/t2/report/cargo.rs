//! What `cargo test` prints on stdout (libtest's own format).

use super::{Reported, TestOutcome};

/// Reads blocks from `running N tests` to `test result:`; an id is a test's path (`module::name`), a doc test's its whole
/// title. A block without its last line, or whose last line counts other than its lines do, says nothing.
pub fn cargo_test(text: &str) -> Reported {
    let mut reported = Reported::default();
    let mut block: Option<Block> = None;
    for line in text.lines() {
        if let Some(count) = line.strip_prefix("running ").and_then(|rest| rest.split(' ').next()?.parse().ok()) {
            block = Some(Block { announced: count, tests: vec![] });
        } else if let Some(rest) = line.strip_prefix("test result: ") {
            for (id, outcome) in block.take().filter(|b| b.agrees(rest)).map_or(vec![], |b| b.tests) {
                reported.note(&id, outcome);
            }
        } else if let (Some(block), Some(test)) = (block.as_mut(), test_line(line)) {
            block.tests.push(test);
        }
    }
    reported
}

struct Block {
    announced: usize,
    tests: Vec<(String, TestOutcome)>,
}

impl Block {
    /// Against `ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s`.
    fn agrees(&self, result: &str) -> bool {
        let said = |word: &str| {
            let part = result.split(['.', ';']).find_map(|part| part.trim().strip_suffix(word));
            part.and_then(|count| count.trim().parse::<usize>().ok())
        };
        let seen = |outcome| self.tests.iter().filter(|(_, o)| *o == outcome).count();
        self.tests.len() == self.announced
            && said(" passed") == Some(seen(TestOutcome::Passed))
            && said(" failed") == Some(seen(TestOutcome::Failed))
            && said(" ignored") == Some(seen(TestOutcome::Skipped))
    }
}

fn test_line(line: &str) -> Option<(String, TestOutcome)> {
    let (id, word) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    let outcome = match word.split([' ', ',']).next()? {
        "ok" => TestOutcome::Passed,
        "FAILED" => TestOutcome::Failed,
        "ignored" => TestOutcome::Skipped,
        _ => TestOutcome::Protocol,
    };
    Some((id.strip_suffix(" - should panic").unwrap_or(id).to_owned(), outcome))
}
