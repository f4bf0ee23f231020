//! What lanes read and write in memory.

use super::{block::Block, dimensions::LANES, shadow::Kind, warp::Warp};
use crate::{
    ptx::{Address, Operand, Work},
    types::{DYNAMIC_SHARED, Space, Type},
};

/// The most bytes of an access.
const BYTES_MAX: usize = 32;
/// What is in memory that threads write without order: NaN as floats.
const UNDEFINED: u8 = 0xff;

/// Refuses an address that is not a multiple of so many bytes.
fn check_aligned(place: u64, bytes: usize) -> Result<(), String> {
    if place & (bytes.next_power_of_two() as u64 - 1) == 0 {
        return Ok(());
    }
    Err(format!("found the address {place:#x}, expected a multiple of {bytes}"))
}

impl Warp {
    /// Loads matrices of 8 × 8 numbers of 16 bits: eight lanes each have the places of a matrix's rows.
    pub(super) fn load_matrices(
        &mut self,
        block: &mut Block<'_>,
        into: &[usize],
        from: Address,
        transposed: bool,
    ) -> Result<(), String> {
        let mut loaded = Vec::with_capacity(into.len());
        for number in 0..into.len() {
            let mut rows = [[0; 16]; 8];
            for (row, bytes) in rows.iter_mut().enumerate() {
                let lane = 8 * number + row;
                let (place, thread) = (self.place(from, lane), self.number * LANES + lane);
                check_aligned(place, 16)?;
                if !block.read(thread, Space::Shared, place, bytes) {
                    return Err(outside(Space::Shared, place, 16));
                }
                block.note((Kind::Read, thread), Space::Shared, (place, 16), None)?;
            }
            loaded.push(rows);
        }
        // Places are read before results are written: one may be the register of the other.
        for (register, rows) in into.iter().zip(loaded) {
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
    pub(super) fn access(&mut self, block: &mut Block<'_>, work: &Work, lane: usize) -> Result<(), String> {
        let thread = self.thread(lane);
        match work {
            Work::Load { space, ty, into, from, unchanging } => {
                let (place, size) = (self.place(*from, lane), ty.bytes());
                let mut bytes = [0; BYTES_MAX];
                let bytes = &mut bytes[..size * into.len()];
                check_aligned(place, bytes.len())?;
                block.check_load(thread, *space, (place, bytes.len()), *unchanging)?;
                if !block.read(thread, *space, place, bytes) {
                    return Err(outside(*space, place, bytes.len()));
                }
                if *unchanging {
                    block.check_unchanging(thread, place, bytes.len())?;
                } else {
                    block.note((Kind::Read, thread), *space, (place, bytes.len()), None)?;
                }
                for (register, bytes) in into.iter().zip(bytes.chunks(size)) {
                    let Some(register) = register else { continue };
                    self.registers[*register][lane] = loaded(*ty, bytes);
                }
            }
            Work::Store { space, ty, into, from } => {
                let (place, size) = (self.place(*into, lane), ty.bytes());
                let mut bytes = [0; BYTES_MAX];
                let bytes = &mut bytes[..size * from.len()];
                for (operand, bytes) in from.iter().zip(bytes.chunks_mut(size)) {
                    bytes.copy_from_slice(&self.value(block, *operand, lane).to_le_bytes()[..size]);
                }
                store(block, thread, *space, place, bytes)?;
            }
            Work::Atomic { .. } => self.atomic(block, work, lane)?,
            Work::Copy { into, from, bytes, valid } => {
                let (place, source) = (self.place(*into, lane), self.place(*from, lane));
                self.copy(block, (place, source), (*bytes, *valid), lane)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Replaces what a lane has at an address.
    fn atomic(&mut self, block: &mut Block<'_>, work: &Work, lane: usize) -> Result<(), String> {
        let Work::Atomic { space, ty, function, old, at, operands, acquires, releases } = work else {
            return Ok(());
        };
        let (thread, place, size) = (self.thread(lane), self.place(*at, lane), ty.bytes());
        let mut bytes = [0; 8];
        let bytes = &mut bytes[..size];
        check_aligned(place, size)?;
        block.check_store(thread, *space, (place, size))?;
        if !block.read(thread, *space, place, bytes) {
            return Err(outside(*space, place, size));
        }
        if *acquires {
            block.acquire(place, thread);
        }
        block.note((Kind::Atomic, thread), *space, (place, size), None)?;
        if *releases {
            block.release(place, thread);
        }
        let before = loaded(Type::Integer { bits: 8 * size as u32, signed: false }, bytes);
        // Only as many bits as there are in memory count.
        let width = u64::MAX >> (64 - 8 * size);
        let [x, y] = operands.map(|operand| self.value(block, operand, lane) & width);
        let after = function(before, x, y).to_le_bytes();
        if !block.write(thread, *space, place, &after[..size]) {
            return Err(outside(*space, place, size));
        }
        if let Some(old) = old {
            self.registers[*old][lane] = before;
        }
        Ok(())
    }

    /// Begins to copy a lane's bytes to shared memory.
    fn copy(
        &mut self,
        block: &mut Block<'_>,
        (place, source): (u64, u64),
        (bytes, valid): (usize, Option<Operand>),
        lane: usize,
    ) -> Result<(), String> {
        let thread = self.thread(lane);
        let count = valid.map_or(bytes, |valid| self.value(block, valid, lane) as u32 as usize);
        if count > bytes {
            return Err(format!("found {count} bytes to read, expected at most {bytes}"));
        }
        let mut copied = [0; 16];
        check_aligned(source, bytes)?;
        check_aligned(place, bytes)?;
        // Nothing is read of what has no bytes, wherever it is.
        if count > 0 {
            block.check_load(thread, Space::Global, (source, count), false)?;
            if !block.read(thread, Space::Global, source, &mut copied[..count]) {
                return Err(outside(Space::Global, source, bytes));
            }
            block.note((Kind::Read, thread), Space::Global, (source, count), None)?;
        }
        if !block.read(thread, Space::Shared, place, &mut [0; 16][..bytes]) {
            return Err(outside(Space::Shared, place, bytes));
        }
        self.copies.begin_one(block, lane, place, &copied[..bytes])
    }
}

/// Stores a thread's bytes at an address.
fn store(
    block: &mut Block<'_>,
    thread: usize,
    space: Space,
    place: u64,
    bytes: &mut [u8],
) -> Result<(), String> {
    check_aligned(place, bytes.len())?;
    block.check_store(thread, space, (place, bytes.len()))?;
    let mut before = [0; BYTES_MAX];
    let before = &mut before[..bytes.len()];
    if space == Space::Parameter || !block.read(thread, space, place, before) {
        return Err(outside(space, place, bytes.len()));
    }
    let undefined =
        block.note((Kind::Write, thread), space, (place, bytes.len()), Some((before, &*bytes)))?;
    undefined.into_iter().for_each(|at| bytes[at] = UNDEFINED);
    if block.write(thread, space, place, bytes) { Ok(()) } else { Err(outside(space, place, bytes.len())) }
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
    let value = match *bytes {
        [a] => a.into(),
        [a, b] => u16::from_le_bytes([a, b]).into(),
        [a, b, c, d] => u32::from_le_bytes([a, b, c, d]).into(),
        _ => bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)),
    };
    match ty {
        Type::Integer { bits, signed: true } if bits < 64 => {
            ((value << (64 - bits)).cast_signed() >> (64 - bits)).cast_unsigned()
        }
        _ => value,
    }
}
