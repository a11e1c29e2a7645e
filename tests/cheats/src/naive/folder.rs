//! The naive grader's folder: the solution, and beside it whatever grades it.
//!
//! At T0 and T1 tests are a class of unittest with a main part, at T0-written they stand in one file behind the solution, and at
//! T1 the program runs inside the tests' process with another standard input. Half of the tests compare with a literal, half
//! with the reference, which is asked after the call. At T2 the suite lies in the solution's own checkout, whose files win.

use crate::task::Task;
use crate::tier::{Tier, arguments, methods};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use rollmill_grader::{Case, Solution};
use std::io::Write;

const HEAD: &str = include_str!("../../runner/naive/head.py");
const TAIL: &str = include_str!("../../runner/naive/tail.py");
const SCRIPT: &str = include_str!("../../runner/naive/grade.sh");
const WORKER: &str = include_str!("../../runner/naive/worker.py");
const INTERNET: &str = include_str!("../../runner/naive/internet.py");
const LATER: &str = "later";

/// How a program's main part is run where its tests are.
const RUN: &str = r#"import contextlib
import io
import runpy


def run(text):
    stdin, sys.stdin = sys.stdin, io.StringIO(text)
    try:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            runpy.run_path("/work/solution.py", run_name="__main__")
    finally:
        sys.stdin = stdin
    return printed.getvalue()


"#;

type Files = Vec<(String, Vec<u8>)>;

pub(super) fn command(tier: Tier, later: bool) -> Vec<String> {
    let (file, module) = match tier {
        Tier::Repository => ("tests/test_solution.py", "tests.test_solution"),
        _ => ("test_solution.py", "test_solution"),
    };
    let later = if later { LATER } else { "" };
    ["sh", "grade.sh", file, module, later].map(str::to_owned).to_vec()
}

/// Everything under /work. What comes later replaces what came before.
pub(super) fn files(tier: Tier, solution: &Solution, task: &Task, later: bool) -> Files {
    let mut all: Files = Vec::new();
    let solution = tier.adapt(solution.clone(), &task.entry_point);
    let own = tests(tier, &solution, task);
    match tier {
        Tier::Repository => all.extend(own.into_iter().chain(solution.files)),
        _ => all.extend(solution.files.into_iter().chain(own)),
    }
    let text = |name: &str, text: &str| (name.to_owned(), text.as_bytes().to_vec());
    all.extend([text("grade.sh", SCRIPT), text("worker.py", WORKER), text("internet.py", INTERNET)]);
    all.push(text("reference.py", &task.reference));
    all.extend(history(&task.reference));
    if later {
        let wrong = tier.adapt(Solution::from_source(&task.wrong), &task.entry_point);
        let replaced = match tier {
            Tier::Written => tests(tier, &wrong, task),
            _ => wrong.files,
        };
        all.extend(replaced.into_iter().map(|(name, bytes)| (format!("{LATER}/{name}"), bytes)));
    }
    let mut last: std::collections::BTreeMap<String, Vec<u8>> = std::collections::BTreeMap::new();
    last.extend(all);
    last.into_iter().collect()
}

fn tests(tier: Tier, solution: &Solution, task: &Task) -> Files {
    let class = "class Tests(unittest.TestCase):\n";
    let entry = &task.entry_point;
    let file = |name: &str, text: String| (name.to_owned(), text.into_bytes());
    let calls = || methods(entry, &task.tests_a);
    match tier {
        Tier::Calls => {
            let body = format!("{HEAD}import solution\nimport reference\n\n\n{class}{}{TAIL}", calls());
            vec![file("test_solution.py", body)]
        }
        Tier::Written => {
            let expected = task.reference.replace(entry.as_str(), "_expected");
            let names = format!(
                "class solution:\n    {entry} = staticmethod({entry})\n\n\nclass reference:\n    {entry} = staticmethod(_expected)\n"
            );
            let main = solution.main_source();
            vec![file(
                "test_solution.py",
                format!("{HEAD}\n{main}\n\n{expected}\n\n{names}\n\n{class}{}{TAIL}", calls()),
            )]
        }
        Tier::Program => {
            let body = format!("{HEAD}import reference\n{RUN}{class}{}{TAIL}", programs(entry, &task.tests_a));
            vec![file("test_solution.py", body)]
        }
        Tier::Repository => {
            let imports = "import solution\nfrom tests import reference\n\n\n";
            vec![
                file("tests/__init__.py", String::new()),
                file("tests/reference.py", task.reference.clone()),
                file("tests/test_solution.py", format!("{HEAD}{imports}{class}{}{TAIL}", calls())),
            ]
        }
    }
}

/// One method a case: whether what the program printed has the expected text in it, or is what the reference returns.
fn programs(entry: &str, cases: &[Case]) -> String {
    let one = |(index, case): (usize, &Case)| {
        let (args, expected) = (arguments(case), case.expected.to_literal());
        let head = format!("    def test_{index}(self):\n        args = {args}\n");
        if index % 2 == 0 {
            format!("{head}        expected = {expected}\n        self.assertIn(repr(expected), run(repr(args)))\n")
        } else {
            format!(
                "{head}        got = run(repr(args))\n        self.assertEqual(got.strip(), repr(reference.{entry}(*args)))\n"
            )
        }
    };
    cases.iter().enumerate().map(one).collect::<Vec<_>>().join("\n")
}

/// The finished file as git keeps it: a loose object that no commit of the branch names any more.
fn history(reference: &str) -> Files {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    let written = write!(encoder, "blob {}\0{reference}", reference.len());
    let packed = written.and_then(|()| encoder.finish());
    packed
        .map(|bytes| vec![(".git/objects/5f/0000000000000000000000000000000000000a".to_owned(), bytes)])
        .unwrap_or_default()
}
