//! How many requests one process has open at a server: additive increase, multiplicative decrease (AIMD).
//!
//! In: the status of every answer. Out: when the next request may go. A server that says 503 SlowDown or 429 halves the
//! window; every answer that is not one of these widens it by one request per window. Only the *first* refusal of those
//! that were in flight together counts: a burst of sixty refusals is one message.
//! Source: D. Chiu, R. Jain, "Analysis of the Increase and Decrease Algorithms", 1989.
//!
//! It sits below `object_store`, where statuses are still statuses, and knows nothing of keys or retries.

use async_trait::async_trait;
use object_store::ClientOptions;
use object_store::client::{HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Requests open at once in a fresh process.
const START: f64 = 16.0;
/// And at most.
const MOST: f64 = 128.0;

/// The window of one process.
#[derive(Debug)]
pub struct Pace {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug)]
struct State {
    window: f64,
    open: usize,
    /// Counts decreases: a request that began before the last one must not cause another.
    epoch: u64,
}

/// One request's place in the window, given back when dropped.
#[derive(Debug)]
pub struct Turn<'a> {
    pace: &'a Pace,
    epoch: u64,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace { state: Mutex::new(State { window: START, open: 0, epoch: 0 }), changed: Notify::new() }
    }
}

impl Pace {
    /// Waits for a place.
    pub async fn turn(&self) -> Turn<'_> {
        loop {
            // Made before the look, so that a place freed in between is not missed.
            let changed = self.changed.notified();
            if let Some(turn) = self.try_turn() {
                return turn;
            }
            changed.await;
        }
    }

    /// Requests that may be open now.
    pub fn window(&self) -> usize {
        self.lock().window as usize
    }

    fn try_turn(&self) -> Option<Turn<'_>> {
        let mut state = self.lock();
        let free = state.open < state.window as usize;
        state.open += usize::from(free);
        // Not `then_some`: a turn that is made gives a place back when it is dropped.
        free.then(|| Turn { pace: self, epoch: state.epoch })
    }

    // Counters stay valid whatever panicked beside them.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn<'_> {
    /// The server answered; whether it asked for less.
    pub fn answered(self, slow_down: bool) {
        let mut state = self.pace.lock();
        if !slow_down {
            state.window = (state.window + 1.0 / state.window).min(MOST);
        } else if self.epoch == state.epoch {
            state.window = (state.window / 2.0).max(1.0);
            state.epoch += 1;
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.pace.lock().open -= 1;
        // One place is free; if the window grew over a whole number, two.
        self.pace.changed.notify_one();
        self.pace.changed.notify_one();
    }
}

/// Puts a [`Pace`] around another connector.
#[derive(Debug)]
pub(crate) struct PacedConnector {
    pub inner: Arc<dyn HttpConnector>,
    pub pace: Arc<Pace>,
}

impl HttpConnector for PacedConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = self.inner.connect(options)?;
        Ok(HttpClient::new(PacedService { client, pace: self.pace.clone() }))
    }
}

#[derive(Debug)]
struct PacedService {
    client: HttpClient,
    pace: Arc<Pace>,
}

#[async_trait]
impl HttpService for PacedService {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let turn = self.pace.turn().await;
        let answer = self.client.execute(request).await;
        if let Ok(response) = &answer {
            turn.answered(matches!(response.status().as_u16(), 429 | 503));
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_burst_of_refusals_halves_once_and_answers_widen() {
        let pace = Pace::default();
        let mut turns = Vec::new();
        for _ in 0..16 {
            turns.push(pace.turn().await);
        }
        assert!(pace.try_turn().is_none(), "the window is full");
        for turn in turns.drain(..) {
            turn.answered(true);
        }
        assert_eq!(pace.window(), 8, "one decrease for one burst");
        pace.turn().await.answered(true);
        assert_eq!(pace.window(), 4);
        for _ in 0..64 {
            pace.turn().await.answered(false);
        }
        // w' = w + 1/w: from 4, after n answers about sqrt(16 + 2n) = 12.
        assert!((11..=12).contains(&pace.window()), "{}", pace.window());
        for _ in 0..40 {
            pace.turn().await.answered(true);
        }
        assert_eq!(pace.window(), 1, "never nothing");
        drop(pace.turn().await);
        assert_eq!(pace.lock().open, 0, "a request that was abandoned gives its place back");
    }

    #[tokio::test]
    async fn a_freed_place_wakes_the_waiting() {
        let pace = Arc::new(Pace::default());
        let mut held = Vec::new();
        for _ in 0..16 {
            held.push(pace.turn().await);
        }
        let waiting: Vec<_> = (0..40)
            .map(|_| {
                let pace = pace.clone();
                tokio::spawn(async move { pace.turn().await.answered(false) })
            })
            .collect();
        tokio::task::yield_now().await;
        drop(held);
        for task in waiting {
            task.await.unwrap();
        }
    }
}
