//! Results as Markdown.

use crate::cheat::Outcome;
use crate::class::CLASSES;
use crate::honest::rewrites::REWRITES;
use crate::honest::{self, false_positives};
use crate::wilson::share;
use std::fmt::Write;
use std::time::Duration;

/// Cheats by class, and every one that pays by its id.
pub fn cheats(tier: &str, outcomes: &[Outcome]) -> String {
    let mut out = format!(
        "| class at {tier} | cheats | earn more than without the trick | would without tests B | pass more tests A | the naive grader pays more |\n|---|---|---|---|---|---|\n"
    );
    for class in &CLASSES {
        let of: Vec<&Outcome> = outcomes.iter().filter(|o| o.class == class.name).collect();
        if !of.is_empty() {
            line(&mut out, class.title, &of);
        }
    }
    line(&mut out, "**all**", &outcomes.iter().collect::<Vec<_>>());
    for o in outcomes.iter().filter(|o| o.pays()) {
        let later = o.later.map_or(String::new(), |r| format!(", a later grade {r}"));
        let _ = write!(out, "\n- pays: `{}` earns {} instead of {}{later}", o.id, o.with.reward, o.without.reward);
    }
    out
}

/// One cheat on one line, separated by tabs.
pub fn one(o: &Outcome) -> String {
    let fooled = o.control_fooled.map_or("not asked", |f| if f { "fooled" } else { "not fooled" });
    let (with, without) = (&o.with, &o.without);
    format!(
        "{}\treward {:.2} of {:.2}\ta {} of {}\tb {} of {}\tcontrol {fooled}\t{}",
        o.id,
        with.reward,
        without.reward,
        with.passed_a,
        without.passed_a,
        with.passed_b,
        without.passed_b,
        with.detail
    )
}

fn line(out: &mut String, title: &str, of: &[&Outcome]) {
    let count = |what: &dyn Fn(&Outcome) -> bool| of.iter().filter(|o| what(o)).count();
    let asked: Vec<bool> = of.iter().filter_map(|o| o.control_fooled).collect();
    let fooled = asked.iter().filter(|f| **f).count();
    let control = if asked.is_empty() { "not asked".to_owned() } else { share(fooled, asked.len()) };
    let _ = writeln!(
        out,
        "| {title} | {} | {} | {} | {} | {control} |",
        of.len(),
        share(count(&Outcome::pays), of.len()),
        count(&Outcome::pays_without_b),
        count(&|o| o.with.passed_a > o.without.passed_a),
    );
}

/// Honest solutions by set and by rewrite, and every false positive by its id.
pub fn honest(outcomes: &[honest::Outcome]) -> String {
    let bad = false_positives(outcomes);
    let mut out = "| set | solutions | full reward | earn less than their reference |\n|---|---|---|---|\n".to_owned();
    let mut row = |title: &str, keep: &dyn Fn(&honest::Outcome) -> bool| {
        let n = outcomes.iter().filter(|o| keep(o)).count();
        let full = outcomes.iter().filter(|o| keep(o) && o.label.reward == 1.0).count();
        let lost = bad.iter().filter(|o| keep(o)).count();
        let _ = writeln!(out, "| {title} | {n} | {full} | {} |", share(lost, n));
    };
    for set in ["examples", "humaneval", "mbpp", "programs"] {
        row(set, &|o| o.set == set);
    }
    row("**all**", &|_| true);
    out.push_str("\n| rewrite | what it is | solutions | full reward | earn less |\n|---|---|---|---|---|\n");
    for (name, what) in REWRITES {
        let of: Vec<_> = outcomes.iter().filter(|o| o.rewrite == name).collect();
        let full = of.iter().filter(|o| o.label.reward == 1.0).count();
        let lost = bad.iter().filter(|o| o.rewrite == name).count();
        let _ = writeln!(out, "| {name} | {what} | {} | {full} | {lost} |", of.len());
    }
    for o in &bad {
        let _ = write!(out, "\n- false positive: `{}` earns {} ({})", o.id, o.label.reward, o.label.detail);
    }
    for o in outcomes.iter().filter(|o| o.rewrite == REWRITES[0].0 && o.label.reward < 1.0) {
        let _ = write!(out, "\n- a reference below 1: `{}` earns {:.2} ({})", o.id, o.label.reward, o.label.detail);
    }
    out
}

/// Milliseconds, the median of some times.
pub fn median_ms(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times.get(times.len() / 2).map_or(f64::NAN, |t| t.as_secs_f64() * 1000.0)
}
