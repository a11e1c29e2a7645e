//! Every call of a worker's life meets every fault; every freeze meets a rival's whole life, and every death of a rival in
//! the middle of that freeze. What must hold afterwards is in `invariants`.
#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

use rollmill_faults::actors::{self, Lived, Worker};
use rollmill_faults::broken::{Broken, Wrong};
use rollmill_faults::drive::settle;
use rollmill_faults::{Ending, Fault, Line, World, drive, facts, simulate};
use rollmill_job::{JobError, Outcome, Run};
use rollmill_store::Blobs;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Faults that end by themselves.
const SINGLE: [Fault; 9] = [
    Fault::FailsBefore,
    Fault::FailsAfter,
    Fault::Conflict,
    Fault::LandsLater(1),
    Fault::LandsLater(3600),
    Fault::CrashBefore,
    Fault::CrashAfter,
    Fault::CrashLandsLater(1),
    Fault::CrashLandsLater(3600),
];

async fn world() -> Arc<World> {
    let world = Arc::new(World::default());
    Run::create(Line::new(&world, None), &actors::config(), None).await.unwrap();
    world
}

/// A worker that meets nothing; it must finish.
async fn finishes(world: &Arc<World>, attempt: u64) -> Lived {
    let lived = Worker::new(attempt).live(Line::new(world, None)).await;
    assert!(matches!(lived.outcome, Ok(Outcome::Complete)), "a fresh worker does not finish: {:?}", lived.outcome);
    lived
}

/// Errors that a worker may end with when the store fails it.
fn excusable(lived: &Lived) -> bool {
    match &lived.outcome {
        Ok(_) => true,
        Err(JobError::Store(e)) => e.is_transient(),
        Err(_) => false,
    }
}

/// After the case: late writes land, a fresh worker and a reader finish, and everything holds.
async fn judge(case: &str, world: &Arc<World>, mut lives: Vec<Lived>) {
    settle().await;
    for lived in &lives {
        assert!(excusable(lived), "{case}: a worker ended with {:?}", lived.outcome);
    }
    lives.push(finishes(world, 99).await);
    let read = actors::read(Line::new(world, None), 98).await.unwrap_or_else(|e| panic!("{case}: {e}"));
    let found = facts::judge(world, &lives, vec![read]).await;
    assert!(found.is_empty(), "{case}: {found:#?}");
}

fn life() -> Vec<rollmill_faults::line::Call> {
    simulate(async {
        let world = world().await;
        let line = Line::new(&world, None);
        let lived = Worker::new(1).live(line.clone()).await;
        assert!(matches!(lived.outcome, Ok(Outcome::Complete)), "{:?}", lived.outcome);
        line.calls()
    })
}

#[test]
fn a_life_is_a_fixed_sequence_of_calls() {
    let (one, two) = (life(), life());
    assert_eq!(one.len(), two.len(), "two recordings of one life differ");
    for (a, b) in one.iter().zip(&two) {
        assert_eq!((a.op, &a.key), (b.op, &b.key), "two recordings of one life differ");
        // A report says how much memory the process took.
        assert!(a.sent == b.sent || a.key.contains("/reports/"), "{}: other bytes", a.key);
    }
    let creates = one.iter().filter(|c| c.op == "create").count();
    println!("a life of one shard of three items: {} store calls, {creates} of them creates", one.len());
    for call in &one {
        println!("  {:<9} {}", call.op, call.key);
    }
}

#[test]
fn every_call_meets_every_fault() {
    let calls = life();
    let mut cases = 0;
    for (k, call) in calls.iter().enumerate() {
        for fault in SINGLE {
            if call.op != "create"
                && !matches!(fault, Fault::FailsBefore | Fault::FailsAfter | Fault::CrashBefore | Fault::CrashAfter)
            {
                continue;
            }
            cases += 1;
            simulate(async {
                let world = world().await;
                let line = Line::new(&world, Some((k, fault)));
                let ending = drive(&line, Worker::new(1).live(line.clone()), async {}).await;
                let lives = match ending {
                    Ending::Returned(lived) => vec![lived],
                    Ending::Crashed => vec![],
                };
                judge(&format!("call {k} ({} {}) {fault:?}", call.op, call.key), &world, lives).await;
            });
        }
    }
    println!("single faults: {cases} cases");
}

#[test]
fn a_signal_at_every_call_drains_and_loses_nothing() {
    let calls = life();
    for k in 0..calls.len() {
        simulate(async {
            let world = world().await;
            let line = Line::new(&world, Some((k, Fault::Drain)));
            let lived = Worker::new(1).live(line).await;
            assert!(matches!(lived.outcome, Ok(Outcome::Drained | Outcome::Complete)), "call {k}: {:?}", lived.outcome);
            judge(&format!("drained at call {k}"), &world, vec![lived]).await;
        });
    }
    println!("drains: {} cases", calls.len());
}

