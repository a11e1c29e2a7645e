//! Tokens per second of the model alone: prompts in, then one sampled token per sequence and step.

use std::time::Instant;

use rollmill_model::{Decoder, KvCache, SlotStep, sampling};
use tch::Device;

use crate::args::BenchArgs;

/// Prints prefill and decode rates at each batch size, and peak memory.
pub fn bench(args: &BenchArgs) -> anyhow::Result<()> {
    crate::serve::set_threads(args.threads);
    let decoder = Decoder::load(&args.model, args.dtype.kind(), Device::Cpu)?;
    for &batch in &args.batch {
        let (prefill, decode) = measure(&decoder, batch, args)?;
        println!("batch {batch}: prefill {prefill:.0} tokens/s, decode {decode:.0} tokens/s");
    }
    println!("threads {}, peak memory {} MiB", tch::get_num_threads(), crate::process::peak_memory_bytes() >> 20);
    Ok(())
}

fn measure(decoder: &Decoder, batch: usize, args: &BenchArgs) -> anyhow::Result<(f64, f64)> {
    let vocab = decoder.config.vocab_size;
    let mut cache = KvCache::new(decoder, batch, args.prompt + args.tokens + 2)?;
    let mut sequences: Vec<Vec<i64>> =
        (0..batch as i64).map(|b| (0..args.prompt as i64).map(|i| (i * 7919 + b) % vocab).collect()).collect();
    let mut row = vec![0f32; batch * vocab as usize];
    let mut step = |sequences: &mut Vec<Vec<i64>>| -> anyhow::Result<()> {
        let from = |slot: usize| cache.len(slot);
        let steps: Vec<SlotStep> =
            (0..batch).map(|slot| SlotStep { slot, tokens: &sequences[slot][from(slot)..] }).collect();
        let logits = decoder.step(&mut cache, &steps)?;
        logits.f_copy_data(&mut row, logits.numel())?;
        for (slot, logits) in row.chunks(vocab as usize).enumerate() {
            let u = sampling::uniform(slot as u64, sequences[slot].len() as u64);
            sequences[slot].push(i64::from(sampling::sample(logits, 0.8, 1.0, u).token));
        }
        Ok(())
    };
    let start = Instant::now();
    step(&mut sequences)?;
    let prefill = (batch * args.prompt) as f64 / start.elapsed().as_secs_f64();
    let start = Instant::now();
    for _ in 0..args.tokens {
        step(&mut sequences)?;
    }
    Ok((prefill, (batch * args.tokens) as f64 / start.elapsed().as_secs_f64()))
}
