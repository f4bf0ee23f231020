//! Launches: some blocks at a time, whose warps take turns.

use super::{
    block::{Block, Grid},
    dimensions::{Dimensions, LANES},
    order::{Order, Turns},
    overlap::Overlap,
    races::Races,
    warp::{State, Warp},
};
use crate::{
    ffi::{Memory, Ranges},
    ptx::{Error, Kernel, Module},
};

/// The most threads of a block, and by dimension.
const THREADS_MAX: usize = 1024;
const BLOCK_MAX: Dimensions = Dimensions([1024, 1024, 64]);
/// The most blocks, by dimension.
const GRID_MAX: Dimensions = Dimensions([i32::MAX as u32, 65535, 65535]);
/// The most bytes of shared memory of a block that asks for no more.
const SHARED_MAX: usize = 48 << 10;
/// The most that a block can ask for.
pub(crate) const SHARED_OPT_IN: usize = 163 << 10;
/// Barriers have lower numbers.
const BARRIERS: u64 = 16;

/// How kernels are run, where a GPU promises nothing.
#[derive(Debug, Clone, Copy)]
pub struct Schedule {
    /// Who runs first.
    pub order: Order,
    /// Whether accesses to the same bytes have to be ordered by barriers or atomics.
    pub finds_races: bool,
    /// How many instructions a warp may run.
    pub budget: u64,
}

impl Default for Schedule {
    fn default() -> Self {
        Self { order: Order::Seed(0), finds_races: true, budget: 1 << 28 }
    }
}

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
    /// The most of them that the kernel was allowed, if it was.
    pub shared_allowed: Option<usize>,
    /// The bytes of each parameter.
    pub parameters: Vec<Vec<u8>>,
    /// The kernels that may run at the same time, if there are any.
    pub overlap: Option<Overlap<'l>>,
    /// How it is run.
    pub schedule: Schedule,
}

impl Launch<'_> {
    /// Runs the kernel to its end.
    ///
    /// # Errors
    /// There is no such kernel, it does something that is an error on a GPU, or the launch does not fit it.
    pub fn run(&self, module: &Module, memory: &Memory) -> Result<(), Error> {
        self.run_on(module, &memory.ranges())
    }

    /// Runs the kernel to its end, on what it reaches of memory.
    pub(crate) fn run_on(&self, module: &Module, memory: &Ranges) -> Result<(), Error> {
        let wrong = |problem: String| Error::new(self.kernel, problem);
        let kernel = module
            .kernel(self.kernel)
            .ok_or_else(|| wrong("found no such kernel, expected one of the module".into()))?;
        self.check_sizes(kernel).map_err(wrong)?;
        let mut parameters = Vec::new();
        for (index, &(offset, size)) in kernel.parameters.iter().enumerate() {
            let given = self.parameters.get(index).filter(|given| given.len() == size);
            let given = given.ok_or_else(|| {
                wrong(format!("found no {size} bytes for parameter {index}, expected them"))
            })?;
            parameters.resize(offset, 0);
            parameters.extend(given);
        }
        let races = self.schedule.finds_races.then(|| Races::new(memory));
        self.run_blocks(Grid {
            kernel,
            size: self.grid,
            block: self.block,
            dynamic: self.shared,
            parameters: &parameters,
            memory,
            overlap: self.overlap,
            races: races.as_ref(),
        })?;
        self.overlap.map_or(Ok(()), |overlap| overlap.end().map_err(wrong))
    }

    /// Refuses a launch that is too large for the device or for the kernel.
    fn check_sizes(&self, kernel: &Kernel) -> Result<(), String> {
        let is_in = |sizes: Dimensions, most: Dimensions| {
            sizes.0.iter().zip(most.0).all(|(size, most)| (1..=most).contains(size))
        };
        let threads = self.block.count();
        if !is_in(self.block, BLOCK_MAX) || !is_in(self.grid, GRID_MAX) || threads > THREADS_MAX {
            return Err(format!(
                "found {:?} blocks of {:?} threads, expected 1 to {THREADS_MAX} threads in at least one",
                self.grid.0, self.block.0
            ));
        }
        if let Some(most) = kernel.threads_max.filter(|most| threads > *most) {
            return Err(format!("found blocks of {threads} threads, expected at most {most} of .maxntid"));
        }
        if let Some(needed) = kernel.threads_needed.filter(|needed| *needed != self.block.0) {
            return Err(format!(
                "found blocks of {:?} threads, expected {:?} of .reqntid",
                self.block.0, needed
            ));
        }
        let most = match self.shared_allowed {
            Some(allowed) => {
                let needed = kernel.shared_needed;
                SHARED_OPT_IN.min(allowed.max(SHARED_MAX.saturating_sub(needed)) + needed)
            }
            None => SHARED_MAX,
        };
        let shared = self.shared.saturating_add(kernel.shared_needed);
        if shared > most {
            return Err(format!("found {shared} bytes of shared memory, expected at most {most}"));
        }
        Ok(())
    }

    fn run_blocks(&self, grid: Grid<'_>) -> Result<(), Error> {
        let mut turns = Turns::new(self.schedule.order);
        let mut left = turns.blocks(self.grid.count());
        let count = turns.resident().min(left.len());
        let mut residents: Vec<_> = (0..count).map(|_| Resident::new(grid)).collect();
        for resident in &mut residents {
            resident.begin(left.pop());
        }
        while !residents.is_empty() {
            let number = turns.choose(residents.len());
            if residents[number].advance(&mut turns, self.schedule.budget)? {
                let next = left.pop();
                if next.is_some() {
                    residents[number].begin(next);
                } else {
                    residents.remove(number);
                }
            }
        }
        Ok(())
    }
}