/// A worker frozen at call `k`; meanwhile a rival does everything, and then `gc` removes what may go; then it wakes up.
#[test]
fn every_freeze_meets_a_rival_and_gc() {
    let calls = life();
    let mut cases = 0;
    for (k, call) in calls.iter().enumerate() {
        for fault in [Fault::SuspendBefore, Fault::SuspendAfter] {
            for gc in [false, true] {
                cases += 1;
                simulate(async {
                    let world = world().await;
                    let line = Line::new(&world, Some((k, fault)));
                    let mut rival = None;
                    let ending = drive(&line, Worker::new(1).live(line.clone()), async {
                        rival = Some(finishes(&world, 2).await);
                        if gc {
                            actors::collect(Line::new(&world, None), 3).await.unwrap();
                        }
                    })
                    .await;
                    let Ending::Returned(lived) = ending else { panic!("nothing kills it") };
                    let case = format!("frozen at call {k} ({} {}) {fault:?}, gc {gc}", call.op, call.key);
                    judge(&case, &world, rival.into_iter().chain([lived]).collect()).await;
                });
            }
        }
    }
    println!("freezes with a rival: {cases} cases");
}

/// A worker whose chunks are larger than its rival's: their numbers mean other items.
fn frozen() -> Worker {
    Worker { chunk_items: 2, ..Worker::new(1) }
}

/// A worker frozen at call `k`; a rival dies at its call `j`; a third finishes; the first wakes up, or wakes up to a signal.
fn pairs(k: usize, freeze: Fault, kill: Fault, drained: bool) -> usize {
    let mut cases = 0;
    for j in 0.. {
        let reached = simulate(async {
            let world = world().await;
            let line = Line::new(&world, Some((k, freeze)));
            let mut reached = false;
            let mut others = Vec::new();
            let ending = drive(&line, frozen().live(line.clone()), async {
                let rival = Line::new(&world, Some((j, kill)));
                match drive(&rival, Worker::new(2).live(rival.clone()), async {}).await {
                    // Its life was shorter than j, or the fault is not one of this call.
                    Ending::Returned(lived) => {
                        reached = rival.calls().len() > j;
                        others.push(lived);
                    }
                    Ending::Crashed => reached = true,
                }
                if drained {
                    line.drain().raise();
                } else {
                    others.push(finishes(&world, 3).await);
                }
            })
            .await;
            let Ending::Returned(lived) = ending else { panic!("nothing kills it") };
            others.push(lived);
            judge(&format!("frozen at {k} {freeze:?}, rival {kill:?} at {j}, drained {drained}"), &world, others).await;
            reached
        });
        if !reached {
            break;
        }
        cases += 1;
    }
    cases
}

#[test]
fn every_freeze_meets_every_death_of_a_rival() {
    let (mut cases, calls) = (0, life());
    for k in 0..calls.len() {
        // Frozen after call k and frozen before call k + 1 are one state of worker and store: here the second stands for both.
        for freeze in [Fault::SuspendBefore] {
            for kill in [Fault::CrashBefore, Fault::CrashAfter, Fault::CrashLandsLater(1)] {
                cases += pairs(k, freeze, kill, false) + pairs(k, freeze, kill, true);
            }
        }
    }
    println!("freezes with a rival that dies: {cases} cases");
}

/// What a wrong protocol does to the same cases: the first violation found, in words.
fn first_violation(wrong: Wrong) -> Option<String> {
    let calls = life();
    for k in (0..calls.len()).filter(|k| calls[*k].op == "create") {
        for freeze in [Fault::SuspendBefore, Fault::FailsBefore] {
            // A rival first waits until the frozen worker's lease has run out, which is some calls.
            for j in 0..2 * calls.len() {
                let found = simulate(async {
                    let world = world().await;
                    let line = Line::new(&world, Some((k, freeze)));
                    let broken =
                        |line: &Arc<Line>| -> Arc<dyn Blobs> { Arc::new(Broken { line: line.clone(), wrong }) };
                    let drain = Some(line.drain().clone());
                    let mut lives = Vec::new();
                    let ending = drive(&line, frozen().live_on(broken(&line), drain), async {
                        let rival = Line::new(&world, Some((j, Fault::CrashBefore)));
                        let life = Worker::new(2).live_on(broken(&rival), None);
                        if let Ending::Returned(lived) = drive(&rival, life, async {}).await {
                            lives.push(lived);
                        }
                        line.drain().raise();
                    })
                    .await;
                    if let Ending::Returned(lived) = ending {
                        lives.push(lived);
                    }
                    facts::judge(&world, &lives, vec![]).await.into_iter().next()
                });
                if found.is_some() {
                    return found;
                }
            }
        }
    }
    None
}

#[test]
fn wrong_protocols_fail_the_suite() {
    let mut found = BTreeMap::new();
    for wrong in [Wrong::ExistenceCheck, Wrong::ChunkWithoutRelist, Wrong::NoReadBack] {
        let violation = first_violation(wrong);
        println!("{wrong:?}: {violation:?}");
        found.insert(format!("{wrong:?}"), violation);
    }
    assert!(found.values().all(Option::is_some), "a wrong protocol passed: {found:#?}");
    assert!(found["ExistenceCheck"].as_ref().unwrap().contains("overwritten"), "{found:#?}");
    assert!(found["ChunkWithoutRelist"].as_ref().unwrap().contains("saved nowhere"), "{found:#?}");
}
