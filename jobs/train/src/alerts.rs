//! When a run needs a person. In: the metrics of every step so far, oldest first, and thresholds. Out: what is wrong now,
//! each in one line that says what to do.
//! Must hold: nothing is judged from less than its window; a metric that an algorithm does not have raises nothing.

use serde::{Deserialize, Serialize};

use crate::trainer::Metrics;

/// Thresholds of the alerts. A count of 0 turns an alert off.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Thresholds {
    /// Steps that the critic's loss and its explained variance are judged over.
    pub window: usize,
    /// Share of a window's steps at which the critic's loss turns, above which it oscillates …
    pub critic_turns: f64,
    /// … if its range is also more than this share of its mean.
    pub critic_swing: f64,
    /// Approximate KL to the sampling policy that no step may exceed.
    pub approx_kl: f64,
    /// KL to the reference that no round may exceed.
    pub kl_reference: f64,
    /// Share of the run's first entropy below which it has collapsed.
    pub entropy_share: f64,
    /// Share by which passing trajectories may shorten from one round to the next …
    pub shorter: f64,
    /// … while the mean score rises by more than this.
    pub score_jump: f64,
    /// Share of rows that may fail for reasons that are not the policy's.
    pub failed_rows: f64,
    /// Share of groups with different rewards below which group-relative advantages are noise.
    pub informative_groups: f64,
    /// How much more cut-off trajectories may be worth, by the critic, than finished ones got.
    pub cut_off_pays: f64,
    /// Ratio of the longest to the shortest trajectory of a group, on average, above which they are noise too.
    pub group_length_ratio: f64,
}

impl Default for Thresholds {
    fn default() -> Thresholds {
        Thresholds {
            window: 10,
            critic_turns: 0.7,
            critic_swing: 1.0,
            approx_kl: 0.2,
            kl_reference: 1.0,
            entropy_share: 0.2,
            shorter: 0.3,
            score_jump: 0.2,
            failed_rows: 0.05,
            informative_groups: 0.25,
            cut_off_pays: 0.05,
            group_length_ratio: 8.0,
        }
    }
}

/// Something a person should look at.
#[derive(Debug, Clone, PartialEq)]
pub struct Alert {
    /// Short name, also that of its metric (`alert/<name>`).
    pub name: &'static str,
    /// What was measured, and what to do.
    pub message: String,
}

/// One step of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observed {
    /// Its round.
    pub round: u32,
    /// Its numbers.
    pub metrics: Metrics,
}

/// Names of all alerts, for tables that hold each of them at every step.
pub const NAMES: [&str; 8] = [
    "critic_loss_oscillates",
    "explained_variance_negative",
    "kl_runs_away",
    "entropy_collapses",
    "passing_shorten_while_score_jumps",
    "failed_rows",
    "group_advantages_are_noise",
    "being_cut_off_pays",
];

/// The alerts that the last of `steps` raises.
pub fn raised(steps: &[Observed], thresholds: &Thresholds) -> Vec<Alert> {
    let Some(last) = steps.last() else { return vec![] };
    let checks: [Option<String>; 8] = [
        oscillates(steps, thresholds),
        never_explains(steps, thresholds),
        runs_away(last, thresholds),
        collapses(steps, thresholds),
        shortens(steps, thresholds),
        fails(last, thresholds),
        noisy(last, thresholds),
        cut_off_pays(last, thresholds),
    ];
    let named = NAMES.into_iter().zip(checks);
    named.filter_map(|(name, message)| message.map(|message| Alert { name, message })).collect()
}

/// The last `window` values of a metric, if there are as many.
fn window(steps: &[Observed], name: &str, window: usize) -> Option<Vec<f64>> {
    let recent = steps.len().checked_sub(window).filter(|_| window > 0)?;
    steps[recent..].iter().map(|step| step.metrics.get(name).copied()).collect()
}

