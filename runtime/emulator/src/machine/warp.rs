//! A warp: 32 lanes that take one instruction together if they are at the same place.

use super::{
    block::Block,
    copies::Copies,
    dimensions::{LANES, Mask},
    order::Turns,
};
use crate::ptx::{Address, Barrier, Error, Guard, Instruction, Operand, Special, Work};

/// What registers have when a block begins: NaN as floats.
const UNDEFINED: u64 = u64::MAX;

/// What a lane does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Running,
    /// It waits for so many threads at a barrier; for all without a number.
    AtBarrier(u64, Option<usize>),
    /// It waits for other lanes at its instruction.
    ForLanes,
    Done,
}

/// A warp.
pub(super) struct Warp {
    pub(super) number: usize,
    /// The number of its threads.
    count: usize,
    pub(super) states: Vec<State>,
    /// The next instruction of each lane.
    pub(super) next: Vec<usize>,
    /// The instructions that are left of its turn, and those that it has run in its block.
    left: u64,
    spent: u64,
    /// Those of its turn that it gave away.
    unused: u64,
    /// Whether others have their turn before it has to wait.
    takes_turns: bool,
    /// What the numbers of lanes are combined with, by xor, for the order in which they reach memory.
    first_lane: usize,
    /// By register, then by lane.
    pub(super) registers: Vec<[u64; LANES]>,
    pub(super) copies: Copies,
}

/// Returns the lanes of a mask.
pub(super) fn lanes(mask: Mask) -> impl Iterator<Item = usize> {
    (0..LANES).filter(move |lane| mask >> lane & 1 == 1)
}

/// Returns the lanes for which something holds.
fn mask_of(holds: impl Fn(usize) -> bool) -> Mask {
    (0..LANES).fold(0, |mask, lane| mask | Mask::from(holds(lane)) << lane)
}

impl Warp {
    pub(super) fn new(number: usize, count: usize, registers: usize) -> Self {
        let (states, next) = (vec![State::Done; LANES], vec![0; LANES]);
        Self {
            number,
            count,
            states,
            next,
            left: 0,
            spent: 0,
            unused: 0,
            takes_turns: false,
            first_lane: 0,
            registers: vec![[0; LANES]; registers],
            copies: Copies::new(number * LANES),
        }
    }

    /// Begins again, with another block.
    pub(super) fn begin(&mut self) {
        self.states[..self.count].fill(State::Running);
        self.next.fill(0);
        self.registers.fill([UNDEFINED; LANES]);
        self.spent = 0;
        self.copies.begin();
    }

    pub(super) fn is_done(&self) -> bool {
        self.states.iter().all(|state| *state == State::Done)
    }

    /// Returns whether some of its lanes have something to run.
    pub(super) fn is_running(&self) -> bool {
        self.states.contains(&State::Running)
    }

    /// Returns the lanes that are not done.
    pub(super) fn alive(&self) -> Mask {
        !self.lanes_in(State::Done)
    }

    pub(super) fn lanes_in(&self, state: State) -> Mask {
        mask_of(|lane| self.states[lane] == state)
    }

    /// Runs until each lane is done or waits for other warps, or until its turn ends. It may run `budget` instructions in its block.
    pub(super) fn run(&mut self, block: &mut Block<'_>, turns: &mut Turns, budget: u64) -> Result<(), Error> {
        let slice = turns.slice();
        let turn = slice.min(budget - self.spent);
        self.takes_turns = slice != u64::MAX;
        (self.left, self.unused) = (turn, 0);
        self.first_lane = turns.lanes();
        let kernel = block.grid.kernel;
        loop {
            let running = self.lanes_in(State::Running);
            let Some((at, are_waited_for)) = self.first(&kernel.code, running) else { break };
            if self.left == 0 {
                self.spent += turn - self.unused;
                if self.spent >= budget {
                    let place = &kernel.code[at].text;
                    let problem = format!("{place}: found {budget} instructions of a warp, expected an end");
                    return Err(block.error(problem));
                }
                return Ok(());
            }
            let mask = running & mask_of(|lane| self.next[lane] == at);
            let at = if are_waited_for {
                at
            } else {
                let others = lanes(running & !mask).map(|lane| self.next[lane]).min().unwrap_or(usize::MAX);
                let at = self.run_together(block, at, mask, others)?;
                if at >= others || self.left == 0 {
                    lanes(mask).for_each(|lane| self.next[lane] = at);
                    continue;
                }
                at
            };
            // Lanes that are at it wait for the others, which may be in a branch whose code comes later.
            let is_early = mask != running && kernel.code[at].work.is_of_all();
            if is_early && lanes(running & !mask).any(|lane| !kernel.code[self.next[lane]].work.is_of_all()) {
                lanes(mask).for_each(|lane| self.next[lane] = at);
                continue;
            }
            self.left -= 1;
            let active = self.active(mask, kernel.code[at].guard);
            lanes(mask).for_each(|lane| self.next[lane] = at + 1);
            self.step(block, &kernel.code[at], at, active)?;
        }
        self.spent += turn - self.left - self.unused;
        let waiting = self.lanes_in(State::ForLanes);
        if waiting == 0 {
            return Ok(());
        }
        let place = lanes(waiting).next().map_or("", |lane| kernel.code[self.next[lane]].text.as_str());
        Err(block.error(format!(
            "{place}: found lanes {waiting:#x} that wait for others, expected all of its mask"
        )))
    }

