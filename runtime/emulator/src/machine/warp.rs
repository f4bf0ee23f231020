//! A warp: 32 lanes that take one instruction together if they are at the same place.

use super::{block::Block, dimensions::LANES, matrix};
use crate::{
    ptx::{Address, Barrier, Error, Guard, Instruction, Operand, Shuffle, Special, Vote, Work},
    types::{DYNAMIC_SHARED, Space, Type},
};

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
    number: usize,
    /// The number of its threads.
    count: usize,
    pub(super) states: Vec<State>,
    /// The next instruction of each lane.
    next: Vec<usize>,
    /// By register, then by lane.
    registers: Vec<[u64; LANES]>,
}

/// Lanes as bits.
type Mask = u32;

/// Returns the lanes of a mask.
fn lanes(mask: Mask) -> impl Iterator<Item = usize> {
    (0..LANES).filter(move |lane| mask >> lane & 1 == 1)
}

impl Warp {
    pub(super) fn new(number: usize, count: usize, registers: usize) -> Self {
        let (states, next) = (vec![State::Done; LANES], vec![0; LANES]);
        Self { number, count, states, next, registers: vec![[0; LANES]; registers] }
    }

    /// Begins again. Registers stay what they are, as on a GPU.
    pub(super) fn begin(&mut self) {
        self.states[..self.count].fill(State::Running);
        self.next.fill(0);
    }

    pub(super) fn is_done(&self) -> bool {
        self.states.iter().all(|state| *state == State::Done)
    }

