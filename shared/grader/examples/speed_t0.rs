//! Milliseconds of a T0 grade beside a bare run of the same calls, all ways measured by turns in one run:
//!
//! `cargo build -p rollmill-sandbox --bins && cargo run --release -p rollmill-grader --example speed_t0 [rounds]`
//!
//! Wall clock is the median of the rounds; CPU is that of this process and of all its children, in steps of 10 ms over all
//! rounds of a way, so that many rounds are needed for a fine figure.

use rollmill_grader::{Case, GradeError, Solution, T0Options, TestSource, Value, grade, grade_tests, parse_cases};
use rollmill_sandbox::{Namespaces, NamespacesOptions, Sandbox, Spec};
use std::error::Error;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const SOURCE: &str = "def f(xs, n):\n    return sorted(xs)[:n]\n";
const CALLS: usize = 10;

type Outcome = Result<(), Box<dyn Error>>;
type Way<'a> = (&'static str, Box<dyn Fn() -> Outcome + 'a>);

/// User and system time of this process and of the children it waited for, in ticks of 10 ms.
fn cpu() -> Result<Duration, Box<dyn Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(11).take(4).map(|field| field.parse::<u64>().unwrap_or(0)).sum();
    Ok(Duration::from_millis(10 * ticks))
}

fn cases() -> Vec<Case> {
    let numbers = |i: i64| Value::List((0..20).map(|k| Value::int((k * 7 + i) % 20)).collect());
    let first = Value::List((0..3).map(Value::int).collect());
    (0..CALLS as i64).map(|i| Case::exact(vec![numbers(i), Value::int(3)], first.clone())).collect()
}

/// The interpreter behind `python3`, which may be a slow shim of a version manager.
fn interpreter() -> Result<String, Box<dyn Error>> {
    let program = "import os, sys; print(os.path.realpath(sys.executable))";
    let output = Command::new("python3").args(["-I", "-c", program]).output()?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// The same calls in a process of its own, without a sandbox: nothing that could be trusted.
fn bare(python: &str, program: &str) -> Outcome {
    let status = Command::new(python).args(["-s", "-S", "-B", "-c", program]).stdin(Stdio::null()).status()?;
    if status.success() { Ok(()) } else { Err("the bare run failed".into()) }
}

fn asserts() -> Vec<String> {
    let call = |case: &Case| {
        let args: Vec<String> = case.args.iter().map(Value::to_literal).collect();
        format!("assert f({}) == {}", args.join(", "), case.expected.to_literal())
    };
    cases().iter().map(call).collect()
}

fn all_passed(result: Result<rollmill_grader::SuiteResult, GradeError>) -> Outcome {
    match result {
        Ok(result) if result.passed == result.total => Ok(()),
        Ok(result) => Err(format!("{result:?}").into()),
        Err(error) => Err(error.into()),
    }
}

fn in_sandbox(sandbox: &dyn Sandbox, argv: &[&str]) -> Outcome {
    let spec = Spec { argv: argv.iter().map(|a| (*a).to_owned()).collect(), ..Spec::default() };
    if sandbox.run(&spec)?.facts.exit == Some(0) { Ok(()) } else { Err("it failed in the sandbox".into()) }
}

fn main() -> Outcome {
    let rounds: u32 = std::env::args().nth(1).map_or(Ok(30), |n| n.parse())?;
    let python = interpreter()?;
    let sandbox = Namespaces::open(NamespacesOptions::default())?;
    let (solution, opts, cases) = (Solution::from_source(SOURCE), T0Options::default(), cases());
    let program = format!("{SOURCE}{}\n", asserts().join("\n"));
    let written = TestSource { tests: vec![asserts().join("\n")], ..TestSource::default() };
    let predicate = serde_json::json!([{"args": "([2, 1], 1)", "predicate": "def accept(args, got): return got == [min(args[0])]"}]);
    let predicate = parse_cases(&predicate.to_string())?;
    let ways: Vec<Way<'_>> = vec![
        ("bare python, nothing to do", Box::new(|| bare(&python, "pass"))),
        ("bare python, 10 calls", Box::new(|| bare(&python, &program))),
        ("sandbox, true", Box::new(|| in_sandbox(&sandbox, &["true"]))),
        (
            "sandbox, python with nothing to do",
            Box::new(|| in_sandbox(&sandbox, &["python3", "-s", "-S", "-B", "-c", "pass"])),
        ),
        ("grade, no case", Box::new(|| all_passed(grade(&sandbox, &solution, "f", &[], &opts)))),
        ("grade, 10 cases", Box::new(|| all_passed(grade(&sandbox, &solution, "f", &cases, &opts)))),
        ("grade, 1 predicate", Box::new(|| all_passed(grade(&sandbox, &solution, "f", &predicate, &opts)))),
        ("written tests, 10 calls", Box::new(|| all_passed(grade_tests(&sandbox, &solution, "f", &written, &opts)))),
    ];
    let mut walls: Vec<Vec<Duration>> = vec![Vec::new(); ways.len()];
    let mut cpus = vec![Duration::ZERO; ways.len()];
    for _ in 0..rounds {
        for (at, (_, way)) in ways.iter().enumerate() {
            let (before, began) = (cpu()?, Instant::now());
            way()?;
            walls[at].push(began.elapsed());
            cpus[at] += cpu()?.saturating_sub(before);
        }
    }
    println!("{:<36} {:>10} {:>10}", "", "wall ms", "cpu ms");
    for ((name, _), (mut walls, cpu)) in ways.iter().zip(walls.into_iter().zip(cpus)) {
        walls.sort_unstable();
        let ms = |d: Duration| d.as_secs_f64() * 1e3;
        println!("{name:<36} {:>10.1} {:>10.1}", ms(walls[walls.len() / 2]), ms(cpu) / f64::from(rounds));
    }
    Ok(())
}
