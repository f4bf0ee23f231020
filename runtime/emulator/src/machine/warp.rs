//! A warp: 32 lanes that take one instruction together if they are at the same place.

use super::{
    block::Block,
    copies::Copies,
    dimensions::{LANES, Mask},
    matrix,
};
use crate::ptx::{Address, Barrier, Error, Guard, Instruction, Operand, Shuffle, Special, Vote, Work};

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
    next: Vec<usize>,
    /// By register, then by lane.
    pub(super) registers: Vec<[u64; LANES]>,
    pub(super) copies: Copies,
}

/// Returns the lanes of a mask.
fn lanes(mask: Mask) -> impl Iterator<Item = usize> {
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
            registers: vec![[0; LANES]; registers],
            copies: Copies::default(),
        }
    }

    /// Begins again. Registers stay what they are, as on a GPU.
    pub(super) fn begin(&mut self) {
        self.states[..self.count].fill(State::Running);
        self.next.fill(0);
        self.copies.begin();
    }

    pub(super) fn is_done(&self) -> bool {
        self.states.iter().all(|state| *state == State::Done)
    }

    fn lanes_in(&self, state: State) -> Mask {
        mask_of(|lane| self.states[lane] == state)
    }

    /// Runs until each lane is done or waits for other warps.
    pub(super) fn run(&mut self, block: &mut Block<'_>) -> Result<(), Error> {
        let kernel = block.kernel;
        loop {
            let running = self.lanes_in(State::Running);
            // Those that are behind go first, so that all meet again after a branch.
            let Some(at) = lanes(running).map(|lane| self.next[lane]).min() else {
                let waiting = self.lanes_in(State::ForLanes);
                if waiting == 0 {
                    return Ok(());
                }
                let place =
                    lanes(waiting).next().map_or("", |lane| kernel.code[self.next[lane]].text.as_str());
                return Err(block.error(format!(
                    "{place}: found lanes {waiting:#x} that wait for others, expected all of its mask"
                )));
            };
            let mask = running & mask_of(|lane| self.next[lane] == at);
            let others = lanes(running & !mask).map(|lane| self.next[lane]).min().unwrap_or(usize::MAX);
            let at = self.run_together(block, at, mask, others)?;
            if at >= others {
                lanes(mask).for_each(|lane| self.next[lane] = at);
                continue;
            }
            let active = self.active(mask, kernel.code[at].guard);
            lanes(mask).for_each(|lane| self.next[lane] = at + 1);
            self.step(block, &kernel.code[at], at, active)?;
        }
    }

    /// Runs instructions of lanes that are at one place, until one may part them or they have come to `end`, where others are.
    /// Returns the next one.
    fn run_together(
        &mut self,
        block: &mut Block<'_>,
        mut at: usize,
        mask: Mask,
        end: usize,
    ) -> Result<usize, Error> {
        let code = &block.kernel.code;
        let is_whole = mask == !self.lanes_in(State::Done);
        while at < end {
            let instruction = &code[at];
            let active = self.active(mask, instruction.guard);
            match &instruction.work {
                Work::Branch(target) if active == mask => {
                    at = *target;
                    continue;
                }
                Work::Branch(_) if active != 0 => return Ok(at),
                work if work.goes_on() => self.step(block, instruction, at, active)?,
                work if work.is_of_lanes() && active == mask && is_whole => {
                    let taking = active & self.mask_of_lanes(block, work, active);
                    let done = self.together(block, work, taking);
                    done.map_err(|problem| block.error(format!("{}: {problem}", instruction.text)))?;
                }
                Work::Branch(_) => {}
                _ => return Ok(at),
            }
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
                let x = self.lanes_of(block, *x, &mut [0; LANES]).map(function);
                self.set(*into, active, &x);
            }
            Work::Binary(function, into, [x, y]) => {
                let mut places = [[0; LANES]; 2];
                let [first, second] = &mut places;
                let (x, y) = (self.lanes_of(block, *x, first), self.lanes_of(block, *y, second));
                let result = std::array::from_fn(|lane| function(x[lane], y[lane]));
                self.set(*into, active, &result);
            }
            Work::Ternary(function, into, [x, y, z]) => {
                let mut places = [[0; LANES]; 3];
                let [first, second, third] = &mut places;
                let (x, y) = (self.lanes_of(block, *x, first), self.lanes_of(block, *y, second));
                let z = self.lanes_of(block, *z, third);
                let result = std::array::from_fn(|lane| function(x[lane], y[lane], z[lane]));
                self.set(*into, active, &result);
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
            Work::Barrier(Barrier { number, threads }) => {
                let numbers = self.values(block, *number);
                let counts = threads.map(|threads| self.values(block, threads));
                for lane in lanes(active) {
                    let count = counts
                        .map(|counts| usize::try_from(counts[lane] & low_bits(32)).unwrap_or(usize::MAX));
                    self.states[lane] = State::AtBarrier(numbers[lane] & low_bits(32), count);
                }
            }
            Work::Load { .. } | Work::Store { .. } | Work::Atomic { .. } | Work::Copy { .. } => {
                for lane in lanes(active) {
                    self.access(block, &instruction.work, lane).map_err(|problem| wrong(block, problem))?;
                }
            }
            Work::EndCopies => self.copies.end_group(active),
            Work::AwaitKernels => lanes(active).for_each(|lane| block.waiting.wait(self.thread(lane))),
            Work::StartNext => lanes(active).for_each(|lane| block.waiting.start_next(self.thread(lane))),
            Work::AwaitCopies(groups) => self.copies.wait(block, active, *groups),
            work => {
                let Some(mask) = self.gathered(block, work, at, active) else { return Ok(()) };
                self.together(block, work, mask).map_err(|problem| wrong(block, problem))?;
            }
        }
        Ok(())
    }

    /// Returns the index of a lane's thread in its block.
    pub(super) fn thread(&self, lane: usize) -> usize {
        self.number * LANES + lane
    }

    /// Returns all lanes of an instruction's mask if they have come to it; those that came before wait.
    fn gathered(&mut self, block: &Block<'_>, work: &Work, at: usize, active: Mask) -> Option<Mask> {
        let first = lanes(active).next()?;
        let mask = self.mask_of_lanes(block, work, 1 << first);
        let alive = !self.lanes_in(State::Done);
        let waiting = lanes(self.lanes_in(State::ForLanes)).filter(|lane| self.next[*lane] == at);
        let here = waiting.fold(active, |here, lane| here | 1 << lane);
        if here & mask != mask & alive {
            for lane in lanes(active) {
                (self.states[lane], self.next[lane]) = (State::ForLanes, at);
            }
            return None;
        }
        for lane in lanes(here & mask) {
            (self.states[lane], self.next[lane]) = (State::Running, at + 1);
        }
        Some(here & mask)
    }

    /// Returns the lanes that take an instruction together, as the first of some says.
    fn mask_of_lanes(&self, block: &Block<'_>, work: &Work, of: Mask) -> Mask {
        match work {
            Work::Shuffle { operands: [.., mask], .. }
            | Work::Vote { mask, .. }
            | Work::WarpBarrier(mask) => self.value(block, *mask, of.trailing_zeros() as usize) as u32,
            _ => Mask::MAX,
        }
    }

    /// Runs an instruction that lanes take together.
    fn together(&mut self, block: &Block<'_>, work: &Work, active: Mask) -> Result<(), String> {
        match work {
            Work::Shuffle { kind, into, valid, operands: [value, by, clamp, _] } => {
                let [values, by, clamp] = [value, by, clamp].map(|operand| self.values(block, *operand));
                for lane in lanes(active) {
                    let (from, is_valid) = source(*kind, lane, by[lane], clamp[lane]);
                    if active >> from & 1 == 0 {
                        return Err(format!(
                            "found lane {lane} that reads lane {from}, expected one that takes part"
                        ));
                    }
                    self.registers[*into][lane] = values[from];
                    if let Some(valid) = valid {
                        self.registers[*valid][lane] = u64::from(is_valid);
                    }
                }
            }
            Work::Vote { kind, into, predicate, expected, .. } => {
                let values = self.values(block, *predicate);
                let yes = lanes(active)
                    .filter(|lane| (values[*lane] != 0) == *expected)
                    .fold(0, |mask, lane| mask | 1 << lane);
                let result = match kind {
                    Vote::Ballot => u64::from(yes),
                    Vote::Any => u64::from(yes != 0),
                    Vote::All => u64::from(yes == active),
                };
                lanes(active).for_each(|lane| self.registers[*into][lane] = result);
            }
            Work::WarpBarrier(_) => {}
            Work::Matrix { ty, d, a, b, c } => {
                if active != Mask::MAX {
                    return Err(format!("found lanes {active:#x}, expected all"));
                }
                let read = |operands: &[Operand]| {
                    operands.iter().map(|operand| self.values(block, *operand)).collect::<Vec<_>>()
                };
                let results = matrix::product(*ty, &read(a), &read(b), &read(c));
                for (into, values) in d.iter().zip(results) {
                    self.registers[*into] = values;
                }
            }
            Work::LoadMatrix { into, from, transposed } => {
                self.load_matrices(block, into, *from, *transposed)?
            }
            _ => return Err("found no work for lanes together, expected some".to_owned()),
        }
        Ok(())
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
                    Special::BlockSize(dimension) => of(block.place.block.0, dimension),
                    Special::Block(dimension) => of(block.place.index, dimension),
                    Special::GridSize(dimension) => of(block.place.grid.0, dimension),
                    Special::Lane => lane as u64,
                    Special::Warp => self.number as u64,
                }
            }
        }
    }

    /// Returns what an operand is in each lane; what is in no register has its place in `made`.
    fn lanes_of<'w>(
        &'w self,
        block: &Block<'_>,
        operand: Operand,
        made: &'w mut [u64; LANES],
    ) -> &'w [u64; LANES] {
        match operand {
            Operand::Register(register) => return &self.registers[register],
            Operand::Constant(value) => made.fill(value),
            Operand::Special(_) => *made = std::array::from_fn(|lane| self.value(block, operand, lane)),
        }
        made
    }

    /// Returns what an operand is in each lane.
    fn values(&self, block: &Block<'_>, operand: Operand) -> [u64; LANES] {
        *self.lanes_of(block, operand, &mut [0; LANES])
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

/// Returns the lane that a lane's value comes from, and whether it is in the segment: PTX ISA, `shfl.sync`.
fn source(kind: Shuffle, lane: usize, by: u64, clamp: u64) -> (usize, bool) {
    let (lane, by) = (lane as i64, (by & 31) as i64);
    let (clamp, segments) = ((clamp & 31) as i64, (clamp >> 8 & 31) as i64);
    let (first, last) = (lane & segments, (lane & segments) | (clamp & !segments));
    let (from, is_valid) = match kind {
        Shuffle::Up => (lane - by, lane - by >= last),
        Shuffle::Down => (lane + by, lane + by <= last),
        Shuffle::Butterfly => (lane ^ by, lane ^ by <= last),
        Shuffle::Index => {
            let from = first | (by & !segments);
            (from, from <= last)
        }
    };
    (if is_valid { from } else { lane } as usize, is_valid)
}
