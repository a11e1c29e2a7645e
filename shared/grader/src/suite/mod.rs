//! The tests of a task in one form, whatever its tier.
//!
//! In: JSON. An array holds cases of a function ([`crate::cases`]). An object says its `kind`:
//!
//! | kind | fields beside it | tier |
//! |---|---|---|
//! | `tests` | `tests` (Python texts), optional `setup`, `names`, `mutates`: written tests of a function ([`TestSource`]) | T0 |
//! | `program` | `language`, `cases` ([`crate::t1::parse_programs`]), optional `checker` (Python text) | T1 |
//! | `server` | `language`, `sessions` ([`crate::t1::parse_sessions`]) | T1 |
//! | `repository` | `framework`, `repository` and `tests` (path to text), `ids`, optional `import_paths`, `allow`, `main`, `without_twin` | T2 |
//!
//! Out: a [`Suite`], which grades solutions. What must hold: the same JSON means the same tests wherever it is read; what is
//! wrong in it is named.

mod grade;
mod repository;

use crate::cases::{Case, CasesError, parse_cases};
use crate::t0::TestSource;
use crate::t1::{Exchange, Language, ProgramCase, parse_programs, parse_sessions};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

pub use repository::Repository;

/// How strong a verdict is; see ARCHITECTURE.md, "Grading".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Tier {
    /// Functions, asked from outside.
    T0,
    /// Programs and servers, compared from outside.
    T1,
    /// Suites of a repository, which share a process with the solution.
    T2,
}

impl Tier {
    /// As it stands in tables.
    pub fn name(self) -> &'static str {
        match self {
            Tier::T0 => "T0",
            Tier::T1 => "T1",
            Tier::T2 => "T2",
        }
    }
}

/// Tests.
#[derive(Clone, Debug, PartialEq)]
pub enum Suite {
    /// Calls of a function.
    Calls {
        /// Its name.
        entry_point: String,
        /// What it is asked.
        cases: Vec<Case>,
    },
    /// Tests of a function as they were written.
    Written {
        /// Its name.
        entry_point: String,
        /// Texts.
        tests: TestSource,
    },
    /// Runs of a program.
    Programs {
        /// What it is written in.
        language: Language,
        /// Inputs and outputs.
        cases: Vec<ProgramCase>,
        /// The task's own checker.
        checker: Option<String>,
    },
    /// Sessions with a server.
    Servers {
        /// What it is written in.
        language: Language,
        /// Requests and answers.
        sessions: Vec<Vec<Exchange>>,
    },
    /// Tests of a repository.
    Repository(Box<Repository>),
}

