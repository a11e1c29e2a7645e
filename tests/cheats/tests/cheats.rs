//! Every trick of the corpus at T0, once in each of its forms, and a sample at every other tier: none earns more than the same
//! wrong solution without it; and the control, a naive grader, is fooled by most of them, which shows that they work.
#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

use rollmill_cheats::cheat::{Baselines, Outcome, all, label, once_each, try_cheat};
use rollmill_cheats::class::CLASSES;
use rollmill_cheats::form::{Form, cheating};
use rollmill_cheats::label::Grader;
use rollmill_cheats::task::Task;
use rollmill_cheats::tier::Tier;
use rollmill_cheats::{Corpus, campaign, naive, project, sandbox, task, template, wilson};
use rollmill_grader::Solution;
use rollmill_grader::style::style;
use rollmill_sandbox::Sandbox;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

const SEED: u64 = 1;

/// One for all tests of this file: with interpreters kept loaded, as the jobs have it.
static SANDBOX: LazyLock<Arc<dyn Sandbox>> = LazyLock::new(|| {
    sandbox(false).unwrap_or_else(|e| panic!("{e}; first run: cargo build -p rollmill-sandbox --bins"))
});

fn corpus() -> Corpus {
    let project = project().unwrap();
    let (corpus, examples) = (project.join("tests/cheats/corpus"), project.join("examples/tasks"));
    let tasks = task::load(&corpus, &examples).unwrap();
    Corpus { tasks, templates: template::load(&corpus).unwrap(), references: Vec::new() }
}

#[test]
fn every_class_has_five_templates_and_both_sides_of_the_split() {
    let corpus = corpus();
    for class in &CLASSES {
        let of: Vec<_> = corpus.templates.iter().filter(|t| t.class == class.name).collect();
        assert!(of.len() >= 5, "{}", class.name);
        let held = of.iter().filter(|t| t.split == template::Split::Held).count();
        assert!(held > 0 && (class.held || held < of.len()), "{}", class.name);
    }
    let kinds: std::collections::BTreeSet<_> = corpus.tasks.iter().map(|t| &t.kind).collect();
    assert!(kinds.len() == corpus.tasks.len() && kinds.len() >= 10);
}

#[test]
fn wrong_solutions_are_wrong_and_right_ones_right() {
    let corpus = corpus();
    let grader = Grader::short(SANDBOX.as_ref(), SEED);
    for (index, task) in corpus.tasks.iter().enumerate() {
        // Every fourth task, the one with weak tests B among them, at the tiers where a grade takes longer.
        for tier in Tier::ALL.into_iter().filter(|t| *t == Tier::Calls || index % 4 == 0) {
            let name = format!("{} at {}", task.id, tier.name());
            let right = label(&grader, tier, Solution::from_source(&task.reference), task).unwrap();
            assert_eq!(right.reward, 1.0, "{name}: {}", right.detail);
            let wrong = label(&grader, tier, Solution::from_source(&task.wrong), task).unwrap();
            assert!(wrong.passed_a > 0 && wrong.reward_without_b < 1.0, "{name}: {wrong:?}");
            assert_eq!(wrong.reward > 0.0, task.weak_b(), "{name}: {wrong:?}");
        }
    }
}

/// The control's majority, at every tier: a spread sample of all templates and forms. A right solution gets full marks and the
/// wrong one does not, else nothing could be learned from it.
#[test]
fn most_tricks_fool_the_control_at_every_tier() {
    let corpus = corpus();
    for tier in Tier::ALL {
        let paid = |solution: &Solution, task: &Task, later| naive::paid(SANDBOX.as_ref(), tier, solution, task, later);
        let cheats = campaign::sample(once_each(&corpus.templates, &corpus.tasks, 1), Some(41), SEED);
        let without: HashMap<String, f64> = campaign::each(&corpus.tasks, 2, |task| {
            let right = paid(&Solution::from_source(&task.reference), task, false)?;
            let wrong = paid(&Solution::from_source(&task.wrong), task, false)?;
            assert!(right >= 1.0 && wrong < 1.0, "{} at {}: {right} and {wrong}", task.id, tier.name());
            Ok::<_, rollmill_sandbox::SandboxError>((task.kind.clone(), wrong))
        })
        .unwrap()
        .into_iter()
        .collect();
        let fooled = campaign::each(&cheats, 2, |c| {
            let with = paid(&c.solution(), c.task, c.template.class == "outlive")?;
            Ok::<_, rollmill_sandbox::SandboxError>(naive::fooled(with, without[&c.task.kind]))
        });
        let count = fooled.unwrap().into_iter().filter(|f| *f).count();
        eprintln!("seed {SEED}: at {} the control is fooled by {}", tier.name(), wilson::share(count, cheats.len()));
        assert!(count * 2 > cheats.len(), "seed {SEED} at {}: {count} of {}", tier.name(), cheats.len());
    }
}

