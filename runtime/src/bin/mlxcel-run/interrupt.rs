//! Ctrl-C: ends the answer, or else the program.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use anyhow::{Context as _, Result};
use mlxcel_runtime::Cancel;

use crate::INTERRUPTED;

/// What Ctrl-C does.
pub(crate) struct Interrupt {
    /// Turned on by a Ctrl-C during an answer.
    pub(crate) cancel: Cancel,
    answering: Arc<AtomicBool>,
}

/// While this lives, Ctrl-C ends the answer.
pub(crate) struct Answering<'a>(&'a AtomicBool);

impl Interrupt {
    /// Takes Ctrl-C over. A second one during an answer ends the program, should a step hang.
    pub(crate) fn install() -> Result<Self> {
        let interrupt = Self::new();
        let (cancel, answering) = (interrupt.cancel.clone(), Arc::clone(&interrupt.answering));
        ctrlc::set_handler(move || {
            if !answering.load(Ordering::Relaxed) || cancel.is_cancelled() {
                std::process::exit(INTERRUPTED.into());
            }
            cancel.cancel();
        })
        .context("cannot handle ctrl-c")?;
        Ok(interrupt)
    }

    /// One that nothing turns on by itself.
    pub(crate) fn new() -> Self {
        Self { cancel: Cancel::new(), answering: Arc::default() }
    }

    /// Marks the time of an answer.
    pub(crate) fn answering(&self) -> Answering<'_> {
        self.cancel.reset();
        self.answering.store(true, Ordering::Relaxed);
        Answering(&self.answering)
    }
}

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}
