//! The same task at every tier: calls, written tests, a program, a repository.
//!
//! In: a task's cases. Out: tests A and B in the tier's own form. Of written tests, half compare with a literal, half with the
//! reference, which the tests bring along and ask after the call. At T2 tests B are calls at T0, as the design asks.

use crate::task::Task;
use rollmill_grader::diff::Files;
use rollmill_grader::t1::ProgramCase;
use rollmill_grader::{Case, Solution, TestSource, Value};

/// How a task is graded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// T0, one call after the other.
    Calls,
    /// T0, asserts in a process of their own that calls through a proxy.
    Written,
    /// T1: a program that reads its arguments and prints its answer.
    Program,
    /// T2: a suite of unittest in the solution's process, with must-fail twins.
    Repository,
}

impl Tier {
    /// All of them.
    pub const ALL: [Tier; 4] = [Tier::Calls, Tier::Written, Tier::Program, Tier::Repository];

    /// As reports and ids have it.
    pub fn name(self) -> &'static str {
        match self {
            Tier::Calls => "T0",
            Tier::Written => "T0-written",
            Tier::Program => "T1",
            Tier::Repository => "T2",
        }
    }

    /// The solution as the tier takes it: a program also has a main part.
    pub fn adapt(self, mut solution: Solution, entry: &str) -> Solution {
        let main = format!(
            "\n\nif __name__ == \"__main__\":\n    import ast\n    import sys\n\n    print(repr({entry}(*ast.literal_eval(sys.stdin.read()))))\n"
        );
        if self == Tier::Program
            && let Some((_, text)) = solution.files.iter_mut().find(|(name, _)| *name == solution.main)
        {
            text.extend_from_slice(main.as_bytes());
        }
        solution
    }

    /// Tests A and B of a task.
    pub fn tests(self, task: &Task) -> (Tests, Tests) {
        let of = |cases: &[Case]| match self {
            Tier::Calls => Tests::Calls(cases.to_vec()),
            Tier::Written => Tests::Written(written(task, cases)),
            Tier::Program => Tests::Programs(cases.iter().map(program).collect()),
            Tier::Repository => repository(task, cases),
        };
        match self {
            Tier::Repository => (of(&task.tests_a), Tests::Calls(task.tests_b.clone())),
            _ => (of(&task.tests_a), of(&task.tests_b)),
        }
    }
}

/// A suite in the form of a tier.
#[derive(Clone, Debug)]
pub enum Tests {
    /// Calls and what they return.
    Calls(Vec<Case>),
    /// Python text.
    Written(TestSource),
    /// Inputs and outputs.
    Programs(Vec<ProgramCase>),
    /// Files of tests, and the ids that count.
    Repository {
        /// By path.
        tests: Files,
        /// Each once.
        ids: Vec<String>,
    },
}

/// The arguments of a call, as a literal tuple.
pub fn arguments(case: &Case) -> String {
    Value::Tuple(case.args.clone()).to_literal()
}

fn written(task: &Task, cases: &[Case]) -> TestSource {
    let name = &task.entry_point;
    let one = |(index, case): (usize, &Case)| {
        let (args, expected) = (arguments(case), case.expected.to_literal());
        if index % 2 == 0 {
            format!("args = {args}\nexpected = {expected}\nassert {name}(*args) == expected\n")
        } else {
            format!("args = {args}\ngot = {name}(*args)\nassert got == _expected(*args)\n")
        }
    };
    let setup = task.reference.replace(name, "_expected");
    TestSource { setup, tests: cases.iter().enumerate().map(one).collect(), ..TestSource::default() }
}

fn program(case: &Case) -> ProgramCase {
    ProgramCase::new(&arguments(case), &case.expected.to_literal())
}

fn repository(task: &Task, cases: &[Case]) -> Tests {
    let file = |name: &str, text: String| (format!("tests/{name}.py"), text.into_bytes());
    let body = methods(&task.entry_point, cases);
    let head = "import unittest\n\nimport solution\nfrom tests import reference\n\n\nclass Tests(unittest.TestCase):\n";
    Tests::Repository {
        tests: [
            file("__init__", String::new()),
            file("reference", task.reference.clone()),
            file("test_solution", format!("{head}{body}")),
        ]
        .into(),
        ids: (0..cases.len()).map(|index| format!("tests.test_solution.Tests.test_{index}")).collect(),
    }
}

/// One method a case, for a class of unittest whose file knows the modules `solution` and `reference`.
pub fn methods(entry: &str, cases: &[Case]) -> String {
    let one = |(index, case): (usize, &Case)| {
        let (args, expected) = (arguments(case), case.expected.to_literal());
        let head = format!("    def test_{index}(self):\n        args = {args}\n");
        if index % 2 == 0 {
            format!(
                "{head}        expected = {expected}\n        self.assertEqual(solution.{entry}(*args), expected)\n"
            )
        } else {
            format!(
                "{head}        got = solution.{entry}(*args)\n        self.assertEqual(got, reference.{entry}(*args))\n"
            )
        }
    };
    cases.iter().enumerate().map(one).collect::<Vec<_>>().join("\n")
}
