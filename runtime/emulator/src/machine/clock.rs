//! Which accesses of a block's threads are ordered: those before a barrier and those after it.

use super::dimensions::{LANES, Mask};

/// Times end here: what comes later counts as ordered.
pub(super) const TIME_MAX: u32 = (1 << 22) - 1;

/// The time of a block, which passes at barriers.
#[derive(Debug)]
pub(super) struct Clock {
    now: u32,
    /// All threads know what was done until then.
    all: u32,
    warps: usize,
    /// Until when each warp knows what each other one did.
    known: Vec<u32>,
    /// Until when all lanes of a warp know what the others did.
    lanes: Vec<u32>,
    /// The same of a lane and another one, where not all have met.
    pairs: Vec<Option<Box<[[u32; LANES]; LANES]>>>,
}

impl Clock {
    pub(super) fn new(warps: usize) -> Self {
        let pairs = (0..warps).map(|_| None).collect();
        Self { now: 1, all: 0, warps, known: vec![0; warps * warps], lanes: vec![0; warps], pairs }
    }

    /// Begins again, with another block.
    pub(super) fn begin(&mut self) {
        (self.now, self.all) = (1, 0);
        self.known.fill(0);
        self.lanes.fill(0);
        self.pairs.fill(None);
    }

    pub(super) fn now(&self) -> u32 {
        self.now
    }

    pub(super) fn all(&self) -> u32 {
        self.all
    }

    /// Returns until when all threads know everything, and until when a thread's warp knows what its lanes did.
    pub(super) fn reached(&self, thread: usize) -> (u32, u32) {
        (self.all, self.lanes[thread / LANES])
    }

    fn tick(&mut self) -> u32 {
        let before = self.now;
        self.now = TIME_MAX.min(before + 1);
        before
    }

    /// Notes that whole warps have met at a barrier.
    pub(super) fn meet_warps(&mut self, met: &[usize], are_all: bool) {
        let time = self.tick();
        if are_all {
            self.all = time;
            return;
        }
        for other in 0..self.warps {
            let most = met.iter().map(|warp| self.known[warp * self.warps + other]).max().unwrap_or(0);
            let most = if met.contains(&other) { time } else { most };
            met.iter().for_each(|warp| self.known[warp * self.warps + other] = most);
        }
        met.iter().for_each(|warp| self.lanes[*warp] = time);
    }

    /// Notes that lanes of a warp have met, of which `alive` are not done.
    pub(super) fn meet_lanes(&mut self, warp: usize, met: Mask, alive: Mask) {
        let time = self.tick();
        if alive & !met == 0 {
            self.lanes[warp] = time;
            return;
        }
        let pairs = self.pairs[warp].get_or_insert_with(|| Box::new([[0; LANES]; LANES]));
        let is_in = |lane: usize| met >> lane & 1 == 1;
        for other in 0..LANES {
            let most = (0..LANES).filter(|lane| is_in(*lane)).map(|lane| pairs[lane][other]).max();
            let most = if is_in(other) { time } else { most.unwrap_or(0) };
            (0..LANES).filter(|lane| is_in(*lane)).for_each(|lane| pairs[lane][other] = most);
        }
    }

    /// Returns whether a thread knows what another one did at a time.
    #[inline]
    pub(super) fn is_before(&self, other: usize, time: u32, thread: usize) -> bool {
        if time <= self.all || other == thread {
            return true;
        }
        let (warp, of_other) = (thread / LANES, other / LANES);
        if warp != of_other {
            return time <= self.known[warp * self.warps + of_other];
        }
        let knows = |pairs: &[[u32; LANES]; LANES]| time <= pairs[thread % LANES][other % LANES];
        time <= self.lanes[warp] || self.pairs[warp].as_deref().is_some_and(knows)
    }

    /// Returns whether a thread knows what all did at a time.
    pub(super) fn is_before_by_all(&self, time: u32, thread: usize) -> bool {
        let warp = thread / LANES;
        let known = || &self.known[warp * self.warps..][..self.warps];
        time <= self.all || (self.warps > 1 && known().iter().all(|known| time <= *known))
    }
}