    /// Returns where the lanes are that go first: those that are behind, so that all meet again after a branch. Where those have come
    /// to what all lanes do at once, the first of the others do, and true.
    fn first(&self, code: &[Instruction], running: Mask) -> Option<(usize, bool)> {
        let behind = lanes(running).map(|lane| self.next[lane]).min()?;
        if !code[behind].work.is_of_all() {
            return Some((behind, false));
        }
        let others = lanes(running).map(|lane| self.next[lane]).filter(|at| !code[*at].work.is_of_all());
        Some(others.min().map_or((behind, false), |at| (at, true)))
    }

    /// Runs instructions of lanes that are at one place, until one may part them, their turn ends, or they have come to `end`, where
    /// others are. Returns the next one.
    fn run_together(
        &mut self,
        block: &mut Block<'_>,
        mut at: usize,
        mask: Mask,
        end: usize,
    ) -> Result<usize, Error> {
        let code = &block.grid.kernel.code;
        let is_whole = mask == self.alive();
        while at < end && self.left > 0 {
            let instruction = &code[at];
            let active = self.active(mask, instruction.guard);
            match &instruction.work {
                Work::Branch(target) if active == mask => {
                    self.left -= 1;
                    at = *target;
                    continue;
                }
                Work::Branch(_) if active != 0 => return Ok(at),
                work if work.goes_on() => {
                    self.step(block, instruction, at, active)?;
                    if matches!(work, Work::Atomic { .. }) {
                        // Others may have their turn between two of them.
                        if self.takes_turns {
                            self.unused += self.left - 1;
                            self.left = 1;
                        }
                    }
                }
                work if work.is_of_lanes() && active == mask && is_whole && self.takes_all(work, active) => {
                    let done = self.together(block, work, active);
                    done.map_err(|problem| block.error(format!("{}: {problem}", instruction.text)))?;
                }
                Work::Branch(_) => {}
                _ => return Ok(at),
            }
            self.left -= 1;
            at += 1;
        }
        Ok(at)
    }

    /// Returns the lanes whose predicate is what an instruction expects.
    fn active(&self, mask: Mask, guard: Option<Guard>) -> Mask {
        let Some(Guard { register, expected }) = guard else { return mask };
        let values = &self.registers[register];
        mask & mask_of(|lane| (values[lane] != 0) == expected)
    }

    /// Runs an instruction at `at` for some lanes.
    fn step(
        &mut self,
        block: &mut Block<'_>,
        instruction: &Instruction,
        at: usize,
        active: Mask,
    ) -> Result<(), Error> {
        let wrong =
            |block: &Block<'_>, problem: String| block.error(format!("{}: {problem}", instruction.text));
        match &instruction.work {
            Work::Nothing => {}
            Work::Unary(function, into, x) => {
                let x = self.lanes_of(block, *x, &mut None).map(function);
                self.set(*into, active, &x);
            }
            Work::Binary(function, into, [x, y]) => {
                let [first, second] = &mut [const { None }; 2];
                let (x, y) = (self.lanes_of(block, *x, first), self.lanes_of(block, *y, second));
                let result = std::array::from_fn(|lane| function(x[lane], y[lane]));
                self.set(*into, active, &result);
            }
            Work::Ternary(function, into, [x, y, z]) => {
                let [first, second, third] = &mut [const { None }; 3];
                let (x, y) = (self.lanes_of(block, *x, first), self.lanes_of(block, *y, second));
                let z = self.lanes_of(block, *z, third);
                let result = std::array::from_fn(|lane| function(x[lane], y[lane], z[lane]));
                self.set(*into, active, &result);
            }
            Work::Adjusted(adjust, function, into) => {
                let values = self.adjusted(block, *adjust, *function);
                self.set(*into, active, &values);
            }
            Work::Pack(into, parts, bits) => {
                let mut whole = [0; LANES];
                for (index, part) in parts.iter().enumerate() {
                    let values = self.values(block, *part);
                    let shift = index as u32 * bits;
                    lanes(active).for_each(|lane| whole[lane] |= (values[lane] & low_bits(*bits)) << shift);
                }
                lanes(active).for_each(|lane| self.registers[*into][lane] = whole[lane]);
            }
            Work::Unpack(parts, whole, bits) => {
                let values = self.values(block, *whole);
                for (index, into) in parts.iter().enumerate() {
                    let Some(into) = into else { continue };
                    let shift = index as u32 * bits;
                    lanes(active).for_each(|lane| {
                        self.registers[*into][lane] = values[lane] >> shift & low_bits(*bits)
                    });
                }
            }
            Work::Branch(target) => lanes(active).for_each(|lane| self.next[lane] = *target),
            Work::Return => lanes(active).for_each(|lane| self.states[lane] = State::Done),
            Work::Barrier(barrier) => {
                self.come_to(block, *barrier, active).map_err(|problem| wrong(block, problem))?;
            }
            Work::Load { .. } | Work::Store { .. } | Work::Atomic { .. } | Work::Copy { .. } => {
                let first = self.first_lane;
                for lane in (0..LANES).map(|lane| lane ^ first).filter(|lane| active >> lane & 1 == 1) {
                    self.access(block, &instruction.work, lane).map_err(|problem| wrong(block, problem))?;
                }
            }
            Work::EndCopies => self.copies.end_group(active),
            Work::AwaitKernels => lanes(active).for_each(|lane| block.waiting.wait(self.thread(lane))),
            Work::StartNext => lanes(active).for_each(|lane| block.waiting.start_next(self.thread(lane))),
            Work::AwaitCopies(groups) => self.copies.wait(block, active, *groups),
            work => {
                self.meet(block, work, at, active).map_err(|problem| wrong(block, problem))?;
            }
        }
        Ok(())
    }

