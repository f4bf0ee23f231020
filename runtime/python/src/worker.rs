//! A thread that owns what must stay on one.

use std::{
    sync::{Mutex, PoisonError, mpsc},
    thread::{self, JoinHandle},
};

use mlxcel_runtime::{EngineError, Error};

/// Work for a thread, on its value.
type Job<T> = Box<dyn FnOnce(&mut T) + Send>;

/// A thread with a value that stays on it. Dropping it ends the thread.
pub(crate) struct Worker<T> {
    jobs: Mutex<Option<mpsc::Sender<Job<T>>>>,
    thread: Option<JoinHandle<()>>,
}

impl<T: 'static> Worker<T> {
    /// Starts a thread that makes the value.
    ///
    /// # Errors
    /// `make` fails, or there is no thread.
    pub(crate) fn start(make: impl FnOnce() -> Result<T, Error> + Send + 'static) -> Result<Self, Error> {
        let (jobs, receiver) = mpsc::channel::<Job<T>>();
        let (made, is_made) = mpsc::channel();
        let run = move || match make() {
            Ok(mut value) => {
                _ = made.send(Ok(()));
                receiver.into_iter().for_each(|job| job(&mut value));
            }
            Err(error) => _ = made.send(Err(error)),
        };
        let thread = thread::Builder::new().name("program".to_owned()).spawn(run);
        let thread = Some(thread.map_err(|_| EngineError::Closed)?);
        is_made.recv().map_err(|_| EngineError::Closed)??;
        Ok(Self { jobs: Mutex::new(Some(jobs)), thread })
    }

    /// Lets the thread do some work. The receiver gets its result.
    pub(crate) fn run<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut T) -> R + Send + 'static,
    ) -> mpsc::Receiver<R> {
        let (sender, result) = mpsc::channel();
        let job: Job<T> = Box::new(move |value| _ = sender.send(work(value)));
        if let Some(jobs) = &*self.jobs.lock().unwrap_or_else(PoisonError::into_inner) {
            // If the thread has ended, the receiver says so.
            _ = jobs.send(job);
        }
        result
    }
}

impl<T> Drop for Worker<T> {
    fn drop(&mut self) {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = self.thread.take() {
            _ = thread.join();
        }
    }
}
