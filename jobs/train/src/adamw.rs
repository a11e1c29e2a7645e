//! AdamW with decoupled weight decay and bias correction (Loshchilov & Hutter 2019, algorithm 2; Kingma & Ba 2015).
//! In: float32 parameters by name and their gradients. Out: parameters changed in place.
//! Must hold: the whole state can be saved and loaded, because tch can save none of its optimizers'.

use std::path::Path;

use tch::{Device, Tensor};

use crate::error::{Result, TrainError};
use crate::tensor_file;

/// The numbers of one step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdamWConfig {
    /// β1, β2.
    pub betas: (f64, f64),
    /// ε, added to √v̂.
    pub eps: f64,
    /// Decoupled decay: θ ← θ − lr·decay·θ.
    pub weight_decay: f64,
}

/// Moments of every parameter, in the parameters' order, and the number of steps taken.
#[derive(Debug)]
pub struct AdamW {
    config: AdamWConfig,
    names: Vec<String>,
    first: Vec<Tensor>,
    second: Vec<Tensor>,
    steps: u64,
}

impl AdamW {
    /// Zero moments for these parameters.
    pub fn new(parameters: &[(String, Tensor)], config: AdamWConfig) -> AdamW {
        let zeros = || parameters.iter().map(|(_, p)| p.detach().zeros_like()).collect();
        AdamW {
            config,
            names: parameters.iter().map(|(n, _)| n.clone()).collect(),
            first: zeros(),
            second: zeros(),
            steps: 0,
        }
    }

    /// Steps taken so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// One step at learning rate `lr`. `gradients` has the parameters' order and kind float32; `None` is a parameter that
    /// took no part in the loss and stays as it is.
    pub fn step(&mut self, parameters: &[(String, Tensor)], gradients: &[Option<Tensor>], lr: f64) {
        assert!(parameters.len() == self.names.len() && gradients.len() == self.names.len(), "parameters changed");
        self.steps += 1;
        tch::no_grad(|| {
            for (at, (_, parameter)) in parameters.iter().enumerate() {
                if let Some(gradient) = &gradients[at] {
                    self.update(at, parameter, gradient, lr);
                }
            }
        });
    }

    /// m ← m + (1−β1)(g − m); v ← v + (1−β2)(g² − v); θ ← θ(1 − lr·decay) − lr · m̂ / (√v̂ + ε).
    fn update(&mut self, at: usize, parameter: &Tensor, gradient: &Tensor, lr: f64) {
        let AdamWConfig { betas: (beta1, beta2), eps, weight_decay } = self.config;
        let power = self.steps.min(i32::MAX as u64) as i32;
        let (correct1, correct2) = (1.0 - beta1.powi(power), 1.0 - beta2.powi(power));
        let (first, second) = (&mut self.first[at], &mut self.second[at]);
        let _ = first.lerp_(gradient, 1.0 - beta1);
        let _ = second.lerp_(&gradient.square(), 1.0 - beta2);
        let mut denominator = second.sqrt();
        let _ = denominator.g_mul_scalar_(correct2.sqrt().recip());
        let _ = denominator.g_add_scalar_(eps);
        let mut change = &*first / denominator;
        let _ = change.g_mul_scalar_(lr / correct1);
        let mut parameter = parameter.detach(); // shares the storage, leaves the graph
        if weight_decay != 0.0 {
            let _ = parameter.g_mul_scalar_(1.0 - lr * weight_decay);
        }
        let _ = parameter.g_sub_(&change);
    }

    /// Writes moments and step count; the same state gives the same bytes.
    pub fn save(&self, path: &Path) -> Result<()> {
        let steps = Tensor::from_slice(&split(self.steps));
        let moments = |kind: &'static str, of| self.names.iter().map(move |n| format!("{kind}.{n}")).zip(of);
        let all = moments("m", &self.first).chain(moments("v", &self.second)).chain([("steps".to_owned(), &steps)]);
        tensor_file::write(path, all)
    }

    /// Reads what `save` wrote, for these parameters.
    pub fn load(path: &Path, parameters: &[(String, Tensor)], config: AdamWConfig, device: Device) -> Result<AdamW> {
        let mut found = tensor_file::read(path, device)?;
        let mut moments = |kind: &str| -> Result<Vec<Tensor>> {
            parameters
                .iter()
                .map(|(n, p)| tensor_file::take(&mut found, path, &format!("{kind}.{n}"), &p.size()))
                .collect()
        };
        let (first, second) = (moments("m")?, moments("v")?);
        let steps = tensor_file::take(&mut found, path, "steps", &[4])?;
        if let Some(extra) = found.keys().min() {
            return Err(TrainError::checkpoint(path, format!("has {extra}, which the model has not")));
        }
        let steps = join(&Vec::<f32>::try_from(steps.to_device(Device::Cpu)).unwrap_or_default());
        Ok(AdamW { config, names: parameters.iter().map(|(n, _)| n.clone()).collect(), first, second, steps })
    }
}

