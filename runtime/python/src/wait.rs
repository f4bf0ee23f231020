//! Waiting for other threads: other Python threads run meanwhile, and Ctrl-C ends the wait.

use std::{
    sync::mpsc::{Receiver, RecvTimeoutError},
    time::Duration,
};

use mlxcel_runtime::{EngineError, Error};
use pyo3::prelude::*;

use crate::error;

/// How long a wait goes on before it looks for Ctrl-C.
pub(crate) const SIGNALS: Duration = Duration::from_millis(50);

/// Runs `wait`, which returns `None` after [`SIGNALS`] without a result, until it has one.
///
/// # Errors
/// A signal's handler raises an exception: KeyboardInterrupt for Ctrl-C.
pub(crate) fn wait<T: Send>(py: Python<'_>, mut wait: impl FnMut() -> Option<T> + Send) -> PyResult<T> {
    loop {
        if let Some(found) = py.detach(&mut wait) {
            return Ok(found);
        }
        py.check_signals()?;
    }
}

/// Waits for a value.
///
/// # Errors
/// A signal's handler raises an exception, or the sender is gone.
pub(crate) fn receive<T: Send>(py: Python<'_>, from: Receiver<T>) -> PyResult<T> {
    let found = wait(py, move || match from.recv_timeout(SIGNALS) {
        Ok(value) => Some(Some(value)),
        Err(RecvTimeoutError::Timeout) => None,
        Err(RecvTimeoutError::Disconnected) => Some(None),
    })?;
    found.ok_or_else(|| error::of(Error::from(EngineError::Closed)))
}
