//! A repository task's tests as they are stored: texts by path.

use crate::diff::{DiffRules, Files};
use crate::t0::{GradeError, Solution};
use crate::t2::{Framework, PythonSuite, RepositoryResult, T2Options, grade_repository};
use rollmill_sandbox::{Collected, Sandbox};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A repository, its tests, and what of a solution counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repository {
    /// What runs the tests.
    pub framework: Framework,
    /// The files an agent begins with.
    pub repository: BTreeMap<String, String>,
    /// Test files and their configuration, by path in the repository.
    pub tests: BTreeMap<String, String>,
    /// The tests that count.
    pub ids: Vec<String>,
    /// Folders from which modules are imported; `""` is the top.
    #[serde(default = "top")]
    pub import_paths: Vec<String>,
    /// Patterns of paths that a solution may change; all that is no test or configuration where there are none.
    #[serde(default)]
    pub allow: Vec<String>,
    /// The file that tests B import, where they ask a function of it.
    #[serde(default)]
    pub main: String,
    /// Tests whose twin the reference passes.
    #[serde(default)]
    pub without_twin: Vec<String>,
}

fn top() -> Vec<String> {
    vec![String::new()]
}

impl Repository {
    pub(super) fn check(&self) -> Result<(), String> {
        if self.ids.iter().collect::<BTreeSet<_>>().len() < self.ids.len() {
            return Err("a test id is named twice".into());
        }
        if self.tests.is_empty() {
            return Err("there is no test file".into());
        }
        Ok(())
    }

    /// The whole tree that an agent leaves when it changes these files and no others.
    pub fn with(&self, changes: &[(String, Vec<u8>)]) -> Solution {
        let mut files = bytes(&self.repository);
        files.extend(changes.iter().cloned());
        Solution { files: files.into_iter().collect(), main: self.main.clone() }
    }

    /// Grades a whole tree. Whether tests B stand behind these is known to who has both.
    pub fn grade(
        &self,
        sandbox: &dyn Sandbox,
        solution: &Solution,
        options: &T2Options,
    ) -> Result<RepositoryResult, GradeError> {
        let mut rules = DiffRules::default();
        if !self.allow.is_empty() {
            rules.allow.clone_from(&self.allow);
        }
        let left = Collected { files: solution.files.clone(), refused: vec![] };
        let applied = rules.apply(&bytes(&self.repository), &left);
        let suite = PythonSuite {
            framework: self.framework,
            tests: &bytes(&self.tests),
            ids: &self.ids,
            import_paths: &self.import_paths,
            site: &Files::new(),
            without_twin: &self.without_twin,
            has_tests_b: false,
        };
        grade_repository(sandbox, &applied.files, &suite, options)
    }
}

fn bytes(texts: &BTreeMap<String, String>) -> Files {
    texts.iter().map(|(path, text)| (path.clone(), text.clone().into_bytes())).collect()
}
