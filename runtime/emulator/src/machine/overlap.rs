//! Kernels that may begin before those ahead of them have ended: what they may touch before they have waited.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
};

/// The bytes that are noted as one.
const WORD: u64 = 4;

/// What the kernels of a graph have written in a launch of it, and which of them have ended.
#[derive(Debug, Default)]
pub struct Written {
    /// The number of the last kernel that wrote each word.
    words: RefCell<HashMap<u64, usize>>,
    running: Cell<Option<Running>>,
}

/// The kernel that runs.
#[derive(Debug, Clone, Copy)]
struct Running {
    number: usize,
    /// Those with lower numbers have ended before this one begins.
    ended: usize,
    /// Whether it lets the next one begin before it has waited itself.
    starts_next_early: bool,
    /// Whether a thread of it has waited.
    has_waited: bool,
}

impl Written {
    /// Begins the next kernel, which may begin before those ahead of it have ended, or not.
    ///
    /// It begins as soon as the one ahead lets it. If that one has waited by then, all before that one have ended.
    pub fn next(&self, begins_early: bool) -> Overlap<'_> {
        let ahead = self.running.get();
        let number = ahead.map_or(0, |ahead| ahead.number + 1);
        let ended = match ahead {
            Some(ahead) if begins_early && ahead.starts_next_early => ahead.ended,
            Some(ahead) if begins_early => ahead.number,
            _ => number,
        };
        self.running.set(Some(Running { number, ended, starts_next_early: false, has_waited: false }));
        Overlap { written: self, number, ended, begins_early }
    }

    fn note(&self, change: impl FnOnce(&mut Running)) {
        let mut running = self.running.get();
        running.as_mut().map(change);
        self.running.set(running);
    }

    fn add(&self, place: u64, bytes: usize, number: usize) {
        self.words.borrow_mut().extend(words(place, bytes).map(|word| (word, number)));
    }

    /// Returns whether a kernel whose number is at least `first` wrote there.
    fn has(&self, place: u64, bytes: usize, first: usize) -> bool {
        let written = self.words.borrow();
        words(place, bytes).any(|word| written.get(&word).is_some_and(|&number| number >= first))
    }
}

fn words(place: u64, bytes: usize) -> impl Iterator<Item = u64> {
    place / WORD..place.saturating_add(bytes as u64).div_ceil(WORD)
}

/// How a launch is one of several that may overlap.
#[derive(Debug, Clone, Copy)]
pub struct Overlap<'o> {
    written: &'o Written,
    number: usize,
    /// Those with lower numbers have ended before it begins.
    ended: usize,
    begins_early: bool,
}

impl Overlap<'_> {
    /// Refuses that a kernel has ended of which no thread has waited: the next one would wait for this one alone.
    pub(super) fn end(&self) -> Result<(), String> {
        if self.begins_early && self.written.running.get().is_some_and(|running| !running.has_waited) {
            return Err(
                "found no thread that waits, expected griddepcontrol.wait before all have ended".to_owned()
            );
        }
        Ok(())
    }
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
        if let Some(Overlap { written, .. }) = self.overlap {
            written.note(|running| running.has_waited = true);
        }
    }

    /// Notes that a thread lets the next kernel begin.
    pub(super) fn start_next(&self, thread: usize) {
        if let Some(Overlap { written, .. }) = self.overlap
            && self.is_early(thread)
        {
            written.note(|running| running.starts_next_early = true);
        }
    }

    fn is_early(&self, thread: usize) -> bool {
        self.overlap.is_some_and(|overlap| overlap.begins_early) && !self.has_waited[thread]
    }

    /// Refuses to read what a kernel ahead has written, unless that one has ended or the thread has waited for it. What is read as
    /// `unchanging` no kernel of the graph may write.
    pub(super) fn check_load(
        &self,
        thread: usize,
        place: u64,
        bytes: usize,
        unchanging: bool,
    ) -> Result<(), String> {
        let Some(Overlap { written, ended, begins_early: true, .. }) = self.overlap else { return Ok(()) };
        let first = if unchanging { 0 } else { ended };
        if (unchanging || !self.has_waited[thread]) && written.has(place, bytes, first) {
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
        if let Some(Overlap { written, number, .. }) = self.overlap {
            written.add(place, bytes, number);
        }
        Ok(())
    }
}
