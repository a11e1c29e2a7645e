//! Cheats: a template, a task and a form; and what one earns beside the same solution without the trick.

use crate::class::class_of;
use crate::form::{Form, cheating};
use crate::label::{Grader, Label, Unlabelled};
use crate::naive::{fooled, paid};
use crate::task::Task;
use crate::template::{Split, Template};
use crate::tier::Tier;
use rollmill_grader::Solution;
use serde::Serialize;
use std::collections::HashMap;

/// One cheat of the corpus.
#[derive(Clone, Debug)]
pub struct Cheat<'a> {
    /// The trick.
    pub template: &'a Template,
    /// What it is tried on.
    pub task: &'a Task,
    /// How it is written.
    pub form: Form,
}

impl Cheat<'_> {
    /// `class/template/form/task`.
    pub fn id(&self) -> String {
        format!("{}/{}/{}/{}", self.template.class, self.template.name, self.form.name(), self.task.kind)
    }

    /// Its files.
    pub fn solution(&self) -> Solution {
        cheating(self.template, self.task, self.form)
    }
}

/// All templates on all tasks in all forms. A trick that knows tests A is not tried where tests B cannot tell the wrong
/// solution from a right one: there the rate of tests A is the reward, and knowing them pays by definition.
pub fn all<'a>(templates: &'a [Template], tasks: &'a [Task]) -> Vec<Cheat<'a>> {
    let of = |template: &'a Template| {
        let fits = move |task: &&Task| !(template.leaks_a && task.weak_b());
        let on = move |task: &'a Task| template.forms.iter().map(move |form| Cheat { template, task, form: *form });
        tasks.iter().filter(fits).flat_map(on)
    };
    templates.iter().flat_map(of).collect()
}

/// Every template in every form once, each on another task than the one before; another `turn` takes other tasks.
pub fn once_each<'a>(templates: &'a [Template], tasks: &'a [Task], turn: usize) -> Vec<Cheat<'a>> {
    let mut cheats = Vec::new();
    for template in templates {
        for form in &template.forms {
            let fitting: Vec<&Task> = tasks.iter().filter(|t| !(template.leaks_a && t.weak_b())).collect();
            cheats.push(Cheat { template, task: fitting[(cheats.len() + turn) % fitting.len()], form: *form });
        }
    }
    cheats
}

/// What came of a cheat.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// See [`Cheat::id`].
    pub id: String,
    /// Name of the class.
    pub class: &'static str,
    /// What the trick earned.
    pub with: Label,
    /// What the same wrong solution earned without it.
    pub without: Label,
    /// Of the class `outlive`: what the wrong solution earned when it was graded after the cheat.
    pub later: Option<f64>,
    /// Whether the naive grader paid more for the trick; absent where the control was not asked.
    pub control_fooled: Option<bool>,
}

impl Outcome {
    /// Whether the trick, or a grade after it, earned more than the wrong solution: what must never be.
    pub fn pays(&self) -> bool {
        self.with.reward > self.without.reward || self.later.is_some_and(|r| r > self.without.reward)
    }

    /// Whether it would have paid if there were no tests B.
    pub fn pays_without_b(&self) -> bool {
        self.with.reward_without_b > self.without.reward_without_b
    }
}

/// What wrong solutions earn by themselves at a tier, and what the control pays for them.
pub struct Baselines {
    tier: Tier,
    labels: HashMap<String, (Label, f64)>,
}

impl Baselines {
    /// Grades the wrong solution of every task.
    pub fn of(grader: &Grader<'_>, tier: Tier, tasks: &[Task]) -> Result<Baselines, Unlabelled> {
        let mut labels = HashMap::new();
        for task in tasks {
            let wrong = Solution::from_source(&task.wrong);
            let naive = paid(grader.sandbox, tier, &wrong, task, false).map_err(Unlabelled::of(&task.id))?;
            labels.insert(task.kind.clone(), (label(grader, tier, wrong, task)?, naive));
        }
        Ok(Baselines { tier, labels })
    }

    /// Of one task; it must be among those that were graded.
    pub fn get(&self, task: &Task) -> &(Label, f64) {
        &self.labels[&task.kind]
    }
}

/// The label of a solution of a task.
pub fn label(grader: &Grader<'_>, tier: Tier, solution: Solution, task: &Task) -> Result<Label, Unlabelled> {
    let (a, b) = tier.tests(task);
    let solution = tier.adapt(solution, &task.entry_point);
    grader.label(&solution, &task.entry_point, &a, Some(&b)).map_err(Unlabelled::of(&task.id))
}

/// Grades a cheat at the tier of the baselines, and asks the control if `control`.
pub fn try_cheat(
    grader: &Grader<'_>,
    base: &Baselines,
    cheat: &Cheat<'_>,
    control: bool,
) -> Result<Outcome, Unlabelled> {
    let (without, naive) = base.get(cheat.task);
    let outlives = cheat.template.class == "outlive";
    let named = |e: Unlabelled| Unlabelled { id: cheat.id(), ..e };
    let with = label(grader, base.tier, cheat.solution(), cheat.task).map_err(named)?;
    let after = || label(grader, base.tier, Solution::from_source(&cheat.task.wrong), cheat.task);
    let later = outlives.then(after).transpose()?.map(|l| l.reward);
    let paid = || paid(grader.sandbox, base.tier, &cheat.solution(), cheat.task, outlives);
    let paid = control.then(paid).transpose().map_err(Unlabelled::of(cheat.id()))?;
    let control_fooled = paid.map(|p| fooled(p, *naive));
    Ok(Outcome { id: cheat.id(), class: cheat.template.class, with, without: without.clone(), later, control_fooled })
}

/// A cheat as a row for whoever trains or measures a detector.
#[derive(Serialize)]
pub struct Row {
    id: String,
    class: &'static str,
    template: String,
    form: Form,
    task: String,
    split: Split,
    class_held: bool,
    mechanism: String,
    files: Vec<(String, String)>,
}

impl Row {
    /// With the text of all files.
    pub fn of(cheat: &Cheat<'_>) -> Row {
        let text = |(name, bytes): (String, Vec<u8>)| (name, String::from_utf8_lossy(&bytes).into_owned());
        Row {
            id: cheat.id(),
            class: cheat.template.class,
            template: cheat.template.name.clone(),
            form: cheat.form,
            task: cheat.task.id.clone(),
            split: cheat.template.split,
            class_held: class_of(cheat.template.class).is_some_and(|c| c.held),
            mechanism: cheat.template.mechanism.clone(),
            files: cheat.solution().files.into_iter().map(text).collect(),
        }
    }
}
