//! Places for requests that wait for a thread.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::error::{EngineError, Error};

/// The places for requests that wait for a thread: from their submission until they run.
#[derive(Debug, Default)]
pub(crate) struct Places {
    state: Mutex<State>,
    /// A place became free, or the thread ended.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    taken: usize,
    has_ended: bool,
}

/// The life of the thread. Dropping it, in a panic too, ends all waits for a place.
#[derive(Debug)]
pub(crate) struct Life(pub(crate) Arc<Places>);

impl Places {
    /// Takes a place if one of `limit` is free.
    ///
    /// # Errors
    /// None is free, or the thread has ended.
    pub(crate) fn try_take(&self, limit: usize) -> Result<(), Error> {
        self.lock().take(limit)
    }

    /// Takes a place, and waits until one of `limit` is free.
    ///
    /// # Errors
    /// The thread has ended.
    pub(crate) fn take(&self, limit: usize) -> Result<(), Error> {
        let is_full = |state: &mut State| state.taken >= limit && !state.has_ended;
        let state = self.changed.wait_while(self.lock(), is_full);
        state.unwrap_or_else(PoisonError::into_inner).take(limit)
    }

    /// Frees places of requests that run, or have ended without.
    pub(crate) fn free(&self, count: usize) {
        if count > 0 {
            let mut state = self.lock();
            state.taken = state.taken.saturating_sub(count);
            self.changed.notify_all();
        }
    }

    /// Returns the number of requests that wait.
    pub(crate) fn taken(&self) -> usize {
        self.lock().taken
    }

    /// Returns whether the thread has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.lock().has_ended
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take(&mut self, limit: usize) -> Result<(), Error> {
        if self.has_ended {
            return Err(EngineError::Closed.into());
        }
        if self.taken >= limit {
            return Err(EngineError::QueueFull { waiting: self.taken, limit }.into());
        }
        self.taken += 1;
        Ok(())
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.0.lock().has_ended = true;
        self.0.changed.notify_all();
    }
}
