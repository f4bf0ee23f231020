//! An answer that Python reads while it grows.

use mlxcel_runtime::{AnswerStream, Next};
use pyo3::prelude::*;

use crate::{
    answer::{Answer, Piece},
    error,
    fork::ProcessBound,
    notifier::Notifier,
    wait::{SIGNALS, wait},
};

/// An answer that is read while it grows.
#[pyclass(frozen, module = "mlxcel._native")]
pub(crate) struct NativeStream(ProcessBound<AnswerStream>);

impl NativeStream {
    pub(crate) fn new(stream: AnswerStream) -> Self {
        Self(ProcessBound::new(stream))
    }
}

#[pymethods]
impl NativeStream {
    /// Waits for the next piece. None after the end.
    fn next(&self, py: Python<'_>) -> PyResult<Option<Piece>> {
        let stream = self.0.get()?;
        let next = wait(py, || match stream.next(SIGNALS) {
            Ok(Next::Nothing) => None,
            next => Some(next),
        });
        match next.inspect_err(|_| stream.cancel())?.map_err(error::of)? {
            Next::Piece(piece) => Ok(Some(piece.into())),
            Next::End | Next::Nothing => Ok(None),
        }
    }

    /// Returns what has come: pieces, and whether it was the end.
    fn poll(&self) -> PyResult<(Vec<Piece>, bool)> {
        let (pieces, has_ended) = self.0.get()?.poll().map_err(error::of)?;
        Ok((pieces.into_iter().map(Piece::from).collect(), has_ended))
    }

    /// Tells a notifier of every token from now on, or of the end alone.
    fn watch(&self, notifier: Py<Notifier>, stream: u64, only_end: bool) -> PyResult<()> {
        self.0.get()?.watch(only_end, Box::new(move || notifier.get().notify(stream)));
        Ok(())
    }

    /// Ends the request. What has come can still be read.
    fn cancel(&self) {
        if let Ok(stream) = self.0.get() {
            stream.cancel();
        }
    }

    /// Returns the whole answer, or None before its end.
    fn answer(&self) -> PyResult<Option<Answer>> {
        Ok(self.0.get()?.answer().map(Answer::from))
    }
}
