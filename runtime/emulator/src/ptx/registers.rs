//! Places for registers. PTX has a register for each value, thousands in a kernel, of which few are needed at a time: those that are
//! never needed at once share a place, so that what a warp has stays in a cache.

use std::collections::BTreeSet;

use super::instruction::{Address, Barrier, Function, Instruction, Operand, Register, Work};

/// Gives registers places, and returns how many there are.
///
/// A register that may be read before it is written has its place from the first instruction on, and so what is there when a block
/// begins.
pub(super) fn allocate(code: &mut [Instruction], registers: usize) -> usize {
    let mut ranges: Vec<_> = ranges(code, registers).into_iter().enumerate().collect();
    ranges.retain(|(_, range)| range.is_some());
    ranges.sort_by_key(|(_, range)| *range);
    let mut places = vec![0; registers];
    // Those in use, by their last instruction.
    let mut used = BTreeSet::new();
    let mut free = Vec::new();
    let mut count = 0;
    for (register, range) in ranges {
        let Some((first, last)) = range else { continue };
        while let Some(&(end, place)) = used.first()
            && end < first
        {
            used.pop_first();
            free.push(place);
        }
        let place = free.pop().unwrap_or_else(|| {
            count += 1;
            count - 1
        });
        places[register] = place;
        used.insert((last, place));
    }
    for instruction in code {
        Uses::of(instruction).0.into_iter().for_each(|(register, _)| *register = places[*register]);
    }
    count
}

/// What an instruction does with a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Read,
    Write,
}

/// Registers, a bit for each.
#[derive(Clone, PartialEq, Eq)]
struct Set(Vec<u64>);

impl Set {
    fn new(registers: usize) -> Self {
        Self(vec![0; registers.div_ceil(64)])
    }

    fn set(&mut self, register: Register, is_in: bool) {
        let bit = 1 << (register % 64);
        let word = &mut self.0[register / 64];
        *word = if is_in { *word | bit } else { *word & !bit };
    }

    fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(word, other)| *word |= other);
    }

    fn all(&self) -> impl Iterator<Item = Register> {
        let bits = |word: u64| (0..64).filter(move |bit| word >> bit & 1 == 1);
        self.0.iter().enumerate().flat_map(move |(index, word)| bits(*word).map(move |bit| index * 64 + bit))
    }
}

/// Returns the first and the last instruction between which each register is needed, if it is.
fn ranges(code: &mut [Instruction], registers: usize) -> Vec<Option<(usize, usize)>> {
    let uses: Vec<Vec<_>> = code
        .iter_mut()
        .map(|instruction| {
            Uses::of(instruction).0.into_iter().map(|(register, how)| (*register, how)).collect()
        })
        .collect();
    let starts = starts(code);
    let blocks: Vec<_> = starts.windows(2).map(|pair| pair[0]..pair[1]).collect();
    let mut needed = vec![Set::new(registers); blocks.len()];
    let number = |at: usize| starts.binary_search(&at).ok();
    let after = |block: usize, needed: &[Set]| {
        let last = blocks[block].end - 1;
        let (target, goes_on) = match code[last].work {
            Work::Branch(target) => (number(target), code[last].guard.is_some()),
            Work::Return => (None, code[last].guard.is_some()),
            _ => (None, true),
        };
        let next = Some(block + 1).filter(|next| goes_on && *next < blocks.len());
        let mut set = Set::new(registers);
        target.into_iter().chain(next).for_each(|next| set.add(&needed[next]));
        set
    };
    let step = |at: usize, set: &mut Set| {
        let of = |which: Use| uses[at].iter().filter(move |(_, found)| *found == which);
        // A lane whose predicate says no keeps what it had.
        if code[at].guard.is_none() {
            of(Use::Write).for_each(|(register, _)| set.set(*register, false));
        }
        of(Use::Read).for_each(|(register, _)| set.set(*register, true));
    };
    loop {
        let mut changed = false;
        for block in (0..blocks.len()).rev() {
            let mut set = after(block, &needed);
            blocks[block].clone().rev().for_each(|at| step(at, &mut set));
            changed |= set != needed[block];
            needed[block] = set;
        }
        if !changed {
            break;
        }
    }
    let mut ranges: Vec<Option<(usize, usize)>> = vec![None; registers];
    let mut include = |register: Register, at: usize| {
        let (first, last) = ranges[register].unwrap_or((at, at));
        ranges[register] = Some((first.min(at), last.max(at)));
    };
    for (block, places) in blocks.iter().enumerate() {
        needed[block].all().for_each(|register| include(register, places.start));
        after(block, &needed).all().for_each(|register| include(register, places.end - 1));
        for at in places.clone() {
            uses[at].iter().for_each(|(register, _)| include(*register, at));
        }
    }
    ranges
}

/// Returns where blocks of instructions begin that run one after the other, and the end of the last.
fn starts(code: &[Instruction]) -> Vec<usize> {
    let mut starts = BTreeSet::from([0, code.len()]);
    for (at, instruction) in code.iter().enumerate() {
        match instruction.work {
            Work::Branch(target) => starts.extend([target, at + 1]),
            Work::Return => _ = starts.insert(at + 1),
            _ => {}
        }
    }
    starts.into_iter().collect()
}

/// The registers of an instruction, and what it does with them.
#[derive(Default)]
struct Uses<'i>(Vec<(&'i mut Register, Use)>);

