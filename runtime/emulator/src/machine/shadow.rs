//! Who has read and written memory: for each word the last of both.

use std::collections::HashMap;

use super::{clock::TIME_MAX, dimensions::LANES};

/// The bytes of a word.
const WORD: u64 = 4;
/// The mask of all of its bytes.
const WHOLE: u64 = 0xf;
/// The words whose notes are made at once.
const CHUNK: usize = 512;

const MASK_AT: u32 = 0;
const FLAGS_AT: u32 = 4;
const TIME_AT: u32 = 7;
const THREAD_AT: u32 = 29;
const BLOCK_AT: u32 = 39;

/// What an access is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Write,
    Atomic,
    /// The begin of a copy that runs beside its thread.
    Begin,
}

/// When a thread has reached some bytes of a word: 25 bits of the block, and so on. Zero stands for never.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Stamp(u64);

impl Stamp {
    /// It was atomic.
    const ATOMIC: u64 = 1 << FLAGS_AT;
    /// A reader: warps read without order. A writer: threads wrote the same without order.
    const SEVERAL: u64 = 2 << FLAGS_AT;
    /// Bytes of a copy have not arrived.
    const PENDING: u64 = 4 << FLAGS_AT;

    pub(super) fn new(block: u32, thread: usize, time: u32) -> Self {
        Self(u64::from(block) << BLOCK_AT | (thread as u64) << THREAD_AT | u64::from(time) << TIME_AT)
    }

    fn with(self, mask: u64, flags: u64) -> Self {
        Self(self.0 | mask << MASK_AT | flags)
    }

    fn is(self, flag: u64) -> bool {
        self.0 & flag != 0
    }

    fn mask(self) -> u64 {
        self.0 & WHOLE
    }

    pub(super) fn block(self) -> u32 {
        (self.0 >> BLOCK_AT) as u32
    }

    pub(super) fn thread(self) -> usize {
        (self.0 >> THREAD_AT & 0x3ff) as usize
    }

    pub(super) fn time(self) -> u32 {
        (self.0 >> TIME_AT) as u32 & TIME_MAX
    }

    /// Returns whether it is one of the same warp.
    fn is_of_warp(self, other: Self) -> bool {
        (self.0 ^ other.0) >> (THREAD_AT + 5) == 0
    }

    fn warp_bit(self) -> u32 {
        1 << (self.thread() / LANES)
    }

    fn is_of_thread(self, other: Self) -> bool {
        (self.0 ^ other.0) >> THREAD_AT == 0
    }

    /// Returns the bytes and the flags to note of a reader after which, without order, another one reads some bytes. Of the bytes
    /// that only one of both has read, none are noted that the other might write rightly.
    fn also_read_by(self, now: Self, mask: u64) -> (u64, u64) {
        let shared = self.mask() & mask;
        if self.is(Self::SEVERAL) {
            (self.mask(), Self::SEVERAL)
        } else if now.is_of_thread(self) {
            (self.mask() | mask, 0)
        } else if shared == 0 || now.is_of_warp(self) {
            (mask, 0)
        } else {
            (shared, Self::SEVERAL)
        }
    }
}

/// What is wrong with an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Problem {
    /// Another thread writes.
    Written(Stamp),
    /// Another thread reads.
    Read(Stamp),
    /// A copy is under way.
    Pending(Stamp),
}

/// What orders accesses.
pub(super) trait Ordered {
    /// Returns whether an access was ordered before now.
    fn is_before(&self, stamp: Stamp) -> bool;
    /// Returns whether those of all warps at its time were.
    fn is_before_by_all(&self, stamp: Stamp) -> bool;
    /// Returns the time until when all threads of the block know everything.
    fn all(&self) -> u32;
}

/// The notes of a word.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cell {
    writer: Stamp,
    reader: Stamp,
}

