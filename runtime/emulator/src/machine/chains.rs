//! What blocks know of each other: what was done before an atomic operation that releases, after one that acquires.

use std::{cell::RefCell, collections::HashMap};

use super::{clock::Clock, dimensions::LANES};

/// Until when something is known of a block.
#[derive(Debug, Clone, Default)]
struct Reach {
    /// Of all its threads.
    all: u32,
    /// Of some: the first, the last, and the time.
    some: Vec<(usize, usize, u32)>,
}

/// What is known of other blocks.
#[derive(Debug, Clone, Default)]
pub(super) struct Known(HashMap<u32, Reach>);

impl Known {
    fn add(&mut self, other: &Self) {
        for (block, reach) in &other.0 {
            let own = self.0.entry(*block).or_default();
            own.all = own.all.max(reach.all);
            for &(first, last, time) in &reach.some {
                match own.some.iter_mut().find(|(from, to, _)| (*from, *to) == (first, last)) {
                    Some((.., known)) => *known = (*known).max(time),
                    None => own.some.push((first, last, time)),
                }
            }
        }
    }

    fn has(&self, block: u32, thread: usize, time: u32) -> bool {
        self.0.get(&block).is_some_and(|reach| {
            let is_in = |&(first, last, known): &(usize, usize, u32)| {
                (first..=last).contains(&thread) && time <= known
            };
            time <= reach.all || reach.some.iter().any(is_in)
        })
    }
}

/// What atomic operations of a launch have released, by place.
#[derive(Debug, Default)]
pub(super) struct Chains(RefCell<HashMap<u64, Known>>);

/// What a block's threads have acquired.
#[derive(Debug, Default)]
pub(super) struct Acquired {
    /// All of them, as a barrier has passed since.
    all: Known,
    own: HashMap<usize, Known>,
}

impl Acquired {
    pub(super) fn begin(&mut self) {
        *self = Self::default();
    }

    pub(super) fn has(&self, thread: usize, (block, other, time): (u32, usize, u32)) -> bool {
        let own = || self.own.get(&thread).is_some_and(|known| known.has(block, other, time));
        self.all.has(block, other, time) || own()
    }

    /// Passes on what some threads have acquired to all.
    pub(super) fn share(&mut self) {
        for (_, known) in self.own.drain() {
            self.all.add(&known);
        }
    }

    /// Passes on what some lanes of a warp have acquired to each of them.
    pub(super) fn share_among(&mut self, threads: &[usize]) {
        if self.own.is_empty() {
            return;
        }
        let mut known = Known::default();
        threads.iter().filter_map(|thread| self.own.get(thread)).for_each(|own| known.add(own));
        self.own.extend(threads.iter().map(|thread| (*thread, known.clone())));
    }

    /// Acquires what was released at a place.
    pub(super) fn acquire(&mut self, chains: &Chains, place: u64, thread: usize) {
        if let Some(known) = chains.0.borrow().get(&place) {
            self.own.entry(thread).or_default().add(known);
        }
    }

    /// Releases at a place what a thread of a block has done and knows.
    pub(super) fn release(&self, chains: &Chains, place: u64, block: u32, thread: usize, clock: &Clock) {
        let (all, warp) = clock.reached(thread);
        let first = thread / LANES * LANES;
        let some = vec![(thread, thread, clock.now()), (first, first + LANES - 1, warp)];
        let mut words = chains.0.borrow_mut();
        let known = words.entry(place).or_default();
        known.add(&Known(HashMap::from([(block, Reach { all, some })])));
        known.add(&self.all);
        if let Some(own) = self.own.get(&thread) {
            known.add(own);
        }
    }
}