    /// Lets lanes wait at a barrier.
    fn come_to(&mut self, block: &Block<'_>, barrier: Barrier, active: Mask) -> Result<(), String> {
        let Barrier { number, threads, aligned } = barrier;
        let alive = self.alive();
        if aligned && active != 0 && active != alive {
            return Err(format!("found lanes {active:#x} at an aligned barrier, expected {alive:#x}"));
        }
        let numbers = self.values(block, number);
        let counts = threads.map(|threads| self.values(block, threads));
        for lane in lanes(active) {
            let count = counts.map(|counts| (counts[lane] & low_bits(32)) as usize);
            self.states[lane] = State::AtBarrier(numbers[lane] & low_bits(32), count);
        }
        Ok(())
    }

    /// Returns the index of a lane's thread in its block.
    pub(super) fn thread(&self, lane: usize) -> usize {
        self.number * LANES + lane
    }

    /// Returns the address that a lane means.
    pub(super) fn place(&self, Address { base, offset }: Address, lane: usize) -> u64 {
        base.map_or(0, |base| self.registers[base][lane]).wrapping_add(offset)
    }

    pub(super) fn value(&self, block: &Block<'_>, operand: Operand, lane: usize) -> u64 {
        match operand {
            Operand::Register(register) => self.registers[register][lane],
            Operand::Constant(value) => value,
            Operand::Special(special) => {
                let of = |sizes: [u32; 3], dimension: usize| u64::from(sizes[dimension]);
                match special {
                    Special::Thread(dimension) => of(block.thread(self.number, lane), dimension),
                    Special::BlockSize(dimension) => of(block.grid.block.0, dimension),
                    Special::Block(dimension) => of(block.index, dimension),
                    Special::GridSize(dimension) => of(block.grid.size.0, dimension),
                    Special::Lane => lane as u64,
                    Special::Warp => self.number as u64,
                }
            }
        }
    }

    /// Returns what an operand is in each lane; what is in no register has its place in `made`, which is empty before: clearing it
    /// took as long as many instructions.
    fn lanes_of<'w>(
        &'w self,
        block: &Block<'_>,
        operand: Operand,
        made: &'w mut Option<[u64; LANES]>,
    ) -> &'w [u64; LANES] {
        match operand {
            Operand::Register(register) => &self.registers[register],
            Operand::Constant(value) => made.insert([value; LANES]),
            Operand::Special(_) => made.insert(std::array::from_fn(|lane| self.value(block, operand, lane))),
        }
    }

    /// Returns what an operand is in each lane.
    pub(super) fn values(&self, block: &Block<'_>, operand: Operand) -> [u64; LANES] {
        *self.lanes_of(block, operand, &mut None)
    }

    /// Sets a register in some lanes.
    fn set(&mut self, register: usize, active: Mask, values: &[u64; LANES]) {
        let into = &mut self.registers[register];
        if active == Mask::MAX {
            *into = *values;
        } else {
            lanes(active).for_each(|lane| into[lane] = values[lane]);
        }
    }
}

fn low_bits(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}
