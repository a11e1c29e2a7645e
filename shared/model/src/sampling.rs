//! Sampling one token from logits, and the counter-based generator behind all randomness.
//!
//! Logits and a uniform number in, a token and its log-prob out. What must hold: the log-prob is that of the
//! distribution sampled from (temperature and top-p applied); the same inputs give the same token on every machine
//! (plain multiplications and additions in a fixed order, no libm in the draw).

/// Advances per position: the golden ratio's odd 64-bit fraction, as in SplitMix64.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// Tokens summed as one block: the draw finds its block first, then walks inside it.
const BLOCK: usize = 256;

/// A drawn token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampled {
    /// Its id.
    pub token: u32,
    /// Its log-prob in the distribution sampled from; NaN where the logits were not numbers.
    pub log_prob: f32,
}

/// A number in \[0,1) with 53 random bits, from a seed and a position: output `position` of SplitMix64 (Steele, Lea and
/// Flood 2014) started at the hash of `seed`. Stateless, so a draw is the same wherever and whenever it is made.
pub fn uniform(seed: u64, position: u64) -> f64 {
    let start = mix(seed.wrapping_add(GAMMA));
    let bits = mix(start.wrapping_add(position.wrapping_add(1).wrapping_mul(GAMMA)));
    (bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// The output function of SplitMix64.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Draws a token: inverse CDF in ascending token order at `u` in \[0,1), f64 sums.
///
/// `temperature` divides the logits; 0 is greedy (lowest id of equals), with the log-prob at temperature 1. `top_p` below 1
/// keeps the fewest most probable tokens whose mass reaches it (lower id first among equals).
pub fn sample(logits: &[f32], temperature: f64, top_p: f64, u: f64) -> Sampled {
    let (best, highest) = argmax(logits);
    let weights = Weights { logits, highest, scale: if temperature > 0.0 { (1.0 / temperature) as f32 } else { 1.0 } };
    let sums: Vec<f64> = logits.chunks(BLOCK).enumerate().map(|(block, _)| weights.block_sum(block)).collect();
    let total: f64 = sums.iter().sum();
    if temperature <= 0.0 {
        return Sampled { token: best, log_prob: (-total.ln()) as f32 };
    }
    if top_p < 1.0 {
        return sample_nucleus(&weights, total, top_p, u);
    }
    let token = weights.find(&sums, u * total).unwrap_or(best);
    Sampled { token, log_prob: weights.log_prob(token, total) }
}

fn argmax(logits: &[f32]) -> (u32, f32) {
    let highest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let best = logits.iter().position(|&l| l == highest).unwrap_or(0);
    (best as u32, highest)
}

/// Unnormalised probabilities exp((logit − highest)·scale).
struct Weights<'a> {
    logits: &'a [f32],
    highest: f32,
    scale: f32,
}

impl Weights<'_> {
    /// The weights of one block; past the vocabulary's end they are 0.
    fn block(&self, block: usize) -> [f32; BLOCK] {
        let logits = &self.logits[block * BLOCK..self.logits.len().min((block + 1) * BLOCK)];
        let mut weights = [0f32; BLOCK];
        for (weight, &logit) in weights.iter_mut().zip(logits) {
            *weight = exp((logit - self.highest) * self.scale);
        }
        weights
    }

    fn block_sum(&self, block: usize) -> f64 {
        let mut lanes = [0f64; 8];
        for eight in self.block(block).chunks_exact(8) {
            for (lane, &weight) in lanes.iter_mut().zip(eight) {
                *lane += f64::from(weight);
            }
        }
        lanes.iter().sum()
    }

    /// The first token whose cumulative weight exceeds `target`; None only where nothing has weight.
    fn find(&self, sums: &[f64], target: f64) -> Option<u32> {
        let (mut below, mut chosen) = (0f64, None);
        for (block, &sum) in sums.iter().enumerate().filter(|(_, sum)| **sum > 0.0) {
            chosen = Some((block, below));
            if below + sum > target {
                break;
            }
            below += sum;
        }
        let (block, below) = chosen?;
        walk(self.block(block).into_iter().enumerate(), target - below).map(|at| (block * BLOCK + at) as u32)
    }

    fn log_prob(&self, token: u32, total: f64) -> f32 {
        (f64::from((self.logits[token as usize] - self.highest) * self.scale) - total.ln()) as f32
    }
}

/// The first index whose cumulative weight exceeds `target`; where rounding hides it, the last one with weight.
fn walk(weights: impl Iterator<Item = (usize, f32)>, target: f64) -> Option<usize> {
    let (mut sum, mut last) = (0f64, None);
    for (index, weight) in weights.filter(|(_, weight)| *weight > 0.0) {
        sum += f64::from(weight);
        last = Some(index);
        if sum > target {
            break;
        }
    }
    last
}

fn sample_nucleus(weights: &Weights<'_>, total: f64, top_p: f64, u: f64) -> Sampled {
    let kept = nucleus(weights, total, top_p.max(0.0));
    let mass: f64 = kept.iter().map(|&(_, weight)| f64::from(weight)).sum();
    let token = walk(kept.iter().copied(), u * mass).unwrap_or(0) as u32;
    Sampled { token, log_prob: weights.log_prob(token, mass) }
}

/// Tokens of the nucleus (Holtzman et al. 2020) with their weights, by ascending id.
///
/// Only tokens above total·(1−p)/V are sorted: those below weigh less than total·(1−p) together, so the others reach p.
fn nucleus(weights: &Weights<'_>, total: f64, top_p: f64) -> Vec<(usize, f32)> {
    let size = weights.logits.len();
    let floor = total * (1.0 - top_p) / size as f64;
    let mut kept: Vec<(usize, f32)> = (0..size.div_ceil(BLOCK))
        .flat_map(|block| weights.block(block).into_iter().enumerate().map(move |(at, w)| (block * BLOCK + at, w)))
        .filter(|&(index, weight)| index < size && weight > 0.0 && f64::from(weight) >= floor)
        .collect();
    kept.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let (mut mass, mut count) = (0f64, 0);
    while count < kept.len() && (count == 0 || mass < top_p * total) {
        mass += f64::from(kept[count].1);
        count += 1;
    }
    kept.truncate(count);
    kept.sort_by_key(|&(index, _)| index);
    kept
}

/// e^x for x ≤ 0 within 2e-7 relative, 0 below −87: x = (n + f)·ln 2 with |f| ≤ ½, a Taylor polynomial of degree 7 for 2^f,
/// n into the exponent's bits. Branchless, so the compiler vectorises it; NaN stays NaN.
#[inline(always)]
fn exp(x: f32) -> f32 {
    // adding 1.5·2^23 rounds to the nearest integer, which then stands in the low mantissa bits
    const ROUND: f32 = 12_582_912.0;
    let clamped = if x < -87.0 { -87.0 } else { x };
    let shifted = clamped * std::f32::consts::LOG2_E + ROUND;
    let whole = shifted - ROUND;
    // ln 2 in two parts (Cody and Waite), so that the rest is exact
    let rest = (clamped - whole * 0.693_359_4) - whole * -2.121_944_4e-4;
    let poly = 1.0 / 5040.0;
    let poly = poly * rest + 1.0 / 720.0;
    let poly = poly * rest + 1.0 / 120.0;
    let poly = poly * rest + 1.0 / 24.0;
    let poly = poly * rest + 1.0 / 6.0;
    let poly = poly * rest + 0.5;
    let poly = poly * rest + 1.0;
    let poly = poly * rest + 1.0;
    let power = f32::from_bits(shifted.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127) << 23);
    if x < -87.0 { 0.0 } else { poly * power }
}