fn oscillates(steps: &[Observed], t: &Thresholds) -> Option<String> {
    let losses = window(steps, "value_loss", t.window)?;
    let changes: Vec<f64> = losses.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let turns = changes.windows(2).filter(|pair| pair[0] * pair[1] < 0.0).count() as f64;
    let share = turns / changes.len().saturating_sub(1).max(1) as f64;
    let (low, high) = losses.iter().fold((f64::INFINITY, 0f64), |(low, high), &x| (low.min(x), high.max(x)));
    let swing = (high - low) / (losses.iter().sum::<f64>() / losses.len() as f64);
    (share > t.critic_turns && swing > t.critic_swing).then(|| {
        format!("the critic's loss turned at {:.0} % of {} steps, between {low:.4} and {high:.4}: lower critic_lr or enlarge the minibatch", share * 100.0, t.window)
    })
}

fn never_explains(steps: &[Observed], t: &Thresholds) -> Option<String> {
    let explained = window(steps, "critic_explained_variance", t.window)?;
    let best = explained.iter().fold(f64::NEG_INFINITY, |best, &x| best.max(x));
    (best < 0.0).then(|| {
        format!("the critic explained less than nothing for {} steps ({best:.2} at best): pretrain it longer, or raise critic_lr", t.window)
    })
}

fn runs_away(last: &Observed, t: &Thresholds) -> Option<String> {
    let over = |name: &str, bound: f64| {
        let value = *last.metrics.get(name)?;
        (bound > 0.0 && value > bound)
            .then(|| format!("{name} is {value:.3}, above {bound}: lower actor_lr, or raise kl_coef"))
    };
    over("approx_kl", t.approx_kl).or_else(|| over("kl_reference", t.kl_reference))
}

fn collapses(steps: &[Observed], t: &Thresholds) -> Option<String> {
    let entropy = |step: &Observed| step.metrics.get("entropy").copied();
    let last = steps.last()?;
    // Imitation before the first round tells nothing of how a policy samples.
    let mut sampled = steps.iter().filter(|step| step.round > 0 || last.round == 0);
    let (first, now) = (sampled.find_map(entropy)?, entropy(last)?);
    (now < t.entropy_share * first).then(|| {
        format!("entropy fell from {first:.3} to {now:.3}: the policy hardly explores; raise the temperature or kl_coef, or lower actor_lr")
    })
}

fn shortens(steps: &[Observed], t: &Thresholds) -> Option<String> {
    let now = steps.last()?;
    let before = steps.iter().rev().find(|step| step.round < now.round)?;
    let both = |name: &str| Some((*before.metrics.get(name)?, *now.metrics.get(name)?));
    let ((long, short), (low, high)) = (both("passing_length_mean")?, both("score")?);
    (t.shorter > 0.0 && short < (1.0 - t.shorter) * long && high - low > t.score_jump).then(|| {
        format!("passing trajectories shortened from {long:.0} to {short:.0} tokens while the score rose from {low:.2} to {high:.2}: read some of them, this is how a reward is gamed")
    })
}

fn fails(last: &Observed, t: &Thresholds) -> Option<String> {
    let share = *last.metrics.get("failed_rows")?;
    (t.failed_rows > 0.0 && share > t.failed_rows).then(|| {
        format!("{:.1} % of the rows failed for reasons that are not the policy's: look at `rollmill status` and the error classes", share * 100.0)
    })
}

fn noisy(last: &Observed, t: &Thresholds) -> Option<String> {
    let informative = *last.metrics.get("informative_groups")?;
    let ratio = *last.metrics.get("group_length_ratio")?;
    let few = t.informative_groups > 0.0 && informative < t.informative_groups;
    let uneven = t.group_length_ratio > 0.0 && ratio > t.group_length_ratio;
    (few || uneven).then(|| {
        format!("group-relative advantages would be noise: {:.0} % of the groups have different rewards, and their longest trajectory is {ratio:.1} times the shortest; a critic (algorithm = \"ppo\") does not compare within groups", informative * 100.0)
    })
}

