//! Thirty workers killed at random on a SeaweedFS server, and once the server itself.

use rollmill_chaos::campaign::{self, Settings};
use rollmill_chaos::place::Kind;
use rollmill_chaos::weed;
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
async fn workers_and_the_server_are_killed_and_nothing_is_lost_or_doubled() {
    if weed::program().is_none() {
        return rollmill_e2e::skip("s3", "there is no weed in the cache (`make test` sets it up)").unwrap_or_default();
    }
    let settings = Settings {
        seed: 20_261_130,
        store: Kind::S3,
        kills: 30,
        freezes: 1,
        server_kills: 1,
        at_most: Duration::MAX,
        workers: 2,
        rollmill: rollmill_e2e::program("rollmill"),
        counted: env!("CARGO_BIN_EXE_rollmill-chaos").into(),
        project: rollmill_e2e::project(),
        trajectories: None,
        tasks: 6,
    };
    let tally = campaign::run(&settings).await.unwrap();
    assert!(tally.findings.is_empty(), "seed {}\n{tally}", settings.seed);
    assert!(tally.kills >= 30 && tally.frozen >= 1 && tally.server_kills >= 1, "{tally}");
    assert_eq!(tally.rows, tally.items, "{tally}");
}
