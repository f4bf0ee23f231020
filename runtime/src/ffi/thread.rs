//! How the operating system schedules a thread.

use std::marker::PhantomData;

use super::raw;

/// While it lives, the thread that created it never takes a processor from another: for many short calls, whose results are
/// needed soon, but not at once.
pub(crate) struct BatchThread {
    has_changed: bool,
    // It is for one thread.
    _not_send: PhantomData<*const ()>,
}

impl BatchThread {
    pub(crate) fn new() -> Self {
        // SAFETY: the call takes no pointers, and changes only how the thread is scheduled.
        let has_changed = unsafe { raw::shim_thread_set_batch(1) != 0 };
        Self { has_changed, _not_send: PhantomData }
    }
}

impl Drop for BatchThread {
    fn drop(&mut self) {
        if self.has_changed {
            // SAFETY: as in `new`.
            unsafe { raw::shim_thread_set_batch(0) };
        }
    }
}