fn cut_off_pays(last: &Observed, t: &Thresholds) -> Option<String> {
    let (cut, finished) = (*last.metrics.get("cut_off_value")?, *last.metrics.get("finished_score")?);
    (t.cut_off_pays > 0.0 && cut > finished + t.cut_off_pays).then(|| {
        format!("trajectories that were cut off are taken to be worth {cut:.2}, finished ones got {finished:.2}: the policy learns to be cut off; raise the limits, or set bootstrap_cut_off = false")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(name: &str, values: &[f64]) -> Vec<Observed> {
        values.iter().map(|&v| Observed { round: 1, metrics: [(name.to_owned(), v)].into() }).collect()
    }

    fn names(steps: &[Observed]) -> Vec<&'static str> {
        raised(steps, &Thresholds::default()).into_iter().map(|alert| alert.name).collect()
    }

    #[test]
    fn a_critic_that_swings_is_seen_and_one_that_falls_is_not() {
        let swinging: Vec<f64> = (0..10).map(|i| if i % 2 == 0 { 0.1 } else { 1.0 }).collect();
        assert_eq!(names(&steps("value_loss", &swinging)), ["critic_loss_oscillates"]);
        let falling: Vec<f64> = (0..10).map(|i| 1.0 / f64::from(1 + i)).collect();
        assert!(names(&steps("value_loss", &falling)).is_empty());
        let trembling: Vec<f64> = (0..10).map(|i| 1.0 + 0.01 * f64::from(i % 2)).collect();
        assert!(names(&steps("value_loss", &trembling)).is_empty());
        assert!(names(&steps("value_loss", &swinging[..9])).is_empty(), "less than a window");
    }

    #[test]
    fn explained_variance_must_stay_below_zero_for_a_window() {
        assert_eq!(names(&steps("critic_explained_variance", &[-0.1; 10])), ["explained_variance_negative"]);
        let mut once = [-0.1; 10];
        once[4] = 0.01;
        assert!(names(&steps("critic_explained_variance", &once)).is_empty());
    }

    #[test]
    fn kl_entropy_and_failures() {
        assert_eq!(names(&steps("approx_kl", &[0.0, 0.3])), ["kl_runs_away"]);
        assert_eq!(names(&steps("kl_reference", &[0.0, 1.3])), ["kl_runs_away"]);
        assert!(names(&steps("approx_kl", &[0.3, 0.0])).is_empty(), "only the last step is judged");
        assert_eq!(names(&steps("entropy", &[2.0, 1.0, 0.3])), ["entropy_collapses"]);
        assert!(names(&steps("entropy", &[2.0, 0.5])).is_empty());
        assert_eq!(names(&steps("failed_rows", &[0.06])), ["failed_rows"]);
        assert!(names(&steps("failed_rows", &[0.05])).is_empty());
    }

    fn round(round: u32, length: f64, score: f64) -> Observed {
        Observed { round, metrics: [("passing_length_mean".to_owned(), length), ("score".to_owned(), score)].into() }
    }

    #[test]
    fn shorter_passing_trajectories_and_a_jump_of_the_score() {
        assert_eq!(
            names(&[round(1, 100.0, 0.2), round(2, 60.0, 0.5), round(2, 60.0, 0.5)]),
            ["passing_shorten_while_score_jumps"]
        );
        assert!(names(&[round(1, 100.0, 0.2), round(2, 60.0, 0.3)]).is_empty(), "shorter alone");
        assert!(names(&[round(1, 100.0, 0.2), round(2, 90.0, 0.5)]).is_empty(), "better alone");
        assert!(names(&[round(1, 60.0, 0.5)]).is_empty(), "nothing before");
    }

    #[test]
    fn a_critic_that_values_being_cut_off() {
        let round = |cut: f64| Observed {
            round: 1,
            metrics: [("cut_off_value".to_owned(), cut), ("finished_score".to_owned(), 0.5)].into(),
        };
        assert_eq!(names(&[round(0.8)]), ["being_cut_off_pays"]);
        assert!(names(&[round(0.3)]).is_empty());
    }

    #[test]
    fn groups_without_a_spread_or_with_uneven_lengths() {
        let group = |informative: f64, ratio: f64| Observed {
            round: 1,
            metrics: [("informative_groups".to_owned(), informative), ("group_length_ratio".to_owned(), ratio)].into(),
        };
        assert_eq!(names(&[group(0.1, 1.0)]), ["group_advantages_are_noise"]);
        assert_eq!(names(&[group(0.9, 40.0)]), ["group_advantages_are_noise"]);
        assert!(names(&[group(0.9, 2.0)]).is_empty());
    }
}
