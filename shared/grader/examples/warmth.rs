//! Milliseconds of a grade from a cold interpreter and from a loaded one, in turns: ten calls at T0, one pytest test at T2.
//! `cargo run --release -p rollmill-grader --example warmth` (after `cargo build -p rollmill-sandbox --bins`). pytest comes
//! from the root file system `all`: `rollmill sandbox prepare all --profile all`.
#[path = "../tests/sandboxed/one_test.rs"]
mod one_test;

use rollmill_grader::{Case, Solution, T0Options, Value, grade, t0, t2};
use rollmill_sandbox::{Namespaces, NamespacesOptions, Root, Sandbox, Warm};
use std::sync::Arc;
use std::time::{Duration, Instant};

const TURNS: usize = 100;

fn main() {
    let host = Arc::new(Namespaces::open(NamespacesOptions::default()).expect("a sandbox"));
    let warm = Warm::new(host.clone(), vec![t0::interpreter()]);
    println!("| grade | cold: median ms (tenth) | loaded: median ms (tenth) | ratio of medians |");
    println!("|---|---|---|---|");
    measure("T0, ten calls", host.as_ref(), &warm, calls);
    let root = Root::Named("all".into());
    match Namespaces::open(NamespacesOptions { root, ..NamespacesOptions::default() }) {
        Ok(all) => {
            let all = Arc::new(all);
            let warm = Warm::new(all.clone(), vec![t2::interpreter()]);
            for (name, one) in ["T2, one pytest test", "T2, one unittest test"].into_iter().zip(one_test::SUITES) {
                measure(name, all.as_ref(), &warm, |sandbox| suite(sandbox, one));
            }
        }
        Err(e) => println!("skipped: T2: {e}"),
    }
}

fn calls(sandbox: &dyn Sandbox) {
    let cases: Vec<Case> = (0..10).map(|n| Case::exact(vec![Value::int(n)], Value::int(n * 2))).collect();
    let solution = Solution::from_source(one_test::RIGHT);
    assert_eq!(grade(sandbox, &solution, "f", &cases, &T0Options::default()).expect("a grade").passed, 10);
}

fn suite(sandbox: &dyn Sandbox, suite: one_test::Suite) {
    let done = one_test::graded(sandbox, suite, one_test::RIGHT, false);
    assert_eq!(done.expect("a grade").passed(), 1);
}

/// Cold and loaded in turns.
fn measure(name: &str, cold: &dyn Sandbox, loaded: &dyn Sandbox, grade: impl Fn(&dyn Sandbox)) {
    let timed = |sandbox: &dyn Sandbox| {
        let began = Instant::now();
        grade(sandbox);
        began.elapsed()
    };
    timed(loaded);
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..TURNS {
        times[0].push(timed(cold));
        times[1].push(timed(loaded));
    }
    let ms = |d: Duration| d.as_secs_f64() * 1000.0;
    let [cold, loaded] = times.map(|mut t| {
        t.sort();
        (ms(t[TURNS / 2]), ms(t[TURNS / 10]))
    });
    let ratio = loaded.0 / cold.0;
    println!("| {name} | {:.1} ({:.1}) | {:.1} ({:.1}) | {ratio:.2} |", cold.0, cold.1, loaded.0, loaded.1);
}
