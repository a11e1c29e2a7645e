//! What one run of `python3 -c 'print(1)'` costs in each way that is here: CPU time of all processes, then wall clock.
//!
//! `cargo bench -p rollmill-sandbox`, as root: the CPU time is read from a cgroup made for it. Compare within one run;
//! `examples/speed.rs` takes the ways in turn and prints the table of docs/results/isolation.md.
use std::time::Duration;

use criterion::measurement::{Measurement, ValueFormatter, WallTime};
use criterion::{BenchmarkGroup, Criterion};
use ways::{Meter, ways};

mod ways;

/// CPU time of this process and of all it started.
struct CpuTime(Meter);

impl Measurement for CpuTime {
    type Intermediate = Duration;
    type Value = Duration;

    fn start(&self) -> Duration {
        self.0.read()
    }

    fn end(&self, start: Duration) -> Duration {
        self.0.read() - start
    }

    fn add(&self, a: &Duration, b: &Duration) -> Duration {
        *a + *b
    }

    fn zero(&self) -> Duration {
        Duration::ZERO
    }

    fn to_f64(&self, value: &Duration) -> f64 {
        value.as_nanos() as f64
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        WallTime.formatter()
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    rollmill_sandbox::helper_main_if_asked();
    let program = ["python3", "-c", "print(1)"].map(String::from);
    let meter = CpuTime(Meter::start()?);
    let mut cpu = Criterion::default().with_measurement(meter).configure_from_args();
    each_way(cpu.benchmark_group("cpu"), &program)?;
    let mut wall = Criterion::default().configure_from_args();
    each_way(wall.benchmark_group("wall"), &program)
}

fn each_way<M: Measurement>(
    mut group: BenchmarkGroup<'_, M>,
    program: &[String],
) -> Result<(), Box<dyn std::error::Error>> {
    group.sample_size(20).measurement_time(Duration::from_secs(2)).warm_up_time(Duration::from_millis(500));
    for way in ways(program)? {
        group.bench_function(way.name, |bencher| bencher.iter(&way.run));
    }
    group.finish();
    Ok(())
}
