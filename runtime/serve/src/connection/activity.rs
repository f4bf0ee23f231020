//! What a connection is doing, which its service knows and its socket asks.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Waker,
};

/// What a connection waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Phase {
    /// The head of a request, of which something may be there.
    #[default]
    Head,
    /// An answer.
    Busy,
    /// The next request, of which nothing is there.
    Idle,
}

/// What a connection is doing.
#[derive(Debug, Default)]
pub(super) struct Activity(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    phase: Phase,
    has_unread: bool,
    /// The connection's task, which has to know when an answer has ended.
    waker: Option<Waker>,
}

impl Activity {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn phase(&self) -> Phase {
        self.state().phase
    }

    /// Returns the phase. The task is woken at the end of the next answer, because hyper does not read once more then.
    pub(super) fn watch(&self, waker: &Waker) -> Phase {
        let mut state = self.state();
        if !state.waker.as_ref().is_some_and(|known| known.will_wake(waker)) {
            state.waker = Some(waker.clone());
        }
        state.phase
    }

    /// Notes that something of a request is there.
    pub(super) fn receive(&self) {
        let mut state = self.state();
        if state.phase == Phase::Idle {
            state.phase = Phase::Head;
        }
    }

    /// Notes that a body was dropped before its end.
    pub(super) fn leave_unread(&self) {
        self.state().has_unread = true;
    }

    /// Returns whether a client may still send a body that nobody reads.
    pub(super) fn has_unread(&self) -> bool {
        self.state().has_unread
    }

    /// Notes that a request has begun. It ends when the guard is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> Busy {
        self.state().phase = Phase::Busy;
        Busy(self.clone())
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub(super) struct Busy(Arc<Activity>);

impl Drop for Busy {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.phase = Phase::Idle;
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
