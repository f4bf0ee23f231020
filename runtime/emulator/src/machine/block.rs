//! A block: where it is, and the memory that its threads reach.

use super::{
    dimensions::{Dimensions, LANES, Mask},
    overlap::{Overlap, Waiting},
    races::{Access, Races, Watch},
    shadow::Kind,
};
use crate::{
    ffi::Ranges,
    ptx::{Error, Kernel},
    types::{DYNAMIC_SHARED, LOCAL_WINDOW, SHARED_WINDOW, Space},
};

/// What memory has before anything is written to it: NaN as floats.
const UNWRITTEN: u8 = 0xff;

/// What the blocks of a launch share.
#[derive(Clone, Copy)]
pub(super) struct Grid<'b> {
    pub(super) kernel: &'b Kernel,
    pub(super) size: Dimensions,
    pub(super) block: Dimensions,
    /// Bytes of dynamic shared memory.
    pub(super) dynamic: usize,
    pub(super) parameters: &'b [u8],
    pub(super) memory: &'b Ranges,
    pub(super) overlap: Option<Overlap<'b>>,
    pub(super) races: Option<&'b Races>,
}

/// A block while it runs.
pub(super) struct Block<'b> {
    pub(super) grid: Grid<'b>,
    number: u32,
    pub(super) index: [u32; 3],
    shared: Vec<u8>,
    dynamic: Vec<u8>,
    /// Of all threads, one after the other.
    local: Vec<u8>,
    pub(super) waiting: Waiting<'b>,
    watch: Option<Watch<'b>>,
}

impl<'b> Block<'b> {
    pub(super) fn new(grid: Grid<'b>) -> Self {
        let (kernel, threads) = (grid.kernel, grid.block.count());
        let shared = [kernel.shared, grid.dynamic];
        Self {
            grid,
            number: 0,
            index: [0; 3],
            shared: vec![UNWRITTEN; kernel.shared],
            dynamic: vec![UNWRITTEN; grid.dynamic],
            local: vec![UNWRITTEN; kernel.local * threads],
            waiting: Waiting::new(grid.overlap, threads),
            watch: grid.races.map(|races| Watch::new(races, threads.div_ceil(LANES), shared)),
        }
    }

    /// Becomes a block of the grid.
    pub(super) fn begin(&mut self, number: usize) {
        self.number = number as u32;
        self.index = self.grid.size.index(number);
        for memory in [&mut self.shared, &mut self.dynamic, &mut self.local] {
            memory.fill(UNWRITTEN);
        }
        self.waiting.begin();
        if let Some(watch) = &mut self.watch {
            watch.begin();
        }
    }

    pub(super) fn error(&self, problem: impl Into<String>) -> Error {
        Error::new(format!("{} block {:?}", self.grid.kernel.name, self.index), problem)
    }

    /// Returns the index of a thread, by its warp and lane.
    pub(super) fn thread(&self, warp: usize, lane: usize) -> [u32; 3] {
        self.grid.block.index(warp * LANES + lane)
    }

    /// Notes that whole warps have met at a barrier.
    pub(super) fn meet_warps(&mut self, met: &[usize], are_all: bool) {
        if let Some(watch) = &mut self.watch {
            watch.clock.meet_warps(met, are_all);
            if are_all {
                watch.acquired.share();
            }
        }
    }

    /// Notes that lanes of a warp have met, of which `alive` are not done.
    pub(super) fn meet_lanes(&mut self, warp: usize, met: Mask, alive: Mask) {
        if let Some(watch) = &mut self.watch {
            watch.clock.meet_lanes(warp, met, alive);
            let threads: Vec<_> =
                (0..LANES).filter(|lane| met >> lane & 1 == 1).map(|lane| warp * LANES + lane).collect();
            watch.acquired.share_among(&threads);
        }
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

    /// Refuses an access that nothing orders after another one of the same bytes. The bytes are there. Returns which of those that
    /// are written are not defined then.
    #[inline]
    pub(super) fn note(
        &mut self,
        (kind, thread): (Kind, usize),
        space: Space,
        (address, bytes): (u64, usize),
        change: Option<(&[u8], &[u8])>,
    ) -> Result<Vec<usize>, String> {
        let Some(watch) = &mut self.watch else { return Ok(Vec::new()) };
        let (space, place) = resolved(space, address);
        let access = Access { kind, block: self.number, thread, place, bytes, change };
        match space {
            Space::Shared => {
                let (memory, place) = part_of_shared(place);
                watch.shared(memory, Access { place, ..access }).map(|()| Vec::new())
            }
            Space::Global => {
                let found = self.grid.memory.find(place, bytes);
                found.map_or(Ok(Vec::new()), |found| watch.global(found, access))
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Refuses to read as unchanging what this launch has written.
    pub(super) fn check_unchanging(&self, thread: usize, address: u64, bytes: usize) -> Result<(), String> {
        let (Some(watch), Some(found)) = (&self.watch, self.grid.memory.find(address, bytes)) else {
            return Ok(());
        };
        let (kind, block) = (Kind::Read, self.number);
        watch.unchanging(found, Access { kind, block, thread, place: address, bytes, change: None })
    }

    /// Acquires what was released at a place.
    pub(super) fn acquire(&mut self, place: u64, thread: usize) {
        if let Some(watch) = &mut self.watch {
            watch.acquire(place, thread);
        }
    }

    /// Releases what a thread has done and knows at a place.
    pub(super) fn release(&mut self, place: u64, thread: usize) {
        if let Some(watch) = &self.watch {
            watch.release(place, self.number, thread);
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
            (Space::Parameter, at) => copy(self.grid.parameters, at, bytes),
            (_, at) => self.grid.memory.read(at, bytes),
        }
    }

    /// Writes bytes at an address; returns whether they are there.
    pub(super) fn write(&mut self, thread: usize, space: Space, address: u64, bytes: &[u8]) -> bool {
        match resolved(space, address) {
            (Space::Shared, at) => self.write_shared(at, bytes),
            (Space::Local, at) => {
                let size = self.grid.kernel.local;
                put(&mut self.local[thread * size..][..size], at, bytes)
            }
            (Space::Parameter, _) => false,
            (_, at) => self.grid.memory.write(at, bytes),
        }
    }

    /// Writes bytes at an address in shared memory; returns whether they are there.
    fn write_shared(&mut self, address: u64, bytes: &[u8]) -> bool {
        match part_of_shared(address) {
            (0, at) => put(&mut self.shared, at, bytes),
            (_, at) => put(&mut self.dynamic, at, bytes),
        }
    }

    /// Lets bytes of a thread's copy arrive in shared memory.
    pub(super) fn arrive(&mut self, thread: usize, address: u64, bytes: &[u8]) {
        self.write_shared(address, bytes);
        if let Some(watch) = &mut self.watch {
            let (memory, at) = part_of_shared(address);
            watch.arrive(memory, thread, at, bytes.len());
        }
    }

    fn local_of(&self, thread: usize) -> &[u8] {
        &self.local[thread * self.grid.kernel.local..][..self.grid.kernel.local]
    }
}

/// Writes bytes at a place; returns whether they are there.
fn put(into: &mut [u8], at: u64, bytes: &[u8]) -> bool {
    let found = usize::try_from(at).ok().and_then(|at| into.get_mut(at..at.checked_add(bytes.len())?));
    found.map(|found| found.copy_from_slice(bytes)).is_some()
}

/// Returns whether an address is in static shared memory, 0, or in dynamic one, 1, and where.
fn part_of_shared(address: u64) -> (usize, u64) {
    address.checked_sub(DYNAMIC_SHARED).map_or((0, address), |at| (1, at))
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
