//! Advantages from a group of trajectories of one task, without a critic. In: one reward per trajectory; `None` is a
//! trajectory that failed for a reason that is not the policy's, which leaves the mean **and** the deviation. Out: one
//! advantage per trajectory, 0 for a failed one.

use super::whiten::mean_std;

/// Group-relative advantages of GRPO (Shao et al. 2024): (r − mean) / max(std, `std_floor`), with the sample deviation
/// (n − 1) in two passes. A group of one, or of equal rewards, gives 0. The floor keeps rewards that differ only by
/// rounding from being blown up to ±1.
pub fn group_relative(rewards: &[Option<f64>], std_floor: f64) -> Vec<f64> {
    let known: Vec<f64> = rewards.iter().flatten().copied().collect();
    if known.len() < 2 {
        return vec![0.0; rewards.len()];
    }
    let (mean, std) = mean_std(&known);
    rewards.iter().map(|reward| reward.map_or(0.0, |r| (r - mean) / std.max(std_floor))).collect()
}

/// Leave-one-out advantages of RLOO (Ahmadian et al. 2024): the reward less the mean of the others. A group of one gives 0.
pub fn leave_one_out(rewards: &[Option<f64>]) -> Vec<f64> {
    let known: Vec<f64> = rewards.iter().flatten().copied().collect();
    if known.len() < 2 {
        return vec![0.0; rewards.len()];
    }
    let (sum, others) = (known.iter().sum::<f64>(), (known.len() - 1) as f64);
    rewards.iter().map(|reward| reward.map_or(0.0, |r| r - (sum - r) / others)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::assert_close;
    use super::*;

    const FLOOR: f64 = 1e-3;

    fn known(rewards: &[f64]) -> Vec<Option<f64>> {
        rewards.iter().copied().map(Some).collect()
    }

    #[test] // numerics table, row 10; dividing by n instead of n − 1 is the broken control
    fn group_relative_with_the_sample_deviation() {
        let rewards = known(&[1., 0., 0., 0.]);
        assert_close(&group_relative(&rewards, FLOOR), &[1.5, -0.5, -0.5, -0.5]);
        assert_close(&group_relative(&known(&[0.7]), FLOOR), &[0.]);
        assert_close(&group_relative(&known(&[0.3; 4]), FLOOR), &[0.; 4]);
        let (mean, n): (f64, f64) = (0.25, 4.0);
        let population: Vec<f64> = [1., 0., 0., 0.].iter().map(|r| (r - mean) / (0.75 / n).sqrt()).collect();
        assert!(population.iter().zip(group_relative(&rewards, FLOOR)).all(|(p, got)| (p - got).abs() > 0.05));
    }

    #[test] // row 10b; without the floor they are ±.707
    fn near_equal_rewards_do_not_explode() {
        let near = known(&[1.00000, 1.00001]);
        let got = group_relative(&near, FLOOR);
        assert!(got[0] < 0.0 && got[1] > 0.0 && got[1] < 0.01, "{got:?}");
        assert!(group_relative(&near, 0.0)[1] > 0.7);
    }

    #[test] // row 11
    fn leave_one_out_is_against_the_others() {
        assert_close(&leave_one_out(&known(&[1., 0., 0., 0.])), &[1., -0.333333, -0.333333, -0.333333]);
        assert_close(&leave_one_out(&known(&[2.])), &[0.]);
    }

    #[test] // row 12: [1, 3, 2, failed] has mean 2 and deviation 1; counting the failed one as 0 is the broken control
    fn a_failed_trajectory_leaves_mean_and_deviation() {
        let rewards = [Some(1.), Some(3.), Some(2.), None];
        assert_close(&group_relative(&rewards, FLOOR), &[-1., 1., 0., 0.]);
        assert_close(&leave_one_out(&rewards), &[-1.5, 1.5, 0., 0.]);
        assert!(group_relative(&known(&[1., 3., 2., 0.]), FLOOR)[2].abs() > 0.1);
    }
}
