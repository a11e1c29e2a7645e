//! The real model, where `ROLLMILL_MODEL` names its folder: greedy tokens and log-probs of the cache against the full pass.
#![allow(clippy::unwrap_used)] // clippy allows it in tests, but not in their helpers

use std::path::PathBuf;

use rollmill_model::{Decoder, KvCache, SlotStep, sampling};
use tch::{Device, Kind, Tensor};

#[test]
fn greedy_batch_of_sixteen_equals_the_full_pass() {
    let Some(dir) = std::env::var_os("ROLLMILL_MODEL").map(PathBuf::from) else {
        println!("skipped: set ROLLMILL_MODEL to a hugging face folder of a llama model");
        return;
    };
    let _guard = tch::no_grad_guard();
    let decoder = Decoder::load(&dir, Kind::Float, Device::Cpu).unwrap();
    let tokenizer = tokenizers::Tokenizer::from_file(dir.join("tokenizer.json")).unwrap();
    let encode = |text: &str| -> Vec<i64> {
        tokenizer.encode(text, false).unwrap().get_ids().iter().map(|&id| id as i64).collect()
    };
    if decoder.config.vocab_size == 49152 {
        // SmolLM2's table: control tokens first
        assert_eq!(encode("<|im_start|><|im_end|>"), [1, 2]);
        let code = "def f(x):\n    return x + 12345\n";
        let ids: Vec<u32> = encode(code).iter().map(|&id| id as u32).collect();
        assert_eq!(tokenizer.decode(&ids, false).unwrap(), code);
        // digits are split one by one
        assert_eq!(encode("12345").len(), 5);
    }
    let mut sequences: Vec<Vec<i64>> = (0..16)
        .map(|i| encode(&format!("<|im_start|>user\nCount from {i} to {}, {}<|im_end|>\n", 3 * i, "please ".repeat(i))))
        .collect();
    let prompts: Vec<usize> = sequences.iter().map(Vec::len).collect();
    let mut cache = KvCache::new(&decoder, 16, 96).unwrap();
    let mut log_probs: Vec<Vec<f32>> = vec![vec![]; 16];
    for round in 0..24 {
        let steps: Vec<SlotStep> = (0..16)
            .map(|slot| SlotStep {
                slot,
                tokens: &sequences[slot][if round == 0 { 0 } else { sequences[slot].len() - 1 }..],
            })
            .collect();
        let logits = decoder.step(&mut cache, &steps).unwrap();
        for slot in 0..16 {
            let row: Vec<f32> = Vec::try_from(logits.get(slot as i64)).unwrap();
            let drawn = sampling::sample(&row, 0.0, 1.0, 0.0);
            sequences[slot].push(drawn.token as i64);
            log_probs[slot].push(drawn.log_prob);
        }
    }
    let mut worst = 0f64;
    for slot in 0..16 {
        let ids = Tensor::from_slice(&sequences[slot]).unsqueeze(0);
        let positions = Tensor::arange(sequences[slot].len() as i64, (Kind::Int64, Device::Cpu)).unsqueeze(0);
        let all = decoder.logits(&decoder.hidden(&ids, &positions, None)).squeeze_dim(0).log_softmax(-1, Kind::Float);
        for (i, &cached) in log_probs[slot].iter().enumerate() {
            let row = all.get((prompts[slot] + i) as i64 - 1);
            let token = sequences[slot][prompts[slot] + i];
            worst = worst.max((row.double_value(&[token]) - f64::from(cached)).abs());
            // greedy: nothing is more probable, but for ties within the promise
            assert!(row.max().double_value(&[]) - row.double_value(&[token]) < 1e-4);
        }
    }
    let text: Vec<u32> = sequences[3].iter().map(|&id| id as u32).collect();
    println!("worst difference {worst:.2e}; {}", tokenizer.decode(&text, false).unwrap());
    assert!(worst < 1e-4, "{worst}");
}