/// A count as four 16-bit words, each exact in float32.
fn split(count: u64) -> [f32; 4] {
    std::array::from_fn(|word| (count >> (16 * word) & 0xFFFF) as f32)
}

fn join(words: &[f32]) -> u64 {
    words.iter().enumerate().map(|(at, &word)| (word as u64) << (16 * at)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: AdamWConfig = AdamWConfig { betas: (0.9, 0.99), eps: 1e-8, weight_decay: 0.1 };

    fn parameters(values: &[f32]) -> Vec<(String, Tensor)> {
        vec![("w".to_owned(), Tensor::from_slice(values).set_requires_grad(true))]
    }

    fn gradient(values: &[f32]) -> [Option<Tensor>; 1] {
        [Some(Tensor::from_slice(values))]
    }

    fn values(parameters: &[(String, Tensor)]) -> Vec<f32> {
        Vec::try_from(parameters[0].1.detach()).unwrap()
    }

    /// Algorithm 2 of the paper by hand, θ₀ = 1, lr = .1, decay .1, β = (.9, .99):
    /// step 1, g = .5: m̂ = .5, v̂ = .25, θ = 1·.99 − .1·1 = .89.
    /// step 2, g = −1: m = .9·.05 − .1 = −.055, m̂ = −.055/.19 = −.2894737; v = .99·.0025 + .01 = .012475,
    /// v̂ = .012475/.0199 = .6268844, √ = .7917603; θ = .89·.99 + .1·.2894737/.7917603 = .8811 + .0365608 = .9176608.
    #[test]
    fn two_steps_by_hand() {
        let p = parameters(&[1.0]);
        let mut adamw = AdamW::new(&p, CONFIG);
        adamw.step(&p, &gradient(&[0.5]), 0.1);
        assert!((values(&p)[0] - 0.89).abs() < 1e-6, "{:?}", values(&p));
        adamw.step(&p, &gradient(&[-1.0]), 0.1);
        assert!((values(&p)[0] - 0.917_660_8).abs() < 1e-6, "{:?}", values(&p));
        // The broken control: decay inside the gradient (Adam with L2) would give .9 after step 1.
        assert!((values(&p)[0] - 0.9).abs() > 1e-3);
    }

    #[test]
    fn no_gradient_no_change_and_zero_rate_no_change() {
        let p = parameters(&[1.0, -2.0]);
        let mut adamw = AdamW::new(&p, CONFIG);
        adamw.step(&p, &[None], 0.1);
        adamw.step(&p, &gradient(&[3.0, 4.0]), 0.0);
        assert_eq!(values(&p), [1.0, -2.0]);
        assert!(p[0].1.requires_grad());
    }

    #[test]
    fn a_loaded_state_goes_on_to_the_same_bits() {
        let (dir, steps) = (tempfile::tempdir().unwrap(), [[0.5f32, -1.0], [0.1, 0.2], [-0.3, 4.0]]);
        let path = dir.path().join("o.safetensors");
        let (whole, halves) = (parameters(&[1.0, 2.0]), parameters(&[1.0, 2.0]));
        let (mut a, mut b) = (AdamW::new(&whole, CONFIG), AdamW::new(&halves, CONFIG));
        for g in &steps {
            a.step(&whole, &gradient(g), 0.01);
            b.step(&halves, &gradient(g), 0.01);
            b.save(&path).unwrap();
            b = AdamW::load(&path, &halves, CONFIG, Device::Cpu).unwrap();
        }
        assert_eq!(values(&whole), values(&halves));
        assert_eq!(b.steps(), 3);
        let bytes = std::fs::read(&path).unwrap();
        a.save(&path).unwrap();
        assert_eq!(bytes, std::fs::read(&path).unwrap());
    }

    #[test]
    fn a_foreign_state_is_refused() {
        let (dir, p) = (tempfile::tempdir().unwrap(), parameters(&[1.0, 2.0]));
        let path = dir.path().join("o.safetensors");
        AdamW::new(&p, CONFIG).save(&path).unwrap();
        let shorter = parameters(&[1.0]);
        assert!(AdamW::load(&path, &shorter, CONFIG, Device::Cpu).unwrap_err().to_string().contains("m.w is [2]"));
        let other = vec![("x".to_owned(), p[0].1.shallow_clone())];
        assert!(AdamW::load(&path, &other, CONFIG, Device::Cpu).unwrap_err().to_string().contains("lacks m.x"));
    }

    #[test]
    fn counts_survive_their_float_words() {
        for count in [0, 1, 65_535, 65_536, u64::MAX - 1] {
            assert_eq!(join(&split(count)), count);
        }
    }
}
