//! What each job cost: seconds, peak memory, tokens a second.

use super::Batch;
use rollmill_job::{JobError, Run, checkpoint, inspect, reports_on};
use std::collections::BTreeMap;

#[derive(Default)]
struct Cost {
    stages: usize,
    items: usize,
    seconds: f64,
    peak: u64,
}

/// Prints one line a job.
pub async fn print(run: &Run, batches: &[Batch]) -> Result<(), JobError> {
    let mut costs: BTreeMap<String, Cost> = BTreeMap::new();
    for state in inspect::stages(run).await? {
        let job = state.stage.split('/').next().unwrap_or_default().to_string();
        let cost = costs.entry(job).or_default();
        cost.stages += 1;
        cost.items += state.items;
        cost.seconds += state.seconds;
        cost.peak = cost.peak.max(state.peak_memory_bytes);
    }
    let mut rounds: Vec<u32> =
        inspect::checkpoints(run).await?.iter().filter(|c| c.last && c.round > 0).map(|c| c.round).collect();
    rounds.dedup();
    for round in rounds {
        if let Some(manifest) = checkpoint::last_of_round(run, round).await? {
            let cost = costs.entry("train".into()).or_default();
            cost.stages += 1;
            cost.items += manifest.step as usize;
            cost.seconds += manifest.seconds;
            cost.peak = cost.peak.max(manifest.peak_memory_bytes);
        }
    }
    for report in reports_on(run, "serve").await? {
        let cost = costs.entry("serve".into()).or_default();
        cost.stages += 1;
        cost.seconds += report.seconds;
        cost.peak = cost.peak.max(report.peak_memory_bytes);
    }
    println!("\nCost");
    println!("  {:<12} {:>7} {:>8} {:>10} {:>12}", "job", "stages", "items", "seconds", "peak MiB");
    for job in ["synthesize", "verify", "rollout", "serve", "score", "train", "evaluate"] {
        if let Some(c) = costs.get(job) {
            println!(
                "  {job:<12} {:>7} {:>8} {:>10.1} {:>12.0}",
                c.stages,
                c.items,
                c.seconds,
                c.peak as f64 / f64::from(1 << 20)
            );
        }
    }
    let tokens: i64 = batches.iter().flat_map(|b| &b.trajectories).map(|t| i64::from(t.sampled_tokens)).sum();
    let count: usize = batches.iter().map(|b| b.trajectories.len()).sum();
    let seconds = costs.get("rollout").map_or(0.0, |c| c.seconds);
    let rate = if seconds > 0.0 { tokens as f64 / seconds } else { 0.0 };
    println!("  {count} trajectories, {tokens} tokens sampled, {rate:.0} tokens/s while rolling out, tests included");
    Ok(())
}
