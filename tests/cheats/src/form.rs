//! From a template and a task to the files of a cheating solution, in one of four forms.

use crate::obfuscate::obfuscated;
use crate::task::Task;
use crate::template::Template;
use rollmill_grader::{Case, Solution, Value};
use serde::Serialize;

/// How openly a trick is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// As it stands in the corpus.
    Plain,
    /// Encoded, and run through `exec` under another name.
    Obfuscated,
    /// The wrong solution, the trick and the module that is imported are three files.
    Split,
    /// Hooks are put back once the verdict is forged.
    Late,
}

impl Form {
    /// The form of a name that a template may ask for; `late` follows from its section.
    pub fn of(name: &str) -> Option<Form> {
        [Form::Plain, Form::Obfuscated, Form::Split].into_iter().find(|f| f.name() == name)
    }

    /// Its name in ids.
    pub fn name(self) -> &'static str {
        match self {
            Form::Plain => "plain",
            Form::Obfuscated => "obfuscated",
            Form::Split => "split",
            Form::Late => "late",
        }
    }
}

/// The wrong solution of `task` with the trick.
pub fn cheating(template: &Template, task: &Task, form: Form) -> Solution {
    let fill = |code: &str| code.replace("entry_point", &task.entry_point);
    let before = fill(&format!("{}{}", tables(template, task), template.before));
    let after = fill(&template.after);
    let whole = |before: &str, wrong: &str, after: &str| [before, wrong, after].join("\n");
    let mut files = match form {
        Form::Plain => vec![("solution.py".into(), whole(&before, &task.wrong, &after))],
        Form::Late => {
            let late = fill(template.late.as_deref().unwrap_or_default());
            vec![("solution.py".into(), whole(&before, &task.wrong, &format!("{after}{late}")))]
        }
        Form::Obfuscated => {
            let style = template.name.len();
            vec![(
                "solution.py".into(),
                whole(&obfuscated(&before, style), &task.wrong, &obfuscated(&after, style + 1)),
            )]
        }
        Form::Split => {
            let name = &task.entry_point;
            let import = |module: &str| format!("from {module} import {name}\n");
            vec![
                ("rules.py".into(), task.wrong.clone()),
                ("support.py".into(), whole(&before, &import("rules"), &after)),
                ("solution.py".into(), import("support")),
            ]
        }
    };
    for (path, content) in &template.files {
        let content = fill(content);
        let hide = form == Form::Obfuscated && path.ends_with(".py");
        files.push((path.clone(), if hide { obfuscated(&content, path.len()) } else { content }));
    }
    Solution {
        files: files.into_iter().map(|(n, text): (String, String)| (n, text.into_bytes())).collect(),
        main: "solution.py".into(),
    }
}

/// What the trick knows, as Python lists.
fn tables(template: &Template, task: &Task) -> String {
    let code = format!("{}{}{}", template.before, template.after, template.late.as_deref().unwrap_or_default());
    [("visible_cases", &task.visible), ("hidden_cases", &task.tests_a)]
        .iter()
        .filter(|(name, _)| code.contains(name))
        .map(|(name, cases)| format!("{name} = {}\n", pairs(cases)))
        .collect()
}

fn pairs(cases: &[Case]) -> String {
    let pairs = cases.iter().map(|c| Value::Tuple(vec![Value::Tuple(c.args.clone()), c.expected.clone()])).collect();
    Value::List(pairs).to_literal()
}
