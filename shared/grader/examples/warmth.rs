//! Milliseconds of a T0 grade of ten calls, from a cold interpreter and from a loaded one, in turns:
//! `cargo run --release -p rollmill-grader --example warmth` (after `cargo build -p rollmill-sandbox --bins`).
use rollmill_grader::{Case, Solution, T0Options, Value, grade};
use rollmill_sandbox::{Namespaces, NamespacesOptions, Sandbox, Warm, WarmOptions};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn main() {
    let cold = Arc::new(Namespaces::open(NamespacesOptions::default()).expect("a sandbox"));
    let argv = ["/usr/bin/python3", "-s", "-S", "-B"].map(String::from).to_vec();
    let env = vec![("PYTHONHASHSEED".into(), "0".into())];
    let preload = "import fcntl, json".into();
    let warm = Warm::new(cold.clone(), vec![WarmOptions { argv, preload, env }]);
    let cases: Vec<Case> = (0..10).map(|n| Case::exact(vec![Value::int(n)], Value::int(n * 2))).collect();
    let solution = Solution::from_source("def f(x):\n    return x * 2\n");
    let once = |sandbox: &dyn Sandbox| {
        let began = Instant::now();
        let done = grade(sandbox, &solution, "f", &cases, &T0Options::default()).expect("a grade");
        assert_eq!(done.passed, 10);
        began.elapsed()
    };
    let (mut times, turns) = ([Vec::new(), Vec::new()], 200);
    for _ in 0..turns {
        times[0].push(once(cold.as_ref()));
        times[1].push(once(&warm));
    }
    for (name, mut times) in ["cold", "warm"].into_iter().zip(times) {
        times.sort();
        let ms = |d: Duration| d.as_secs_f64() * 1000.0;
        println!("{name}: median {:.1} ms, tenth {:.1} ms, of {turns}", ms(times[turns / 2]), ms(times[turns / 10]));
    }
}
