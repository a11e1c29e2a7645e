//! Generalised advantage estimation (Schulman et al. 2016) over the trainable tokens of one trajectory.
//! In: rewards, values and mask per token, and the value behind the last token. Out: one advantage per token.
//! Must hold: tool output (mask false) is no step of the decision process, so it neither decays nor bootstraps.

/// What follows the last token. It comes from the recorded stop reason, never from padding.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum End {
    /// The policy finished: nothing follows, the bootstrap is 0.
    Terminated,
    /// The trajectory was cut off: the critic's value of the state after its last token.
    Truncated(f64),
}

impl End {
    fn bootstrap(self) -> f64 {
        match self {
            End::Terminated => 0.0,
            End::Truncated(value) => value,
        }
    }
}

/// Advantages per token (0 where `mask` is false); δ_t = r_t + γ V_next − V_t and A_t = δ_t + γ λ A_next, where "next" is
/// the next **trainable** token. The three slices have one length. Rewards on masked tokens are not read.
pub fn gae(rewards: &[f64], values: &[f64], mask: &[bool], end: End, gamma: f64, lambda: f64) -> Vec<f64> {
    assert!(rewards.len() == mask.len() && values.len() == mask.len(), "rewards, values and mask differ in length");
    let mut advantages = vec![0.0; mask.len()];
    let (mut next_value, mut next_advantage) = (end.bootstrap(), 0.0);
    for t in (0..mask.len()).rev().filter(|&t| mask[t]) {
        let delta = rewards[t] + gamma * next_value - values[t];
        next_advantage = delta + gamma * lambda * next_advantage;
        next_value = values[t];
        advantages[t] = next_advantage;
    }
    advantages
}

/// Adds the terminal reward to the last **trainable** token, also when the trajectory ends on tool output. Without a
/// trainable token nothing changes.
pub fn place_terminal(rewards: &mut [f64], mask: &[bool], reward: f64) {
    if let Some(last) = mask.iter().rposition(|&m| m) {
        rewards[last] += reward;
    }
}

/// Value targets A + V per token (0 where masked). The advantages are those **before** whitening.
pub fn returns(advantages: &[f64], values: &[f64], mask: &[bool]) -> Vec<f64> {
    (0..mask.len()).map(|t| if mask[t] { advantages[t] + values[t] } else { 0.0 }).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{assert_close, whiten::whiten};
    use super::*;

    const ALL: [bool; 5] = [true; 5];

    #[test] // numerics table, rows 1 and 1b
    fn basic() {
        let (r, v) = ([0., 0., 0., 1.], [0.5; 4]);
        assert_close(&gae(&r, &v, &ALL[..4], End::Terminated, 1., 1.), &[0.5, 0.5, 0.5, 0.5]);
        assert_close(&gae(&r, &v, &ALL[..4], End::Terminated, 1., 0.95), &[0.428687, 0.45125, 0.475, 0.5]);
    }

    #[test] // row 1c
    fn lambda_zero_is_the_one_step_error() {
        assert_close(&gae(&[0., 0., 5.], &[1., 2., 3.], &ALL[..3], End::Terminated, 1., 0.), &[1., 1., 2.]);
    }

    #[test] // row 2: the same as with the gap cut out; the control that keeps the gap as a step differs
    fn tool_output_is_skipped() {
        let (r, v) = ([0., 0., 0., 0., 1.], [0.1, 0.2, 999., 0.4, 0.5]);
        let mask = [true, true, false, true, true];
        let got = gae(&r, &v, &mask, End::Terminated, 0.99, 0.95);
        assert_close(&got, &[0.782324, 0.727618, 0., 0.56525, 0.5]);
        let cut = gae(&[0., 0., 0., 1.], &[0.1, 0.2, 0.4, 0.5], &ALL[..4], End::Terminated, 0.99, 0.95);
        assert_close(&[got[0], got[1], got[3], got[4]], &cut);
        let control = gae(&r, &v, &ALL, End::Terminated, 0.99, 0.95);
        assert!((control[0] - got[0]).abs() > 1e-2, "a gap that counts as a step must show");
    }

    #[test] // row 3
    fn masked_value_never_bootstraps() {
        let mask = [true, true, false];
        assert_close(&gae(&[0., 1., 0.], &[0., 0., 100.], &mask, End::Terminated, 1., 0.95), &[0.95, 1., 0.]);
    }

    #[test] // row 4
    fn terminal_reward_goes_to_the_last_trainable_token() {
        let mask = [true, true, false];
        let mut r = [0.; 3];
        place_terminal(&mut r, &mask, 1.);
        assert_close(&gae(&r, &[0.3, 0.4, 0.9], &mask, End::Terminated, 1., 0.95), &[0.67, 0.6, 0.]);
    }

    #[test] // rows 5 and 5b
    fn cut_off_is_not_finished() {
        let (r, v) = ([0.; 3], [0.5, 0.6, 0.7]);
        assert_close(&gae(&r, &v, &ALL[..3], End::Truncated(0.8), 1., 0.95), &[0.28525, 0.195, 0.1]);
        assert_close(&gae(&r, &v, &ALL[..3], End::Terminated, 1., 0.95), &[-0.43675, -0.565, -0.7]);
    }

    #[test] // row 6
    fn policy_and_critic_have_their_own_lambda() {
        let (r, v) = ([0., 0., 0., 1.], [0.2, 0.4, 0.6, 0.8]);
        assert_close(&gae(&r, &v, &ALL[..4], End::Terminated, 1., 0.95), &[0.741975, 0.5705, 0.39, 0.2]);
        let critic = gae(&r, &v, &ALL[..4], End::Terminated, 1., 1.);
        assert_close(&returns(&critic, &v, &ALL[..4]), &[1.; 4]);
    }

    #[test] // row 8: whitening afterwards leaves the targets alone; targets from whitened advantages are the broken control
    fn targets_use_advantages_before_whitening() {
        let (r, v) = ([0., 0., 0., 1.], [0.2, 0.4, 0.6, 0.8]);
        let mut advantages = gae(&r, &v, &ALL[..4], End::Terminated, 1., 1.);
        let targets = returns(&advantages, &v, &ALL[..4]);
        whiten(&mut advantages);
        assert_close(&targets, &[1.; 4]);
        assert!((returns(&advantages, &v, &ALL[..4])[0] - 1.).abs() > 0.1);
    }
}
