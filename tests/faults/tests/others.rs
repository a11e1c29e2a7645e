//! The same enumeration for those beside the workers: the reader that seals, the trainer that commits, `gc`.
#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

use rollmill_faults::actors::{self, Worker};
use rollmill_faults::drive::settle;
use rollmill_faults::line::Call;
use rollmill_faults::{Ending, Fault, Line, World, drive, facts, simulate};
use rollmill_job::{JobError, Outcome, Run, WorkerOptions, checkpoint, work};
use rollmill_store::{Blobs, Key};
use std::sync::Arc;

const CRASHES: [Fault; 4] =
    [Fault::CrashBefore, Fault::CrashAfter, Fault::CrashLandsLater(1), Fault::CrashLandsLater(3600)];
const FAILURES: [Fault; 5] =
    [Fault::FailsBefore, Fault::FailsAfter, Fault::Conflict, Fault::LandsLater(1), Fault::LandsLater(3600)];
const FREEZES: [Fault; 2] = [Fault::SuspendBefore, Fault::SuspendAfter];

async fn world() -> Arc<World> {
    let world = Arc::new(World::default());
    Run::create(Line::new(&world, None), &actors::config(), None).await.unwrap();
    world
}

/// A stage whose parts are there and which nobody sealed: what an array of single-shard workers leaves.
async fn unsealed() -> Arc<World> {
    let world = world().await;
    let run = actors::open(Line::new(&world, None), 7, 0.0).await.unwrap();
    let plan = rollmill_job::Plan::ensure(&run, &actors::stage(), actors::draft(3, 1)).await.unwrap();
    for shard in 0..3 {
        let only = WorkerOptions { shard: Some(shard), no_wait: true, ..WorkerOptions::default() };
        let toy = actors::Toy::default();
        assert_eq!(work(&run, &actors::stage(), &plan, &toy, only).await.unwrap(), Outcome::Complete);
    }
    world
}

fn calls_of<F: Future>(actor: impl FnOnce(Arc<Line>) -> F, world: Arc<World>) -> impl Future<Output = Vec<Call>> {
    let line = Line::new(&world, None);
    let done = actor(line.clone());
    async move {
        done.await;
        line.calls()
    }
}

async fn holds(case: &str, world: &World, reads: Vec<Vec<String>>) {
    let found = facts::judge(world, &[], reads).await;
    assert!(found.is_empty(), "{case}: {found:#?}");
}

#[test]
fn a_reader_that_seals_meets_every_fault_and_every_rival() {
    let want = actors::draft(3, 1).keys;
    let calls = simulate(async { calls_of(|line| actors::read(line, 1), unsealed().await).await });
    let mut cases = 0;
    for (k, call) in calls.iter().enumerate() {
        for fault in CRASHES.into_iter().chain(FAILURES).chain(FREEZES) {
            cases += 1;
            simulate(async {
                let case = format!("reader, call {k} ({} {}) {fault:?}", call.op, call.key);
                let world = unsealed().await;
                let line = Line::new(&world, Some((k, fault)));
                let rival = async {
                    assert_eq!(actors::read(Line::new(&world, None), 2).await.unwrap(), want, "{case}");
                    actors::collect(Line::new(&world, None), 3).await.unwrap();
                };
                let ending = drive(&line, actors::read(line.clone(), 1), rival).await;
                if let Ending::Returned(read) = ending {
                    match read {
                        Ok(keys) => assert_eq!(keys, want, "{case}"),
                        Err(JobError::Store(e)) => assert!(e.is_transient(), "{case}: {e}"),
                        Err(e) => panic!("{case}: {e}"),
                    }
                }
                settle().await;
                let read = actors::read(Line::new(&world, None), 4).await.unwrap();
                assert_eq!(read, want, "{case}");
                holds(&case, &world, vec![read]).await;
            });
        }
    }
    println!("sealing readers: {cases} cases");
}

#[test]
fn a_trainers_commit_meets_every_fault_and_every_rival() {
    let calls = simulate(async { calls_of(|line| actors::train(line, 1, 1, 3, true), world().await).await });
    let mut cases = 0;
    for (k, call) in calls.iter().enumerate() {
        for fault in CRASHES.into_iter().chain(FAILURES).chain(FREEZES) {
            cases += 1;
            simulate(async {
                let case = format!("trainer, call {k} ({} {}) {fault:?}", call.op, call.key);
                let world = world().await;
                let line = Line::new(&world, Some((k, fault)));
                let mut winner = None;
                let rival = async {
                    winner = Some(actors::train(Line::new(&world, None), 2, 1, 3, true).await.unwrap_err_or_attempt());
                    actors::collect(Line::new(&world, None), 3).await.unwrap();
                };
                let first = match drive(&line, actors::train(line.clone(), 1, 1, 3, true), rival).await {
                    Ending::Returned(done) => Some(done),
                    Ending::Crashed => None,
                };
                settle().await;
                // Both cannot believe that they committed.
                if let (Some(Ok(mine)), Some(Ok(other))) = (&first, &winner) {
                    panic!("{case}: {} and {other} both committed", mine.attempt);
                }
                if let Some(Err(e)) = &first {
                    let excusable =
                        matches!(e, JobError::Fenced { .. }) || matches!(e, JobError::Store(s) if s.is_transient());
                    assert!(excusable, "{case}: {e}");
                }
                let _ = actors::train(Line::new(&world, None), 4, 1, 3, true).await;
                let run = actors::open(Line::new(&world, None), 5, 0.0).await.unwrap();
                let last = checkpoint::last_of_round(&run, 1).await.unwrap().expect("some trainer committed");
                if let Some(Ok(mine)) = &first {
                    assert_eq!(mine.attempt, last.attempt, "{case}: it was told that it had committed");
                }
                let folder = tempfile::tempdir().unwrap();
                checkpoint::fetch(&run, &last, |_| true, folder.path()).await.unwrap_or_else(|e| panic!("{case}: {e}"));
                holds(&case, &world, vec![]).await;
            });
        }
    }
    println!("checkpoint commits: {cases} cases");
}

