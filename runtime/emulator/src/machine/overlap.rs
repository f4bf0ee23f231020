//! Kernels that may begin before those ahead of them have ended: what they may touch before they have waited.

use std::{cell::RefCell, collections::HashSet};

/// The bytes that are noted as one.
const WORD: u64 = 4;

/// What the kernels of a graph have written in a launch of it.
#[derive(Debug, Default)]
pub struct Written(RefCell<HashSet<u64>>);

impl Written {
    fn add(&self, place: u64, bytes: usize) {
        self.0.borrow_mut().extend(words(place, bytes));
    }

    fn has(&self, place: u64, bytes: usize) -> bool {
        let written = self.0.borrow();
        words(place, bytes).any(|word| written.contains(&word))
    }
}

fn words(place: u64, bytes: usize) -> impl Iterator<Item = u64> {
    place / WORD..(place + bytes as u64).div_ceil(WORD)
}

/// How a launch is one of several that may overlap.
#[derive(Debug, Clone, Copy)]
pub struct Overlap<'o> {
    /// What those of the graph have written.
    pub written: &'o Written,
    /// Whether this one may begin before those ahead of it have ended.
    pub begins_early: bool,
}

/// The threads of a block that have waited for the kernels ahead.
pub(super) struct Waiting<'o> {
    overlap: Option<Overlap<'o>>,
    has_waited: Vec<bool>,
}

impl<'o> Waiting<'o> {
    pub(super) fn new(overlap: Option<Overlap<'o>>, threads: usize) -> Self {
        Self { overlap, has_waited: vec![false; threads] }
    }

    /// Begins again, with another block.
    pub(super) fn begin(&mut self) {
        self.has_waited.fill(false);
    }

    /// Notes that a thread has waited.
    pub(super) fn wait(&mut self, thread: usize) {
        self.has_waited[thread] = true;
    }

    fn is_early(&self, thread: usize) -> bool {
        self.overlap.is_some_and(|overlap| overlap.begins_early) && !self.has_waited[thread]
    }

    /// Refuses to read what a kernel ahead has written, unless the thread has waited for it. What is read as `unchanging` no kernel of
    /// the graph may write.
    pub(super) fn check_load(
        &self,
        thread: usize,
        place: u64,
        bytes: usize,
        unchanging: bool,
    ) -> Result<(), String> {
        let Some(Overlap { written, begins_early: true }) = self.overlap else { return Ok(()) };
        if (unchanging || !self.has_waited[thread]) && written.has(place, bytes) {
            let expected = if unchanging { "a load without .nc" } else { "griddepcontrol.wait before it" };
            return Err(format!("found a load of what a kernel ahead writes, expected {expected}"));
        }
        Ok(())
    }

    /// Notes what a thread writes, which it may not do before it has waited.
    pub(super) fn store(&self, thread: usize, place: u64, bytes: usize) -> Result<(), String> {
        if self.is_early(thread) {
            return Err("found a store before griddepcontrol.wait, expected it after that".to_owned());
        }
        if let Some(Overlap { written, .. }) = self.overlap {
            written.add(place, bytes);
        }
        Ok(())
    }

    /// Refuses that a thread ends without having waited: the next kernel would wait for this one alone.
    pub(super) fn end(&self, thread: usize) -> Result<(), String> {
        if self.is_early(thread) {
            return Err("found a thread that ends, expected griddepcontrol.wait before".to_owned());
        }
        Ok(())
    }
}
