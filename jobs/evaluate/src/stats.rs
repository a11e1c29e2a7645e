//! pass@k and bootstrap intervals. Pure functions; randomness from a counter-based generator.

/// Unbiased estimate of the chance that one of `k` samples solves a task of which `c` of `n` did: 1 − C(n−c, k)/C(n, k)
/// (Chen et al. 2021, "Evaluating Large Language Models Trained on Code", eq. 1). None where `k > n`.
pub fn pass_at_k(n: u32, c: u32, k: u32) -> Option<f64> {
    if k == 0 || k > n || c > n {
        return None;
    }
    if n - c < k {
        return Some(1.0);
    }
    let missed: f64 = (n - c + 1..=n).map(|i| 1.0 - f64::from(k) / f64::from(i)).product();
    Some(1.0 - missed)
}

/// A mean with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// 2.5th percentile of the bootstrap means.
    pub low: f64,
    /// 97.5th percentile.
    pub high: f64,
}

/// Percentile bootstrap of the mean, resampling whole tasks (Efron 1979). None without values.
pub fn bootstrap(values: &[f64], resamples: u32, seed: u64) -> Option<Interval> {
    if values.is_empty() {
        return None;
    }
    let n = values.len();
    let mut state = seed;
    let mut means: Vec<f64> =
        (0..resamples.max(1)).map(|_| (0..n).map(|_| values[index(&mut state, n)]).sum::<f64>() / n as f64).collect();
    means.sort_by(f64::total_cmp);
    let at = |q: f64| means[((means.len() - 1) as f64 * q).round() as usize];
    Some(Interval { mean: values.iter().sum::<f64>() / n as f64, low: at(0.025), high: at(0.975) })
}

/// Bootstrap of the mean difference `after - before` of paired values, one pair a task.
pub fn paired_bootstrap(pairs: &[(f64, f64)], resamples: u32, seed: u64) -> Option<Interval> {
    let differences: Vec<f64> = pairs.iter().map(|(before, after)| after - before).collect();
    bootstrap(&differences, resamples, seed)
}

/// A uniform index below `n`: SplitMix64 (Steele, Lea, Flood 2014) and a multiply-shift (Lemire 2019).
fn index(state: &mut u64, n: usize) -> usize {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^= z >> 31;
    ((u128::from(z) * n as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pass_at_k_by_hand() {
        // n=4, c=1: k=1 is 1/4; k=2 is 1 - C(3,2)/C(4,2) = 1 - 3/6; k=4 must be 1.
        assert_eq!(pass_at_k(4, 1, 1), Some(0.25));
        assert!((pass_at_k(4, 1, 2).unwrap() - 0.5).abs() < 1e-12);
        assert_eq!(pass_at_k(4, 1, 4), Some(1.0));
        assert_eq!(pass_at_k(4, 0, 4), Some(0.0));
        assert_eq!(pass_at_k(4, 4, 5), None);
        // n=200, c=13, k=10, from the product formula in Chen et al. 2021, figure 3 (numpy).
        let exact: f64 = 1.0 - (188..=200).map(|i| 1.0 - 10.0 / f64::from(i)).product::<f64>();
        assert!((pass_at_k(200, 13, 10).unwrap() - exact).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn pass_at_k_is_the_share_of_subsets(n in 1u32..9, c in 0u32..9, k in 1u32..9) {
            let brute = |n: u32, c: u32, k: u32| {
                let subsets: Vec<u32> = (0u32..1 << n).filter(|s| s.count_ones() == k).collect();
                let hit = subsets.iter().filter(|&&s| s & ((1 << c) - 1) != 0).count();
                hit as f64 / subsets.len() as f64
            };
            match pass_at_k(n, c, k) {
                None => prop_assert!(k > n || c > n),
                Some(p) => prop_assert!((p - brute(n, c, k)).abs() < 1e-12),
            }
        }

        #[test]
        fn the_interval_holds_the_mean(values in proptest::collection::vec(0.0f64..1.0, 1..40), seed: u64) {
            let i = bootstrap(&values, 500, seed).unwrap();
            prop_assert!(i.low <= i.high && i.low >= 0.0 && i.high <= 1.0);
            prop_assert_eq!(bootstrap(&values, 500, seed).unwrap(), i);
        }
    }

    #[test]
    fn a_clear_difference_is_seen_and_noise_is_not() {
        let clear: Vec<(f64, f64)> = (0..40).map(|i| (f64::from(i % 2), f64::from(i % 2) + 0.3)).collect();
        assert!(paired_bootstrap(&clear, 2000, 1).unwrap().low > 0.0);
        let noise: Vec<(f64, f64)> = (0..40).map(|i| (0.5, if i % 2 == 0 { 0.2 } else { 0.8 })).collect();
        let i = paired_bootstrap(&noise, 2000, 1).unwrap();
        assert!(i.low < 0.0 && i.high > 0.0);
    }
}
