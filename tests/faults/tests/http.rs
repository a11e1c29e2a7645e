//! The same below `object_store`: every request of a worker's life is answered wrongly, in every way.
#![allow(clippy::unwrap_used)] // helpers of tests, which clippy does not see as tests

use rollmill_faults::actors::{self, Worker};
use rollmill_faults::s3::{Connector, FAULTS, Fault, Server};
use rollmill_faults::{drive::settle, simulate};
use rollmill_job::{JobError, Outcome, Run};
use rollmill_schema::{Metric, Row, decode};
use rollmill_store::{Blobs, Key};
use std::sync::Arc;

async fn server() -> Arc<Server> {
    let server = Arc::new(Server::default());
    let store = Connector::new(&server, None).store().unwrap();
    Run::create(Arc::new(store), &actors::config(), None).await.unwrap();
    server
}

/// A life over `connector`; how it ended.
async fn live(connector: &Connector, attempt: u64) -> Result<Outcome, JobError> {
    Worker::new(attempt).live_on(Arc::new(connector.store().unwrap()), None).await.outcome
}

fn requests() -> Vec<String> {
    simulate(async {
        let connector = Connector::new(&server().await, None);
        live(&connector, 1).await.unwrap();
        connector.requests()
    })
}

#[test]
fn every_request_meets_every_wrong_answer() {
    let requests = requests();
    assert_eq!(requests, self::requests(), "two recordings of one life differ");
    let mut survived_at_once = 0;
    for (k, request) in requests.iter().enumerate() {
        for fault in FAULTS {
            simulate(async {
                let case = format!("request {k} ({request}) {fault:?}");
                let server = server().await;
                match live(&Connector::new(&server, Some((k, fault))), 1).await {
                    Ok(outcome) => {
                        assert_eq!(outcome, Outcome::Complete, "{case}");
                        survived_at_once += 1;
                    }
                    // A time-out that lands an hour later may cost the worker, never the table.
                    Err(e) => assert!(matches!(&e, JobError::Store(s) if s.is_transient()), "{case}: {e}"),
                }
                settle().await;
                assert_eq!(live(&Connector::new(&server, None), 2).await.unwrap(), Outcome::Complete, "{case}");
                let parts: Vec<_> =
                    server.objects().into_iter().filter(|(name, _)| name.starts_with("run/tables/metrics/")).collect();
                assert_eq!(parts.len(), 1, "{case}");
                let rows: Vec<String> = decode::<Metric>(&parts[0].1).unwrap().0.iter().map(Row::key).collect();
                assert_eq!(rows, actors::draft(3, 3).keys, "{case}");
            });
        }
    }
    let cases = requests.len() * FAULTS.len();
    println!("faults under object_store: {cases} cases, {survived_at_once} without ending the worker");
    assert_eq!(survived_at_once, cases, "one wrong answer must not end a worker");
}

/// A file of two parts goes up and down; every request of it is answered wrongly.
#[test]
fn every_request_of_an_upload_meets_every_wrong_answer() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("in"), dir.path().join("out"));
    let bytes: Vec<u8> = (0..17_000_000u32).map(|i| (i % 251) as u8).collect();
    std::fs::write(&from, &bytes).unwrap();
    let key = Key::new("checkpoints/round-0001/step-000001/a/model.safetensors").unwrap();
    let moved = |fault: Option<(usize, Fault)>| {
        simulate(async {
            let connector = Connector::new(&Arc::new(Server::default()), fault);
            let store = connector.store().unwrap();
            store.upload(&key, &from).await.unwrap_or_else(|e| panic!("{fault:?}: {e}"));
            store.download(&key, &to).await.unwrap_or_else(|e| panic!("{fault:?}: {e}"));
            assert!(std::fs::read(&to).unwrap() == bytes, "{fault:?}: other bytes");
            connector.requests()
        })
    };
    let requests = moved(None);
    assert_eq!(requests.len(), 5, "begin, two parts, complete, read: {requests:#?}");
    for k in 0..requests.len() {
        for fault in FAULTS {
            moved(Some((k, fault)));
        }
    }
    println!("faults under an upload: {} cases", requests.len() * FAULTS.len());
}

#[test]
fn a_store_that_stays_away_ends_the_worker_as_transient() {
    simulate(async {
        let server = server().await;
        let connector = Connector::always(&server, Fault::Status(503));
        let e = live(&connector, 1).await.unwrap_err();
        assert_eq!(rollmill_job::Exit::from(&e).code(), 75, "{e}");
        // Eight tries of one read, and full jitter between them.
        assert_eq!(connector.requests().len(), 8);
    });
}
