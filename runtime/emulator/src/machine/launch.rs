//! Launches: blocks one after the other, the warps of a block in turn.

use super::{
    block::{Block, Place},
    dimensions::{Dimensions, LANES},
    overlap::Overlap,
    warp::{State, Warp},
};
use crate::{
    ffi::Memory,
    ptx::{Error, Kernel, Module},
};

/// The most threads of a block.
const THREADS_MAX: usize = 1024;

/// A launch of a kernel.
#[derive(Debug, Clone)]
pub struct Launch<'l> {
    /// The kernel's name.
    pub kernel: &'l str,
    /// The blocks of the grid.
    pub grid: Dimensions,
    /// The threads of a block.
    pub block: Dimensions,
    /// Bytes of dynamic shared memory.
    pub shared: usize,
    /// The bytes of each parameter.
    pub parameters: Vec<Vec<u8>>,
    /// The kernels that may run at the same time, if there are any.
    pub overlap: Option<Overlap<'l>>,
}

impl Launch<'_> {
    /// Runs the kernel to its end.
    ///
    /// # Errors
    /// There is no such kernel, it does something that is an error on a GPU, or the launch does not fit it.
    pub fn run(&self, module: &Module, memory: &Memory) -> Result<(), Error> {
        let wrong = |problem: String| Error::new(self.kernel, problem);
        let kernel = module
            .kernel(self.kernel)
            .ok_or_else(|| wrong("found no such kernel, expected one of the module".into()))?;
        let threads = self.block.count();
        if threads == 0 || threads > THREADS_MAX || self.grid.count() == 0 {
            return Err(wrong(format!(
                "found {:?} blocks of {:?} threads, expected 1 to {THREADS_MAX} threads in at least one",
                self.grid.0, self.block.0
            )));
        }
        let mut parameters = Vec::new();
        for (index, &(offset, size)) in kernel.parameters.iter().enumerate() {
            let given = self.parameters.get(index).filter(|given| given.len() == size);
            let given = given.ok_or_else(|| {
                wrong(format!("found no {size} bytes for parameter {index}, expected them"))
            })?;
            parameters.resize(offset, 0);
            parameters.extend(given);
        }
        let memory = memory.ranges();
        let mut warps = warps(kernel, threads);
        let place = |number| Place { grid: self.grid, block: self.block, index: self.grid.index(number) };
        let mut block = Block::new(kernel, place(0), self.shared, &parameters, &memory, self.overlap);
        for number in 0..self.grid.count() {
            block.begin(place(number));
            run(&mut block, &mut warps)?;
        }
        self.overlap.map_or(Ok(()), |overlap| overlap.end().map_err(wrong))
    }
}

/// Returns the warps of a block of so many threads.
fn warps(kernel: &Kernel, threads: usize) -> Vec<Warp> {
    let count = |number: usize| (threads - number * LANES).min(LANES);
    (0..threads.div_ceil(LANES)).map(|number| Warp::new(number, count(number), kernel.registers)).collect()
}

/// Runs all threads of a block to their end, with the warps of the block before.
fn run(block: &mut Block<'_>, warps: &mut [Warp]) -> Result<(), Error> {
    warps.iter_mut().for_each(Warp::begin);
    loop {
        for warp in warps.iter_mut() {
            warp.run(block)?;
        }
        if warps.iter().all(Warp::is_done) {
            return Ok(());
        }
        if !release(warps) {
            return Err(block.error(
                "found threads that wait for others at a barrier that those do not reach, expected all of them",
            ));
        }
    }
}

/// Lets threads go on that wait at a barrier which all have reached. Returns whether there was one.
fn release(warps: &mut [Warp]) -> bool {
    let waiting = |warps: &[Warp]| {
        let states = warps.iter().flat_map(|warp| warp.states.iter().copied());
        states
            .filter_map(|state| {
                if let State::AtBarrier(barrier, threads) = state { Some((barrier, threads)) } else { None }
            })
            .collect::<Vec<_>>()
    };
    let alive = warps.iter().flat_map(|warp| &warp.states).filter(|state| **state != State::Done).count();
    let all = waiting(warps);
    let complete = all.iter().find(|(barrier, threads)| {
        all.iter().filter(|(other, _)| other == barrier).count() >= threads.unwrap_or(alive)
    });
    let Some(&(barrier, _)) = complete else { return false };
    for state in warps.iter_mut().flat_map(|warp| &mut warp.states) {
        if matches!(state, State::AtBarrier(number, _) if *number == barrier) {
            *state = State::Running;
        }
    }
    true
}