impl<'i> Uses<'i> {
    fn of(instruction: &'i mut Instruction) -> Self {
        let mut uses = Self::default();
        uses.0.extend(instruction.guard.iter_mut().map(|guard| (&mut guard.register, Use::Read)));
        match &mut instruction.work {
            Work::Nothing
            | Work::EndCopies
            | Work::AwaitCopies(_)
            | Work::AwaitKernels
            | Work::StartNext
            | Work::Branch(_)
            | Work::Return => &mut uses,
            Work::Unary(_, into, operand) => uses.read([operand]).write([into]),
            Work::Binary(_, into, operands) => uses.read(operands).write([into]),
            Work::Ternary(_, into, operands) => uses.read(operands).write([into]),
            Work::Adjusted(_, function, into) => match function {
                Function::Unary(_, operand) => uses.read([operand]).write([into]),
                Function::Binary(_, operands) => uses.read(operands).write([into]),
                Function::Ternary(_, operands) => uses.read(operands).write([into]),
            },
            Work::Pack(into, operands, _) => uses.read(operands).write([into]),
            Work::Unpack(into, operand, _) => uses.read([operand]).write(into.iter_mut().flatten()),
            Work::Load { into, from, .. } => uses.address(from).write(into.iter_mut().flatten()),
            Work::Store { into, from, .. } => uses.address(into).read(from).write([]),
            Work::Atomic { old, at, operands, .. } => uses.address(at).read(operands).write(old),
            Work::Copy { into, from, valid, .. } => uses.address(into).address(from).read(valid).write([]),
            Work::Barrier(Barrier { number, threads, .. }) => uses.read([number]).read(threads).write([]),
            Work::WarpBarrier(mask) => uses.read([mask]).write([]),
            Work::Shuffle { into, valid, operands, .. } => uses.read(operands).write([into]).write(valid),
            Work::Vote { into, predicate, mask, .. } => uses.read([predicate, mask]).write([into]),
            Work::Matrix { d, a, b, c, .. } => uses.read(a).read(b).read(c).write(d),
            Work::LoadMatrix { into, from, .. } => uses.address(from).write(into),
        };
        uses
    }

    fn read(&mut self, operands: impl IntoIterator<Item = &'i mut Operand>) -> &mut Self {
        self.0.extend(operands.into_iter().filter_map(|operand| match operand {
            Operand::Register(register) => Some((register, Use::Read)),
            Operand::Constant(_) | Operand::Special(_) => None,
        }));
        self
    }

    fn address(&mut self, address: &'i mut Address) -> &mut Self {
        self.0.extend(address.base.iter_mut().map(|base| (base, Use::Read)));
        self
    }

    fn write(&mut self, registers: impl IntoIterator<Item = &'i mut Register>) -> &mut Self {
        self.0.extend(registers.into_iter().map(|register| (register, Use::Write)));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ptx::Module;

    /// Returns a kernel of so many registers `%r`.
    fn kernel(registers: usize, body: &str) -> String {
        format!(
            ".version 7.6\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{{\n.reg .b32 %r<{registers}>;\n.reg .pred %p<2>;\n{body}\n}}"
        )
    }

    /// Returns the number of places, and the place of each register that an instruction names.
    fn places(registers: usize, body: &str) -> (usize, Vec<Vec<Register>>) {
        let module = Module::parse(&kernel(registers, body)).unwrap();
        let kernel = module.kernel("k").unwrap();
        let mut code = kernel.code.clone();
        let named = |one: &mut Instruction| Uses::of(one).0.iter().map(|(register, _)| **register).collect();
        (kernel.registers, code.iter_mut().map(named).collect())
    }

    #[test]
    fn registers_that_are_not_needed_at_once_share_a_place() {
        let chain = "mov.b32 %r0, 1; add.s32 %r1, %r0, 1; add.s32 %r2, %r1, 1; add.s32 %r3, %r2, 1; ret;";
        assert_eq!(places(4, chain), (2, vec![vec![0], vec![0, 1], vec![1, 0], vec![0, 1], vec![]]));
    }

    #[test]
    fn what_a_loop_needs_again_keeps_its_place() {
        let body = "mov.b32 %r0, 1; mov.b32 %r1, 9; mov.b32 %r2, 0;\n\
                    again: add.s32 %r3, %r2, %r0; mov.b32 %r2, %r3; setp.lt.s32 %p1, %r2, %r1; @%p1 bra again; ret;";
        let (_, found) = places(4, body);
        let [one, nine, sum] = [0, 1, 2].map(|at| found[at][0]);
        assert!(one != nine && nine != sum && one != sum, "{found:?}");
        assert!(![one, nine, sum].contains(&found[3][2]), "{found:?}");
    }

    #[test]
    fn what_may_be_read_before_it_is_written_has_its_place_from_the_beginning() {
        let guarded =
            "mov.b32 %r0, 1; setp.lt.s32 %p1, %r0, 2; @%p1 mov.b32 %r1, 5; add.s32 %r2, %r1, 1; ret;";
        let (_, found) = places(3, guarded);
        // A lane whose predicate says no reads what was there, which is no other register's.
        assert_ne!(found[2][1], found[0][0], "{found:?}");
        assert_ne!(found[2][1], found[1][1], "{found:?}");
    }
}
