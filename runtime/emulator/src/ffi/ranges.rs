//! Memory that kernels reach.

use std::{
    cell::Cell,
    collections::BTreeMap,
    ptr,
    sync::{PoisonError, RwLock},
};

/// Global memory: allocations of this process.
#[derive(Debug, Default)]
pub struct Memory {
    /// Sizes by place.
    allocations: RwLock<BTreeMap<u64, usize>>,
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
        // SAFETY: they are borrowed until the memory is gone.
        unsafe { memory.add(place, size_of_val(numbers)) };
        work(&memory, place)
    }

    /// Lets kernels reach bytes.
    ///
    /// # Safety
    /// They can be read and written until `remove` takes them away.
    pub(super) unsafe fn add(&self, place: u64, bytes: usize) {
        self.allocations.write().unwrap_or_else(PoisonError::into_inner).insert(place, bytes);
    }

    /// Returns the size of an allocation, which kernels reach no more.
    pub(super) fn remove(&self, place: u64) -> Option<usize> {
        self.allocations.write().unwrap_or_else(PoisonError::into_inner).remove(&place)
    }

    /// Returns whether all of these bytes are in one allocation.
    pub(super) fn contains(&self, place: u64, bytes: usize) -> bool {
        let allocations = self.allocations.read().unwrap_or_else(PoisonError::into_inner);
        let Some((start, size)) = allocations.range(..=place).next_back() else { return false };
        place.checked_add(bytes as u64).is_some_and(|end| end <= start + *size as u64)
    }

    /// Returns the allocations as they are now.
    pub(crate) fn ranges(&self) -> Ranges {
        let allocations = self.allocations.read().unwrap_or_else(PoisonError::into_inner);
        let range = |(&start, &size): (&u64, &usize)| (start, start + size as u64);
        Ranges { ranges: allocations.iter().map(range).collect(), last: Cell::new(0) }
    }
}

/// The allocations that a launch reaches.
#[derive(Debug)]
pub(crate) struct Ranges {
    /// Starts and ends, in order.
    ranges: Vec<(u64, u64)>,
    /// The one that was reached last, which is likely to be reached next.
    last: Cell<usize>,
}

impl Ranges {
    /// Returns whether all of these bytes are in one allocation.
    fn contains(&self, place: u64, bytes: usize) -> bool {
        let Some(end) = place.checked_add(bytes as u64) else { return false };
        let is_in = |&(start, last): &(u64, u64)| start <= place && end <= last;
        if self.ranges.get(self.last.get()).is_some_and(is_in) {
            return true;
        }
        let index = self.ranges.partition_point(|(start, _)| *start <= place).wrapping_sub(1);
        let found = self.ranges.get(index).is_some_and(is_in);
        if found {
            self.last.set(index);
        }
        found
    }

    /// Reads bytes; returns whether they are in one allocation.
    pub(crate) fn read(&self, place: u64, bytes: &mut [u8]) -> bool {
        if !self.contains(place, bytes.len()) {
            return false;
        }
        // SAFETY: who added the allocation promised that it can be read.
        unsafe { ptr::copy_nonoverlapping(place as *const u8, bytes.as_mut_ptr(), bytes.len()) };
        true
    }

    /// Writes bytes; returns whether they are in one allocation.
    pub(crate) fn write(&self, place: u64, bytes: &[u8]) -> bool {
        if !self.contains(place, bytes.len()) {
            return false;
        }
        // SAFETY: who added the allocation promised that it can be written.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), place as *mut u8, bytes.len()) };
        true
    }
}