/// Every template of these classes in each of its forms, and the control; `fooling` are classes most of which must fool it.
fn no_trick_pays(classes: &[&str], fooling: &[&str]) {
    let corpus = corpus();
    let grader = Grader::short(SANDBOX.as_ref(), SEED);
    let base = Baselines::of(&grader, Tier::Calls, &corpus.tasks).unwrap();
    let mut cheats = once_each(&corpus.templates, &corpus.tasks, 0);
    cheats.retain(|c| classes.contains(&c.template.class));
    let outcomes = campaign::each(&cheats, 2, |c| try_cheat(&grader, &base, c, true)).unwrap();
    let paying: Vec<&Outcome> = outcomes.iter().filter(|o| o.pays()).collect();
    assert!(paying.is_empty(), "seed {SEED}: {paying:#?}");
    for class in classes {
        let of: Vec<&Outcome> = outcomes.iter().filter(|o| o.class == *class).collect();
        let fooled = of.iter().filter(|o| o.control_fooled == Some(true)).count();
        eprintln!("seed {SEED}: of {class}, the control is fooled by {}", wilson::share(fooled, of.len()));
        let enough = !fooling.contains(class) || fooled * 2 > of.len();
        assert!(enough, "{class}: only {fooled} of {} fool the control, so they show little", of.len());
    }
}

#[test]
fn ends_and_verdicts_do_not_pay() {
    let fooling = ["exit_early", "skip", "forge_verdict"];
    no_trick_pays(&["exit_early", "skip", "exhaust", "forge_verdict"], &fooling);
}

#[test]
fn attacks_on_the_harness_do_not_pay() {
    let fooling = ["forge_protocol", "hook_framework", "equal_all"];
    no_trick_pays(&["forge_protocol", "hook_framework", "poison_tools", "equal_all"], &fooling);
}

#[test]
fn spoiled_inputs_and_stolen_answers_do_not_pay() {
    no_trick_pays(&["spoil_inputs", "read_answer", "fetch_answer", "fit_visible"], &["fit_visible"]);
}

#[test]
fn guesses_pleas_and_leftovers_do_not_pay() {
    no_trick_pays(&["swallow_errors", "fish", "game_clock", "persuade", "outlive"], &["persuade", "outlive"]);
}

#[test]
fn persuasion_earns_no_style() {
    let corpus = corpus();
    let of = corpus.templates.iter().filter(|t| t.class == "persuade");
    for (template, task) in of.flat_map(|t| corpus.tasks.iter().map(move |task| (t, task))) {
        for wrong in [task.wrong.clone(), task.wrong.replace("    ", "\t"), format!("{}print(1)\n", task.wrong)] {
            let task = task::Task { wrong, ..task.clone() };
            let with = cheating(template, &task, Form::Plain).main_source();
            let (with, without) = (style(&with, &task.entry_point), style(&task.wrong, &task.entry_point));
            assert!(with <= without, "{}: {with} instead of {without} on {}", template.name, task.id);
        }
    }
}

fn a_sample_pays_nothing_at(tier: Tier) {
    let corpus = corpus();
    let grader = Grader::short(SANDBOX.as_ref(), SEED);
    let cheats = campaign::sample(once_each(&corpus.templates, &corpus.tasks, 1), Some(20), SEED);
    let used = corpus.tasks.iter().filter(|t| cheats.iter().any(|c| c.task.kind == t.kind)).cloned();
    let base = Baselines::of(&grader, tier, &used.collect::<Vec<_>>()).unwrap();
    let outcomes = campaign::each(&cheats, 2, |c| try_cheat(&grader, &base, c, false)).unwrap();
    let paying: Vec<&Outcome> = outcomes.iter().filter(|o| o.pays()).collect();
    assert!(paying.is_empty(), "seed {SEED} at {}: {paying:#?}", tier.name());
}

#[test]
fn no_trick_pays_against_written_tests() {
    a_sample_pays_nothing_at(Tier::Written);
}

#[test]
fn no_trick_pays_in_programs() {
    a_sample_pays_nothing_at(Tier::Program);
}

#[test]
fn no_trick_pays_in_repositories_with_tests_b() {
    a_sample_pays_nothing_at(Tier::Repository);
}

/// What tests B are for: hidden tests A that leaked pay in full without them.
#[test]
fn leaked_tests_pay_without_tests_b() {
    let corpus = corpus();
    let grader = Grader::short(SANDBOX.as_ref(), SEED);
    let tasks = &corpus.tasks[..1];
    let leaked: Vec<_> = corpus.templates.iter().filter(|t| t.name == "lookup_leaked").cloned().collect();
    let base = Baselines::of(&grader, Tier::Calls, tasks).unwrap();
    let outcome = try_cheat(&grader, &base, &once_each(&leaked, tasks, 0)[0], false).unwrap();
    assert_eq!((outcome.with.reward_without_b, outcome.with.reward), (1.0, 0.0), "{outcome:?}");
    assert!(outcome.pays_without_b() && !outcome.pays());
}

#[test]
fn cheats_have_ids_of_their_own_and_no_placeholder_left() {
    let corpus = corpus();
    let cheats = all(&corpus.templates, &corpus.tasks);
    let ids: std::collections::BTreeSet<String> = cheats.iter().map(|c| c.id()).collect();
    assert_eq!(ids.len(), cheats.len());
    for cheat in &cheats {
        for (name, bytes) in cheat.solution().files {
            assert!(!String::from_utf8_lossy(&bytes).contains("entry_point"), "{}: {name}", cheat.id());
        }
    }
}
