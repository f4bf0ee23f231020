//! What the lanes of a warp do together.

use super::{
    block::Block,
    dimensions::Mask,
    matrix,
    warp::{State, Warp, lanes},
};
use crate::ptx::{Operand, Shuffle, Vote, Work};

impl Warp {
    /// Runs an instruction at `at` once all lanes of a mask have come to it; those that came before wait. Each lane says who is in
    /// its mask, and those with the same one take the instruction together.
    pub(super) fn meet(
        &mut self,
        block: &mut Block<'_>,
        work: &Work,
        at: usize,
        active: Mask,
    ) -> Result<(), String> {
        let alive = self.alive();
        if work.is_of_all() && active != 0 && active != alive {
            return Err(format!("found lanes {active:#x}, expected all"));
        }
        let waiting = lanes(self.lanes_in(State::ForLanes)).filter(|lane| self.next[*lane] == at);
        let here = waiting.fold(active, |here, lane| here | 1 << lane);
        let mut left = active;
        while let Some(first) = lanes(left).next() {
            let mask = self.mask_of(block, work, first);
            let group = lanes(here).filter(|lane| self.mask_of(block, work, *lane) == mask);
            let group = group.fold(0, |group, lane| group | 1 << lane);
            if let Some(lane) = lanes(group & !mask).next() {
                return Err(format!("found lane {lane} with the mask {mask:#x}, expected one that it is in"));
            }
            left &= !group;
            let is_complete = group & mask == mask & alive;
            for lane in lanes(group) {
                (self.states[lane], self.next[lane]) =
                    if is_complete { (State::Running, at + 1) } else { (State::ForLanes, at) };
            }
            if is_complete {
                self.together(block, work, group)?;
            }
        }
        Ok(())
    }

    /// Returns whether lanes, which are all that are not done, take an instruction together.
    pub(super) fn takes_all(&self, work: &Work, lanes: Mask) -> bool {
        match mask_operand(work) {
            Some(Operand::Constant(mask)) => mask as Mask & lanes == lanes,
            Some(_) => false,
            None => true,
        }
    }

    /// Returns the lanes that take an instruction together, as one of them says.
    fn mask_of(&self, block: &Block<'_>, work: &Work, lane: usize) -> Mask {
        mask_operand(work).map_or(Mask::MAX, |mask| self.value(block, mask, lane) as Mask)
    }

    /// Runs an instruction that lanes take together.
    pub(super) fn together(
        &mut self,
        block: &mut Block<'_>,
        work: &Work,
        active: Mask,
    ) -> Result<(), String> {
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
            Work::WarpBarrier(_) => block.meet_lanes(self.number, active, self.alive()),
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
                if active != Mask::MAX {
                    return Err(format!("found lanes {active:#x}, expected all"));
                }
                self.load_matrices(block, into, *from, *transposed)?
            }
            _ => return Err("found no work for lanes together, expected some".to_owned()),
        }
        Ok(())
    }
}

/// Returns the operand with the lanes that take an instruction together; without one, these are all.
fn mask_operand(work: &Work) -> Option<Operand> {
    match work {
        Work::Shuffle { operands: [.., mask], .. } | Work::Vote { mask, .. } | Work::WarpBarrier(mask) => {
            Some(*mask)
        }
        _ => None,
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
