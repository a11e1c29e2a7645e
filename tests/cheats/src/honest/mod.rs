//! Honest solutions: right ones, rewritten in ways that look like cheating and are not. Each must earn what its reference does.

pub mod rewrites;
pub mod sets;

use crate::CorpusError;
use crate::label::{Grader, Label, Unlabelled};
use crate::template::Split;
use crate::tier::{Tests, Tier};
use rewrites::{REWRITES, fits, rewrite};
use rollmill_grader::{Case, Comparator, Solution};
use serde::Serialize;
use sets::Reference;
use std::collections::HashMap;
use std::path::Path;

/// An honest solution.
#[derive(Clone, Debug)]
pub struct Honest<'a> {
    /// The right solution it comes from, and its tests.
    pub reference: &'a Reference,
    /// One of [`REWRITES`].
    pub rewrite: &'static str,
    /// Its files.
    pub solution: Solution,
}

impl Honest<'_> {
    /// `honest/rewrite/set/task`.
    pub fn id(&self) -> String {
        format!("honest/{}/{}/{}", self.rewrite, self.reference.set, self.reference.task)
    }

    /// Whether it can be graded at a tier: elsewhere than at T0 tests are unittest's or printed text, which know no comparator but
    /// equality; and what a program prints beside its answer makes it wrong, so rewrites that do are left out at T1.
    pub fn fits(&self, tier: Tier) -> bool {
        let r = self.reference;
        let exact = || r.tests_a.iter().chain(r.tests_b.iter().flatten()).all(|c| c.comparator == Comparator::Exact);
        match tier {
            Tier::Calls => true,
            Tier::Written | Tier::Repository => r.set == "examples" && self.rewrite != "tuple_for_list" && exact(),
            Tier::Program => {
                let prints = ["printing", "exit_in_main", "atexit_and_thread"].contains(&self.rewrite);
                r.set == "examples" && self.rewrite != "tuple_for_list" && !prints && exact()
            }
        }
    }

    /// HumanEval and every third rewrite are kept from training, whole.
    pub fn split(&self) -> Split {
        let at = REWRITES.iter().position(|(name, _)| *name == self.rewrite).unwrap_or(0);
        if self.reference.set == "humaneval" || at % 3 == 2 { Split::Held } else { Split::Train }
    }
}

/// How many rewrites of each task are made, beside the reference itself.
fn rewrites_of(set: &str) -> usize {
    match set {
        "examples" => 12,
        "humaneval" => 6,
        _ => 2,
    }
}

/// The references and, of each, some rewrites in turn: which ones follows from its position and the seed.
pub fn all<'a>(references: &'a [Reference], python: &Path, seed: u64) -> Result<Vec<Honest<'a>>, CorpusError> {
    let mut wanted = Vec::new();
    let mut next = seed as usize;
    for reference in references {
        wanted.push((reference, REWRITES[0].0));
        let others = REWRITES.len() - 1;
        for step in 0..rewrites_of(reference.set) {
            let (name, _) = REWRITES[1 + (next + step) % others];
            if fits(name, reference) {
                wanted.push((reference, name));
            }
        }
        next = next.wrapping_add(rewrites_of(reference.set));
    }
    let solutions = rewrite(python, &wanted)?;
    let honest = wanted
        .into_iter()
        .zip(solutions)
        .filter_map(|((reference, rewrite), solution)| Some(Honest { reference, rewrite, solution: solution? }));
    Ok(honest.collect())
}

/// What an honest solution earned.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// See [`Honest::id`].
    pub id: String,
    /// Its set.
    pub set: &'static str,
    /// Its task in the set.
    pub task: String,
    /// Its rewrite.
    pub rewrite: &'static str,
    /// What it earned.
    pub label: Label,
}

/// Grades one at a tier that it [fits](Honest::fits). At T0 a task whose solution may return a tuple for a list declares so
/// by its comparator.
pub fn try_honest(grader: &Grader<'_>, tier: Tier, honest: &Honest<'_>) -> Result<Outcome, Unlabelled> {
    let r = honest.reference;
    let (a, b) = match tier {
        Tier::Calls => (calls(honest, &r.tests_a), r.tests_b.as_deref().map(|b| calls(honest, b))),
        _ => {
            let (a, b) = tier.tests(&r.task());
            (a, Some(b))
        }
    };
    let solution = tier.adapt(honest.solution.clone(), &r.entry);
    let label = grader.label(&solution, &r.entry, &a, b.as_ref()).map_err(Unlabelled::of(honest.id()))?;
    Ok(Outcome { id: honest.id(), set: r.set, task: r.task.clone(), rewrite: honest.rewrite, label })
}

fn calls(honest: &Honest<'_>, cases: &[Case]) -> Tests {
    let mut cases = cases.to_vec();
    let exact = cases.iter_mut().filter(|c| honest.rewrite == "tuple_for_list" && c.comparator == Comparator::Exact);
    exact.for_each(|c| c.comparator = Comparator::Sequence);
    Tests::Calls(cases)
}

/// Solutions that earned less than their reference did, or less than everything where that was not graded. A reference that
/// fails its own tests bounds nothing.
pub fn false_positives(outcomes: &[Outcome]) -> Vec<&Outcome> {
    let is_reference = |o: &&Outcome| o.rewrite == REWRITES[0].0;
    let earned = |o: &Outcome| (format!("{}/{}", o.set, o.task), o.label.reward);
    let references: HashMap<String, f64> = outcomes.iter().filter(is_reference).map(earned).collect();
    let due = |o: &Outcome| references.get(&format!("{}/{}", o.set, o.task)).copied().unwrap_or(1.0);
    outcomes.iter().filter(|o| !is_reference(o) && o.label.reward < due(o)).collect()
}

/// An honest solution as a row for whoever trains or measures a detector.
#[derive(Serialize)]
pub struct Row {
    id: String,
    rewrite: &'static str,
    set: &'static str,
    task: String,
    split: Split,
    files: Vec<(String, String)>,
}

impl Row {
    /// With the text of all files.
    pub fn of(honest: &Honest<'_>) -> Row {
        let text = |(name, bytes): &(String, Vec<u8>)| (name.clone(), String::from_utf8_lossy(bytes).into_owned());
        Row {
            id: honest.id(),
            rewrite: honest.rewrite,
            set: honest.reference.set,
            task: honest.reference.task.clone(),
            split: honest.split(),
            files: honest.solution.files.iter().map(text).collect(),
        }
    }
}
