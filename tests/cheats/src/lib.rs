//! Cheats and honest solutions, labelled by execution.
//!
//! In: a corpus of tricks (`corpus/`), the project's task set, HumanEval and MBPP where they are there. Out: what every wrong
//! solution earns with and without each trick, what a naive grader pays for it, and what honest rewrites of right solutions
//! earn. What must hold: no label comes from reading code; a verdict is asked for once, and only the third outcome (nothing is
//! known about the solution) is asked for again; ids say class and template, by which every split is made.
//!
//! It knows nothing of jobs or rows. Sandboxes need their helper: `cargo build -p rollmill-sandbox --bins`.

pub mod campaign;
pub mod cheat;
pub mod class;
pub mod form;
pub mod honest;
pub mod kinds;
pub mod label;
pub mod naive;
pub mod obfuscate;
pub mod report;
pub mod task;
pub mod template;
pub mod tier;
pub mod wilson;

use rollmill_grader::t0;
use rollmill_sandbox::{Namespaces, NamespacesOptions, Root, RootSource, Sandbox, SandboxError, Warm, prepare};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The corpus could not be read: its author must mend it.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// A file or folder is not there.
    #[error("cannot read {path}: {source}: run it from a checkout of the project")]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is not in the form of the corpus.
    #[error("{path}: {what}")]
    Malformed {
        /// Which.
        path: PathBuf,
        /// What to mend.
        what: &'static str,
    },
    /// The rewriter of honest solutions, or the converter of asserts, failed.
    #[error("python on this machine: {0}: a python3 of version 3.9 or newer must be on PATH")]
    Python(String),
}

impl CorpusError {
    pub(crate) fn read(path: &Path, source: io::Error) -> CorpusError {
        CorpusError::Read { path: path.to_owned(), source }
    }

    pub(crate) fn template(path: &Path, what: &'static str) -> CorpusError {
        CorpusError::Malformed { path: path.to_owned(), what }
    }
}

/// The root of the checkout: the nearest folder with the lock file, above the package that cargo runs or the current folder.
pub fn project() -> Option<PathBuf> {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let here = package.or_else(|| std::env::current_dir().ok())?;
    here.ancestors().find(|folder| folder.join("Cargo.lock").is_file()).map(Path::to_path_buf)
}

/// All that is read: tasks, templates, honest references.
#[derive(Debug)]
pub struct Corpus {
    /// What cheats are tried on.
    pub tasks: Vec<task::Task>,
    /// The tricks.
    pub templates: Vec<template::Template>,
    /// The right solutions.
    pub references: Vec<honest::sets::Reference>,
}

impl Corpus {
    /// Reads everything below a checkout; HumanEval and MBPP from `ROLLMILL_DATA` or `shared/data` beside it.
    pub fn load(project: &Path, python: &Path) -> Result<Corpus, CorpusError> {
        let (corpus, examples) = (project.join("tests/cheats/corpus"), project.join("examples/tasks"));
        let data = std::env::var_os("ROLLMILL_DATA").map_or_else(|| project.join("../shared/data"), PathBuf::from);
        let mut references = honest::sets::examples(&examples)?;
        references.extend(honest::sets::downloaded(&data, python)?);
        Ok(Corpus { tasks: task::load(&corpus, &examples)?, templates: template::load(&corpus)?, references })
    }
}

/// The sandbox that jobs use: with interpreters kept loaded, or, if `cold`, with none.
pub fn sandbox(cold: bool) -> Result<Arc<dyn Sandbox>, SandboxError> {
    let sandbox = Arc::new(Namespaces::open(NamespacesOptions::default())?);
    Ok(if cold { sandbox } else { Arc::new(Warm::new(sandbox, vec![t0::interpreter()])) })
}

/// The sandbox on the root file system with compilers and pytest, which is made where it is not there.
pub fn sandbox_with_tools() -> Result<Arc<dyn Sandbox>, SandboxError> {
    let options = NamespacesOptions { root: Root::Named("all".into()), ..NamespacesOptions::default() };
    let none = || SandboxError::RootFs { what: "there is no profile `all`: mend the table of tool chains".to_owned() };
    prepare("all", &RootSource::profile("all").ok_or_else(none)?, &options.cache_dir)?;
    Ok(Arc::new(Namespaces::open(options)?))
}
