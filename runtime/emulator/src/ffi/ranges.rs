//! Memory that kernels reach.

use std::{
    cell::Cell,
    collections::BTreeMap,
    mem, ptr,
    sync::{PoisonError, RwLock},
};

use super::contexts::Context;

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
    /// The context that it goes with, if that is known.
    pub(super) context: Option<&'static Context>,
}

impl Allocation {
    /// Returns whether kernels of a context reach it: memory of the host, all do.
    pub(super) fn is_reached_by(&self, context: &Context) -> bool {
        match self.kind {
            Kind::Host | Kind::Registered => true,
            Kind::Device | Kind::Variable => self.is_of(context),
        }
    }

    fn is_of(&self, context: &Context) -> bool {
        self.context.is_some_and(|found| ptr::eq(found, context))
    }
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
        unsafe {
            memory.add(place, Allocation { bytes, padded: bytes, kind: Kind::Registered, context: None })
        };
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

    /// Returns all allocations of a context, which kernels reach no more.
    pub(super) fn remove_all(&self, context: &Context) -> BTreeMap<u64, Allocation> {
        let mut allocations = self.allocations.write().unwrap_or_else(PoisonError::into_inner);
        let (taken, left) =
            mem::take(&mut *allocations).into_iter().partition(|(_, found)| found.is_of(context));
        *allocations = left;
        taken
    }

    /// Returns the bytes of some allocations, with their padding.
    pub(super) fn sum(&self, is_counted: impl Fn(&Allocation) -> bool) -> u64 {
        let allocations = self.allocations.read().unwrap_or_else(PoisonError::into_inner);
        allocations.values().filter(|found| is_counted(found)).map(|found| found.padded as u64).sum()
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

    /// Returns all allocations as they are now.
    pub(crate) fn ranges(&self) -> Ranges {
        self.ranges_of(|_| true)
    }

    /// Returns some of the allocations as they are now.
    pub(super) fn ranges_of(&self, is_reached: impl Fn(&Allocation) -> bool) -> Ranges {
        let allocations = self.allocations.read().unwrap_or_else(PoisonError::into_inner);
        let range = |(&start, found): (&u64, &Allocation)| Range {
            start,
            end: start + found.bytes as u64,
            padded_end: start + found.padded as u64,
        };
        Ranges {
            ranges: allocations.iter().filter(|(_, found)| is_reached(found)).map(range).collect(),
            last: Cell::new(0),
        }
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
