//! One solution graded by tests A and B: counts, components, reward, verdicts. Used by the job and by `rollmill grade`.

use rollmill_grader::reward::Components;
use rollmill_grader::style::style;
use rollmill_grader::{
    Bearing, CaseVerdict, GradeError, RewardConfig, Solution, Suite, SuiteError, SuiteResult, T0Options, Tier,
    pass_rate,
};
use rollmill_sandbox::Sandbox;
use rollmill_schema::Reward;
use serde::Serialize;
use std::collections::BTreeMap;

/// What a task is graded by.
#[derive(Clone, Debug)]
pub struct Suites {
    /// Name of the function, where the task is one.
    pub entry_point: String,
    /// Hidden tests A.
    pub a: Suite,
    /// Independent tests B.
    pub b: Option<Suite>,
    /// What the reference bears of tests A and B; where that is not known they are asked as the options say.
    bearings: [Option<Bearing>; 2],
}

impl Suites {
    /// From the JSON of a task's secrets.
    pub fn of(entry_point: &str, tests_a: &str, tests_b: Option<&str>) -> Result<Suites, SuiteError> {
        Ok(Suites {
            entry_point: entry_point.into(),
            a: Suite::parse(entry_point, tests_a)?,
            b: tests_b.map(|b| Suite::parse(entry_point, b)).transpose()?,
            bearings: [None; 2],
        })
    }

    /// The same, asked in the orders that the reference survived, by the JSON in which verification says what it saw.
    pub fn verified(self, verified: &str) -> Suites {
        Suites { bearings: ["a", "b"].map(|suite| Bearing::recorded(verified, suite)), ..self }
    }

    /// The solution that a trajectory left, from the JSON of its files by path. A file that is not there is an empty one, which
    /// earns nothing; what changes a repository is all of them.
    pub fn solution(&self, final_files: &str) -> Result<Solution, serde_json::Error> {
        let mut files: BTreeMap<String, String> = serde_json::from_str(final_files)?;
        Ok(match self.a.file() {
            Some(file) => self.a.solution(&files.remove(&file).unwrap_or_default()),
            None => self.a.solution(final_files),
        })
    }

    /// Whether a verdict by these cannot be forged: one of them is at tier T0 or T1.
    pub fn proven(&self) -> bool {
        self.a.tier() < Tier::T2 || self.b.as_ref().is_some_and(|b| b.tier() < Tier::T2)
    }

    /// How good a style is asked of functions alone: other sources are not measured.
    fn style(&self, solution: &Solution) -> f64 {
        if self.a.kind() == "function" { style(&solution.main_source(), &self.entry_point) } else { 0.0 }
    }
}

/// Tests of one suite passed, of how many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    /// Passed.
    pub passed: u32,
    /// In all.
    pub total: u32,
}

/// The verdict on one case of one suite.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// `a` or `b`.
    pub suite: &'static str,
    /// The case.
    #[serde(flatten)]
    pub case: CaseVerdict,
}

/// A graded solution.
#[derive(Clone, Debug, Serialize)]
pub struct Graded {
    /// `graded`: an error of the machine is no [`Graded`] at all.
    pub status: &'static str,
    /// Hidden tests A.
    pub tests_a: Count,
    /// Independent tests B, where the task has some.
    pub tests_b: Option<Count>,
    /// What was measured.
    pub components: Components,
    /// The number.
    pub reward: f64,
    /// Whether every test passed.
    pub solved: bool,
    /// Grading tier of tests A.
    pub tier: &'static str,
    /// Whether the verdict cannot be forged.
    pub proven: bool,
    /// One verdict per case.
    pub verdicts: Vec<Verdict>,
    /// Why the solution could not be loaded, if so.
    pub error: Option<String>,
    /// Isolation of the sandbox.
    pub isolation: serde_json::Value,
}

/// Grades a solution. An error says that nothing is known about it.
pub fn grade_solution(
    sandbox: &dyn Sandbox,
    solution: &Solution,
    suites: &Suites,
    reward: &RewardConfig,
    options: &T0Options,
) -> Result<Graded, GradeError> {
    let [of_a, of_b] = suites.bearings.map(|bearing| bearing.map_or_else(|| options.clone(), |b| b.options(options)));
    let a = suites.a.grade(sandbox, solution, &of_a)?;
    let b = suites.b.as_ref().map(|b| b.grade(sandbox, solution, &of_b)).transpose()?;
    let rate = |r: &SuiteResult| pass_rate(r.passed, r.total);
    let components = Components {
        compiles: f64::from(u8::from(a.compiled)),
        tests_a: rate(&a),
        tests_b: b.as_ref().map(rate),
        style: if a.compiled { suites.style(solution) } else { 0.0 },
    };
    let count = |r: &SuiteResult| Count { passed: r.passed, total: r.total };
    let all = |r: &SuiteResult| r.total > 0 && r.passed == r.total;
    let verdicts_of = |suite: &'static str, r: &SuiteResult| {
        r.verdicts.iter().map(|case| Verdict { suite, case: case.clone() }).collect::<Vec<_>>()
    };
    let mut verdicts = verdicts_of("a", &a);
    verdicts.extend(b.iter().flat_map(|b| verdicts_of("b", b)));
    Ok(Graded {
        status: "graded",
        tests_a: count(&a),
        tests_b: b.as_ref().map(count),
        components,
        reward: reward.total(&components),
        solved: all(&a) && b.as_ref().is_none_or(all),
        tier: suites.a.tier().name(),
        proven: suites.proven(),
        verdicts,
        error: a.import_error.clone(),
        isolation: a.isolation.clone(),
    })
}

impl Graded {
    /// As a row; `steps` is how many the trajectory has: the terminal reward goes to the last.
    pub fn into_reward(self, blank: Reward, steps: usize) -> Reward {
        let mut per_step = vec![0.0; steps];
        if let Some(last) = per_step.last_mut() {
            *last = self.reward;
        }
        let int = |n: u32| i32::try_from(n).unwrap_or(i32::MAX);
        Reward {
            status: self.status.into(),
            compiles: Some(self.components.compiles > 0.0),
            tests_a_passed: Some(int(self.tests_a.passed)),
            tests_a_total: Some(int(self.tests_a.total)),
            tests_b_passed: self.tests_b.map(|c| int(c.passed)),
            tests_b_total: self.tests_b.map(|c| int(c.total)),
            style: Some(self.components.style),
            total: Some(self.reward),
            solved: Some(self.solved),
            step_rewards: serde_json::to_string(&per_step).unwrap_or_default(),
            verdicts: serde_json::to_string(&self.verdicts).unwrap_or_default(),
            isolation: self.isolation.to_string(),
            tier: self.tier.into(),
            proven: Some(self.proven),
            ..blank
        }
    }
}
