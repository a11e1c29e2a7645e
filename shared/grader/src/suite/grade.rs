//! Grading by a suite, whatever its tier; solutions that must earn nothing; the text a policy sees.

use super::Suite;
use crate::t0::{
    self, Bearing, GradeError, Solution, SolutionError, SuiteResult, T0Options, grade_tests, visible_output,
};
use crate::t1::{
    Language, ProgramCase, Programs, ServerOptions, T1Options, grade_programs, grade_servers, visible_program_output,
};
use crate::t2::T2Options;
use rollmill_sandbox::Sandbox;

impl Suite {
    /// Grades a solution. `options` are for one call, case, request; a test of a repository gets ten times as long.
    ///
    /// One verdict a case, in their order. An error says that nothing is known about the solution.
    pub fn grade(
        &self,
        sandbox: &dyn Sandbox,
        solution: &Solution,
        options: &T0Options,
    ) -> Result<SuiteResult, GradeError> {
        match self {
            Suite::Calls { entry_point, cases } => t0::grade(sandbox, solution, entry_point, cases, options),
            Suite::Written { entry_point, tests } => grade_tests(sandbox, solution, entry_point, tests, options),
            Suite::Programs { language, cases, checker } => {
                let suite = Programs { language: *language, cases, checker: checker.as_deref() };
                let (per_case, total) = (options.per_call, options.total.max(T1Options::default().total));
                let options = T1Options { per_case, total, seed: options.seed, ..T1Options::default() };
                grade_programs(sandbox, solution, &suite, &options)
            }
            Suite::Servers { language, sessions } => {
                let (per_request, seed) = (options.per_call, options.seed);
                let options = ServerOptions { per_request, seed, ..ServerOptions::default() };
                grade_servers(sandbox, solution, *language, sessions, &options)
            }
            Suite::Repository(repository) => {
                let per_test = 10 * options.per_call;
                let options = T2Options { per_test, seed: options.seed, ..T2Options::default() };
                Ok(repository.grade(sandbox, solution, &options)?.to_suite(sandbox.level()))
            }
        }
    }

    /// Under which ways of asking a reference passes; none if it fails even the first, or if every case has a process of its own.
    pub fn bearing(
        &self,
        sandbox: &dyn Sandbox,
        reference: &Solution,
        options: &T0Options,
    ) -> Result<Option<Bearing>, GradeError> {
        match self {
            Suite::Calls { entry_point, cases } => t0::bearing(sandbox, reference, entry_point, cases, options),
            Suite::Written { .. } => {
                // Written tests keep their order, for one may need what another one did.
                let passes = |bearing: Bearing| -> Result<bool, GradeError> {
                    let result = self.grade(sandbox, reference, &bearing.options(options))?;
                    Ok(result.passed == result.total)
                };
                let once = Bearing { shuffled: false, repeated: false };
                let again = Bearing { repeated: true, ..once };
                Ok(if passes(once)? { Some(if passes(again)? { again } else { once }) } else { None })
            }
            Suite::Programs { .. } | Suite::Servers { .. } | Suite::Repository(_) => Ok(None),
        }
    }

    /// The most that a suite of this kind can bear; none if every case has a process of its own.
    pub fn widest(&self) -> Option<Bearing> {
        match self {
            Suite::Calls { .. } => Some(Bearing::ANY),
            Suite::Written { .. } => Some(Bearing { shuffled: false, ..Bearing::ANY }),
            Suite::Programs { .. } | Suite::Servers { .. } | Suite::Repository(_) => None,
        }
    }

    /// The file that a solution of one file is; none where it is changes to a repository.
    pub fn file(&self) -> Option<String> {
        match self {
            Suite::Calls { .. } | Suite::Written { .. } => Some(Solution::from_source("").main),
            Suite::Programs { language, .. } | Suite::Servers { language, .. } => Some(language.main_file()),
            Suite::Repository(_) => None,
        }
    }

    /// A solution from one text: the file of a function or program, or, of a repository, a JSON object of changed files.
    pub fn solution(&self, text: &str) -> Solution {
        match self {
            Suite::Calls { .. } | Suite::Written { .. } => Solution::from_source(text),
            Suite::Programs { language, .. } | Suite::Servers { language, .. } => language.solution(text),
            Suite::Repository(repository) => {
                let changes: std::collections::BTreeMap<String, String> =
                    serde_json::from_str(text).unwrap_or_default();
                let changes: Vec<_> = changes.into_iter().map(|(path, text)| (path, text.into_bytes())).collect();
                repository.with(&changes)
            }
        }
    }

    /// A solution that somebody wrote into a file or folder.
    pub fn read_solution(&self, path: &std::path::Path) -> Result<Solution, SolutionError> {
        match self {
            Suite::Calls { .. } | Suite::Written { .. } => Solution::from_path(path),
            Suite::Programs { language, .. } | Suite::Servers { language, .. } => {
                Solution::program(path, &language.main_file())
            }
            Suite::Repository(r) => Ok(Solution { main: r.main.clone(), ..Solution::tree(path)? }),
        }
    }

    /// Solutions that must earn nothing, with a name for each: no content at all, and something that does nothing.
    pub fn idle_solutions(&self) -> Vec<(&'static str, Solution)> {
        let idle = match self {
            Suite::Calls { entry_point, .. } | Suite::Written { entry_point, .. } => {
                format!("def {entry_point}(*args, **kwargs):\n    pass\n")
            }
            Suite::Programs { language, .. } | Suite::Servers { language, .. } => idle_program(*language).to_owned(),
            Suite::Repository(_) => return vec![("doing_nothing_passes", self.solution("{}"))],
        };
        vec![("empty_solution_passes", self.solution("")), ("doing_nothing_passes", self.solution(&idle))]
    }

    /// What a policy reads of visible tests, one text a test: Python, or what a program reads and writes.
    pub fn shown(&self) -> Vec<String> {
        match self {
            Suite::Calls { entry_point, cases } => cases.iter().map(|c| c.to_python(entry_point)).collect(),
            Suite::Written { tests, .. } => tests.tests.iter().map(|text| text.trim().to_owned()).collect(),
            Suite::Programs { cases, .. } => cases.iter().map(ProgramCase::shown).collect(),
            Suite::Servers { .. } | Suite::Repository(_) => vec![],
        }
    }

    /// What a policy sees of a result by visible tests; at most 300 characters.
    pub fn visible_output(&self, result: &SuiteResult) -> String {
        match self {
            Suite::Calls { cases, .. } => visible_output(result, cases),
            Suite::Programs { cases, .. } => visible_program_output(result, cases),
            // Without cases nothing but a failure to load has words of its own.
            Suite::Written { .. } => visible_output(result, &[]),
            Suite::Servers { .. } | Suite::Repository(_) => {
                format!("{} of {} visible tests passed.", result.passed, result.total)
            }
        }
    }
}

/// A program that starts and ends.
fn idle_program(language: Language) -> &'static str {
    match language {
        Language::Python => "pass\n",
        Language::Shell => ":\n",
        Language::JavaScript => ";\n",
        Language::C | Language::Cpp => "int main(void) { return 0; }\n",
        Language::Rust => "fn main() {}\n",
        Language::Go => "package main\n\nfunc main() {}\n",
    }
}
