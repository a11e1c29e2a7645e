//! The formulas of the trainer, one file a rule. In: numbers or flat tensors of **trainable** tokens. Out: numbers or
//! tensors of the same shape. Must hold: no state, no randomness, and every row of the project's numerics table is a
//! test beside the function it is about.

pub mod aggregate;
pub mod explained_variance;
pub mod gae;
pub mod group;
pub mod kl;
pub mod lambda;
pub mod off_policy;
pub mod policy_loss;
pub mod preference;
#[cfg(test)]
mod temperature_test;
pub mod value_loss;
pub mod whiten;

/// Compares with the 1e-5 that the numerics table promises (its values are rounded to six digits).
#[cfg(test)]
pub(crate) fn assert_close(got: &[f64], want: &[f64]) {
    assert_eq!(got.len(), want.len(), "{got:?} against {want:?}");
    for (at, (g, w)) in got.iter().zip(want).enumerate() {
        assert!((g - w).abs() < 1e-5, "element {at}: {got:?} against {want:?}");
    }
}
