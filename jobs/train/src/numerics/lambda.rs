//! Which trace decay λ the policy's advantages use. In: the trainable length of a trajectory. Out: λ in [0, 1].

use serde::{Deserialize, Serialize};

/// A fixed λ (a number in a config file), or the length-adaptive one of VAPO (`{ adaptive = 1.5 }`).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Lambda {
    /// The same λ for every trajectory.
    Fixed(f64),
    /// λ = 1 − 1 / max(α·l, 1) with l the trainable length (Yue et al. 2025, VAPO).
    Adaptive {
        /// α; 1.5 is the published value for long agent trajectories.
        adaptive: f64,
    },
}

impl Lambda {
    /// λ for a trajectory with `trainable` trainable tokens.
    pub fn at(self, trainable: usize) -> f64 {
        match self {
            Lambda::Fixed(lambda) => lambda,
            Lambda::Adaptive { adaptive } => 1.0 - 1.0 / (adaptive * trainable as f64).max(1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::assert_close;
    use super::*;

    #[test] // numerics table, row 7
    fn length_adaptive() {
        let lambda = Lambda::Adaptive { adaptive: 0.05 };
        assert_close(&[lambda.at(20), lambda.at(200), lambda.at(4000)], &[0., 0.9, 0.995]);
        assert_eq!(lambda.at(0), 0.0);
    }

    #[test]
    fn reads_both_forms() {
        assert_eq!(serde_json::from_str::<Lambda>("0.95").unwrap(), Lambda::Fixed(0.95));
        assert_eq!(serde_json::from_str::<Lambda>(r#"{"adaptive":1.5}"#).unwrap(), Lambda::Adaptive { adaptive: 1.5 });
    }
}