/// A block that is under way, with its warps.
struct Resident<'b> {
    block: Block<'b>,
    warps: Vec<Warp>,
}

impl<'b> Resident<'b> {
    fn new(grid: Grid<'b>) -> Self {
        let threads = grid.block.count();
        let count = |number: usize| (threads - number * LANES).min(LANES);
        let warp = |number| Warp::new(number, count(number), grid.kernel.registers);
        Self { block: Block::new(grid), warps: (0..threads.div_ceil(LANES)).map(warp).collect() }
    }

    /// Becomes a block of the grid, if there is one left.
    fn begin(&mut self, number: Option<usize>) {
        if let Some(number) = number {
            self.block.begin(number);
            self.warps.iter_mut().for_each(Warp::begin);
        }
    }

    /// Lets one of the warps have its turn. Returns whether all are done.
    fn advance(&mut self, turns: &mut Turns, budget: u64) -> Result<bool, Error> {
        let Self { block, warps } = self;
        let running: Vec<_> = (0..warps.len()).filter(|warp| warps[*warp].is_running()).collect();
        if !running.is_empty() {
            warps[running[turns.choose(running.len())]].run(block, turns, budget)?;
            return Ok(false);
        }
        if warps.iter().all(Warp::is_done) {
            return Ok(true);
        }
        if !release(warps, block).map_err(|problem| block.error(problem))? {
            return Err(block.error(
                "found threads that wait for others at a barrier that those do not reach, expected all of them",
            ));
        }
        Ok(false)
    }
}

/// Lets threads go on that wait at a barrier which all have reached. Returns whether there was one.
fn release(warps: &mut [Warp], block: &mut Block<'_>) -> Result<bool, String> {
    let mut waiting = Vec::new();
    for (number, warp) in warps.iter().enumerate() {
        let mut states = warp.states.iter().filter(|state| **state != State::Done);
        // A warp has come to a barrier when all its lanes have.
        if let Some(&State::AtBarrier(barrier, threads)) = states.next()
            && states.all(|state| *state == State::AtBarrier(barrier, threads))
        {
            waiting.push((number, barrier, threads));
        }
    }
    let alive = warps.iter().filter(|warp| !warp.is_done()).count();
    for &(_, barrier, threads) in &waiting {
        check_barrier(barrier, threads)?;
        let here: Vec<_> = waiting.iter().filter(|(_, other, _)| *other == barrier).collect();
        if here.iter().any(|(.., other)| *other != threads) {
            return Err(format!("found different numbers of threads for barrier {barrier}, expected one"));
        }
        let expected = threads.map_or(alive, |threads| threads / LANES);
        if here.len() < expected {
            continue;
        }
        // Those that come later wait for others.
        let met: Vec<_> = here.iter().take(expected).map(|(number, ..)| *number).collect();
        block.meet_warps(&met, met.len() == alive);
        for warp in met {
            let states = warps[warp].states.iter_mut();
            states.filter(|state| **state != State::Done).for_each(|state| *state = State::Running);
        }
        return Ok(true);
    }
    Ok(false)
}

/// Refuses a barrier that no GPU has.
fn check_barrier(number: u64, threads: Option<usize>) -> Result<(), String> {
    if number >= BARRIERS {
        return Err(format!("found barrier {number}, expected a number below {BARRIERS}"));
    }
    match threads {
        Some(threads) if threads == 0 || threads % LANES != 0 => {
            Err(format!("found {threads} threads for a barrier, expected a multiple of {LANES}"))
        }
        _ => Ok(()),
    }
}
