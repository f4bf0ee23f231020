//! Copies to shared memory that run beside their thread: `cp.async`.
//!
//! Bytes arrive when the thread waits for the group of their copy. Until then their place has what no kernel means, and an access to
//! it is an error.

use super::{
    block::Block,
    dimensions::{LANES, Mask},
    shadow::Kind,
};
use crate::types::Space;

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
    first_thread: usize,
    under_way: Vec<Copy>,
    /// The number of groups that each lane has ended.
    ended: [usize; LANES],
}

impl Copies {
    /// Returns those of a warp whose first thread has this number.
    pub(super) fn new(first_thread: usize) -> Self {
        Self { first_thread, ..Self::default() }
    }

    /// Forgets the copies of the block before.
    pub(super) fn begin(&mut self) {
        self.under_way.clear();
        self.ended.fill(0);
    }

    /// Begins a lane's copy of bytes, at most 16, to a place which has to be there.
    pub(super) fn begin_one(
        &mut self,
        block: &mut Block<'_>,
        lane: usize,
        place: u64,
        from: &[u8],
    ) -> Result<(), String> {
        let mut bytes = [0; BYTES_MAX];
        bytes[..from.len()].copy_from_slice(from);
        let thread = self.first_thread + lane;
        block.note((Kind::Begin, thread), Space::Shared, (place, from.len()), None)?;
        self.under_way.push(Copy { lane, group: self.ended[lane], place, bytes, count: from.len() });
        block.write(thread, Space::Shared, place, &UNDER_WAY[..from.len()]);
        Ok(())
    }

    /// Ends the group of lanes' copies that have begun since the last one.
    pub(super) fn end_group(&mut self, lanes: Mask) {
        for (lane, ended) in self.ended.iter_mut().enumerate() {
            *ended += usize::from(lanes >> lane & 1 == 1);
        }
    }

    /// Lets lanes' copies arrive but those of each lane's last groups; all of them without a number.
    pub(super) fn wait(&mut self, block: &mut Block<'_>, lanes: Mask, groups: Option<usize>) {
        let (ended, first) = (&self.ended, self.first_thread);
        self.under_way.retain(|copy| {
            let has_ended = groups.is_none_or(|groups| copy.group + groups < ended[copy.lane]);
            let arrives = has_ended && lanes >> copy.lane & 1 == 1;
            if arrives {
                block.arrive(first + copy.lane, copy.place, &copy.bytes[..copy.count]);
            }
            !arrives
        });
    }
}
