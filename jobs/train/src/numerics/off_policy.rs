//! Weights of tokens that another policy sampled than the one that learns. In: log-probs of the proximal policy (the
//! trainer's own at the round's start) and of the behaviour policy (recorded by the sampler), per trainable token. Out: one
//! weight per token, which carries no gradient.

use serde::{Deserialize, Serialize};

use super::policy_loss::LOG_RATIO_BOUND;

/// What happens to tokens whose behaviour policy is not the proximal one.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum OffPolicy {
    /// The recorded log-probs are the proximal ones: right for rows of the policy that learns.
    #[default]
    None,
    /// Tokens with `min` < ρ < `max` count ρ, others nothing (1 − ε_low and 1 + ε_high of the masked form of importance
    /// sampling, "icepop").
    Band {
        /// Lower bound, exclusive.
        min: f64,
        /// Upper bound, exclusive.
        max: f64,
    },
    /// min(ρ, `cap`): truncated importance sampling (Ionides 2008; Espeholt et al. 2018).
    Truncated {
        /// The largest weight.
        cap: f64,
        /// Whether ρ is a token's or the whole trajectory's.
        #[serde(default)]
        level: Level,
    },
}

/// Of what a ratio is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Each token has its own.
    #[default]
    Token,
    /// All tokens of a trajectory share the product, which is kept in log space until the cap.
    Sequence,
}

impl OffPolicy {
    /// Weights of one trajectory's trainable tokens.
    pub fn weights(self, proximal: &[f32], behaviour: &[f32]) -> Vec<f32> {
        let log_ratios = || proximal.iter().zip(behaviour).map(|(p, b)| f64::from(*p) - f64::from(*b));
        let ratios = || log_ratios().map(bounded_exp);
        match self {
            OffPolicy::None => vec![1.0; proximal.len()],
            OffPolicy::Band { min, max } => ratios().map(|r| if r > min && r < max { r as f32 } else { 0.0 }).collect(),
            OffPolicy::Truncated { cap, level: Level::Token } => ratios().map(|r| r.min(cap) as f32).collect(),
            OffPolicy::Truncated { cap, level: Level::Sequence } => {
                vec![bounded_exp(log_ratios().sum()).min(cap) as f32; proximal.len()]
            }
        }
    }

    /// Whether the numbers make sense.
    pub(crate) fn is_valid(self) -> bool {
        match self {
            OffPolicy::None => true,
            OffPolicy::Band { min, max } => (0.0..1.0).contains(&min) && max > 1.0,
            OffPolicy::Truncated { cap, .. } => cap >= 1.0 && cap.is_finite(),
        }
    }
}

fn bounded_exp(log_ratio: f64) -> f64 {
    log_ratio.clamp(-LOG_RATIO_BOUND, LOG_RATIO_BOUND).exp()
}

#[cfg(test)]
mod tests {
    use super::super::assert_close;
    use super::*;

    fn weights(how: OffPolicy, ratios: &[f64]) -> Vec<f64> {
        let proximal: Vec<f32> = ratios.iter().map(|r| r.ln() as f32 - 1.0).collect();
        how.weights(&proximal, &vec![-1.0; ratios.len()]).into_iter().map(f64::from).collect()
    }

    #[test] // numerics table, row 21, with (.2, 4) read as bounds and as ε
    fn band_and_truncation() {
        for band in [OffPolicy::Band { min: 0.2, max: 4.0 }, OffPolicy::Band { min: 0.8, max: 4.9 }] {
            assert_close(&weights(band, &[5.0, 0.1, 1.1]), &[0.0, 0.0, 1.1]);
        }
        let truncated = OffPolicy::Truncated { cap: 2.0, level: Level::Token };
        assert_close(&weights(truncated, &[5.0, 0.1, 1.1]), &[2.0, 0.1, 1.1]);
    }

    #[test] // row 22: .012 per token over 100 tokens; a product of capped ratios is the broken control
    fn a_sequences_ratio_stays_in_log_space_until_the_cap() {
        let ratios = vec![0.012f64.exp(); 100];
        let sequence = |cap| OffPolicy::Truncated { cap, level: Level::Sequence };
        assert_close(&weights(sequence(10.0), &ratios)[..1], &[3.320117]);
        assert_close(&weights(sequence(2.0), &ratios)[99..], &[2.0]);
        // 2,000 tokens down, then 2,000 up: a product of float32 ratios leaves their range on the way.
        let mut far = vec![(-0.5f64).exp(); 2000];
        far.extend(vec![0.5f64.exp(); 2000]);
        assert!((weights(sequence(10.0), &far)[0] - 1.0).abs() < 1e-2);
        assert!((far.iter().fold(1f32, |product, r| product * *r as f32) - 1.0).abs() > 0.9);
    }

    #[test]
    fn the_policys_own_rows_count_once() {
        assert_close(&weights(OffPolicy::None, &[5.0, 0.1]), &[1.0, 1.0]);
        assert_close(&weights(OffPolicy::Band { min: 0.5, max: 2.0 }, &[1.0, 1.0]), &[1.0, 1.0]);
    }

    #[test]
    fn reads_the_forms_of_a_config() {
        let read = |text: &str| serde_json::from_str::<OffPolicy>(text);
        assert_eq!(read(r#"{"kind":"none"}"#).unwrap(), OffPolicy::None);
        let token = OffPolicy::Truncated { cap: 2.0, level: Level::Token };
        assert_eq!(read(r#"{"kind":"truncated","cap":2}"#).unwrap(), token);
        assert!(read(r#"{"kind":"band","min":0.5}"#).unwrap_err().to_string().contains("max"));
        assert!(!OffPolicy::Band { min: 1.5, max: 2.0 }.is_valid() && token.is_valid());
    }
}
