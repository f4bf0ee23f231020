//! An answer that is read while it grows.

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
};

use mlxcel_runtime::engine::{EngineClient, EventKind, EventSink, RequestGuard};
use pyo3::prelude::*;

use crate::{
    answer::{Answer, Piece},
    error,
    fork::ProcessBound,
    notifier::Notifier,
    reading::{Asked, Reading},
    texts::Texts,
    wait::{SIGNALS, wait},
};

/// Events on their way from the engine's thread to Python's.
#[derive(Default)]
struct Mailbox {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    events: VecDeque<EventKind>,
    watcher: Option<Watcher>,
}

/// Who is told of events.
struct Watcher {
    notifier: Arc<Py<Notifier>>,
    stream: u64,
    /// True to tell of the end alone.
    only_end: bool,
    is_told: bool,
}

impl Mailbox {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, event: EventKind) {
        let mut state = self.lock();
        let is_end = !matches!(event, EventKind::Token { .. });
        state.events.push_back(event);
        if let Some(watcher) = &mut state.watcher
            && !watcher.is_told
            && (is_end || !watcher.only_end)
        {
            watcher.tell();
        }
        self.changed.notify_one();
    }

    /// Waits for an event. `None` after [`SIGNALS`] without one.
    fn wait(&self) -> Option<EventKind> {
        let is_empty = |state: &mut State| state.events.is_empty();
        let found = self.changed.wait_timeout_while(self.lock(), SIGNALS, is_empty);
        found.unwrap_or_else(PoisonError::into_inner).0.events.pop_front()
    }
}

impl Watcher {
    fn tell(&mut self) {
        self.is_told = true;
        self.notifier.get().notify(self.stream);
    }
}

/// An answer that is read while it grows.
#[pyclass(frozen, module = "mlxcel._native")]
pub(crate) struct NativeStream {
    mailbox: ProcessBound<Arc<Mailbox>>,
    guard: ProcessBound<RequestGuard>,
    reading: Mutex<Reading>,
}

impl NativeStream {
    /// Submits a request, whose answer ends before the `stops`.
    ///
    /// # Errors
    /// The engine refuses the request, or its queue is full.
    pub(crate) fn start(
        client: &EngineClient,
        texts: &Texts,
        asked: Asked,
        stops: &[String],
    ) -> PyResult<Self> {
        let reading = Reading::new(texts, &asked, stops)?;
        let mailbox = Arc::new(Mailbox::default());
        let sink: EventSink = {
            let mailbox = mailbox.clone();
            Box::new(move |event| {
                mailbox.put(event);
                true
            })
        };
        let guard = client.try_submit_to(asked.request, sink).map_err(error::of)?;
        Ok(Self {
            mailbox: ProcessBound::new(mailbox),
            guard: ProcessBound::new(guard),
            reading: Mutex::new(reading),
        })
    }

    fn read(&self) -> MutexGuard<'_, Reading> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an event to the answer.
    fn add(&self, event: EventKind) -> PyResult<Option<Piece>> {
        let (piece, is_stopped) = self.read().add(event).map_err(error::of)?;
        if is_stopped {
            self.guard.get()?.cancel();
        }
        Ok(piece)
    }
}

#[pymethods]
impl NativeStream {
    /// Waits for the next piece. None after the end.
    fn next(&self, py: Python<'_>) -> PyResult<Option<Piece>> {
        let mailbox = self.mailbox.get()?;
        while self.read().end.is_none() {
            let event = mailbox.lock().events.pop_front();
            let event = match event {
                Some(event) => event,
                None => wait(py, || mailbox.wait()).inspect_err(|_| self.cancel())?,
            };
            if let Some(piece) = self.add(event)? {
                return Ok(Some(piece));
            }
        }
        Ok(None)
    }

    /// Returns what has come: pieces, and whether it was the end.
    fn poll(&self) -> PyResult<(Vec<Piece>, bool)> {
        let events = {
            let mut state = self.mailbox.get()?.lock();
            if let Some(watcher) = &mut state.watcher {
                watcher.is_told = false;
            }
            std::mem::take(&mut state.events)
        };
        let mut pieces = Vec::new();
        for event in events {
            pieces.extend(self.add(event)?);
        }
        Ok((pieces, self.read().end.is_some()))
    }

    /// Tells a notifier of every token from now on, or of the end alone.
    fn watch(&self, notifier: Py<Notifier>, stream: u64, only_end: bool) -> PyResult<()> {
        let mut watcher = Watcher { notifier: Arc::new(notifier), stream, only_end, is_told: false };
        let mut state = self.mailbox.get()?.lock();
        if !state.events.is_empty() {
            watcher.tell();
        }
        state.watcher = Some(watcher);
        Ok(())
    }

    /// Ends the request. What has come can still be read.
    fn cancel(&self) {
        if let Ok(guard) = self.guard.get() {
            guard.cancel();
        }
    }

    /// Returns the whole answer, or None before its end.
    fn answer(&self) -> Option<Answer> {
        self.read().end.clone()
    }
}
