//! Copies to shared memory that run beside their thread: `cp.async`.
//!
//! Bytes arrive when the thread waits for the group of their copy. Until then their place has what no kernel means, so that results
//! are wrong if the wait is missing, is for too few groups, or if others still read what was there before.

use super::{
    block::Block,
    dimensions::{LANES, Mask},
};

/// The most bytes of a copy.
const BYTES_MAX: usize = 16;
/// What a place has while a copy to it is under way: NaN as floats.
const UNDER_WAY: [u8; BYTES_MAX] = [0xff; BYTES_MAX];

/// A copy that is under way.
#[derive(Debug)]
struct Copy {
    lane: usize,
    /// The number of groups that the lane had ended before.
    group: usize,
    place: u64,
    bytes: [u8; BYTES_MAX],
    count: usize,
}

/// The copies of a warp.
#[derive(Debug, Default)]
pub(super) struct Copies {
    under_way: Vec<Copy>,
    /// The number of groups that each lane has ended.
    ended: [usize; LANES],
}

impl Copies {
    /// Forgets the copies of the block before.
    pub(super) fn begin(&mut self) {
        self.under_way.clear();
        self.ended.fill(0);
    }

    /// Begins a lane's copy of bytes, at most 16; returns whether its place is there.
    pub(super) fn begin_one(&mut self, block: &mut Block<'_>, lane: usize, place: u64, from: &[u8]) -> bool {
        let mut bytes = [0; BYTES_MAX];
        bytes[..from.len()].copy_from_slice(from);
        self.under_way.push(Copy { lane, group: self.ended[lane], place, bytes, count: from.len() });
        block.write_shared(place, &UNDER_WAY[..from.len()])
    }

    /// Ends the group of lanes' copies that have begun since the last one.
    pub(super) fn end_group(&mut self, lanes: Mask) {
        for (lane, ended) in self.ended.iter_mut().enumerate() {
            *ended += usize::from(lanes >> lane & 1 == 1);
        }
    }

    /// Lets lanes' copies arrive but those of each lane's last groups; all of them without a number.
    pub(super) fn wait(&mut self, block: &mut Block<'_>, lanes: Mask, groups: Option<usize>) {
        let ended = &self.ended;
        self.under_way.retain(|copy| {
            let has_ended = groups.is_none_or(|groups| copy.group + groups < ended[copy.lane]);
            let arrives = has_ended && lanes >> copy.lane & 1 == 1;
            if arrives {
                block.write_shared(copy.place, &copy.bytes[..copy.count]);
            }
            !arrives
        });
    }
}
