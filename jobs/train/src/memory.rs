//! Whether a trainer can fit at all. In: the number of weights, the config, what this process may use. Out: a refusal
//! before anything is computed, for libtorch ends a process that it cannot give memory to.
//! Must hold: only what is surely needed is counted (weights, their copies, moments, gradients), so that nothing is refused
//! that would run; activations come on top and are bounded by `micro_tokens` and `recompute_over`.

use rollmill_job::JobError;
use rollmill_train::{Dtype, TrainConfig};
use std::path::Path;

/// Bytes that a trainer of a policy with `weights` weights surely holds at once.
pub fn needed(weights: u64, config: &TrainConfig) -> u64 {
    let networks = 2 + u64::from(config.algorithm.has_critic()); // policy and reference
    let learning = u64::from(config.algorithm.moves_policy()) + u64::from(config.algorithm.has_critic());
    let trained = if config.lora.is_some() { 0 } else { weights };
    let mirrors = if config.dtype == Dtype::Bf16 { 2 * weights * networks } else { 0 };
    // float32 weights; two moments of each network that learns; the gradient of one at a time
    4 * weights * networks + 8 * trained * learning + 4 * trained + mirrors
}

/// Refuses what cannot fit into `limit` bytes.
pub fn check(weights: u64, config: &TrainConfig, limit: u64) -> Result<(), JobError> {
    let (needed, gib) = (needed(weights, config), |bytes: u64| bytes as f64 / f64::from(1 << 30));
    if needed <= limit {
        return Ok(());
    }
    let reason = format!(
        "{weights} weights need {:.1} GiB before the first activation, and this process may use {:.1}; take more memory, an algorithm \
         without a critic, or [train.lora]",
        gib(needed),
        gib(limit)
    );
    Err(JobError::Config { place: "memory".into(), reason })
}

/// Bytes this process may use: the machine's memory, or the limit of a control group around it.
pub fn limit() -> u64 {
    let number = |path: &str| std::fs::read_to_string(Path::new(path)).ok()?.trim().parse::<u64>().ok();
    let groups = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let machine = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let machine =
        machine.lines().find_map(|line| line.strip_prefix("MemTotal:")?.split_whitespace().next()?.parse().ok());
    let machine = machine.map_or(u64::MAX, |kib: u64| kib.saturating_mul(1024));
    groups.iter().filter_map(|path| number(path)).fold(machine, u64::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rollmill_train::Algorithm;

    #[test] // 1,000 weights: three networks of 4 bytes, 16 bytes of moments, 4 of a gradient
    fn what_is_surely_needed() {
        let ppo = TrainConfig::default();
        assert_eq!(needed(1000, &ppo), 12_000 + 16_000 + 4_000);
        let grpo = TrainConfig { algorithm: Algorithm::Grpo, dtype: Dtype::Bf16, ..TrainConfig::default() };
        assert_eq!(needed(1000, &grpo), 8_000 + 8_000 + 4_000 + 4_000);
        let adapters = TrainConfig { lora: Some(Default::default()), ..grpo };
        assert_eq!(needed(1000, &adapters), 8_000 + 4_000);
    }

    #[test]
    fn what_cannot_fit_is_refused_and_what_may_is_not() {
        let config = TrainConfig::default();
        check(1000, &config, 32_000).unwrap();
        let error = check(1000, &config, 31_999).unwrap_err().to_string();
        assert!(error.contains("1000 weights") && error.contains("lora"), "{error}");
        assert!(limit() > 1 << 20);
    }
}
