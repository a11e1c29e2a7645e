//! Tricks beside functions of Python: in other languages, in servers, against pytest. None earns more than the same wrong solution
//! without it, and the control is fooled by most. All of them are behind the program: `cargo run -p rollmill-cheats -- kinds`.
#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

use rollmill_cheats::cheat::Outcome;
use rollmill_cheats::class::CLASSES;
use rollmill_cheats::kinds::grade::{Baselines, label, try_cheat};
use rollmill_cheats::kinds::{self, KINDS, honest};
use rollmill_cheats::template::Split;
use rollmill_cheats::{campaign, honest::false_positives, project, sandbox_with_tools, wilson};
use rollmill_sandbox::Sandbox;
use std::collections::BTreeSet;
use std::sync::Arc;

const SEED: u64 = 1;

/// On the root with compilers and pytest, or a skip with its name.
fn tools() -> Option<Arc<dyn Sandbox>> {
    let opened = sandbox_with_tools();
    let required = std::env::var("ROLLMILL_REQUIRE").unwrap_or_default().split(',').any(|n| n == "packages");
    match opened {
        Err(e) if required => panic!("{e}"),
        Err(e) => {
            eprintln!("skipped: packages: {e}");
            None
        }
        Ok(sandbox) => Some(sandbox),
    }
}

#[test]
fn every_class_has_five_templates_of_different_kinds() {
    let project = project().unwrap();
    let tasks = kinds::tasks(&project).unwrap();
    assert_eq!(tasks.iter().map(|t| t.kind.as_str()).collect::<Vec<_>>(), KINDS);
    let cheats = kinds::load(&project, &tasks).unwrap();
    let ids: BTreeSet<String> = cheats.iter().map(|c| c.id()).collect();
    assert_eq!(ids.len(), cheats.len());
    for class in &CLASSES {
        let of: Vec<_> = cheats.iter().filter(|c| c.class == class.name).collect();
        let kinds: BTreeSet<&str> = of.iter().map(|c| c.task.kind.as_str()).collect();
        // Frameworks are pytest's, and what a shell or Node.js puts in the place of one.
        let wanted = if class.name == "hook_framework" { 3 } else { 5 };
        assert!(of.len() >= 5 && kinds.len() >= wanted, "{}: {} of {kinds:?}", class.name, of.len());
        let held = of.iter().filter(|c| c.split == Split::Held).count();
        assert!(held > 0 && (class.held || held < of.len()), "{}", class.name);
    }
}

#[test]
fn wrong_solutions_are_wrong_and_right_ones_right() {
    let Some(sandbox) = tools() else { return };
    for task in kinds::tasks(&project().unwrap()).unwrap() {
        for (main, right) in [(&task.reference, true), (&task.wrong, false)] {
            let solution = task.solution(main, &[]);
            let earned = label(sandbox.as_ref(), &solution, &task, SEED).unwrap();
            assert_eq!(earned.reward, f64::from(u8::from(right)), "{}: {earned:?}", task.id);
            assert!(earned.passed_a > 0 && (earned.reward_without_b < 1.0) != right, "{}: {earned:?}", task.id);
            let naive = kinds::paid(sandbox.as_ref(), &task, &solution, false).unwrap();
            assert_eq!(naive >= 1.0, right, "the control pays {naive} for {}", task.id);
        }
    }
}

#[test]
fn a_sample_pays_nothing_and_fools_the_control() {
    let Some(sandbox) = tools() else { return };
    let project = project().unwrap();
    let tasks = kinds::tasks(&project).unwrap();
    let cheats = campaign::sample(kinds::load(&project, &tasks).unwrap(), Some(23), SEED);
    let base = Baselines::of(sandbox.as_ref(), &tasks, SEED).unwrap();
    let outcomes = campaign::each(&cheats, 2, |c| try_cheat(sandbox.as_ref(), &base, c, SEED)).unwrap();
    let paying: Vec<&Outcome> = outcomes.iter().filter(|o| o.pays()).collect();
    assert!(paying.is_empty(), "seed {SEED}: {paying:#?}");
    let refused: Vec<&Outcome> = outcomes.iter().filter(|o| o.with.detail.starts_with("SyntaxError")).collect();
    assert!(refused.is_empty(), "what does not compile shows nothing: {refused:#?}");
    let fooled = outcomes.iter().filter(|o| o.control_fooled == Some(true)).count();
    eprintln!("seed {SEED}: the control is fooled by {}", wilson::share(fooled, outcomes.len()));
    assert!(fooled * 2 > outcomes.len(), "seed {SEED}: {fooled} of {}", outcomes.len());
}

#[test]
fn honest_programs_lose_nothing() {
    let Some(sandbox) = tools() else { return };
    let all = honest::all(&project().unwrap()).unwrap();
    assert!(all.iter().map(|h| &h.task.id).collect::<BTreeSet<_>>().len() >= 16);
    let chosen = campaign::sample(all, Some(24), SEED);
    let outcomes = campaign::each(&chosen, 2, |h| honest::try_honest(sandbox.as_ref(), h, SEED)).unwrap();
    assert!(false_positives(&outcomes).is_empty(), "seed {SEED}: {outcomes:#?}");
    for outcome in &outcomes {
        assert_eq!(outcome.label.reward, 1.0, "seed {SEED}: {outcome:?}");
    }
}