    fn lanes_in(&self, state: State) -> Mask {
        (0..LANES).filter(|lane| self.states[*lane] == state).fold(0, |mask, lane| mask | 1 << lane)
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
            let behind = |lane: &usize| self.next[*lane] == at;
            let mask = lanes(running).filter(behind).fold(0, |mask, lane| mask | 1 << lane);
            // Lanes that are all at one place stay together until an instruction may part them.
            let mut at = at;
            while mask == running && kernel.code[at].work.goes_on() {
                let active = self.active(mask, kernel.code[at].guard);
                self.step(block, &kernel.code[at], at, active)?;
                at += 1;
            }
            let active = self.active(mask, kernel.code[at].guard);
            lanes(mask).for_each(|lane| self.next[lane] = at + 1);
            self.step(block, &kernel.code[at], at, active)?;
        }
    }

    /// Returns the lanes whose predicate is what an instruction expects.
    fn active(&self, mask: Mask, guard: Option<Guard>) -> Mask {
        let Some(Guard { register, expected }) = guard else { return mask };
        let values = &self.registers[register];
        lanes(mask).filter(|lane| (values[*lane] != 0) == expected).fold(0, |mask, lane| mask | 1 << lane)
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
            work => {
                let Some(mask) = self.gathered(block, work, at, active) else { return Ok(()) };
                self.together(block, work, mask).map_err(|problem| wrong(block, problem))?;
            }
        }
        Ok(())
    }

    /// Returns all lanes of an instruction's mask if they have come to it; those that came before wait.
    fn gathered(&mut self, block: &Block<'_>, work: &Work, at: usize, active: Mask) -> Option<Mask> {
        let first = lanes(active).next()?;
        let mask = match work {
            Work::Shuffle { operands: [.., mask], .. }
            | Work::Vote { mask, .. }
            | Work::WarpBarrier(mask) => self.values(block, *mask)[first] as u32,
            _ => u32::MAX,
        };
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

    /// Loads matrices of 8 × 8 numbers of 16 bits: eight lanes each have the places of a matrix's rows.
    fn load_matrices(
        &mut self,
        block: &Block<'_>,
        into: &[usize],
        from: Address,
        transposed: bool,
    ) -> Result<(), String> {
        for (number, register) in into.iter().enumerate() {
            let mut rows = [[0; 16]; 8];
            for (row, bytes) in rows.iter_mut().enumerate() {
                let lane = 8 * number + row;
                let place = self.place(from, lane);
                if !block.read(self.number * LANES + lane, Space::Shared, place, bytes) {
                    return Err(outside(Space::Shared, place, 16));
                }
            }
            let element = |row: usize, column: usize| {
                let (row, column) = if transposed { (column, row) } else { (row, column) };
                u64::from(u16::from_le_bytes([rows[row][2 * column], rows[row][2 * column + 1]]))
            };
            self.registers[*register] = std::array::from_fn(|lane| {
                let (row, column) = (lane / 4, lane % 4 * 2);
                element(row, column) | element(row, column + 1) << 16
            });
        }
        Ok(())
    }

    /// Loads, stores, replaces or copies what a lane has at an address.
    fn access(&mut self, block: &mut Block<'_>, work: &Work, lane: usize) -> Result<(), String> {
        let thread = self.number * LANES + lane;
        let checked = |is_there: bool, space: Space, place: u64, bytes: usize| {
            if !place.is_multiple_of(bytes.next_power_of_two() as u64) {
                return Err(format!("found the address {place:#x}, expected a multiple of {bytes}"));
            }
            if is_there { Ok(()) } else { Err(outside(space, place, bytes)) }
        };
        match work {
            Work::Load { space, ty, into, from } => {
                let (place, size) = (self.place(*from, lane), ty.bytes());
                let mut bytes = [0; 32];
                let bytes = &mut bytes[..size * into.len()];
                checked(block.read(thread, *space, place, bytes), *space, place, bytes.len())?;
                for (register, bytes) in into.iter().zip(bytes.chunks(size)) {
                    let Some(register) = register else { continue };
                    self.registers[*register][lane] = loaded(*ty, bytes);
                }
            }
            Work::Store { space, ty, into, from } => {
                let (place, size) = (self.place(*into, lane), ty.bytes());
                let mut bytes = Vec::with_capacity(32);
                for operand in from {
                    bytes.extend(&self.value(block, *operand, lane).to_le_bytes()[..size]);
                }
                checked(block.write(thread, *space, place, &bytes), *space, place, bytes.len())?;
            }
            Work::Atomic { space, ty, function, old, at, operands } => {
                let (place, size) = (self.place(*at, lane), ty.bytes());
                let mut bytes = [0; 8];
                let bytes = &mut bytes[..size];
                checked(block.read(thread, *space, place, bytes), *space, place, size)?;
                let before = loaded(Type::Integer { bits: 8 * size as u32, signed: false }, bytes);
                let [x, y] = operands.map(|operand| self.value(block, operand, lane));
                let after = function(before, x, y).to_le_bytes();
                checked(block.write(thread, *space, place, &after[..size]), *space, place, size)?;
                if let Some(old) = old {
                    self.registers[*old][lane] = before;
                }
            }
            Work::Copy { into, from, bytes, valid } => {
                let count =
                    valid.map_or(*bytes, |valid| self.value(block, valid, lane) as u32 as usize).min(*bytes);
                let (place, source) = (self.place(*into, lane), self.place(*from, lane));
                let mut copied = vec![0; *bytes];
                checked(
                    block.read(thread, Space::Global, source, &mut copied[..count]),
                    Space::Global,
                    source,
                    *bytes,
                )?;
                checked(block.write(thread, Space::Shared, place, &copied), Space::Shared, place, *bytes)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the address that a lane means.
    fn place(&self, Address { base, offset }: Address, lane: usize) -> u64 {
        base.map_or(0, |base| self.registers[base][lane]).wrapping_add(offset)
    }

    fn value(&self, block: &Block<'_>, operand: Operand, lane: usize) -> u64 {
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

fn outside(space: Space, place: u64, bytes: usize) -> String {
    let place = if place >= DYNAMIC_SHARED && space == Space::Shared {
        format!("dynamic {:#x}", place - DYNAMIC_SHARED)
    } else {
        format!("{place:#x}")
    };
    format!("found {bytes} bytes at {place} of {space:?} memory, expected a place in an allocation")
}

/// Returns what a register has after a load: numbers with a sign repeat it.
fn loaded(ty: Type, bytes: &[u8]) -> u64 {
    let mut all = [0; 8];
    all[..bytes.len()].copy_from_slice(bytes);
    let value = u64::from_le_bytes(all);
    match ty {
        Type::Integer { bits, signed: true } if bits < 64 => {
            ((value << (64 - bits)).cast_signed() >> (64 - bits)).cast_unsigned()
        }
        _ => value,
    }
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
