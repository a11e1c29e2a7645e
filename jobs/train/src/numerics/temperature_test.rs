//! Row 19 of the numerics table: the logits are divided by the temperature, for policy, reference and entropy alike, and
//! what the trainer computes is what the sampler recorded.

use rollmill_model::{Decoder, ModelConfig, sampling, token_log_probs};
use tch::{Device, Kind, Tensor};

#[test] // the control at another temperature must differ
fn trainer_and_sampler_agree_at_the_temperature() {
    let decoder = Decoder::random(ModelConfig::tiny(11), 5);
    let ids = Tensor::from_slice(&[1i64, 4, 2, 9, 3]).unsqueeze(0);
    let positions = Tensor::arange(5, (Kind::Int64, Device::Cpu)).unsqueeze(0);
    let hidden = decoder.hidden(&ids, &positions, None).squeeze_dim(0);
    let logits = decoder.logits(&hidden);
    for temperature in [0.5, 1.0, 1.7] {
        let drawn: Vec<sampling::Sampled> = (0..5)
            .map(|at| {
                let row = Vec::<f32>::try_from(logits.get(at)).unwrap();
                sampling::sample(&row, temperature, 1.0, sampling::uniform(9, at as u64))
            })
            .collect();
        let targets = Tensor::from_slice(&drawn.iter().map(|d| i64::from(d.token)).collect::<Vec<_>>());
        let (log_probs, entropy) = token_log_probs(&decoder, &hidden, &targets, temperature, 2);
        let (control, _) = token_log_probs(&decoder, &hidden, &targets, temperature + 0.3, 2);
        let all = (&logits / temperature).log_softmax(-1, Kind::Double);
        let by_hand = -(all.exp() * &all).sum_dim_intlist([-1i64].as_slice(), false, Kind::Double);
        for (at, draw) in drawn.iter().enumerate() {
            let at = at as i64;
            assert!((log_probs.double_value(&[at]) - f64::from(draw.log_prob)).abs() < 1e-5);
            assert!((control.double_value(&[at]) - f64::from(draw.log_prob)).abs() > 1e-4);
            assert!((entropy.double_value(&[at]) - by_hand.double_value(&[at])).abs() < 1e-5);
        }
    }
}
