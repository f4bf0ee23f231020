//! What lanes read and write in memory.

use super::{block::Block, dimensions::LANES, warp::Warp};
use crate::{
    ptx::{Address, Work},
    types::{DYNAMIC_SHARED, Space, Type},
};

impl Warp {
    /// Loads matrices of 8 × 8 numbers of 16 bits: eight lanes each have the places of a matrix's rows.
    pub(super) fn load_matrices(
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
    pub(super) fn access(&mut self, block: &mut Block<'_>, work: &Work, lane: usize) -> Result<(), String> {
        let thread = self.thread(lane);
        let checked = |is_there: bool, space: Space, place: u64, bytes: usize| {
            if place & (bytes.next_power_of_two() as u64 - 1) != 0 {
                return Err(format!("found the address {place:#x}, expected a multiple of {bytes}"));
            }
            if is_there { Ok(()) } else { Err(outside(space, place, bytes)) }
        };
        match work {
            Work::Load { space, ty, into, from, unchanging } => {
                let (place, size) = (self.place(*from, lane), ty.bytes());
                block.check_load(thread, *space, (place, size * into.len()), *unchanging)?;
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
                let mut bytes = [0; 32];
                let bytes = &mut bytes[..size * from.len()];
                for (operand, bytes) in from.iter().zip(bytes.chunks_mut(size)) {
                    bytes.copy_from_slice(&self.value(block, *operand, lane).to_le_bytes()[..size]);
                }
                block.check_store(thread, *space, (place, bytes.len()))?;
                checked(block.write(thread, *space, place, bytes), *space, place, bytes.len())?;
            }
            Work::Atomic { space, ty, function, old, at, operands } => {
                let (place, size) = (self.place(*at, lane), ty.bytes());
                block.check_store(thread, *space, (place, size))?;
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
                block.check_load(thread, Space::Global, (source, count), false)?;
                let mut copied = [0; 16];
                // Nothing is read of what has no bytes, wherever it is.
                let is_there = count == 0 || block.read(thread, Space::Global, source, &mut copied[..count]);
                checked(is_there, Space::Global, source, *bytes)?;
                let is_there = self.copies.begin_one(block, lane, place, &copied[..*bytes]);
                checked(is_there, Space::Shared, place, *bytes)?;
            }
            _ => {}
        }
        Ok(())
    }
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
