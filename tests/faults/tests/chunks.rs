//! A shard of ten thousand items dies late; the next worker reads footers and does only what is left.
#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

use rollmill_faults::actors::{self, Worker};
use rollmill_faults::{Ending, Fault, Line, World, drive, facts, simulate};
use rollmill_job::{Outcome, Run};
use std::sync::Arc;

#[test]
fn ten_thousand_finished_items_are_resumed_from_footers() {
    const ITEMS: usize = 10_000;
    const CHUNK: usize = 16;
    /// Calls before the first chunk, see `a_life_is_a_fixed_sequence_of_calls`; then one a chunk.
    const BEFORE: usize = 7;
    const CHUNKS: usize = 600;
    simulate(async {
        let world = Arc::new(World::default());
        Run::create(Line::new(&world, None), &actors::config(), None).await.unwrap();
        let worker = |attempt| Worker { items: ITEMS, shard_size: ITEMS, chunk_items: CHUNK, ..Worker::new(attempt) };
        let line = Line::new(&world, Some((BEFORE + CHUNKS, Fault::CrashBefore)));
        let dead = drive(&line, worker(1).live(line.clone()), async {}).await;
        assert!(matches!(dead, Ending::Crashed));
        // Its attempt is known, so its last chunk is too: one that was finished and not saved is all it lost.
        let line = Line::new(&world, None);
        let lived = worker(2).live(line.clone()).await;
        assert!(matches!(lived.outcome, Ok(Outcome::Complete)), "{:?}", lived.outcome);
        assert_eq!(lived.finished.len(), ITEMS - CHUNKS * CHUNK, "saved items are not done again");
        let calls = line.calls();
        let first = calls.iter().position(|c| c.op == "create" && c.key.contains("/chunks/")).unwrap();
        let reads = calls[..first].iter().filter(|c| c.op == "get" && c.key.contains("/chunks/")).count();
        let lists = calls[..first].iter().filter(|c| c.op == "list" && c.key.contains("/chunks/")).count();
        assert_eq!((reads, lists), (CHUNKS, 1), "each chunk is read once before the first item");
        // Compaction reads each chunk again, once for every group of rows that needs it.
        let again = calls[first..].iter().filter(|c| c.op == "get" && c.key.contains("/chunks/")).count();
        assert!((CHUNKS..CHUNKS + ITEMS.div_ceil(rollmill_schema::ROW_GROUP)).contains(&again), "{again}");
        let read = actors::read(Line::new(&world, None), 3).await.unwrap();
        assert_eq!(read, actors::draft(ITEMS, ITEMS).keys, "in the order of the plan");
        let found = facts::judge(&world, &[lived], vec![read]).await;
        assert!(found.is_empty(), "{found:#?}");
    });
}
