//! From what tests and checks measured to one number. Pure functions.
//!
//! What must hold: every result is finite and in [0, 1], whatever goes in; under the pure preset, code that does not
//! compile, or passes tests A without holding tests B, earns nothing.

use serde::{Deserialize, Serialize};

/// Which formula is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// The pass rate of tests A, if the code compiles and tests B hold; otherwise 0.
    #[default]
    Pure,
    /// A weighted sum that also pays for code that compiles and for style: for small models. It pays for failing code.
    Shaped,
}

/// The formula and its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RewardConfig {
    /// Which formula.
    pub preset: Preset,
    /// The pass rate of tests B from which tests A count (pure).
    pub b_min: f64,
    /// Weight of code that compiles (shaped).
    pub w_compile: f64,
    /// Weight of the pass rate (shaped).
    pub w_tests: f64,
    /// Weight of style (shaped).
    pub w_style: f64,
}

impl Default for RewardConfig {
    fn default() -> RewardConfig {
        RewardConfig { preset: Preset::Pure, b_min: 1.0, w_compile: 0.1, w_tests: 0.8, w_style: 0.1 }
    }
}

/// What was measured of one solution, each in [0, 1].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Components {
    /// 1 if the code compiles.
    pub compiles: f64,
    /// Pass rate of tests A.
    pub tests_a: f64,
    /// Pass rate of the independent tests B, where there are any.
    pub tests_b: Option<f64>,
    /// See [`crate::style::style`].
    pub style: f64,
}

/// A configuration that cannot work: stop the run, its author must mend it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("reward.{field} is {value}: {want}")]
pub struct BadRewardConfig {
    /// The field.
    pub field: &'static str,
    /// Its value.
    pub value: f64,
    /// What it should be.
    pub want: &'static str,
}

impl RewardConfig {
    /// Refuses numbers outside [0, 1] and weights that do not sum to 1.
    pub fn check(&self) -> Result<(), BadRewardConfig> {
        let fields = [
            ("b_min", self.b_min),
            ("w_compile", self.w_compile),
            ("w_tests", self.w_tests),
            ("w_style", self.w_style),
        ];
        for (field, value) in fields {
            if !(0.0..=1.0).contains(&value) {
                return Err(BadRewardConfig { field, value, want: "give a number from 0 to 1" });
            }
        }
        let sum = self.w_compile + self.w_tests + self.w_style;
        if (sum - 1.0).abs() > 1e-9 {
            return Err(BadRewardConfig { field: "w_*", value: sum, want: "the three weights must sum to 1" });
        }
        Ok(())
    }

    /// Whether a solution that passes no test can earn something.
    pub fn pays_for_failing_code(&self) -> bool {
        self.preset == Preset::Shaped && (clean(self.w_compile) > 0.0 || clean(self.w_style) > 0.0)
    }

    /// The reward.
    pub fn total(&self, measured: &Components) -> f64 {
        let compiles = clean(measured.compiles);
        let tests_a = clean(measured.tests_a);
        let tests_b = measured.tests_b.map(clean);
        let total = match self.preset {
            Preset::Pure if compiles <= 0.0 => 0.0,
            Preset::Pure => match tests_b {
                // A floor that is no number lets nothing pass, rather than everything.
                Some(rate) if self.b_min.is_nan() || rate < self.b_min => 0.0,
                _ => tests_a,
            },
            Preset::Shaped => {
                let style = if compiles > 0.0 { clean(measured.style) } else { 0.0 };
                clean(self.w_compile) * compiles
                    + clean(self.w_tests) * tests_b.map_or(tests_a, |b| b.min(tests_a))
                    + clean(self.w_style) * style
            }
        };
        clean(total)
    }
}

/// The pass rate of a suite; an empty one passes nothing.
pub fn pass_rate(passed: u32, total: u32) -> f64 {
    if total == 0 { 0.0 } else { clean(f64::from(passed) / f64::from(total)) }
}

/// In [0, 1]; NaN is 0.
fn clean(x: f64) -> f64 {
    if x.is_nan() { 0.0 } else { x.clamp(0.0, 1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn measured(compiles: f64, tests_a: f64, tests_b: Option<f64>, style: f64) -> Components {
        Components { compiles, tests_a, tests_b, style }
    }

    #[test]
    fn pure() {
        let config = RewardConfig::default();
        for (components, want) in [
            (measured(1.0, 0.5, None, 1.0), 0.5),
            (measured(0.0, 1.0, Some(1.0), 1.0), 0.0),
            (measured(1.0, 1.0, Some(0.99), 1.0), 0.0),
            (measured(1.0, 0.75, Some(1.0), 0.0), 0.75),
            (measured(1.0, 0.0, None, 1.0), 0.0),
        ] {
            assert_eq!(config.total(&components), want, "{components:?}");
        }
        assert!(!config.pays_for_failing_code());
        let lenient = RewardConfig { b_min: 0.5, ..config };
        assert_eq!(lenient.total(&measured(1.0, 1.0, Some(0.5), 0.0)), 1.0);
        let broken = RewardConfig { b_min: f64::NAN, ..config };
        assert_eq!(broken.total(&measured(1.0, 1.0, Some(1.0), 0.0)), 0.0);
    }

    #[test]
    fn shaped() {
        let config = RewardConfig { preset: Preset::Shaped, ..RewardConfig::default() };
        assert!(config.pays_for_failing_code());
        assert!((config.total(&measured(1.0, 1.0, Some(0.5), 1.0)) - 0.6).abs() < 1e-12);
        assert_eq!(config.total(&measured(0.0, 0.0, None, 1.0)), 0.0);
        assert!((config.total(&measured(1.0, 0.0, None, 1.0)) - 0.2).abs() < 1e-12);
        let tests_only = RewardConfig { w_compile: 0.0, w_style: 0.0, w_tests: 1.0, ..config };
        assert!(!tests_only.pays_for_failing_code());
    }

    #[test]
    fn config_is_checked() {
        assert!(RewardConfig::default().check().is_ok());
        assert_eq!(RewardConfig { b_min: 1.5, ..Default::default() }.check().unwrap_err().field, "b_min");
        assert_eq!(RewardConfig { w_style: f64::NAN, ..Default::default() }.check().unwrap_err().field, "w_style");
        assert_eq!(RewardConfig { w_style: 0.5, ..Default::default() }.check().unwrap_err().field, "w_*");
        assert_eq!(pass_rate(0, 0), 0.0);
        assert_eq!(pass_rate(3, 2), 1.0);
    }

    proptest! {
        #[test]
        fn always_finite_and_in_range(n in prop::array::uniform8(any::<f64>()), b in any::<bool>(), shaped in any::<bool>()) {
            let preset = if shaped { Preset::Shaped } else { Preset::Pure };
            let config = RewardConfig { preset, b_min: n[0], w_compile: n[1], w_tests: n[2], w_style: n[3] };
            let total = config.total(&measured(n[4], n[5], b.then_some(n[6]), n[7]));
            prop_assert!((0.0..=1.0).contains(&total));
        }
    }
}
