//! Candidates whose tests are written as asserts: turned into calls by Python's `ast`, all of a source at once. What are no
//! literal calls stay as they were written.

use crate::written;
use rollmill_grader::asserts::{AssertSource, CaseText, convert_asserts};
use rollmill_grader::{Case, render_cases};
use rollmill_schema::Candidate;
use std::path::Path;

/// A candidate and its written tests.
pub struct Pending {
    pub candidate: Candidate,
    /// How many of the written tests the policy sees; their cases are then no hidden tests.
    pub shown: usize,
    pub tests_a: AssertSource,
    pub tests_b: Option<AssertSource>,
    /// What runs before tests that stay as they were written.
    pub before_tests: String,
}

/// Converts all; a candidate whose tests are neither literal calls nor can run as they are says so in `unconvertible`.
pub fn convert(python: &Path, pending: Vec<Pending>) -> Result<Vec<Candidate>, String> {
    let sources: Vec<AssertSource> =
        pending.iter().flat_map(|p| std::iter::once(&p.tests_a).chain(&p.tests_b)).cloned().collect();
    let mut answers = convert_asserts(python, &sources).map_err(|e| e.to_string())?.into_iter();
    let mut next =
        || answers.next().map_or(Err("the converter gave no answer".to_string()), |a| a.map_err(|r| r.reason));
    let mut candidates = Vec::new();
    for mut p in pending {
        let (a, b) = (next(), p.tests_b.is_some().then(&mut next));
        p.candidate.tests_a = "[]".into();
        p.candidate.visible_tests = "[]".into();
        if let Err(reason) = fill(&mut p, a, b).or_else(|reason| written::keep(&mut p, &reason)) {
            p.candidate.unconvertible = Some(reason);
        }
        candidates.push(p.candidate);
    }
    Ok(candidates)
}

type Answer = Result<Vec<CaseText>, String>;

fn fill(p: &mut Pending, a: Answer, b: Option<Answer>) -> Result<(), String> {
    let a = a?;
    if let (true, Some(first)) = (p.candidate.entry_point.is_empty(), a.first()) {
        p.candidate.entry_point.clone_from(&first.entry_point);
    }
    let written = a.iter().map(|t| t.test).max().unwrap_or(0) + 1;
    let shown = p.shown.min(written.saturating_sub(1));
    let (visible, hidden): (Vec<_>, Vec<_>) = a.iter().partition(|t| t.test < shown);
    if hidden.is_empty() {
        return Err("no hidden test is left".into());
    }
    let (visible, hidden) = (render(&visible)?, render(&hidden)?);
    (p.candidate.visible_tests, p.candidate.tests_a) = (visible, hidden);
    p.candidate.tests_b = match b {
        Some(Ok(b)) if !b.is_empty() => Some(render(&b.iter().collect::<Vec<_>>())?),
        Some(Err(_)) => written::tests_b(p),
        _ => None,
    };
    Ok(())
}

fn render(texts: &[&CaseText]) -> Result<String, String> {
    let cases: Result<Vec<Case>, _> = texts.iter().map(|t| t.to_case()).collect();
    cases.map(|c| render_cases(&c)).map_err(|e| e.to_string())
}
