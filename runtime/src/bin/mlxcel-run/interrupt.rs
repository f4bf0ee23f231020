//! Ctrl-C: ends the answer, or else the program.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use anyhow::{Context as _, Result};
use mlxcel_artifacts::INTERRUPTED;
use mlxcel_runtime::Cancel;
use signal_hook::{consts::SIGINT, flag};

/// What Ctrl-C does.
pub(crate) struct Interrupt {
    /// Turned on by a Ctrl-C during an answer.
    pub(crate) cancel: Cancel,
    idle: Arc<AtomicBool>,
}

/// While this lives, Ctrl-C ends the answer.
pub(crate) struct Answering<'a>(&'a AtomicBool);

impl Interrupt {
    /// Takes Ctrl-C over. A second one during an answer ends the program, should a step hang.
    pub(crate) fn install() -> Result<Self> {
        let interrupt = Self::new();
        // In this order: each looks at what the ones before it left.
        flag::register_conditional_shutdown(SIGINT, INTERRUPTED.into(), Arc::clone(&interrupt.idle))
            .and_then(|_| {
                let cancelled = interrupt.cancel.flag();
                flag::register_conditional_shutdown(SIGINT, INTERRUPTED.into(), cancelled)
            })
            .and_then(|_| flag::register(SIGINT, interrupt.cancel.flag()))
            .context("cannot handle ctrl-c")?;
        Ok(interrupt)
    }

    /// One that nothing turns on by itself.
    pub(crate) fn new() -> Self {
        Self { cancel: Cancel::new(), idle: Arc::new(AtomicBool::new(true)) }
    }

    /// Marks the time of an answer.
    pub(crate) fn answering(&self) -> Answering<'_> {
        self.cancel.reset();
        self.idle.store(false, Ordering::Relaxed);
        Answering(&self.idle)
    }
}

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
