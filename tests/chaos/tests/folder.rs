//! Sixty workers killed at random on a folder: no row is lost and none is there twice.

use rollmill_chaos::campaign::{self, Settings};
use rollmill_chaos::place::Kind;
use std::collections::BTreeSet;
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
async fn workers_killed_on_a_folder_lose_and_double_nothing() {
    let settings = Settings {
        seed: 20_261_129,
        store: Kind::Folder,
        kills: 60,
        freezes: 2,
        server_kills: 0,
        at_most: Duration::MAX,
        workers: 3,
        rollmill: rollmill_e2e::program("rollmill"),
        counted: env!("CARGO_BIN_EXE_rollmill-chaos").into(),
        project: rollmill_e2e::project(),
        trajectories: None,
        tasks: 8,
    };
    let tally = campaign::run(&settings).await.unwrap();
    assert!(tally.findings.is_empty(), "seed {}\n{tally}", settings.seed);
    assert!(tally.kills >= 60 && tally.frozen >= 2 && tally.rows == tally.items, "{tally}");
    let phases: BTreeSet<_> = tally.phases.keys().map(|(_, phase)| *phase).collect();
    assert!(phases.len() >= 4, "kills met few phases\n{tally}");
}
