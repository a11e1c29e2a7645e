//! All sources to one list of candidates, with ids from their content.

use crate::config::{Kind, Source, SynthesizeConfig};
use crate::{asserts, humaneval, lines, mbpp, simple};
use rollmill_schema::{Candidate, content_id};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Why sources cannot be read: the configuration or the machine must change.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// A file or folder cannot be read.
    #[error("{path}: cannot be read ({source}); check the path of the source")]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// No source is configured.
    #[error("no [[synthesize.sources]] is given; add one with kind and path")]
    None,
    /// The converter of asserts does not run.
    #[error("tests of {0} cannot be converted: {1}")]
    Convert(String, String),
}

/// What the sources gave.
#[derive(Debug, Default)]
pub struct Loaded {
    /// Candidates in order of source and line.
    pub candidates: Vec<Candidate>,
    /// One line each for people: bad lines, unknown columns.
    pub problems: Vec<String>,
    /// Lines that gave no candidate.
    pub bad_lines: usize,
    digests: BTreeMap<String, String>,
}

impl Loaded {
    /// SHA-256 of every source file's content, by name: what the plan rests on.
    pub fn digests(&self) -> serde_json::Value {
        serde_json::json!({ "sources": self.digests })
    }
}

/// Reads all sources of a configuration.
pub fn load(config: &SynthesizeConfig) -> Result<Loaded, SourceError> {
    let mut loaded = Loaded::default();
    if config.sources.is_empty() {
        return Err(SourceError::None);
    }
    for source in &config.sources {
        load_source(config, source, &mut loaded)?;
    }
    number_equal_ids(&mut loaded.candidates);
    Ok(loaded)
}

fn load_source(config: &SynthesizeConfig, source: &Source, loaded: &mut Loaded) -> Result<(), SourceError> {
    let fail = |path: &PathBuf| {
        let path = path.clone();
        move |e| SourceError::Read { path, source: e }
    };
    let files = lines::files(&source.path).map_err(fail(&source.path))?;
    let (mut candidates, mut pending) = (Vec::new(), Vec::new());
    for file in &files {
        let bytes = std::fs::read(file).map_err(fail(file))?;
        loaded.digests.insert(format!("{}/{}", source.name(), file_name(file)), hex::encode(Sha256::digest(&bytes)));
        let mut unknown = BTreeSet::new();
        let mut each = |line: lines::Line| {
            let parsed = line.object.and_then(|object| match source.kind {
                Kind::Jsonl => simple::parse_task(object)
                    .map(|c| candidates.push(simple::show_first(note_unknown(c, &mut unknown)))),
                Kind::Humaneval => humaneval::parse(object).map(|p| pending.push(p)),
                Kind::Mbpp => mbpp::parse(object).map(|p| pending.push(p)),
            });
            if let Err(reason) = parsed {
                loaded.problems.push(format!("{}: {reason}; the line is left out", line.place));
                loaded.bad_lines += 1;
            }
        };
        lines::read(file, &mut each).map_err(fail(file))?;
        for column in unknown {
            loaded.problems.push(format!("{}: unknown column {column:?} is kept in metadata", file.display()));
        }
    }
    let convert = |e| SourceError::Convert(source.name(), e);
    candidates.extend(asserts::convert(&config.python, pending).map_err(convert)?);
    candidates.retain(|c| source.difficulty.is_empty() || source.difficulty.contains(&c.difficulty));
    candidates.truncate(source.limit.unwrap_or(usize::MAX));
    loaded.candidates.extend(candidates.into_iter().map(|c| finish(c, source)));
    Ok(())
}

fn file_name(path: &std::path::Path) -> String {
    path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default()
}

fn note_unknown(candidate: Candidate, unknown: &mut BTreeSet<String>) -> Candidate {
    if let Ok(serde_json::Value::Object(rest)) = serde_json::from_str(&candidate.metadata) {
        unknown.extend(rest.keys().cloned());
    }
    candidate
}

/// Fills what follows from the source and the content.
fn finish(mut c: Candidate, source: &Source) -> Candidate {
    c.source = source.name();
    c.eval_only |= source.eval_only;
    if let Some(licence) = source.licence.as_ref().filter(|_| c.licence == "unknown") {
        c.licence.clone_from(licence);
    }
    let tests_b = c.tests_b.as_deref().unwrap_or_default();
    c.task_id = content_id(&[&c.instruction, &c.entry_point, &c.visible_tests, &c.tests_a, tests_b]);
    if c.source_id.is_empty() {
        c.source_id.clone_from(&c.task_id);
    }
    if c.group.is_empty() {
        c.group = format!("{}/{}", c.source, c.source_id);
    }
    c
}

/// Equal tasks have equal ids; within the table the second and later ones get a number, and `verify` rejects them.
fn number_equal_ids(candidates: &mut [Candidate]) {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for c in candidates {
        let count = seen.entry(c.task_id.clone()).or_default();
        *count += 1;
        if *count > 1 {
            c.task_id = format!("{}-{count}", c.task_id);
        }
    }
}
