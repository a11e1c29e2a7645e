//! Gradients of a minibatch, summed over its micro-batches in float32. In: a micro-batch's parts, by the parameter's index.
//! Out: one clipped gradient per parameter. The parts already divide by the minibatch's global count.

use tch::{Kind, Tensor};

pub(super) struct Gradients(Vec<Option<Tensor>>);

impl Gradients {
    pub(super) fn new(parameters: usize) -> Gradients {
        Gradients((0..parameters).map(|_| None).collect())
    }

    /// Adds a part of one parameter's gradient; one that autograd left undefined is none.
    pub(super) fn add(&mut self, parameter: usize, part: &Tensor) {
        if !part.defined() {
            return;
        }
        match &mut self.0[parameter] {
            // A copy: the part may be a view of something that goes on changing.
            none @ None => *none = Some(part.to_kind(Kind::Float).contiguous().copy()),
            Some(sum) => {
                let _ = sum.g_add_(part);
            }
        }
    }

    /// The 2-norm over all parameters.
    pub(super) fn norm(&self) -> f64 {
        self.0.iter().flatten().map(|g| g.norm().double_value(&[]).powi(2)).sum::<f64>().sqrt()
    }

    /// Scales to a norm of at most `bound`. Returns the gradients, in the parameters' order.
    pub(super) fn clip(mut self, norm: f64, bound: f64) -> Vec<Option<Tensor>> {
        if norm > bound {
            self.0.iter_mut().flatten().for_each(|gradient| {
                let _ = gradient.g_mul_scalar_(bound / norm);
            });
        }
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_unused_parameters_have_none_and_the_norm_is_clipped() {
        let mut gradients = Gradients::new(2);
        gradients.add(0, &Tensor::from_slice(&[6f32]));
        gradients.add(0, &Tensor::from_slice(&[2f32]));
        gradients.add(1, &Tensor::new());
        assert_eq!(gradients.norm(), 8.0);
        let clipped = gradients.clip(8.0, 1.0);
        assert_eq!(clipped[0].as_ref().unwrap().double_value(&[0]), 1.0);
        assert!(clipped[1].is_none());
    }
}
