//! Memory that kernels reach.

use std::{
    cell::Cell,
    collections::BTreeMap,
    ptr,
    sync::{PoisonError, RwLock},
};

/// What memory is, and so who takes it away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Device,
    Host,
    /// Memory of the program, which the driver was told of.
    Registered,
    /// A variable of a module.
    Variable,
}

/// What is known of an allocation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allocation {
    /// What was asked for.
    pub(super) bytes: usize,
    /// What can be read: kernels may read a little more than they need.
    pub(super) padded: usize,
    pub(super) kind: Kind,
}

/// Global memory: allocations of this process.
#[derive(Debug, Default)]
pub struct Memory {
    /// By place.
    allocations: RwLock<BTreeMap<u64, Allocation>>,
}

impl Memory {
    /// Returns a memory without allocations.
    #[must_use]
    pub const fn new() -> Self {
        Self { allocations: RwLock::new(BTreeMap::new()) }
    }

    /// Lets kernels reach numbers while `work` runs, which is given their address.
    pub fn lend<T>(numbers: &mut [u32], work: impl FnOnce(&Self, u64) -> T) -> T {
        let (memory, place) = (Self::new(), numbers.as_mut_ptr() as u64);
        let bytes = size_of_val(numbers);
        // SAFETY: they are borrowed until the memory is gone.
        unsafe { memory.add(place, Allocation { bytes, padded: bytes, kind: Kind::Registered }) };
        work(&memory, place)
    }

    /// Lets kernels reach bytes.
    ///
    /// # Safety
    /// They can be read and written until `remove` takes them away.
    pub(super) unsafe fn add(&self, place: u64, allocation: Allocation) {
        self.allocations.write().unwrap_or_else(PoisonError::into_inner).insert(place, allocation);
    }

    /// Returns an allocation of a kind, which kernels reach no more.
    pub(super) fn remove(&self, place: u64, kind: Kind) -> Option<Allocation> {
        let mut allocations = self.allocations.write().unwrap_or_else(PoisonError::into_inner);
        allocations.get(&place).filter(|found| found.kind == kind)?;
        allocations.remove(&place)
    }

    /// Returns the allocation that a place is in, or less than so many bytes before or behind, and where it begins.
    pub(super) fn around(&self, place: u64, guard: u64) -> Option<(u64, Allocation)> {
        let allocations = self.allocations.read().unwrap_or_else(PoisonError::into_inner);
        // Only what was allocated here has a guard.
        let guard = |found: &Allocation| match found.kind {
            Kind::Device | Kind::Host => guard,
            Kind::Registered | Kind::Variable => 0,
        };
        let before = allocations.range(..=place).next_back();
        let before = before.filter(|(start, found)| place < *start + found.padded as u64 + guard(found));
        let behind = || {
            let next = allocations.range(place..).next();
            next.filter(|(start, found)| place + guard(found) >= **start)
        };
        before.or_else(behind).map(|(start, found)| (*start, *found))
    }

    /// Returns whether some of these bytes are in an allocation.
    pub(super) fn overlaps(&self, place: u64, bytes: usize) -> bool {
        let allocations = self.allocations.read().unwrap_or_else(PoisonError::into_inner);
        let last = allocations.range(..place.saturating_add(bytes as u64)).next_back();
        last.is_some_and(|(start, found)| place < *start + found.bytes as u64)
    }

    /// Returns whether all of these bytes are in one allocation.
    pub(super) fn contains(&self, place: u64, bytes: usize) -> bool {
        let allocations = self.allocations.read().unwrap_or_else(PoisonError::into_inner);
        let Some((start, found)) = allocations.range(..=place).next_back() else { return false };
        place.checked_add(bytes as u64).is_some_and(|end| end <= start + found.bytes as u64)
    }

    /// Returns the allocations as they are now.
    pub(crate) fn ranges(&self) -> Ranges {
        let allocations = self.allocations.read().unwrap_or_else(PoisonError::into_inner);
        let range = |(&start, found): (&u64, &Allocation)| Range {
            start,
            end: start + found.bytes as u64,
            padded_end: start + found.padded as u64,
        };
        Ranges { ranges: allocations.iter().map(range).collect(), last: Cell::new(0) }
    }
}

/// The places of an allocation.
#[derive(Debug, Clone, Copy)]
struct Range {
    start: u64,
    end: u64,
    padded_end: u64,
}

/// The allocations that a launch reaches.
#[derive(Debug)]
pub(crate) struct Ranges {
    /// In order.
    ranges: Vec<Range>,
    /// The one that was reached last, which is likely to be reached next.
    last: Cell<usize>,
}

impl Ranges {
    /// Returns the number of bytes of each allocation that can be read.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = usize> {
        self.ranges.iter().map(|range| (range.padded_end - range.start) as usize)
    }

    /// Returns the number of the allocation that all of these bytes are in, and where it begins.
    pub(crate) fn find(&self, place: u64, bytes: usize) -> Option<(usize, u64)> {
        let end = place.checked_add(bytes as u64)?;
        let is_in = |range: &Range| range.start <= place && end <= range.padded_end;
        let last = self.last.get();
        if let Some(range) = self.ranges.get(last)
            && is_in(range)
        {
            return Some((last, range.start));
        }
        let index = self.ranges.partition_point(|range| range.start <= place).checked_sub(1)?;
        let range = self.ranges.get(index).filter(|range| is_in(range))?;
        self.last.set(index);
        Some((index, range.start))
    }

    /// Reads bytes; returns whether they are in one allocation.
    pub(crate) fn read(&self, place: u64, bytes: &mut [u8]) -> bool {
        if self.find(place, bytes.len()).is_none() {
            return false;
        }
        // SAFETY: who added the allocation promised that it can be read.
        unsafe { ptr::copy_nonoverlapping(place as *const u8, bytes.as_mut_ptr(), bytes.len()) };
        true
    }

    /// Writes bytes; returns whether they are in what was asked for of one allocation.
    pub(crate) fn write(&self, place: u64, bytes: &[u8]) -> bool {
        let Some((index, _)) = self.find(place, bytes.len()) else { return false };
        if place + bytes.len() as u64 > self.ranges[index].end {
            return false;
        }
        // SAFETY: who added the allocation promised that it can be written.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), place as *mut u8, bytes.len()) };
        true
    }
}
