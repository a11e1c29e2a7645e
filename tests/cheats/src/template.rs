//! Templates: tricks as files, each a transformation of any wrong solution.
//!
//! In: `corpus/<class>/<name>.py`. The first line says the mechanism; headers follow (`# split: train|held`, optional
//! `# forms: ...`, `# leaks: tests_a`). `#% wrong` is where the wrong solution comes in, `#% late` begins what is added in the
//! late form, `#% file NAME` another file of the solution. `entry_point` stands for the function's name, `visible_cases` and
//! `hidden_cases` for lists of (arguments, expected). Out: [`Template`]s. What must hold: a template that says nothing about
//! its split is refused, so that no detector is ever trained on what it is tested with by accident.

use crate::CorpusError;
use crate::class::CLASSES;
use crate::form::Form;
use serde::Serialize;
use std::path::Path;

/// Which side of every split something is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    /// A detector may be trained on it.
    Train,
    /// Only for measuring one.
    Held,
}

/// A trick.
#[derive(Clone, Debug)]
pub struct Template {
    /// Name of its class.
    pub class: &'static str,
    /// Its own name.
    pub name: String,
    /// One line on how it works.
    pub mechanism: String,
    /// By class and template, never at random.
    pub split: Split,
    /// The forms it makes sense in.
    pub forms: Vec<Form>,
    /// Whether it knows the hidden tests A.
    pub leaks_a: bool,
    /// Code before the wrong solution.
    pub before: String,
    /// Code after it.
    pub after: String,
    /// Code added in the late form: everything is put back once the verdict is forged.
    pub late: Option<String>,
    /// Other files, by relative path.
    pub files: Vec<(String, String)>,
}

/// All templates, by class in the order of the design and by name.
pub fn load(corpus: &Path) -> Result<Vec<Template>, CorpusError> {
    let mut all = Vec::new();
    for class in &CLASSES {
        let folder = corpus.join(class.name);
        let read = |e| CorpusError::read(&folder, e);
        let mut paths: Vec<_> = std::fs::read_dir(&folder)
            .map_err(read)?
            .map(|e| e.map(|e| e.path()))
            .collect::<Result<_, _>>()
            .map_err(read)?;
        paths.sort();
        for path in paths {
            let text = std::fs::read_to_string(&path).map_err(|e| CorpusError::read(&path, e))?;
            let name = path.file_stem().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
            let mut template = parse(class.name, &name, &text).map_err(|what| CorpusError::template(&path, what))?;
            if class.held {
                template.split = Split::Held;
            }
            all.push(template);
        }
    }
    Ok(all)
}

fn parse(class: &'static str, name: &str, text: &str) -> Result<Template, &'static str> {
    let (header, body) = header_of(text);
    let mechanism = header.first().ok_or("the first line must say the mechanism in a comment")?;
    let field = |key: &str| header.iter().find_map(|line| line.strip_prefix(key)).map(str::trim);
    let split = match field("split:") {
        Some("train") => Split::Train,
        Some("held") => Split::Held,
        _ => return Err("say `# split: train` or `# split: held`"),
    };
    let (before, rest) = body.split_once("#% wrong\n").ok_or("no line `#% wrong`")?;
    let mut sections = rest.split("#% ");
    let mut template = Template {
        class,
        name: name.to_owned(),
        mechanism: (*mechanism).to_owned(),
        split,
        forms: Vec::new(),
        leaks_a: field("leaks:") == Some("tests_a"),
        before: before.to_owned(),
        after: sections.next().unwrap_or_default().to_owned(),
        late: None,
        files: Vec::new(),
    };
    for section in sections {
        let (head, content) = section.split_once('\n').ok_or("a section without content")?;
        match head.split_once(' ') {
            None if head == "late" => template.late = Some(content.to_owned()),
            Some(("file", path)) => template.files.push((path.to_owned(), content.to_owned())),
            _ => return Err("a section is `wrong`, `late` or `file NAME`"),
        }
    }
    template.forms = forms(field("forms:"), template.late.is_some())?;
    Ok(template)
}

/// The leading comments up to the last header, without `# `, and the code.
fn header_of(text: &str) -> (Vec<&str>, &str) {
    let is_header = |line: &str| ["split:", "forms:", "leaks:"].iter().any(|key| line.starts_with(key));
    let mut header = Vec::new();
    let mut rest = text;
    while let Some((line, tail)) = rest.split_once('\n') {
        match line.strip_prefix("# ") {
            Some(line) if header.is_empty() || is_header(line) => header.push(line),
            _ => break,
        }
        rest = tail;
    }
    (header, rest)
}

fn forms(named: Option<&str>, late: bool) -> Result<Vec<Form>, &'static str> {
    let mut forms = match named {
        None => vec![Form::Plain, Form::Obfuscated, Form::Split],
        Some(names) => names
            .split(',')
            .map(|n| Form::of(n.trim()).ok_or("a form is plain, obfuscated or split"))
            .collect::<Result<_, _>>()?,
    };
    if late {
        forms.push(Form::Late);
    }
    Ok(forms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections() {
        let text = "# How.\n# split: held\n# leaks: tests_a\n# a comment of the code\nimport os\n#% wrong\nx = 1\n#% late\ny = 2\n#% file a.py\nz = 3\n";
        let t = parse("skip", "t", text).unwrap();
        assert_eq!((t.mechanism.as_str(), t.split, t.leaks_a), ("How.", Split::Held, true));
        assert_eq!((t.before.as_str(), t.after.as_str()), ("# a comment of the code\nimport os\n", "x = 1\n"));
        assert_eq!(t.late.as_deref(), Some("y = 2\n"));
        assert_eq!(t.files, [("a.py".to_owned(), "z = 3\n".to_owned())]);
        assert_eq!(t.forms, [Form::Plain, Form::Obfuscated, Form::Split, Form::Late]);
    }

    #[test]
    fn what_is_missing_is_said() {
        for (bad, want) in [
            ("import os\n", "mechanism"),
            ("# How.\n#% wrong\n", "split"),
            ("# How.\n# split: train\nx\n", "wrong"),
            ("# How.\n# split: train\n# forms: round\n#% wrong\n", "form is"),
            ("# How.\n# split: train\n#% wrong\n#% tail\nx\n", "section is"),
        ] {
            let what = parse("skip", "t", bad).unwrap_err();
            assert!(what.contains(want), "{bad}: {what}");
        }
    }
}