impl Cell {
    /// Returns whether a read changes nothing: its warp has read since the last barrier of all, and nobody writes. It is the usual
    /// case, and has to be quick.
    #[inline]
    fn is_known(&self, now: Stamp, mask: u64, all: u32) -> bool {
        let Self { writer, reader } = *self;
        let is_written_before = writer.0 == 0
            || (writer.0 ^ now.0) >> BLOCK_AT == 0 && writer.time() <= all && !writer.is(Stamp::PENDING);
        let is_read = now.is_of_warp(reader)
            && now.time() == reader.time()
            && reader.mask() & mask == mask
            && reader.0 != 0;
        is_written_before && is_read
    }

    /// Notes an access to bytes of the word. `is_same` says whether a write leaves what is there.
    fn visit(
        &mut self,
        (kind, now, mask): (Kind, Stamp, u64),
        is_same: bool,
        ordered: &impl Ordered,
        (word, authors): (usize, &mut Authors),
    ) -> Result<(), Problem> {
        let mut flags = if kind == Kind::Atomic { Stamp::ATOMIC } else { 0 };
        if kind == Kind::Begin {
            flags = Stamp::PENDING;
        }
        let mut found = Ok(());
        let writer = self.writer;
        if writer.mask() & mask != 0 {
            if writer.is(Stamp::PENDING) {
                return Err(Problem::Pending(writer));
            }
            let are_atomic = kind == Kind::Atomic && writer.is(Stamp::ATOMIC);
            if !are_atomic && !ordered.is_before(writer) {
                let is_of_several =
                    writer.is(Stamp::SEVERAL) && (writer.is_of_warp(now) || authors.has(word, now));
                if kind == Kind::Write && is_same && !writer.is(Stamp::ATOMIC) {
                    flags |= Stamp::SEVERAL;
                    authors.add(word, writer, now);
                } else if kind != Kind::Read || !is_of_several {
                    found = Err(Problem::Written(writer));
                }
            }
        }
        if kind == Kind::Write && is_same && mask != WHOLE && writer.mask() & mask == 0 {
            // Who wrote these bytes may be forgotten, because others of the word were written since.
            flags |= Stamp::SEVERAL;
            authors.add_all(word, now);
        }
        let reader = self.reader;
        let is_read_before = |reader: Stamp| {
            ordered.is_before(reader) && (!reader.is(Stamp::SEVERAL) || ordered.is_before_by_all(reader))
        };
        if kind == Kind::Read {
            let is_first = reader == Stamp::default() || is_read_before(reader);
            let (mask, flags) = if is_first { (mask, 0) } else { reader.also_read_by(now, mask) };
            self.reader = now.with(mask, flags);
            return found;
        }
        // Who has read what several write has written it as well, or it was an error.
        let is_again = flags & Stamp::SEVERAL != 0;
        if reader.mask() & mask != 0 && found.is_ok() && !is_again && !is_read_before(reader) {
            found = Err(Problem::Read(reader));
        }
        let mask = if now.is_of_thread(writer) && flags == 0 { mask | writer.mask() } else { mask };
        self.writer = now.with(mask, flags);
        self.reader = Stamp::default();
        found
    }

    fn arrive(&mut self, now: Stamp) {
        self.writer = now.with(self.writer.mask(), 0);
    }
}

/// The block and the warps that wrote what is in a word, for words that several warps wrote without order.
#[derive(Debug, Default)]
struct Authors(HashMap<usize, (u32, u32)>);

impl Authors {
    /// Returns whether the warp of a thread is among them.
    fn has(&self, word: usize, thread: Stamp) -> bool {
        self.0
            .get(&word)
            .is_some_and(|(block, warps)| *block == thread.block() && warps & thread.warp_bit() != 0)
    }

    /// Notes that a thread has written what is there already, which any other one may have written.
    fn add_all(&mut self, word: usize, now: Stamp) {
        self.0.insert(word, (now.block(), u32::MAX));
    }

    /// Notes that a thread has written what is there already, and what another one wrote last.
    fn add(&mut self, word: usize, last: Stamp, now: Stamp) {
        if last.is_of_warp(now) {
            // Where nobody else had written, notes are of what was there earlier.
            if !last.is(Stamp::SEVERAL) && !self.0.is_empty() {
                self.0.remove(&word);
            }
            return;
        }
        let known = self.0.get(&word).filter(|(block, _)| last.is(Stamp::SEVERAL) && *block == now.block());
        let known = known.map_or(0, |(_, warps)| *warps);
        let of_last = if last.block() == now.block() { last.warp_bit() } else { 0 };
        self.0.insert(word, (now.block(), known | of_last | now.warp_bit()));
    }
}

