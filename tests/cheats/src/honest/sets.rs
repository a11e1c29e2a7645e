//! The honest references: the project's task set, HumanEval, MBPP.
//!
//! In: files of the three sets. Out: sources with tests as calls. What must hold: a task whose asserts are no literal calls is
//! left out: `synthesize` keeps its tests as they are written.

use crate::CorpusError;
use crate::task::Task;
use flate2::read::GzDecoder;
use rollmill_grader::asserts::{AssertSource, CaseText, convert_asserts};
use rollmill_grader::{Case, parse_cases};
use serde_json::Value as Json;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A right solution and its tests.
#[derive(Clone, Debug)]
pub struct Reference {
    /// `examples`, `humaneval` or `mbpp`.
    pub set: &'static str,
    /// Its task in the set.
    pub task: String,
    /// Name of the function.
    pub entry: String,
    /// Its text.
    pub source: String,
    /// Tests A.
    pub tests_a: Vec<Case>,
    /// Tests B, where there are some.
    pub tests_b: Option<Vec<Case>>,
}

impl Reference {
    /// As a task without a wrong solution, for tiers that make their own tests of its cases.
    pub fn task(&self) -> Task {
        Task {
            id: self.task.clone(),
            kind: self.set.to_owned(),
            entry_point: self.entry.clone(),
            visible: Vec::new(),
            tests_a: self.tests_a.clone(),
            tests_b: self.tests_b.clone().unwrap_or_default(),
            reference: self.source.clone(),
            wrong: String::new(),
        }
    }
}

/// The project's own task set.
pub fn examples(folder: &Path) -> Result<Vec<Reference>, CorpusError> {
    let read = |e| CorpusError::read(folder, e);
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .map_err(read)?
        .map(|e| e.map(|e| e.path()))
        .collect::<Result<_, _>>()
        .map_err(read)?;
    paths.retain(|p| p.extension().is_some_and(|e| e == "jsonl"));
    paths.sort();
    let mut all = Vec::new();
    for path in paths {
        let of = |line: Json| {
            let cases = |field: &str| parse_cases(&line.get(field)?.to_string()).ok();
            Some(Reference {
                set: "examples",
                task: text(&line, "task_id")?,
                entry: text(&line, "entry_point")?,
                source: text(&line, "reference")?,
                tests_a: cases("test_cases")?,
                tests_b: cases("tests_b"),
            })
        };
        let lines = lines(&path)?
            .into_iter()
            .map(|l| of(l).ok_or_else(|| CorpusError::template(&path, "a line lacks a field")));
        all.extend(lines.collect::<Result<Vec<_>, _>>()?);
    }
    Ok(all)
}

/// HumanEval and MBPP below `data`; each is left out where its file is not there.
pub fn downloaded(data: &Path, python: &Path) -> Result<Vec<Reference>, CorpusError> {
    let mut all = Vec::new();
    for (set, file) in [("humaneval", "humaneval/HumanEval.jsonl.gz"), ("mbpp", "mbpp/mbpp.jsonl")] {
        let path = data.join(file);
        if !path.is_file() {
            eprintln!("{set} is left out: {} is not there", path.display());
            continue;
        }
        let written = lines(&path)?.iter().filter_map(|l| if set == "mbpp" { mbpp(l) } else { humaneval(l) }).collect();
        all.extend(converted(set, written, python)?);
    }
    Ok(all)
}

struct Written {
    task: String,
    source: String,
    tests_a: AssertSource,
    tests_b: AssertSource,
}

fn humaneval(line: &Json) -> Option<Written> {
    let tests_a = AssertSource {
        tests: vec![text(line, "test")?],
        entry_point: Some(text(line, "entry_point")?),
        ..AssertSource::default()
    };
    let source = format!("{}{}", text(line, "prompt")?, text(line, "canonical_solution")?);
    Some(Written { task: text(line, "task_id")?, source, tests_a, tests_b: AssertSource::default() })
}

fn mbpp(line: &Json) -> Option<Written> {
    let setup = text(line, "test_setup_code").unwrap_or_default();
    let code = text(line, "code")?.replace("\r\n", "\n");
    let list = |field: &str| serde_json::from_value::<Vec<String>>(line[field].clone()).ok();
    let tests = |field: &str| Some(AssertSource { setup: setup.clone(), tests: list(field)?, entry_point: None });
    Some(Written {
        task: line["task_id"].to_string(),
        source: if setup.trim().is_empty() { code } else { format!("{setup}\n{code}") },
        tests_a: tests("test_list")?,
        tests_b: tests("challenge_test_list")?,
    })
}

fn converted(set: &'static str, written: Vec<Written>, python: &Path) -> Result<Vec<Reference>, CorpusError> {
    let sources: Vec<AssertSource> = written.iter().flat_map(|w| [w.tests_a.clone(), w.tests_b.clone()]).collect();
    let answers = convert_asserts(python, &sources).map_err(|e| CorpusError::Python(e.to_string()))?;
    let cases = |texts: &[CaseText]| texts.iter().filter_map(|t| t.to_case().ok()).collect::<Vec<Case>>();
    let reference = |(w, pair): (Written, &[Result<Vec<CaseText>, _>])| {
        let a = pair[0].as_ref().ok().filter(|a| !a.is_empty())?;
        let b = pair[1].as_ref().ok().filter(|b| !b.is_empty() && b[0].entry_point == a[0].entry_point);
        let entry = a[0].entry_point.clone();
        Some(Reference { set, task: w.task, entry, source: w.source, tests_a: cases(a), tests_b: b.map(|b| cases(b)) })
    };
    Ok(written.into_iter().zip(answers.chunks(2)).filter_map(reference).collect())
}

fn lines(path: &Path) -> Result<Vec<Json>, CorpusError> {
    let read = |e| CorpusError::read(path, e);
    let mut text = String::new();
    let mut file = File::open(path).map_err(read)?;
    if path.extension().is_some_and(|e| e == "gz") {
        GzDecoder::new(file).read_to_string(&mut text).map_err(read)?;
    } else {
        file.read_to_string(&mut text).map_err(read)?;
    }
    let parse = |l: &str| serde_json::from_str(l).map_err(|_| CorpusError::template(path, "a line is no JSON"));
    text.lines().filter(|l| !l.trim().is_empty()).map(parse).collect()
}

fn text(line: &Json, field: &str) -> Option<String> {
    line[field].as_str().map(str::to_owned)
}
