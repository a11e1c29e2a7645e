//! Numbers that describe a batch. In: values. Out: metrics by name.

use super::round::Metrics;
use crate::experience::Experience;
use crate::numerics::whiten::mean_std;

/// 0 for nothing.
pub(super) fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0u64), |(sum, count), x| (sum + x, count + 1));
    if count == 0 { 0.0 } else { sum / count as f64 }
}

/// Mean, deviation, extremes and quantiles as `<name>_mean`, `_std`, `_min`, `_p10`, `_p50`, `_p90`, `_max`.
pub(super) fn distribution(stats: &mut Metrics, name: &str, mut values: Vec<f64>) {
    if values.is_empty() {
        return;
    }
    let (mean, std) = mean_std(&values);
    values.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| values[((values.len() - 1) as f64 * share).round() as usize];
    let parts = [
        ("mean", mean),
        ("std", std),
        ("min", at(0.0)),
        ("p10", at(0.1)),
        ("p50", at(0.5)),
        ("p90", at(0.9)),
        ("max", at(1.0)),
    ];
    stats.extend(parts.map(|(part, value)| (format!("{name}_{part}"), value)));
}

/// What is known of a batch before any network has seen it.
pub(super) fn of_batch(batch: &[Experience], passing: f64) -> Metrics {
    let part = || batch.iter().filter(|e| e.takes_part());
    let mut stats = Metrics::new();
    distribution(&mut stats, "score", part().filter_map(|e| e.reward).collect());
    distribution(&mut stats, "trainable_length", part().map(|e| e.trainable_len() as f64).collect());
    distribution(&mut stats, "length", part().map(|e| e.tokens.len() as f64).collect());
    let passes = |e: &&Experience| e.reward.is_some_and(|r| r >= passing);
    let shares = [
        ("score", mean(part().filter_map(|e| e.reward))),
        ("trajectories", part().count() as f64),
        ("trainable_tokens", part().map(|e| e.trainable_len() as f64).sum()),
        ("truncated_share", mean(part().map(|e| f64::from(u8::from(e.truncated))))),
        ("failed_rows", mean(batch.iter().map(|e| f64::from(u8::from(e.reward.is_none()))))),
        ("passing_share", mean(part().map(|e| f64::from(u8::from(passes(&e)))))),
    ];
    stats.extend(shares.map(|(name, value)| (name.to_owned(), value)));
    if part().any(|e| passes(&e)) {
        let length = mean(part().filter(passes).map(|e| e.trainable_len() as f64));
        stats.insert("passing_length_mean".to_owned(), length);
    }
    stats
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_by_hand() {
        let mut stats = Metrics::new();
        distribution(&mut stats, "x", (0..=10).rev().map(f64::from).collect());
        let got = ["min", "p10", "p50", "p90", "max", "mean"].map(|part| stats[&format!("x_{part}")]);
        assert_eq!(got, [0.0, 1.0, 5.0, 9.0, 10.0, 5.0]);
        distribution(&mut stats, "y", vec![]);
        assert!(!stats.contains_key("y_mean"));
    }
}
