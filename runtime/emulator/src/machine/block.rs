//! A block: where it is, and the memory that its threads reach.

use super::{
    dimensions::{Dimensions, LANES},
    overlap::{Overlap, Waiting},
};
use crate::{
    ffi::Ranges,
    ptx::{Error, Kernel},
    types::{DYNAMIC_SHARED, LOCAL_WINDOW, SHARED_WINDOW, Space},
};

/// What shared memory has before anything is written to it: numbers that no kernel means.
const UNWRITTEN: u8 = 0xa5;

/// Where a block is in its grid.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) grid: Dimensions,
    pub(super) block: Dimensions,
    pub(super) index: [u32; 3],
}

/// A block while it runs.
pub(super) struct Block<'b> {
    pub(super) kernel: &'b Kernel,
    pub(super) place: Place,
    parameters: &'b [u8],
    memory: &'b Ranges,
    shared: Vec<u8>,
    dynamic: Vec<u8>,
    /// Of all threads, one after the other.
    local: Vec<u8>,
    pub(super) waiting: Waiting<'b>,
}

impl<'b> Block<'b> {
    pub(super) fn new(
        kernel: &'b Kernel,
        place: Place,
        dynamic: usize,
        parameters: &'b [u8],
        memory: &'b Ranges,
        overlap: Option<Overlap<'b>>,
    ) -> Self {
        Self {
            kernel,
            place,
            parameters,
            memory,
            shared: vec![UNWRITTEN; kernel.shared],
            dynamic: vec![UNWRITTEN; dynamic],
            local: vec![UNWRITTEN; kernel.local * place.block.count()],
            waiting: Waiting::new(overlap, place.block.count()),
        }
    }

    /// Becomes another block of the grid.
    pub(super) fn begin(&mut self, place: Place) {
        self.place = place;
        for memory in [&mut self.shared, &mut self.dynamic, &mut self.local] {
            memory.fill(UNWRITTEN);
        }
        self.waiting.begin();
    }

    pub(super) fn error(&self, problem: impl Into<String>) -> Error {
        Error::new(format!("{} block {:?}", self.kernel.name, self.place.index), problem)
    }

    /// Returns the index of a thread, by its warp and lane.
    pub(super) fn thread(&self, warp: usize, lane: usize) -> [u32; 3] {
        self.place.block.index(warp * LANES + lane)
    }

    /// Refuses to load so many bytes from a place before the kernels ahead that write there have ended.
    pub(super) fn check_load(
        &self,
        thread: usize,
        space: Space,
        (address, bytes): (u64, usize),
        unchanging: bool,
    ) -> Result<(), String> {
        match resolved(space, address) {
            (Space::Global, at) => self.waiting.check_load(thread, at, bytes, unchanging),
            _ => Ok(()),
        }
    }

    /// Refuses to store before the kernels ahead have ended.
    pub(super) fn check_store(
        &self,
        thread: usize,
        space: Space,
        (address, bytes): (u64, usize),
    ) -> Result<(), String> {
        match resolved(space, address) {
            (Space::Global, at) => self.waiting.store(thread, at, bytes),
            _ => Ok(()),
        }
    }

    /// Reads bytes that a thread has at an address; returns whether they are there.
    pub(super) fn read(&self, thread: usize, space: Space, address: u64, bytes: &mut [u8]) -> bool {
        let copy = |from: &[u8], at: u64, bytes: &mut [u8]| {
            let found = usize::try_from(at).ok().and_then(|at| from.get(at..at.checked_add(bytes.len())?));
            found.map(|found| bytes.copy_from_slice(found)).is_some()
        };
        match resolved(space, address) {
            (Space::Shared, at) if at >= DYNAMIC_SHARED => copy(&self.dynamic, at - DYNAMIC_SHARED, bytes),
            (Space::Shared, at) => copy(&self.shared, at, bytes),
            (Space::Local, at) => copy(self.local_of(thread), at, bytes),
            (Space::Parameter, at) => copy(self.parameters, at, bytes),
            (_, at) => self.memory.read(at, bytes),
        }
    }

    /// Writes bytes at an address; returns whether they are there.
    pub(super) fn write(&mut self, thread: usize, space: Space, address: u64, bytes: &[u8]) -> bool {
        match resolved(space, address) {
            (Space::Shared, at) => self.write_shared(at, bytes),
            (Space::Local, at) => {
                let size = self.kernel.local;
                put(&mut self.local[thread * size..][..size], at, bytes)
            }
            (Space::Parameter, _) => false,
            (_, at) => self.memory.write(at, bytes),
        }
    }

    /// Writes bytes at an address in shared memory; returns whether they are there.
    pub(super) fn write_shared(&mut self, address: u64, bytes: &[u8]) -> bool {
        match address.checked_sub(DYNAMIC_SHARED) {
            Some(at) => put(&mut self.dynamic, at, bytes),
            None => put(&mut self.shared, address, bytes),
        }
    }

    fn local_of(&self, thread: usize) -> &[u8] {
        &self.local[thread * self.kernel.local..][..self.kernel.local]
    }
}

/// Writes bytes at a place; returns whether they are there.
fn put(into: &mut [u8], at: u64, bytes: &[u8]) -> bool {
    let found = usize::try_from(at).ok().and_then(|at| into.get_mut(at..at.checked_add(bytes.len())?));
    found.map(|found| found.copy_from_slice(bytes)).is_some()
}

/// Returns the space that a generic address is in, and the address there.
fn resolved(space: Space, address: u64) -> (Space, u64) {
    match space {
        Space::Generic if address & LOCAL_WINDOW != 0 => (Space::Local, address - LOCAL_WINDOW),
        Space::Generic if address & SHARED_WINDOW != 0 => (Space::Shared, address - SHARED_WINDOW),
        Space::Generic => (Space::Global, address),
        _ => (space, address),
    }
}
