//! Ends of threads that run models.

use tokio::runtime::Handle;

/// Drops a thread's owner where the thread can be waited for, which requests cannot: a step may run for long.
#[derive(Debug)]
pub(crate) struct ThreadEnd<T: Send + 'static>(Option<T>);

impl<T: Send + 'static> ThreadEnd<T> {
    pub(crate) fn new(owner: T) -> Self {
        Self(Some(owner))
    }
}

impl<T: Send + 'static> Drop for ThreadEnd<T> {
    fn drop(&mut self) {
        let owner = self.0.take();
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn_blocking(move || drop(owner));
        }
    }
}