/// Why JSON is no suite. The task is to be given up or mended.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// The cases in it.
    #[error(transparent)]
    Cases(#[from] CasesError),
    /// Neither an array nor an object of a known kind.
    #[error("tests are neither an array of cases nor an object of kind tests, program, server or repository: {0}")]
    Form(#[from] serde_json::Error),
    /// Something that must be there is not, or does not fit.
    #[error("tests: {0}")]
    Content(String),
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
enum Form {
    Tests {
        tests: Vec<String>,
        #[serde(default)]
        setup: String,
        #[serde(default)]
        names: Vec<String>,
        #[serde(default)]
        mutates: bool,
    },
    Program {
        language: Language,
        cases: Json,
        checker: Option<String>,
    },
    Server {
        language: Language,
        sessions: Json,
    },
    Repository(Box<Repository>),
}

impl Suite {
    /// Reads JSON. `entry_point` is the function that calls and written tests are about.
    pub fn parse(entry_point: &str, json: &str) -> Result<Suite, SuiteError> {
        let entry_point = entry_point.to_owned();
        if json.trim_start().starts_with('[') {
            return Ok(Suite::Calls { entry_point, cases: parse_cases(json)? });
        }
        Ok(match serde_json::from_str(json)? {
            Form::Tests { tests, setup, names, mutates } => {
                Suite::Written { entry_point, tests: TestSource { setup, tests, names, mutates } }
            }
            Form::Program { language, cases, checker } => {
                Suite::Programs { language, cases: parse_programs(&cases.to_string())?, checker }
            }
            Form::Server { language, sessions } => {
                Suite::Servers { language, sessions: parse_sessions(&sessions.to_string())? }
            }
            Form::Repository(repository) => {
                repository.check().map_err(SuiteError::Content)?;
                Suite::Repository(repository)
            }
        })
    }

    /// How strong its verdicts are.
    pub fn tier(&self) -> Tier {
        match self {
            Suite::Calls { .. } | Suite::Written { .. } => Tier::T0,
            Suite::Programs { .. } | Suite::Servers { .. } => Tier::T1,
            Suite::Repository(_) => Tier::T2,
        }
    }

    /// Kind of the task that it tests: `function`, `program`, `server`, `repository`.
    pub fn kind(&self) -> &'static str {
        match self {
            Suite::Calls { .. } | Suite::Written { .. } => "function",
            Suite::Programs { .. } => "program",
            Suite::Servers { .. } => "server",
            Suite::Repository(_) => "repository",
        }
    }

    /// The language of its solutions, as tables spell it.
    pub fn language(&self) -> &'static str {
        match self {
            Suite::Programs { language, .. } | Suite::Servers { language, .. } => language.name(),
            Suite::Calls { .. } | Suite::Written { .. } | Suite::Repository(_) => "python",
        }
    }

    /// Whether it asks nothing.
    pub fn is_empty(&self) -> bool {
        match self {
            Suite::Calls { cases, .. } => cases.is_empty(),
            Suite::Written { tests, .. } => tests.tests.is_empty(),
            Suite::Programs { cases, .. } => cases.is_empty(),
            Suite::Servers { sessions, .. } => sessions.is_empty(),
            Suite::Repository(repository) => repository.ids.is_empty(),
        }
    }

    /// What each case gives to a solution, in words that are equal where the input is: a hidden test that is also shown is
    /// found by them.
    pub fn inputs(&self) -> Vec<String> {
        match self {
            Suite::Calls { cases, .. } => {
                cases.iter().map(|c| format!("{:?} {:?} {:?}", c.args, c.kwargs, c.steps)).collect()
            }
            Suite::Written { tests, .. } => tests.tests.clone(),
            Suite::Programs { cases, .. } => {
                cases.iter().map(|c| format!("{:?} {:?} {:?}", c.stdin, c.args, c.files)).collect()
            }
            Suite::Servers { sessions, .. } => {
                let asked = |e: &Exchange| format!("{} {} {:?} {:?}", e.method, e.path, e.headers, e.body);
                sessions.iter().map(|s| s.iter().map(asked).collect()).collect()
            }
            Suite::Repository(repository) => repository.ids.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_read_from_its_form() {
        for (json, tier, kind, language) in [
            (r#"[{"input": "1", "expected": "2"}]"#, Tier::T0, "function", "python"),
            (r#"{"kind": "tests", "tests": ["assert f(1) == 2"]}"#, Tier::T0, "function", "python"),
            (
                r#"{"kind": "program", "language": "cpp", "cases": [{"stdin": "1", "stdout": "2"}]}"#,
                Tier::T1,
                "program",
                "cpp",
            ),
            (
                r#"{"kind": "server", "language": "go", "sessions": [[{"path": "/", "answer": "x"}]]}"#,
                Tier::T1,
                "server",
                "go",
            ),
            (
                r#"{"kind": "repository", "framework": "unittest", "repository": {"a.py": "x = 1"},
                    "tests": {"test_a.py": "import a"}, "ids": ["test_a.A.test_x"]}"#,
                Tier::T2,
                "repository",
                "python",
            ),
        ] {
            let suite = Suite::parse("f", json).unwrap_or_else(|e| panic!("{json}: {e}"));
            assert_eq!((suite.tier(), suite.kind(), suite.language()), (tier, kind, language), "{json}");
            assert_eq!((suite.is_empty(), suite.inputs().len()), (false, 1), "{json}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (json, want) in [
            ("7", "neither an array"),
            (r#"{"kind": "essay"}"#, "essay"),
            (r#"{"kind": "program", "language": "cobol", "cases": []}"#, "cobol"),
            (r#"{"kind": "program", "language": "c", "cases": [{"stdin": "1"}]}"#, "stdout"),
            (r#"[{"input": "1"}]"#, "expected"),
            (
                r#"{"kind": "repository", "framework": "pytest", "repository": {}, "tests": {}, "ids": ["a", "a"]}"#,
                "twice",
            ),
            (
                r#"{"kind": "repository", "framework": "pytest", "repository": {}, "tests": {}, "ids": ["a"]}"#,
                "no test file",
            ),
            (r#"{"kind": "tests", "tests": [], "more": 1}"#, "more"),
        ] {
            let error = Suite::parse("f", json).unwrap_err().to_string();
            assert!(error.contains(want), "{json}: {error}");
        }
    }
}
