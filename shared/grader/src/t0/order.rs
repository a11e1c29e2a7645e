//! The order of calls and their tickets, from a seed. Nothing secret: it spoils solutions that count calls, and replays.

use super::T0Options;
use sha2::{Digest, Sha256};

/// Indices of cases in the order in which they are called.
pub(super) fn order(cases: usize, opts: &T0Options) -> Vec<usize> {
    if opts.shuffle {
        return shuffled(cases, opts.repeat, opts.seed);
    }
    (0..opts.repeat.max(1)).flat_map(|_| 0..cases).collect()
}

/// Each of `cases` indices `repeat` times, shuffled (Fisher–Yates over a counter-based hash).
fn shuffled(cases: usize, repeat: u32, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..repeat.max(1)).flat_map(|_| 0..cases).collect();
    for i in (1..order.len()).rev() {
        let j = draw(seed, "order", i as u64) % (i as u64 + 1);
        order.swap(i, j as usize);
    }
    order
}

/// The sequence number of the n-th request, below 2^53 so that any JSON reader keeps it.
pub(crate) fn ticket(seed: u64, n: u64) -> u64 {
    draw(seed, "ticket", n) >> 11
}

fn draw(seed: u64, purpose: &str, n: u64) -> u64 {
    let digest =
        Sha256::new().chain_update(seed.to_le_bytes()).chain_update(purpose).chain_update(n.to_le_bytes()).finalize();
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    u64::from_le_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permutation_that_depends_on_the_seed() {
        let order = shuffled(20, 2, 1);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..20).flat_map(|i| [i, i]).collect::<Vec<_>>());
        assert_eq!(order, shuffled(20, 2, 1));
        assert_ne!(order, shuffled(20, 2, 2));
        assert_eq!(shuffled(3, 0, 1).len(), 3);
        assert!(shuffled(0, 5, 1).is_empty());
        assert!((0..100).all(|n| ticket(7, n) < 1 << 53 && ticket(7, n) != ticket(7, n + 1)));
    }
}
