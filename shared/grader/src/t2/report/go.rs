//! The lines of `go test -json`.

use super::{Reported, TestOutcome};
use serde::Deserialize;
use std::collections::BTreeSet;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Event {
    action: String,
    #[serde(default)]
    package: String,
    #[serde(default)]
    test: String,
}

/// Reads the last event of each test; an id is `package::Test` (`package::Test/sub`). A package that never ended says
/// nothing of its tests.
pub fn go_test(text: &str) -> Reported {
    let events: Vec<Event> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let ends = |event: &&Event| event.test.is_empty() && matches!(event.action.as_str(), "pass" | "fail");
    let ended: BTreeSet<&str> = events.iter().filter(ends).map(|event| event.package.as_str()).collect();
    let mut reported = Reported::default();
    for event in events.iter().filter(|e| !e.test.is_empty() && ended.contains(e.package.as_str())) {
        let outcome = match event.action.as_str() {
            "pass" => TestOutcome::Passed,
            "fail" => TestOutcome::Failed,
            "skip" => TestOutcome::Skipped,
            _ => continue,
        };
        reported.note(&format!("{}::{}", event.package, event.test), outcome);
    }
    reported
}
