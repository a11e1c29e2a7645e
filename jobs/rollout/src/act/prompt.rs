//! The words of a prompt.
//!
//! In: wording with places in braces, and texts for them. Out: one text. Must hold: what is filled in is never searched
//! for places again, so that a question about `{tests}` stays what it is.

use super::{ActConfig, ActTask};
use rollmill_policy::grammar::{FENCE, PYTHON_FENCE};

/// What is said about one task.
#[derive(Debug, Clone)]
pub(super) struct Words {
    pub system: String,
    /// The first user message.
    pub user: String,
    /// Start of the assistant's turn.
    pub plan_prefix: String,
    /// What opens a block of code.
    pub fence: String,
    /// Forced at the start of each piece of code, and part of it.
    pub code_prefix: String,
}

impl Words {
    pub fn of(config: &ActConfig, task: &ActTask<'_>) -> Words {
        let tests = task.visible_tests.join("\n");
        let mut places = vec![("{question}", task.question.trim()), ("{tests}", &tests)];
        let Some(program) = task.program else {
            places.push(("{entry_point}", task.entry_point));
            return Words {
                system: config.system.clone(),
                user: fill(&config.user, &places).trim().to_owned(),
                plan_prefix: config.plan_prefix.clone(),
                fence: PYTHON_FENCE.to_owned(),
                code_prefix: fill(&config.code_prefix, &places[2..]),
            };
        };
        places.extend([("{language}", program.language), ("{file}", program.file)]);
        Words {
            system: config.program.system.clone(),
            user: fill(&config.program.user, &places).trim().to_owned(),
            plan_prefix: config.program.plan_prefix.clone(),
            fence: format!("{FENCE}{}\n", program.language),
            code_prefix: String::new(),
        }
    }
}

/// The user message after failed tests.
pub(super) fn repair(config: &ActConfig, observation: &str) -> String {
    let shown: String = observation.trim().chars().take(config.observation_chars).collect();
    fill(&config.repair, &[("{observation}", shown.trim_end())]).trim().to_owned()
}

fn fill(wording: &str, places: &[(&str, &str)]) -> String {
    let mut out = String::new();
    let mut rest = wording;
    while let Some(at) = rest.find('{') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let (text, width) = match places.iter().find(|(place, _)| rest.starts_with(place)) {
            Some((place, text)) => (*text, place.len()),
            None => ("{", 1),
        };
        out.push_str(text);
        rest = &rest[width..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::super::Program;
    use super::*;

    #[test]
    fn fills_each_place_once_and_nothing_else() {
        let places = [("{a}", "1{b}"), ("{b}", "2")];
        assert_eq!(fill("{a} {b} {c} { {{a}} é{b}", &places), "1{b} 2 {c} { {1{b}} é2");
    }

    #[test]
    fn a_program_is_asked_for_by_language_and_file() {
        let (config, tests) = (ActConfig::default(), ["t".to_owned()]);
        let function =
            ActTask { task_id: "1", question: "{file}?", entry_point: "f", visible_tests: &tests, program: None };
        let program = ActTask { program: Some(Program { language: "go", file: "main.go" }), ..function };
        let of = |task| {
            let Words { user, fence, code_prefix, .. } = Words::of(&config, &task);
            (user, fence, code_prefix)
        };
        let words = |user: &str, fence: &str, prefix: &str| (user.to_owned(), fence.to_owned(), prefix.to_owned());
        assert_eq!(of(function), words("{file}?\nt", "```python\n", "def f"));
        assert_eq!(of(program), words("{file}?\nLanguage: go. Write one file, main.go.\nt", "```go\n", ""));
        let unasked: ActConfig = serde_json::from_str(r#"{"program": {"user": "hello"}}"#).unwrap();
        assert!(config.check().is_ok() && unasked.check().is_err());
    }

    #[test]
    fn observation_is_cut_by_characters() {
        let config = ActConfig { observation_chars: 3, repair: "{observation}!".into(), ..ActConfig::default() };
        assert_eq!(repair(&config, "  ééééé"), "ééé!");
        assert_eq!(repair(&config, "é"), "é!");
    }
}
