//! Suites of pytest and unittest.

use super::outcome::{RepositoryResult, T2Options, TestOutcome};
use super::runner;
use super::twin::{Twins, twins_of};
use crate::diff::Files;
use crate::t0::GradeError;
use rollmill_sandbox::Sandbox;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What runs the tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Framework {
    /// Ids as `tests/test_a.py::TestA::test_b[x]`. Needs pytest in the root file system or in [`PythonSuite::site`].
    Pytest,
    /// Ids as `tests.test_a.TestA.test_b`.
    Unittest,
}

impl Framework {
    pub(super) fn name(self) -> &'static str {
        match self {
            Framework::Pytest => "pytest",
            Framework::Unittest => "unittest",
        }
    }

    /// The test file of an id, and the test's name in it (`Case.test_a`).
    pub(super) fn place(self, id: &str, tests: &Files) -> Option<(String, String)> {
        match self {
            Framework::Pytest => {
                let (path, name) = id.split_once("::")?;
                let name = name.split('[').next()?;
                tests.contains_key(path).then(|| (path.to_owned(), name.replace("::", ".")))
            }
            Framework::Unittest => {
                let (rest, test) = id.rsplit_once('.')?;
                let (module, case) = rest.rsplit_once('.')?;
                let path = format!("{}.py", module.replace('.', "/"));
                tests.contains_key(&path).then(|| (path, format!("{case}.{test}")))
            }
        }
    }
}

/// A task's tests.
#[derive(Clone, Copy, Debug)]
pub struct PythonSuite<'a> {
    /// What runs them.
    pub framework: Framework,
    /// All test files and their configuration, by path in the repository.
    pub tests: &'a Files,
    /// The ids that count, each once. No other test is run.
    pub ids: &'a [String],
    /// Folders of the repository from which modules are imported, `""` for its top. They come after the standard library and
    /// installed packages, so that nothing of a solution stands in for those.
    pub import_paths: &'a [String],
    /// Python packages that come with the task, such as pytest itself.
    pub site: &'a Files,
    /// Ids whose twin passes with the reference solution: they are not asked of twins.
    pub without_twin: &'a [String],
    /// Whether the task has tests B at tier T0 or T1, which say in the end whether a solution works.
    pub has_tests_b: bool,
}

/// Grades the files of a repository, as [`crate::diff::DiffRules::apply`] gives them.
///
/// One verdict an id, in their order. Twins of the passed tests run in a sandbox of their own. An error says that nothing is
/// known about the solution.
pub fn grade_repository(
    sandbox: &dyn Sandbox,
    files: &Files,
    suite: &PythonSuite<'_>,
    opts: &T2Options,
) -> Result<RepositoryResult, GradeError> {
    if suite.ids.iter().collect::<BTreeSet<_>>().len() < suite.ids.len() {
        return Err(GradeError::Task("a test id is named twice".to_owned()));
    }
    let verdicts = runner::run(sandbox, files, suite, suite.tests, suite.ids, opts)?;
    let mut result = RepositoryResult::new(verdicts, sandbox.level(), suite.has_tests_b);
    let passed = |result: &RepositoryResult| -> Vec<String> {
        let passed = result.verdicts.iter().filter(|v| v.outcome == TestOutcome::Passed);
        passed.map(|v| v.id.clone()).collect()
    };
    let candidates: Vec<String> = passed(&result).into_iter().filter(|id| !suite.without_twin.contains(id)).collect();
    if opts.twins && !candidates.is_empty() {
        let twins = twins_of(sandbox, suite, &candidates, opts)?;
        hold_against(sandbox, files, suite, &twins, &mut result, opts)?;
        result.without_twin = passed(&result).into_iter().filter(|id| !twins.ids.contains(id)).collect();
    } else {
        result.without_twin = passed(&result);
    }
    Ok(result)
}

/// Runs the twins; a test whose twin passes is forged.
fn hold_against(
    sandbox: &dyn Sandbox,
    files: &Files,
    suite: &PythonSuite<'_>,
    twins: &Twins,
    result: &mut RepositoryResult,
    opts: &T2Options,
) -> Result<(), GradeError> {
    if twins.ids.is_empty() {
        return Ok(());
    }
    let outcomes = runner::run(sandbox, files, suite, &twins.tests, &twins.ids, opts)?;
    let forged: BTreeSet<String> =
        outcomes.into_iter().filter(|v| v.outcome == TestOutcome::Passed).map(|v| v.id).collect();
    for verdict in result.verdicts.iter_mut().filter(|v| forged.contains(&v.id)) {
        verdict.outcome = TestOutcome::Forged;
        verdict.detail = "it passes with negated expectations as well".to_owned();
    }
    Ok(())
}
