//! Prints how plan, claim, seal and status grow: `cargo run --release -p rollmill-faults --example scale -- 1000:100 …`
//! (shards:workers; default: four sizes up to 100,000 shards and 10,000 workers).

use rollmill_faults::scale::{Cost, measure};
use rollmill_faults::simulate;

fn main() {
    let sizes: Vec<(usize, usize)> = std::env::args()
        .skip(1)
        .filter_map(|a| a.split_once(':').and_then(|(s, w)| Some((s.parse().ok()?, w.parse().ok()?))))
        .collect();
    let sizes =
        if sizes.is_empty() { vec![(100, 10), (1_000, 100), (10_000, 1_000), (100_000, 10_000)] } else { sizes };
    println!(
        "| shards | workers | plan | all shards | requests a shard | of these lists | refused | seal | seal requests | status | status requests |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for (shards, workers) in sizes {
        match simulate(measure(shards, workers)) {
            Ok(cost) => line(&cost),
            Err(e) => println!("| {shards} | {workers} | {e} |"),
        }
    }
}

fn line(cost: &Cost) {
    let each = |n: u64| n as f64 / cost.shards as f64;
    println!(
        "| {} | {} | {:.1} s, {:.1} MB | {:.0} s | {:.1} | {:.1} | {:.2} | {:.1} s | {} | {:.1} s | {} |",
        cost.shards,
        cost.workers,
        cost.seconds[0],
        cost.plan_bytes as f64 / 1e6,
        cost.seconds[1],
        each(cost.requests[1]),
        each(cost.kinds["list"]),
        each(cost.kinds["refused"]),
        cost.seconds[2],
        cost.requests[2],
        cost.seconds[3],
        cost.requests[3]
    );
}
