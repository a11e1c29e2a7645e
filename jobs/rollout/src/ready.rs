//! A task as a policy is asked it.
//!
//! In: a task. Out: its visible tests, as they are run and as they are read, and the file that the policy's code becomes. What
//! must hold: the answer is one file; tasks that ask for more are told apart before the plan.

use crate::act::{ActTask, Program};
use rollmill_grader::t1::Language;
use rollmill_grader::{Bearing, Suite, T0Options};
use rollmill_job::JobError;
use rollmill_schema::Task;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A task ready to be acted on.
#[derive(Debug)]
pub struct Ready {
    pub task: Task,
    pub visible: Arc<Suite>,
    /// The visible tests as texts.
    pub shown: Vec<String>,
    /// As the visible tests are asked: in the orders that the reference survived.
    pub options: T0Options,
    /// What the policy's code becomes.
    pub file: String,
}

impl Ready {
    pub fn of(task: Task, options: &T0Options) -> Result<Ready, JobError> {
        let corrupt = |reason: String| JobError::Corrupt { key: format!("task {}", task.task_id), reason };
        let mut visible = Suite::parse(&task.entry_point, &task.visible_tests).map_err(|e| corrupt(e.to_string()))?;
        if visible.is_empty() && task.kind != "function" {
            // No visible tests are an empty array whatever the task is: what is seen is whether the program compiles.
            let language: Language = task.language.parse().map_err(|e| corrupt(format!("{e}")))?;
            visible = Suite::Programs { language, cases: vec![], checker: None };
        }
        let file = visible.file().ok_or_else(|| corrupt("its answer is not one file".into()))?;
        let bearing = Bearing::recorded(&task.verified, "visible");
        let options = bearing.map_or_else(|| options.clone(), |bearing| bearing.options(options));
        Ok(Ready { shown: visible.shown(), visible: Arc::new(visible), options, file, task })
    }

    /// What the policy may see.
    pub fn act_task(&self) -> ActTask<'_> {
        let program = Program { language: &self.task.language, file: &self.file };
        ActTask {
            task_id: &self.task.task_id,
            question: &self.task.instruction,
            entry_point: &self.task.entry_point,
            visible_tests: &self.shown,
            program: (self.task.kind != "function").then_some(program),
        }
    }
}

/// Tasks whose answer is one file, and how many of the others there are by kind.
pub fn of_one_file(tasks: Vec<Task>) -> (Vec<Task>, BTreeMap<String, usize>) {
    let is_one_file = |t: &Task| matches!(t.kind.as_str(), "function" | "program" | "server");
    let (tasks, others): (Vec<Task>, Vec<Task>) = tasks.into_iter().partition(is_one_file);
    let mut left_out = BTreeMap::new();
    for task in others {
        *left_out.entry(task.kind).or_default() += 1;
    }
    (tasks, left_out)
}
