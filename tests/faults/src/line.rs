//! One actor's way to the world. It counts calls, and does to the k-th what the case says.

use crate::World;
use async_trait::async_trait;
use bytes::Bytes;
use rollmill_job::Drain;
use rollmill_store::{Blobs, Created, Entry, Key, StoreError};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// What happens to one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The connection breaks before the store heard of it.
    FailsBefore,
    /// It happened, and the answer was lost.
    FailsAfter,
    /// 409: the store says the name is taken, and nothing landed.
    Conflict,
    /// A time-out; the write lands so many seconds later.
    LandsLater(u64),
    /// The process dies before the call.
    CrashBefore,
    /// The process dies before it sees the answer.
    CrashAfter,
    /// The process dies with the write under way; it lands so many seconds later.
    CrashLandsLater(u64),
    /// The process is frozen before the call.
    SuspendBefore,
    /// The process is frozen before it sees the answer.
    SuspendAfter,
    /// A signal asks the process to leave at this moment.
    Drain,
}

impl Fault {
    /// Whether only creates can meet it.
    fn of_creates(self) -> bool {
        matches!(self, Fault::Conflict | Fault::LandsLater(_) | Fault::CrashLandsLater(_))
    }
}

/// One call, for recordings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The operation.
    pub op: &'static str,
    /// Its key or prefix.
    pub key: String,
    /// The bytes that were sent.
    pub sent: Bytes,
}

/// Whether the actor still runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It does.
    Running,
    /// It is frozen.
    Suspended,
    /// It is dead.
    Crashed,
}

/// One actor's line.
pub struct Line {
    world: Arc<World>,
    fault: Option<(usize, Fault)>,
    drain: Drain,
    calls: Mutex<Vec<Call>>,
    state: watch::Sender<State>,
    resume: Notify,
}

impl Line {
    /// A line on which call number `k` meets the fault.
    pub fn new(world: &Arc<World>, fault: Option<(usize, Fault)>) -> Arc<Line> {
        let (state, _) = watch::channel(State::Running);
        let (calls, resume) = (Mutex::new(Vec::new()), Notify::new());
        Arc::new(Line { world: world.clone(), fault, drain: Drain::default(), calls, state, resume })
    }

    // The recording stays readable whatever panicked beside it.
    fn recording(&self) -> MutexGuard<'_, Vec<Call>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was called so far.
    pub fn calls(&self) -> Vec<Call> {
        self.recording().clone()
    }

    /// The flag that asks the actor on this line to leave.
    pub fn drain(&self) -> &Drain {
        &self.drain
    }

    /// Waits until the actor is frozen or dead.
    pub async fn stopped(&self) -> State {
        let mut state = self.state.subscribe();
        let stopped = state.wait_for(|s| *s != State::Running).await.map(|s| *s);
        // The sender lives as long as self.
        stopped.unwrap_or(State::Crashed)
    }

    /// Lets a frozen actor go on.
    pub fn resume(&self) {
        self.state.send_replace(State::Running);
        self.resume.notify_one();
    }

    /// The world behind it, for broken protocols.
    pub fn world(&self) -> &Arc<World> {
        &self.world
    }

    /// Notes a call; the fault it meets.
    pub fn next(&self, op: &'static str, key: &Key, sent: Bytes) -> Option<Fault> {
        let mut calls = self.recording();
        let number = calls.len();
        calls.push(Call { op, key: key.to_string(), sent });
        let fault = self.fault.filter(|(k, _)| *k == number).map(|(_, fault)| fault);
        fault.filter(|f| op == "create" || !f.of_creates())
    }

    async fn crash(&self) -> ! {
        self.state.send_replace(State::Crashed);
        loop {
            std::future::pending::<()>().await;
        }
    }

    async fn suspend(&self) {
        self.state.send_replace(State::Suspended);
        self.resume.notified().await;
    }

    /// Does `effect` with the fault around it.
    pub async fn around<T>(
        &self,
        fault: Option<Fault>,
        effect: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        match fault {
            Some(Fault::FailsBefore) => return Err(torn()),
            Some(Fault::CrashBefore) => self.crash().await,
            Some(Fault::SuspendBefore) => self.suspend().await,
            Some(Fault::Drain) => self.drain.raise(),
            _ => {}
        }
        let answer = effect.await;
        match fault {
            Some(Fault::FailsAfter) => return Err(torn()),
            Some(Fault::CrashAfter) => self.crash().await,
            Some(Fault::SuspendAfter) => self.suspend().await,
            _ => {}
        }
        answer
    }

    fn land_later(&self, key: &Key, bytes: &Bytes, seconds: u64) {
        let (world, key, bytes) = (self.world.clone(), key.clone(), bytes.clone());
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            // The store decides when it lands, as for any other create.
            let _ = world.create(&key, &bytes).await;
        });
    }
}

fn torn() -> StoreError {
    StoreError::Transient { store: "memory:".into(), what: "a call".into(), reason: "connection lost".into() }
}

#[async_trait]
impl Blobs for Line {
    fn address(&self) -> String {
        "memory:".into()
    }

    async fn create(&self, key: &Key, bytes: Bytes) -> Result<Created, StoreError> {
        let fault = self.next("create", key, bytes.clone());
        match fault {
            Some(Fault::Conflict) => return Ok(Created::Exists),
            Some(Fault::LandsLater(seconds)) => {
                self.land_later(key, &bytes, seconds);
                return Err(torn());
            }
            Some(Fault::CrashLandsLater(seconds)) => {
                self.land_later(key, &bytes, seconds);
                self.crash().await
            }
            _ => {}
        }
        self.around(fault, self.world.create(key, &bytes)).await
    }

    async fn get(&self, key: &Key) -> Result<Option<Bytes>, StoreError> {
        self.around(self.next("get", key, Bytes::new()), self.world.store().get(key)).await
    }

    async fn size(&self, key: &Key) -> Result<Option<u64>, StoreError> {
        self.around(self.next("size", key, Bytes::new()), self.world.store().size(key)).await
    }

    async fn list(&self, prefix: &Key) -> Result<Vec<Entry>, StoreError> {
        self.around(self.next("list", prefix, Bytes::new()), self.world.store().list(prefix)).await
    }

    async fn list_page(&self, prefix: &Key, after: Option<&Key>, most: usize) -> Result<Vec<Entry>, StoreError> {
        let fault = self.next("list_page", prefix, Bytes::new());
        self.around(fault, self.world.store().list_page(prefix, after, most)).await
    }

    async fn delete(&self, key: &Key) -> Result<(), StoreError> {
        self.around(self.next("delete", key, Bytes::new()), self.world.remove(key)).await
    }

    async fn upload(&self, key: &Key, file: &Path) -> Result<(), StoreError> {
        let bytes = Bytes::from(std::fs::read(file).unwrap_or_default());
        let fault = self.next("upload", key, bytes.clone());
        self.around(fault, self.world.overwrite(key, &bytes)).await
    }

    async fn download(&self, key: &Key, file: &Path) -> Result<(), StoreError> {
        self.around(self.next("download", key, Bytes::new()), self.world.store().download(key, file)).await
    }
}
