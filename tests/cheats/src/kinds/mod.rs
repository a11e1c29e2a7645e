//! Cheats beside functions of Python: programs in other languages, servers over HTTP, suites of pytest.
//!
//! In: `kinds/tasks.jsonl` (a task of `examples/programs`, its kind, a wrong solution) and `kinds/<class>/<name>.<kind>`. The
//! first line of a template says the mechanism, the second `split: train` or `split: held`; then the main file, in which
//! `%% wrong` stands for the wrong solution; `%% file NAME` begins another file. Out: [`Cheat`]s, and what each earns beside
//! the wrong solution alone. What must hold: as for functions, labels come from execution alone.

pub mod grade;
pub mod honest;
mod naive;

pub use naive::paid;

use crate::CorpusError;
use crate::class::CLASSES;
use crate::template::Split;
use rollmill_grader::t1::Language;
use rollmill_grader::{Solution, Suite};
use serde::Deserialize;
use serde_json::{Value as Json, json};
use std::path::Path;

/// The kinds, by the endings of their templates.
pub const KINDS: [&str; 7] = ["cpp", "rs", "go", "js", "sh", "server", "pytest"];

/// A task with a wrong solution.
#[derive(Clone, Debug)]
pub struct Task {
    /// Its place in the task set.
    pub id: String,
    /// One of [`KINDS`].
    pub kind: String,
    /// Hidden tests A, and what the control knows of them.
    pub tests_a: Suite,
    /// The same as they are stored.
    pub stored_a: Json,
    /// Tests B.
    pub tests_b: Suite,
    /// The main file.
    pub main: String,
    /// A right one.
    pub reference: String,
    /// A wrong one.
    pub wrong: String,
}

impl Task {
    /// A solution whose main file is this.
    pub fn solution(&self, main: &str, others: &[(String, String)]) -> Solution {
        let mut files: Vec<(String, Vec<u8>)> = vec![(self.main.clone(), main.as_bytes().to_vec())];
        files.extend(others.iter().map(|(name, text)| (name.clone(), text.as_bytes().to_vec())));
        match &self.tests_a {
            Suite::Repository(repository) => repository.with(&files),
            _ => Solution { files, main: self.main.clone() },
        }
    }

    /// The language of programs and servers.
    pub fn language(&self) -> Language {
        match &self.tests_a {
            Suite::Programs { language, .. } | Suite::Servers { language, .. } => *language,
            _ => Language::Python,
        }
    }
}

/// A trick on the task of its kind.
#[derive(Clone, Debug)]
pub struct Cheat<'a> {
    /// Name of its class.
    pub class: &'static str,
    /// Its own name.
    pub name: String,
    /// One line on how it works.
    pub mechanism: String,
    /// By class and template.
    pub split: Split,
    /// What it is tried on.
    pub task: &'a Task,
    main: String,
    files: Vec<(String, String)>,
}

impl Cheat<'_> {
    /// `class/template/plain/kind`.
    pub fn id(&self) -> String {
        format!("{}/{}/plain/{}", self.class, self.name, self.task.kind)
    }

    /// Its files.
    pub fn solution(&self) -> Solution {
        self.task.solution(&self.main, &self.files)
    }
}

#[derive(Deserialize)]
struct Line {
    task: String,
    kind: String,
    wrong: String,
}

/// The tasks, one a kind.
pub fn tasks(project: &Path) -> Result<Vec<Task>, CorpusError> {
    let path = project.join("tests/cheats/kinds/tasks.jsonl");
    let text = std::fs::read_to_string(&path).map_err(|e| CorpusError::read(&path, e))?;
    let references = references(project)?;
    let read = |line: &str| {
        let line: Line = serde_json::from_str(line).ok()?;
        let found = references.iter().find(|task| task.id == line.task)?;
        Some(Task { kind: line.kind, wrong: line.wrong, ..found.clone() })
    };
    text.lines().map(|l| read(l).ok_or_else(|| CorpusError::template(&path, "a line is no task of a kind"))).collect()
}

/// All of `examples/programs`, without a wrong solution.
pub fn references(project: &Path) -> Result<Vec<Task>, CorpusError> {
    let mut all = Vec::new();
    for file in ["programs", "servers", "repositories"] {
        let source = project.join(format!("examples/programs/{file}.jsonl"));
        let lines = std::fs::read_to_string(&source).map_err(|e| CorpusError::read(&source, e))?;
        let read = |line: &str| reference(&serde_json::from_str(line).ok()?);
        let read = |line| read(line).ok_or_else(|| CorpusError::template(&source, "a task lacks a field"));
        all.extend(lines.lines().map(read).collect::<Result<Vec<_>, _>>()?);
    }
    Ok(all)
}

