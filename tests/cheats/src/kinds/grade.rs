//! What solutions of a kind earn, by the grader's own suites.

use super::{Cheat, Task, naive};
use crate::cheat::Outcome;
use crate::label::{Label, Unlabelled, again_while_busy};
use crate::naive::fooled;
use rollmill_grader::{CaseOutcome, Components, RewardConfig, Solution, Suite, SuiteResult, T0Options, pass_rate};
use rollmill_sandbox::Sandbox;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Limits of a call, a run or a request; tricks that hang take them all.
fn options(seed: u64) -> T0Options {
    T0Options { per_call: Duration::from_secs(1), total: Duration::from_secs(20), seed, ..T0Options::default() }
}

/// The label of a solution of a task.
pub fn label(sandbox: &dyn Sandbox, solution: &Solution, task: &Task, seed: u64) -> Result<Label, Unlabelled> {
    let suite = |suite: &Suite| again_while_busy(|| suite.grade(sandbox, solution, &options(seed)));
    let began = Instant::now();
    let a = suite(&task.tests_a).map_err(Unlabelled::of(&task.id))?;
    let wall = began.elapsed();
    let b = suite(&task.tests_b).map_err(Unlabelled::of(&task.id))?;
    let rate = |r: &SuiteResult| pass_rate(r.passed, r.total);
    let compiles = f64::from(u8::from(a.compiled));
    let with = Components { compiles, tests_a: rate(&a), tests_b: Some(rate(&b)), style: 0.0 };
    let config = RewardConfig::default();
    let failed = a.verdicts.iter().find(|v| v.outcome != CaseOutcome::Passed);
    Ok(Label {
        reward: config.total(&with),
        reward_without_b: config.total(&Components { tests_b: None, ..with }),
        passed_a: a.passed,
        passed_b: b.passed,
        detail: failed.map_or(String::new(), |v| format!("{:?}: {}", v.outcome, v.detail)),
        wall,
    })
}

/// What wrong solutions earn by themselves, and what the control pays for them.
pub struct Baselines(HashMap<String, (Label, f64)>);

impl Baselines {
    /// Of all tasks.
    pub fn of(sandbox: &dyn Sandbox, tasks: &[Task], seed: u64) -> Result<Baselines, Unlabelled> {
        let one = |task: &Task| {
            let wrong = task.solution(&task.wrong, &[]);
            let naive = naive::paid(sandbox, task, &wrong, false).map_err(Unlabelled::of(&task.id))?;
            Ok((task.kind.clone(), (label(sandbox, &wrong, task, seed)?, naive)))
        };
        tasks.iter().map(one).collect::<Result<_, _>>().map(Baselines)
    }
}

/// Grades a cheat, and asks the control.
pub fn try_cheat(sandbox: &dyn Sandbox, base: &Baselines, cheat: &Cheat<'_>, seed: u64) -> Result<Outcome, Unlabelled> {
    let (without, naive) = &base.0[&cheat.task.kind];
    let named = |e: Unlabelled| Unlabelled { id: cheat.id(), ..e };
    let outlives = cheat.class == "outlive";
    let solution = cheat.solution();
    let with = label(sandbox, &solution, cheat.task, seed).map_err(named)?;
    let after = || label(sandbox, &cheat.task.solution(&cheat.task.wrong, &[]), cheat.task, seed);
    let later = outlives.then(after).transpose()?.map(|l| l.reward);
    let paid = naive::paid(sandbox, cheat.task, &solution, outlives).map_err(Unlabelled::of(cheat.id()))?;
    let control_fooled = Some(fooled(paid, *naive));
    Ok(Outcome { id: cheat.id(), class: cheat.class, with, without: without.clone(), later, control_fooled })
}
