//! Containers that were started ahead of the runs that will use them, each once.
//!
//! What must hold: never more than `size`; after [`Pool::close`] none, and none made any more.
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::container::{Container, Shape};
use crate::daemon::Core;

pub struct Pool {
    size: usize,
    state: Mutex<State>,
    /// Held while containers are made, so that one task at a time does it and closing can wait for it.
    filling: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    ready: VecDeque<Container>,
    closed: bool,
}

impl Pool {
    pub fn new(size: usize) -> Pool {
        Pool { size, state: Mutex::default(), filling: tokio::sync::Mutex::default() }
    }

    /// One that fits, if it waits here.
    pub fn take(&self, shape: &Shape) -> Option<Container> {
        let mut state = self.state();
        let at = state.ready.iter().position(|c| c.shape == *shape)?;
        state.ready.remove(at)
    }

    /// Makes containers of this shape until there are enough; those of other shapes give way.
    pub async fn fill(core: Arc<Core>, shape: Shape) {
        let Ok(_alone) = core.pool.filling.try_lock() else { return }; // the next run fills up
        while core.pool.wants(&shape) {
            // whatever is wrong, the next run meets it and says so
            let Ok(container) = Container::start(&core, &shape).await else { return };
            if let Some(too_many) = core.pool.put(container) {
                too_many.remove().await;
            }
        }
    }

    fn wants(&self, shape: &Shape) -> bool {
        let state = self.state();
        !state.closed && state.ready.iter().filter(|c| c.shape == *shape).count() < self.size
    }

    fn put(&self, container: Container) -> Option<Container> {
        let mut state = self.state();
        if state.closed {
            return Some(container);
        }
        state.ready.push_back(container);
        if state.ready.len() > self.size { state.ready.pop_front() } else { None }
    }

    /// Removes all that wait.
    pub async fn close(&self) {
        self.state().closed = true;
        let _made = self.filling.lock().await;
        let all = std::mem::take(&mut self.state().ready);
        for container in all {
            container.remove().await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
