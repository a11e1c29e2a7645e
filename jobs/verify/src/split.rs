//! What needs the whole set: exact duplicates, and the split by group.

use crate::VerifyConfig;
use rollmill_schema::{Candidate, content_id};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What HumanEval's importer puts before a prompt: no part of the task's text.
const COMPLETE: &str = "Complete this function:";

/// Later candidates whose text equals an earlier one's up to white space: id to the first one's id.
pub fn duplicates(candidates: &[Candidate]) -> BTreeMap<String, String> {
    let mut first: HashMap<String, &str> = HashMap::new();
    let mut found = BTreeMap::new();
    for c in candidates {
        let text = c.instruction.strip_prefix(COMPLETE).unwrap_or(&c.instruction);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let seen = first.entry(content_id(&[&text, &c.entry_point])).or_insert(&c.task_id);
        if *seen != c.task_id {
            found.insert(c.task_id.clone(), (*seen).to_string());
        }
    }
    found
}

/// Group to split. Groups are taken in the order of their hash until the held-out share is reached; a group with a task
/// for evaluation only is always held out, so that none of its relatives is trained on either.
pub fn splits(
    candidates: &[Candidate],
    duplicates: &BTreeMap<String, String>,
    config: &VerifyConfig,
) -> BTreeMap<String, String> {
    let mut sizes: BTreeMap<&str, usize> = BTreeMap::new();
    let mut eval_only: BTreeSet<&str> = BTreeSet::new();
    let by_id: HashMap<&str, &Candidate> = candidates.iter().map(|c| (c.task_id.as_str(), c)).collect();
    // The mark of a duplicate counts for the one that stays.
    for c in candidates.iter().filter(|c| c.eval_only) {
        eval_only.insert(&c.group);
        eval_only.extend(duplicates.get(&c.task_id).and_then(|id| by_id.get(id.as_str())).map(|c| c.group.as_str()));
    }
    for c in candidates.iter().filter(|c| !duplicates.contains_key(&c.task_id)) {
        *sizes.entry(&c.group).or_default() += 1;
    }
    let free: usize = sizes.iter().filter(|(g, _)| !eval_only.contains(*g)).map(|(_, n)| n).sum();
    let wanted = (config.heldout.clamp(0.0, 1.0) * free as f64).round() as usize;
    let mut order: Vec<(String, &str)> = sizes.keys().map(|g| (content_id(&[&config.salt, g]), *g)).collect();
    order.sort();
    let mut held = 0;
    let mut split = BTreeMap::new();
    for (_, group) in order {
        let out = eval_only.contains(group) || held < wanted;
        held += if out && !eval_only.contains(group) { sizes[group] } else { 0 };
        split.insert(group.to_string(), if out { "heldout" } else { "train" }.to_string());
    }
    // A duplicate's group may hold nothing else.
    for c in candidates {
        split.entry(c.group.clone()).or_insert_with(|| "heldout".into());
    }
    split
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(id: &str, group: &str, text: &str, eval_only: bool) -> Candidate {
        Candidate {
            task_id: id.into(),
            group: group.into(),
            instruction: text.into(),
            eval_only,
            ..Candidate::default()
        }
    }

    #[test]
    fn groups_stay_whole_and_evaluation_sets_are_never_trained_on() {
        let set: Vec<Candidate> = (0..40)
            .map(|i| candidate(&format!("t{i}"), &format!("g{}", i / 4), &format!("text {i}"), i / 4 == 3))
            .collect();
        let split = splits(&set, &duplicates(&set), &VerifyConfig { heldout: 0.5, ..VerifyConfig::default() });
        assert_eq!(split["g3"], "heldout");
        let held = set.iter().filter(|c| split[&c.group] == "heldout").count();
        assert!((20..=26).contains(&held), "{held}");
        let salted = VerifyConfig { heldout: 0.5, salt: "x".into(), ..VerifyConfig::default() };
        assert_ne!(split, splits(&set, &duplicates(&set), &salted));
    }

    #[test]
    fn the_mark_of_a_rejected_duplicate_counts() {
        let set =
            [candidate("a", "g", "sum", false), candidate("b", "h", "sum", true), candidate("c", "i", "other", false)];
        let split = splits(&set, &duplicates(&set), &VerifyConfig { heldout: 0.0, ..VerifyConfig::default() });
        assert_eq!((split["g"].as_str(), split["i"].as_str()), ("heldout", "train"));
    }

    #[test]
    fn duplicates_are_found_by_text() {
        let set = [candidate("a", "g", "sum of\n xs", false), candidate("b", "h", "sum  of xs", false)];
        assert_eq!(duplicates(&set), BTreeMap::from([("b".to_string(), "a".to_string())]));
    }
}