/// Calls a function with each word of some bytes, which of its bytes are among them, and where these begin among all; ends at the
/// first that is wrong.
#[inline]
pub(super) fn words<E>(
    at: u64,
    bytes: usize,
    mut visit: impl FnMut(usize, u64, usize) -> Result<(), E>,
) -> Result<(), E> {
    if at.is_multiple_of(WORD) && (bytes as u64).is_multiple_of(WORD) {
        let first = (at / WORD) as usize;
        return (0..bytes / WORD as usize)
            .try_for_each(|word| visit(first + word, WHOLE, word * WORD as usize));
    }
    let end = at + bytes as u64;
    let mut place = at;
    while place < end {
        let next = end.min((place / WORD + 1) * WORD);
        let mask = ((1 << (next - place)) - 1) << (place % WORD);
        visit((place / WORD) as usize, mask, (place - at) as usize)?;
        place = next;
    }
    Ok(())
}

/// The notes of a memory.
#[derive(Debug, Default)]
pub(super) struct Shadow {
    cells: Vec<Option<Box<[Cell; CHUNK]>>>,
    authors: Authors,
}

impl Shadow {
    /// Returns notes of so many bytes.
    pub(super) fn new(bytes: usize) -> Self {
        let count = (bytes / WORD as usize + 2).div_ceil(CHUNK);
        Self { cells: (0..count).map(|_| None).collect(), authors: Authors::default() }
    }

    /// Forgets everything.
    pub(super) fn begin(&mut self) {
        for chunk in self.cells.iter_mut().flatten() {
            chunk.fill(Cell::default());
        }
        self.authors.0.clear();
    }

    /// Notes an access to bytes of a word, which has to be there.
    #[inline]
    pub(super) fn visit(
        &mut self,
        word: usize,
        access: (Kind, Stamp, u64),
        is_same: bool,
        ordered: &impl Ordered,
    ) -> Result<(), Problem> {
        let Some(chunk) = self.cells.get_mut(word / CHUNK) else { return Ok(()) };
        let chunk = chunk.get_or_insert_with(|| Box::new([Cell::default(); CHUNK]));
        let (cell, (kind, now, mask)) = (&mut chunk[word % CHUNK], access);
        if kind == Kind::Read && cell.is_known(now, mask, ordered.all()) {
            return Ok(());
        }
        cell.visit(access, is_same, ordered, (word, &mut self.authors))
    }

    /// Returns who wrote some bytes of a word, if anybody has.
    pub(super) fn writer(&self, word: usize, mask: u64) -> Option<Stamp> {
        let writer = self.cells.get(word / CHUNK)?.as_ref()?[word % CHUNK].writer;
        (writer.mask() & mask != 0).then_some(writer)
    }

    /// Notes that bytes of a copy have arrived.
    pub(super) fn arrive(&mut self, word: usize, now: Stamp) {
        if let Some(Some(chunk)) = self.cells.get_mut(word / CHUNK) {
            chunk[word % CHUNK].arrive(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_keep_what_they_are_made_of() {
        let stamp = Stamp::new(77, 1023, TIME_MAX).with(0b1010, Stamp::PENDING);
        assert_eq!((stamp.block(), stamp.thread(), stamp.time()), (77, 1023, TIME_MAX));
        assert_eq!((stamp.mask(), stamp.is(Stamp::PENDING), stamp.is(Stamp::ATOMIC)), (0b1010, true, false));
    }

    #[test]
    fn bytes_are_divided_into_words() {
        let mut found = Vec::new();
        words(6, 7, |word, mask, at| {
            found.push((word, mask, at));
            Ok::<_, ()>(())
        })
        .unwrap();
        assert_eq!(found, [(1, 0b1100, 0), (2, 0b1111, 2), (3, 0b0001, 6)]);
    }
}
