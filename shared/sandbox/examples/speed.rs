//! What a sandbox costs: CPU milliseconds a run, bare and in each sandbox that is here, in turn within one run so that a busy
//! machine troubles all alike; then runs a second with one and two workers.
//!
//! `speed [ROUNDS [PROGRAM ARGUMENT...]]`, by default `python3 -c 'print(1)'`; another program must print 1 too, as `echo 1`
//! does. Measure a release build. Figures are medians; CPU time is that of all processes below this one, user and system.
//! bubblewrap is measured where it is installed, docker where SPEED_IMAGE names an image (its daemon's CPU is not counted).
use std::time::{Duration, Instant};

use ways::{Meter, Way, ways};

#[path = "../benches/ways/mod.rs"]
mod ways;

/// Kept helpers make the next run's init after a run has ended: that is its cost as well.
const SETTLED: Duration = Duration::from_millis(25);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    rollmill_sandbox::helper_main_if_asked();
    let mut args = std::env::args().skip(1);
    let rounds: usize = args.next().map_or(Ok(60), |n| n.parse())?;
    let program: Vec<String> = args.collect();
    let program = if program.is_empty() { ["python3", "-c", "print(1)"].map(String::from).to_vec() } else { program };
    let meter = Meter::start()?;
    let ways = ways(&program)?;
    let mut cpu = vec![Vec::new(); ways.len()];
    for round in 0..rounds + 3 {
        for (Way { run, .. }, cpu) in ways.iter().zip(&mut cpu) {
            let before = meter.read();
            run();
            std::thread::sleep(SETTLED);
            let used = meter.read() - before;
            if round >= 3 {
                cpu.push(used.as_secs_f64() * 1e3);
            }
        }
    }
    let bare = median(&mut cpu[0]);
    println!("{:<34}{:>10}{:>10}{:>12}{:>12}", program[0], "CPU ms", "x bare", "1 worker/s", "2 workers/s");
    for (way, cpu) in ways.iter().zip(&mut cpu) {
        let cpu = median(cpu);
        let (one, two) = (throughput(&*way.run, 1), throughput(&*way.run, 2));
        println!("{:<34}{cpu:>10.1}{:>10.2}{one:>12.1}{two:>12.1}", way.name, cpu / bare);
    }
    Ok(())
}

fn throughput(run: &(dyn Fn() + Sync), workers: usize) -> f64 {
    let (started, length) = (Instant::now(), Duration::from_secs(3));
    let count = |_| {
        let mut runs = 0;
        while started.elapsed() < length {
            run();
            runs += 1;
        }
        runs
    };
    let runs: u32 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|n| scope.spawn(move || count(n))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or(0)).sum()
    });
    f64::from(runs) / started.elapsed().as_secs_f64()
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
