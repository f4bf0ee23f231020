//! Ctrl-C, which ends the answer, or else the program.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use anyhow::{Context as _, Result};
use mlxcel_artifacts::INTERRUPTED;
use mlxcel_runtime::Cancel;
use signal_hook::{consts::SIGINT, flag};

/// The handling of Ctrl-C.
pub(crate) struct Interrupt {
    /// Set by a Ctrl-C during an answer.
    pub(crate) cancel: Cancel,
    /// True while no answer is being generated.
    idle: Arc<AtomicBool>,
}

/// A guard: while it lives, Ctrl-C ends the answer.
pub(crate) struct Answering<'a>(&'a AtomicBool);

impl Interrupt {
    /// Installs the handlers. A second Ctrl-C during an answer ends the program, in case a step hangs.
    pub(crate) fn install() -> Result<Self> {
        let interrupt = Self::new();
        // The order matters: each handler sees the flags that the ones before it set.
        flag::register_conditional_shutdown(SIGINT, INTERRUPTED.into(), Arc::clone(&interrupt.idle))
            .and_then(|_| {
                let cancelled = interrupt.cancel.flag();
                flag::register_conditional_shutdown(SIGINT, INTERRUPTED.into(), cancelled)
            })
            .and_then(|_| flag::register(SIGINT, interrupt.cancel.flag()))
            .context("cannot handle ctrl-c")?;
        Ok(interrupt)
    }

    /// Makes the flags without handlers.
    pub(crate) fn new() -> Self {
        Self { cancel: Cancel::new(), idle: Arc::new(AtomicBool::new(true)) }
    }

    /// Starts an answer, which Ctrl-C ends while the guard lives.
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
