//! Gradients of a minibatch, summed over its micro-batches in float32. In: a micro-batch's part of the loss. Out: one
//! clipped gradient per parameter. The loss parts already divide by the minibatch's global count.

use tch::{Kind, Tensor};

pub(super) struct Gradients(Vec<Option<Tensor>>);

impl Gradients {
    pub(super) fn new(parameters: usize) -> Gradients {
        Gradients((0..parameters).map(|_| None).collect())
    }

    /// Adds the gradient of `loss`, freeing its graph.
    pub(super) fn add(&mut self, loss: &Tensor, parameters: &[Tensor]) {
        let parts = Tensor::run_backward(&[loss], parameters, false, false);
        for (sum, part) in self.0.iter_mut().zip(parts).filter(|(_, part)| part.defined()) {
            match sum {
                None => *sum = Some(part.to_kind(Kind::Float)),
                Some(sum) => {
                    let _ = sum.g_add_(&part);
                }
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
        let [x, unused] = [3.0f32, 1.0].map(|v| Tensor::from_slice(&[v]).set_requires_grad(true));
        let parameters = [x.shallow_clone(), unused];
        let mut gradients = Gradients::new(2);
        gradients.add(&x.square().sum(Kind::Float), &parameters); // 6
        gradients.add(&(&x * 2.0).sum(Kind::Float), &parameters); // 2
        assert_eq!(gradients.norm(), 8.0);
        let clipped = gradients.clip(8.0, 1.0);
        assert_eq!(clipped[0].as_ref().unwrap().double_value(&[0]), 1.0);
        assert!(clipped[1].is_none());
    }
}
