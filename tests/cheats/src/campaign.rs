//! Many items on a few threads, results in the order of the items; on standard error, how far it is.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Applies `work` to every item; stops handing out items at the first error.
pub fn each<T: Sync, R: Send, E: Send>(
    items: &[T],
    threads: usize,
    work: impl Fn(&T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Result<R, E>)>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(index) else { break };
                    let result = work(item);
                    if result.is_err() {
                        next.store(items.len(), Ordering::Relaxed);
                    }
                    if (index + 1).is_multiple_of(500) {
                        eprintln!("{} of {}", index + 1, items.len());
                    }
                    done.lock().unwrap_or_else(|e| e.into_inner()).push((index, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(|e| e.into_inner());
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

/// `n` of the items, spread over all of them, beginning at a place that follows from the seed. A sample of the whole is
/// the whole, in its order.
pub fn sample<T>(items: Vec<T>, n: Option<usize>, seed: u64) -> Vec<T> {
    let len = items.len();
    let n = n.unwrap_or(len).min(len);
    let offset = if len == 0 { 0 } else { (seed as usize).wrapping_mul(7919) % len };
    let chosen: std::collections::BTreeSet<usize> = (0..n).map(|i| (i * len / n + offset) % len).collect();
    items.into_iter().enumerate().filter(|(i, _)| chosen.contains(i)).map(|(_, item)| item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_errors() {
        let items: Vec<u32> = (0..100).collect();
        assert_eq!(each(&items, 3, |x| Ok::<u32, ()>(x * 2)).unwrap()[99], 198);
        assert_eq!(each(&items, 2, |x| if *x == 5 { Err(*x) } else { Ok(()) }), Err(5));
        assert_eq!(each(&[] as &[u32], 2, |_| Ok::<(), ()>(())), Ok(vec![]));
    }

    #[test]
    fn samples_are_spread_and_repeat() {
        let all: Vec<usize> = (0..1000).collect();
        let a = sample(all.clone(), Some(10), 3);
        assert_eq!(a.len(), 10);
        assert_eq!(a, sample(all.clone(), Some(10), 3));
        assert_ne!(a, sample(all.clone(), Some(10), 4));
        assert_eq!(sample(all.clone(), None, 3), all);
        assert_eq!(sample(all.clone(), Some(5000), 9), all);
    }
}
