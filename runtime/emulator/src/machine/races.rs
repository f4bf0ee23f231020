//! Accesses to the same bytes by threads that nothing orders.

use std::cell::RefCell;

use super::{
    chains::{Acquired, Chains},
    clock::Clock,
    shadow::{Kind, Ordered, Problem, Shadow, Stamp, words},
};
use crate::ffi::Ranges;

/// What a kernel has done to global memory.
#[derive(Debug)]
pub(super) struct Races {
    /// By allocation.
    global: RefCell<Vec<Shadow>>,
    pub(super) chains: Chains,
}

impl Races {
    pub(super) fn new(memory: &Ranges) -> Self {
        let global = memory.sizes().map(Shadow::new).collect();
        Self { global: RefCell::new(global), chains: Chains::default() }
    }
}

/// An access, and who makes it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Access<'a> {
    pub(super) kind: Kind,
    pub(super) block: u32,
    pub(super) thread: usize,
    pub(super) place: u64,
    pub(super) bytes: usize,
    /// What is there, and what is to be written, if it is known.
    pub(super) change: Option<(&'a [u8], &'a [u8])>,
}

impl Access<'_> {
    /// Returns whether those of its bytes that are in a word stay as they are.
    fn leaves(&self, at: usize, mask: u64) -> bool {
        let count = mask.count_ones() as usize;
        self.change.is_some_and(|(before, after)| before[at..at + count] == after[at..at + count])
    }

    fn wrong(&self, problem: Problem) -> String {
        let (is_read, own) = (self.kind == Kind::Read, Stamp::new(self.block, 0, 0).block());
        let does = if is_read { "reads" } else { "writes" };
        let who = |stamp: Stamp| {
            let block = stamp.block();
            let of = if block == own { String::new() } else { format!(" of block {block}") };
            format!("thread {}{of}", stamp.thread())
        };
        let begin = format!("found thread {} that {does} {:#x}", self.thread, self.place);
        let ordered = |stamp: Stamp| {
            if stamp.block() == own {
                "expected a barrier between both"
            } else {
                "expected an atomic that releases and one that acquires between both"
            }
        };
        match problem {
            Problem::Written(other) => format!("{begin}, which {} writes, {}", who(other), ordered(other)),
            Problem::Read(other) => format!("{begin}, which {} reads, {}", who(other), ordered(other)),
            Problem::Pending(other) => format!(
                "{begin}, where a copy of {} is under way, expected cp.async.wait_group before it",
                who(other)
            ),
        }
    }
}

/// What orders the accesses of a thread.
struct View<'v> {
    clock: &'v Clock,
    acquired: &'v Acquired,
    block: u32,
    thread: usize,
}

impl Ordered for View<'_> {
    #[inline]
    fn is_before(&self, stamp: Stamp) -> bool {
        if stamp.block() == self.block {
            return self.clock.is_before(stamp.thread(), stamp.time(), self.thread);
        }
        self.acquired.has(self.thread, (stamp.block(), stamp.thread(), stamp.time()))
    }

    fn all(&self) -> u32 {
        self.clock.all()
    }

    fn is_before_by_all(&self, stamp: Stamp) -> bool {
        // What several blocks read, only the last of them is known of.
        stamp.block() != self.block || self.clock.is_before_by_all(stamp.time(), self.thread)
    }
}

/// What a block needs to find races.
#[derive(Debug)]
pub(super) struct Watch<'w> {
    races: &'w Races,
    pub(super) clock: Clock,
    pub(super) acquired: Acquired,
    /// Of static and of dynamic shared memory.
    shared: [Shadow; 2],
}

impl<'w> Watch<'w> {
    pub(super) fn new(races: &'w Races, warps: usize, shared: [usize; 2]) -> Self {
        let shared = shared.map(Shadow::new);
        Self { races, clock: Clock::new(warps), acquired: Acquired::default(), shared }
    }

    /// Begins again, with another block.
    pub(super) fn begin(&mut self) {
        self.clock.begin();
        self.acquired.begin();
        self.shared.iter_mut().for_each(Shadow::begin);
    }

    /// Notes an access to shared memory: static, 0, or dynamic, 1.
    #[inline]
    pub(super) fn shared(&mut self, memory: usize, access: Access<'_>) -> Result<(), String> {
        let access = Access { block: 0, ..access };
        let Self { clock, acquired, shared, .. } = self;
        let view = View { clock, acquired, block: 0, thread: access.thread };
        let now = Stamp::new(0, access.thread, clock.now());
        words(access.place, access.bytes, |word, mask, at| {
            let is_same = access.leaves(at, mask);
            shared[memory].visit(word, (access.kind, now, mask), is_same, &view)
        })
        .map_err(|problem| access.wrong(problem))
    }

    /// Notes that bytes of a thread's copy have arrived in shared memory.
    pub(super) fn arrive(&mut self, memory: usize, thread: usize, place: u64, bytes: usize) {
        let now = Stamp::new(0, thread, self.clock.now());
        let _ = words(place, bytes, |word, _, _| {
            self.shared[memory].arrive(word, now);
            Ok::<_, ()>(())
        });
    }

    /// Notes an access to an allocation, which begins at `start`. Returns which of the bytes that are written other threads write
    /// too, without order: what is there then is not defined.
    pub(super) fn global(
        &self,
        (allocation, start): (usize, u64),
        access: Access<'_>,
    ) -> Result<Vec<usize>, String> {
        let now = Stamp::new(access.block, access.thread, self.clock.now());
        let view =
            View { clock: &self.clock, acquired: &self.acquired, block: now.block(), thread: access.thread };
        let mut global = self.races.global.borrow_mut();
        let Some(shadow) = global.get_mut(allocation) else { return Ok(Vec::new()) };
        let mut undefined = Vec::new();
        // Words of an allocation that does not begin with one are counted from the one that it begins in.
        words(access.place - start / 4 * 4, access.bytes, |word, mask, at| {
            let found = shadow.visit(word, (access.kind, now, mask), access.leaves(at, mask), &view);
            if access.kind == Kind::Write && matches!(found, Err(Problem::Written(_))) {
                undefined.extend(at..at + mask.count_ones() as usize);
                return Ok(());
            }
            found
        })
        .map_err(|problem| access.wrong(problem))?;
        Ok(undefined)
    }

    /// Refuses to read as unchanging what this launch has written.
    pub(super) fn unchanging(
        &self,
        (allocation, start): (usize, u64),
        access: Access<'_>,
    ) -> Result<(), String> {
        let global = self.races.global.borrow();
        let Some(shadow) = global.get(allocation) else { return Ok(()) };
        words(access.place - start / 4 * 4, access.bytes, |word, mask, _| match shadow.writer(word, mask) {
            Some(_) => {
                Err("found a load of what the kernel itself writes, expected one without .nc".to_owned())
            }
            None => Ok(()),
        })
    }

    pub(super) fn acquire(&mut self, place: u64, thread: usize) {
        self.acquired.acquire(&self.races.chains, place, thread);
    }

    pub(super) fn release(&self, place: u64, block: u32, thread: usize) {
        let block = Stamp::new(block, 0, 0).block();
        self.acquired.release(&self.races.chains, place, block, thread, &self.clock);
    }
}
