//! The words of a prompt.
//!
//! In: wording with places in braces, and texts for them. Out: one text. Must hold: what is filled in is never searched
//! for places again, so that a question about `{tests}` stays what it is.

use super::{ActConfig, ActTask};

/// The first user message.
pub(super) fn user(config: &ActConfig, task: &ActTask<'_>) -> String {
    let tests = task.visible_asserts.join("\n");
    let places = [("{question}", task.question.trim()), ("{tests}", &tests), ("{entry_point}", task.entry_point)];
    fill(&config.user, &places).trim().to_owned()
}

/// The start of each piece of code.
pub(super) fn code_prefix(config: &ActConfig, task: &ActTask<'_>) -> String {
    fill(&config.code_prefix, &[("{entry_point}", task.entry_point)])
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
    use super::*;

    #[test]
    fn fills_each_place_once_and_nothing_else() {
        let places = [("{a}", "1{b}"), ("{b}", "2")];
        assert_eq!(fill("{a} {b} {c} { {{a}} é{b}", &places), "1{b} 2 {c} { {1{b}} é2");
    }

    #[test]
    fn observation_is_cut_by_characters() {
        let config = ActConfig { observation_chars: 3, repair: "{observation}!".into(), ..ActConfig::default() };
        assert_eq!(repair(&config, "  ééééé"), "ééé!");
        assert_eq!(repair(&config, "é"), "é!");
    }
}
