//! Values that a forked child must not use, because the threads behind them exist in the parent alone.

use std::{mem, process, sync::OnceLock};

use pyo3::prelude::*;

use crate::error;

/// The process that opened the first bundle, and started the threads that verify files.
static PROCESS: OnceLock<u32> = OnceLock::new();

/// Checks that this process can open and move bundles: it is not forked from one that did.
///
/// # Errors
/// It is. The threads that verify files exist in the parent alone.
pub(crate) fn check_process() -> PyResult<()> {
    let expected = *PROCESS.get_or_init(process::id);
    if process::id() == expected { Ok(()) } else { Err(forked(expected, "the first bundle was opened")) }
}

fn forked(expected: u32, when: &str) -> PyErr {
    let found = process::id();
    let message = format!(
        "found the process {found}, forked after {when}, expected {expected}, which did that\n\
         hint: start children with multiprocessing.set_start_method(\"spawn\"), or before anything is opened"
    );
    error::new("ForkError", &message)
}

/// A value of the process that made it. A child can neither use it nor drop it: that would wait for threads that it lacks,
/// or for locks that nobody frees.
#[derive(Debug)]
pub(crate) struct ProcessBound<T> {
    /// There until it is dropped.
    value: Option<T>,
    process: u32,
}

impl<T> ProcessBound<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: Some(value), process: process::id() }
    }

    /// Returns the value.
    ///
    /// # Errors
    /// This is a child of the process that made it.
    pub(crate) fn get(&self) -> PyResult<&T> {
        let value = self.value.as_ref().filter(|_| process::id() == self.process);
        value.ok_or_else(|| forked(self.process, "the bundle was loaded"))
    }
}

impl<T> Drop for ProcessBound<T> {
    fn drop(&mut self) {
        if process::id() != self.process {
            mem::forget(self.value.take());
        }
    }
}
