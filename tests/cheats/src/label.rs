//! The label of a solution: what it earns, by execution.

use crate::tier::Tests;
use rollmill_grader::style::style;
use rollmill_grader::t1::{Language, Programs, T1Options, grade_programs};
use rollmill_grader::t2::{Framework, PythonSuite, T2Options, grade_repository};
use rollmill_grader::{
    Components, GradeError, RewardConfig, Solution, SuiteResult, T0Options, grade, grade_tests, pass_rate,
};
use rollmill_sandbox::Sandbox;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How often the third outcome is asked again before the run is given up.
const TRIES: u32 = 60;
/// How long the machine is left alone before.
const PAUSE: Duration = Duration::from_millis(500);

/// Nothing could be learned about a solution: with a transient cause the machine is too busy, otherwise the run must stop.
#[derive(Debug, thiserror::Error)]
#[error("{id}: {source}")]
pub struct Unlabelled {
    /// The solution.
    pub id: String,
    /// Why.
    pub source: GradeError,
}

impl Unlabelled {
    /// For the solution of this id.
    pub fn of<E: Into<GradeError>>(id: impl Into<String>) -> impl FnOnce(E) -> Unlabelled {
        let id = id.into();
        move |e| Unlabelled { id, source: e.into() }
    }
}

/// Lets a run go on where the machine stayed too busy to tell about one solution: its id and why, instead of an outcome.
pub fn or_unknown<T>(tried: Result<T, Unlabelled>) -> Result<Result<T, Unlabelled>, Unlabelled> {
    match tried {
        Err(e) if !e.source.is_transient() => Err(e),
        known => Ok(known),
    }
}

/// Asks again while the machine is too busy to tell. A verdict is never asked for twice.
pub fn again_while_busy<T>(mut ask: impl FnMut() -> Result<T, GradeError>) -> Result<T, GradeError> {
    let mut left = TRIES;
    loop {
        match ask() {
            Err(e) if e.is_transient() && left > 0 => {
                left -= 1;
                std::thread::sleep(PAUSE);
            }
            known => return known,
        }
    }
}

/// What a solution earned.
#[derive(Clone, Debug)]
pub struct Label {
    /// Under the pure preset, with tests B.
    pub reward: f64,
    /// Passed, of tests A.
    pub passed_a: u32,
    /// Passed, of tests B.
    pub passed_b: u32,
    /// What it would earn without tests B.
    pub reward_without_b: f64,
    /// One line on why it could not be loaded or what the first failed case did.
    pub detail: String,
    /// Time of the grade of tests A.
    pub wall: Duration,
}

/// Grades, and counts how often nothing could be known.
pub struct Grader<'a> {
    /// Where solutions run.
    pub sandbox: &'a dyn Sandbox,
    /// Limits of calls, and the seed.
    pub options: T0Options,
    asked_again: AtomicU32,
}

impl<'a> Grader<'a> {
    /// With the grader's own limits.
    pub fn new(sandbox: &'a dyn Sandbox, seed: u64) -> Grader<'a> {
        let options = T0Options { seed, ..T0Options::default() };
        Grader { sandbox, options, asked_again: AtomicU32::new(0) }
    }

    /// With short limits, for tricks that hang.
    pub fn short(sandbox: &'a dyn Sandbox, seed: u64) -> Grader<'a> {
        let (per_call, total) = (Duration::from_secs(1), Duration::from_secs(20));
        let options = T0Options { per_call, total, seed, ..T0Options::default() };
        Grader { sandbox, options, asked_again: AtomicU32::new(0) }
    }

    /// How often the machine was too busy to tell, so that the question was put again.
    pub fn asked_again(&self) -> u32 {
        self.asked_again.load(Ordering::Relaxed)
    }

    /// The label of a solution. An error says that nothing is known about it.
    pub fn label(&self, solution: &Solution, entry: &str, a: &Tests, b: Option<&Tests>) -> Result<Label, GradeError> {
        let began = Instant::now();
        let graded_a = self.suite(solution, entry, a)?;
        let wall = began.elapsed();
        let graded_b = b.map(|b| self.suite(solution, entry, b)).transpose()?;
        let rate = |r: &SuiteResult| pass_rate(r.passed, r.total);
        let with = Components {
            compiles: f64::from(u8::from(graded_a.compiled)),
            tests_a: rate(&graded_a),
            tests_b: graded_b.as_ref().map(rate),
            style: style(&solution.main_source(), entry),
        };
        let config = RewardConfig::default();
        Ok(Label {
            reward: config.total(&with),
            reward_without_b: config.total(&Components { tests_b: None, ..with }),
            passed_a: graded_a.passed,
            passed_b: graded_b.as_ref().map_or(0, |r| r.passed),
            detail: detail(&graded_a),
            wall,
        })
    }

    fn suite(&self, solution: &Solution, entry: &str, tests: &Tests) -> Result<SuiteResult, GradeError> {
        let mut asked = 0;
        let known = again_while_busy(|| {
            asked += 1;
            self.once(solution, entry, tests)
        });
        self.asked_again.fetch_add(asked - 1, Ordering::Relaxed);
        known
    }

    fn once(&self, solution: &Solution, entry: &str, tests: &Tests) -> Result<SuiteResult, GradeError> {
        let T0Options { per_call, total, seed, .. } = self.options;
        match tests {
            Tests::Calls(cases) => grade(self.sandbox, solution, entry, cases, &self.options),
            Tests::Written(source) => grade_tests(self.sandbox, solution, entry, source, &self.options),
            Tests::Programs(cases) => {
                let suite = Programs { language: Language::Python, cases, checker: None };
                let options = T1Options { per_case: per_call, total, seed, ..T1Options::default() };
                grade_programs(self.sandbox, solution, &suite, &options)
            }
            Tests::Repository { tests, ids } => {
                let suite = PythonSuite {
                    framework: Framework::Unittest,
                    tests,
                    ids,
                    import_paths: &[String::new()],
                    site: &Default::default(),
                    without_twin: &[],
                    has_tests_b: true,
                };
                let options = T2Options { per_test: 2 * per_call, seed, ..T2Options::default() };
                let files = solution.files.iter().cloned().collect();
                let result = grade_repository(self.sandbox, &files, &suite, &options)?;
                Ok(result.to_suite(self.sandbox.level()))
            }
        }
    }
}

fn detail(result: &SuiteResult) -> String {
    let failed = result.verdicts.iter().find(|v| v.outcome != rollmill_grader::CaseOutcome::Passed);
    failed.map_or(String::new(), |v| format!("{:?}: {}", v.outcome, v.detail))
}