/// What a rival's commit came to: who, or why not.
trait Told {
    fn unwrap_err_or_attempt(self) -> Result<String, String>;
}

impl Told for Result<checkpoint::Manifest, JobError> {
    fn unwrap_err_or_attempt(self) -> Result<String, String> {
        match self {
            Ok(manifest) => Ok(manifest.attempt),
            Err(JobError::Fenced { what }) => Err(what),
            Err(e) => panic!("a rival ended with {e}"),
        }
    }
}

/// A sealed stage with chunks, terms and rounds of checkpoints, a loser's files among them.
async fn littered() -> Arc<World> {
    let world = world().await;
    let line = || Line::new(&world, None);
    assert!(matches!(Worker::new(1).live(line()).await.outcome, Ok(Outcome::Complete)));
    for (attempt, round, step, last) in
        [(10, 0, 0, true), (11, 1, 2, false), (11, 1, 4, true), (12, 2, 4, true), (13, 3, 4, true)]
    {
        actors::train(line(), attempt, round, step, last).await.unwrap();
    }
    let lost = actors::train(line(), 14, 1, 4, true).await.unwrap_err();
    assert!(matches!(lost, JobError::Fenced { .. }));
    world
}

#[test]
fn gc_meets_every_fault_and_removes_what_may_go_and_nothing_else() {
    let calls = simulate(async { calls_of(|line| actors::collect(line, 1), littered().await).await });
    let mut cases = 0;
    for (k, call) in calls.iter().enumerate() {
        for fault in CRASHES.into_iter().chain(FAILURES).chain(FREEZES) {
            cases += 1;
            simulate(async {
                let case = format!("gc, call {k} ({} {}) {fault:?}", call.op, call.key);
                let world = littered().await;
                let line = Line::new(&world, Some((k, fault)));
                let rival = async {
                    actors::collect(Line::new(&world, None), 2).await.unwrap();
                };
                drive(&line, actors::collect(line.clone(), 1), rival).await;
                settle().await;
                actors::collect(Line::new(&world, None), 3).await.unwrap();
                let left: Vec<String> =
                    world.contents().await.unwrap().iter().map(|(e, _)| e.key.to_string()).collect();
                let some = |part: &str| left.iter().any(|k| k.contains(part));
                // Chunks, terms, the loser's files, the passed and the retired checkpoints are gone ...
                for gone in [
                    "/chunks/",
                    "/leases/",
                    &format!("{:032x}/", 14),
                    "checkpoints/round-0001/",
                    "checkpoints/round-0002/",
                ] {
                    let kept: Vec<_> =
                        left.iter().filter(|k| k.contains(gone) && !k.starts_with("control/checkpoints/")).collect();
                    assert!(kept.is_empty(), "{case}: {kept:?} stayed");
                }
                // ... and the base model, the newest one, all manifests and records are there.
                for kept in [
                    "checkpoints/round-0000/",
                    "checkpoints/round-0003/",
                    "plan.json",
                    "sealed.json",
                    "control/checkpoints/round-0001/",
                ] {
                    assert!(some(kept), "{case}: {kept} is gone");
                }
                let read = actors::read(Line::new(&world, None), 4).await.unwrap();
                assert_eq!(read, actors::draft(3, 3).keys, "{case}");
                holds(&case, &world, vec![read]).await;
            });
        }
    }
    println!("gc: {cases} cases");
}

/// The control: a `gc` that takes a sealed stage's plan too. A planner that was frozen before its create wins the name again.
#[test]
fn a_gc_that_deletes_a_plan_fails_the_suite() {
    let stage = actors::stage();
    let calls = simulate(async {
        let line = Line::new(&world().await, None);
        Worker::new(1).live(line.clone()).await;
        line.calls()
    });
    let k = calls.iter().position(|c| c.op == "create" && c.key.ends_with("plan.json")).unwrap();
    let found = simulate(async {
        let world = world().await;
        let line = Line::new(&world, Some((k, Fault::SuspendBefore)));
        let rival = async {
            assert!(matches!(Worker::new(2).live(Line::new(&world, None)).await.outcome, Ok(Outcome::Complete)));
            Line::new(&world, None)
                .delete(&Key::new(format!("control/{}/plan.json", stage.name())).unwrap())
                .await
                .unwrap();
        };
        drive(&line, Worker::new(1).live(line.clone()), rival).await;
        facts::judge(&world, &[], vec![]).await
    });
    println!("a gc that deletes a plan: {found:#?}");
    assert!(found.iter().any(|v| v.contains("a part of another plan")), "{found:#?}");
    assert!(found.iter().any(|v| v.contains("was removed")), "{found:#?}");
}