fn reference(found: &Json) -> Option<Task> {
    let suite = |field: &str| {
        let mut form = found[field].clone();
        let language = &found["language"];
        match found["kind"].as_str()? {
            "program" => {
                let checker = &found["checker"];
                form = json!({"kind": "program", "language": language, "cases": form, "checker": checker});
            }
            "server" => form = json!({"kind": "server", "language": language, "sessions": form}),
            _ if form["kind"].is_null() => form["kind"] = "repository".into(),
            _ => {}
        }
        Suite::parse(found["entry_point"].as_str().unwrap_or_default(), &form.to_string()).ok()
    };
    let mut tests_a = suite("test_cases")?;
    let main = match &mut tests_a {
        Suite::Repository(repository) => {
            repository.main = found["main"].as_str()?.to_owned();
            repository.main.clone()
        }
        Suite::Programs { language, .. } | Suite::Servers { language, .. } => language.main_file(),
        _ => return None,
    };
    Some(Task {
        id: found["task_id"].as_str()?.to_owned(),
        kind: found["kind"].as_str()?.to_owned(),
        tests_a,
        stored_a: found["test_cases"].clone(),
        tests_b: suite("tests_b")?,
        reference: match &found["reference"] {
            Json::String(text) => text.clone(),
            files => files[&main].as_str()?.to_owned(),
        },
        main,
        wrong: String::new(),
    })
}

/// All templates, by class and name.
pub fn load<'a>(project: &Path, tasks: &'a [Task]) -> Result<Vec<Cheat<'a>>, CorpusError> {
    let mut all = Vec::new();
    for class in &CLASSES {
        let folder = project.join("tests/cheats/kinds").join(class.name);
        let read = |e| CorpusError::read(&folder, e);
        let entries = std::fs::read_dir(&folder).map_err(read)?;
        let mut paths: Vec<_> = entries.map(|e| e.map(|e| e.path())).collect::<Result<_, _>>().map_err(read)?;
        paths.sort();
        for path in paths {
            let text = std::fs::read_to_string(&path).map_err(|e| CorpusError::read(&path, e))?;
            let part = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
            let kind = part(path.extension());
            let task = tasks.iter().find(|t| t.kind == kind);
            let task = task.ok_or_else(|| CorpusError::template(&path, "its ending is no kind"))?;
            let mut cheat = parse(class.name, part(path.file_stem()), &text, task)
                .map_err(|what| CorpusError::template(&path, what))?;
            if class.held {
                cheat.split = Split::Held;
            }
            all.push(cheat);
        }
    }
    Ok(all)
}

fn parse<'a>(class: &'static str, name: String, text: &str, task: &'a Task) -> Result<Cheat<'a>, &'static str> {
    let (mechanism, rest) = text.split_once('\n').ok_or("the first line must say the mechanism")?;
    let (split, body) = rest.split_once('\n').ok_or("no main file")?;
    let split = match split {
        "split: train" => Split::Train,
        "split: held" => Split::Held,
        _ => return Err("the second line must be `split: train` or `split: held`"),
    };
    if !body.lines().any(|line| line == "%% wrong") {
        return Err("no line `%% wrong`");
    }
    let fill = |text: &str| text.replace("%% wrong\n", &task.wrong);
    let mut sections = body.split("%% file ");
    let main = fill(sections.next().unwrap_or_default());
    let file = |section: &str| section.split_once('\n').map(|(name, text)| (name.to_owned(), fill(text)));
    let files = sections.map(|s| file(s).ok_or("a file without content")).collect::<Result<_, _>>()?;
    Ok(Cheat { class, name, mechanism: mechanism.to_owned(), split, task, main, files })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_says_its_split_and_where_the_wrong_solution_is() {
        let tasks = tasks(&crate::project().expect("a checkout")).expect("tasks");
        let text = "How.\nsplit: held\nint x;\n%% wrong\n%% file a.h\nint y;\n";
        let cheat = parse("skip", "t".into(), text, &tasks[0]).expect("a cheat");
        assert_eq!((cheat.mechanism.as_str(), cheat.split), ("How.", Split::Held));
        assert!(cheat.main.starts_with("int x;\n") && cheat.main.ends_with(&tasks[0].wrong));
        assert_eq!(cheat.files, [("a.h".to_owned(), "int y;\n".to_owned())]);
        for (bad, want) in
            [("How.\nx\n%% wrong\n", "second line"), ("How.\nsplit: train\nx\n", "no line"), ("How.", "first")]
        {
            assert!(parse("skip", "t".into(), bad, &tasks[0]).expect_err(bad).contains(want));
        }
    }
}
