//! The pages of running requests: what is promised at admission, taken as rows are written, and given back.
//!
//! Nothing is taken from a running request, so admission promises all pages that it can need:
//! - a pool without a window: the pages of its last position, less those that it shares. Free pages and pages that the
//!   cache alone keeps are always at least as many as were promised and not yet taken.
//! - a pool with a window: the pages that a window and one call's rows can touch, or two steps of one row. All promises
//!   together are at most the pool, and no request holds more than its promise.

use mlxcel_artifacts::{Digest, entry::PAGE};

use super::pages::PagePool;
use crate::{
    error::{EngineError, Error},
    model::{ModelLimits, PoolLimits},
};

/// All pools of a model.
#[derive(Debug)]
pub(super) struct Memory {
    pools: Vec<Pool>,
    /// The most rows of a sequence in one call.
    rows: usize,
}

#[derive(Debug)]
struct Pool {
    limits: PoolLimits,
    pages: PagePool,
    /// Without a window: pages promised and not yet taken. With one: the sum of all promises.
    promised: usize,
}

/// The pages of a running request.
#[derive(Debug, Default)]
pub(super) struct Lease {
    tables: Vec<Table>,
    /// Positions that were in the cache at admission.
    pub(super) cached: usize,
    /// Whole pages that the cache was told of.
    published: usize,
}

/// The pages of a request in one pool.
#[derive(Debug)]
struct Table {
    /// The page of positions `64 * index` and on; 0 where it was given back.
    pages: Vec<u32>,
    /// The first page that was not given back.
    first: usize,
    /// Pages that the request was promised.
    promised: usize,
}

impl Memory {
    /// Makes free pools.
    pub(super) fn new(limits: &ModelLimits) -> Self {
        let pool = |&limits: &PoolLimits| Pool { limits, pages: PagePool::new(limits.pages), promised: 0 };
        let pools: Vec<Pool> = limits.pools.iter().map(pool).collect();
        let rows = pools.iter().map(|pool| pool.rows()).fold(limits.rows(), usize::min).max(1);
        Self { pools, rows }
    }

    /// Returns the most rows of a sequence in one call: fewer than a step's where a pool with a window is small.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the most positions of a request that has all pages. Pools with a window bound none.
    pub(super) fn positions(&self) -> usize {
        let pools = self.pools.iter().filter(|pool| pool.limits.window.is_none());
        pools.map(|pool| pool.pages.len() * PAGE).min().unwrap_or(usize::MAX)
    }

    /// Returns the most tokens of an answer that has no limit of its own, after a prompt of so many tokens.
    ///
    /// Requests that need more pages than there are would be refused. The end of the context ends an answer.
    pub(super) fn room(&self, context: usize, prompt: usize) -> usize {
        let positions = self.positions();
        if positions < context { positions.saturating_sub(prompt).max(1) } else { usize::MAX }
    }

    /// Checks that a request of so many positions fits when it is alone.
    ///
    /// # Errors
    /// A pool has too few pages.
    pub(super) fn check(&self, positions: usize) -> Result<(), Error> {
        for pool in &self.pools {
            let (needed, pages) = (pool.limits.needed(positions, self.rows), pool.pages.len());
            if needed > pages {
                return Err(EngineError::NeverFits { window: pool.limits.window, needed, pages }.into());
            }
        }
        Ok(())
    }

    /// Promises pages for a request of so many positions. `keys` are those of pages that it can share. `None` if the
    /// pages are promised to others.
    pub(super) fn admit(&mut self, keys: &[Digest], positions: usize) -> Option<Lease> {
        let hit = self.fits(keys, positions)?;
        let rows = self.rows;
        let tables =
            self.pools.iter_mut().map(|pool| pool.open(&keys[..hit], pool.limits.needed(positions, rows)));
        Some(Lease { tables: tables.collect(), cached: hit * PAGE, published: hit })
    }

    /// Returns how many pages a request of so many positions can share; `None` if the pages are promised to others.
    pub(super) fn fits(&self, keys: &[Digest], positions: usize) -> Option<usize> {
        let hit = self.hit(keys);
        let has_room = |pool: &Pool| pool.has_room(&keys[..hit], pool.limits.needed(positions, self.rows));
        self.pools.iter().all(has_room).then_some(hit)
    }

    /// Takes pages so that the request can write positions up to `end`.
    pub(super) fn grow(&mut self, lease: &mut Lease, end: usize) {
        for (pool, table) in self.pools.iter_mut().zip(&mut lease.tables) {
            while table.pages.len() * PAGE < end {
                let id = pool.pages.take().expect("pages were promised at admission");
                debug_assert!(table.pages.len() - table.first < table.promised, "a promise is kept");
                pool.promised -= usize::from(pool.limits.window.is_none());
                table.pages.push(id);
            }
        }
    }

    /// Tells the cache of pages that are whole at `position`, by their keys, and gives back those behind a window.
    pub(super) fn commit(&mut self, lease: &mut Lease, keys: &[Digest], position: usize) {
        let whole = (position / PAGE).min(keys.len());
        for (pool, table) in self.pools.iter_mut().zip(&mut lease.tables) {
            let new = lease.published.max(table.first)..whole;
            for (&id, &key) in table.pages.iter().zip(keys).take(new.end).skip(new.start) {
                pool.pages.publish(id, key);
            }
            let first = pool.first_visible(position).min(table.pages.len());
            for index in table.first..first {
                pool.pages.release(std::mem::take(&mut table.pages[index]));
            }
            table.first = table.first.max(first);
        }
        lease.published = lease.published.max(whole);
    }

    /// Gives back all pages of a request.
    pub(super) fn free(&mut self, lease: Lease) {
        for (pool, table) in self.pools.iter_mut().zip(lease.tables) {
            // The last page first: the cache loses the end of a text before its start.
            table.pages[table.first..].iter().rev().for_each(|&id| pool.pages.release(id));
            pool.promised -= if pool.limits.window.is_none() {
                table.promised - table.pages.len()
            } else {
                table.promised
            };
        }
    }

    /// Makes the cache forget all pages.
    pub(super) fn forget(&mut self) {
        self.pools.iter_mut().for_each(|pool| pool.pages.forget());
    }

    /// Returns the pages, those that are free, and those that the cache alone keeps, for each pool.
    pub(super) fn usage(&self) -> impl Iterator<Item = [usize; 3]> {
        self.pools.iter().map(|pool| [pool.pages.len(), pool.pages.free(), pool.pages.unused()])
    }

    /// Returns the largest number of pages that a text can share: in every pool, the cache has what its window sees.
    fn hit(&self, keys: &[Digest]) -> usize {
        let mut best = 0;
        // For each pool, the number of pages in a row that the cache has up to here.
        let mut runs = vec![0; self.pools.len()];
        for (index, key) in keys.iter().enumerate() {
            let mut is_hit = true;
            for (pool, run) in self.pools.iter().zip(&mut runs) {
                *run = if pool.pages.find(key).is_some() { *run + 1 } else { 0 };
                let end = index + 1;
                is_hit &= *run >= end - pool.first_visible(end * PAGE).min(end);
            }
            if is_hit {
                best = index + 1;
            }
        }
        best
    }

    /// Checks that the holders of every page are the tables that have it, and that promises add up.
    #[cfg(test)]
    pub(super) fn check_holders<'a>(&self, leases: impl Iterator<Item = &'a Lease>) {
        let mut held: Vec<Vec<usize>> = self.pools.iter().map(|pool| vec![0; pool.pages.len() + 1]).collect();
        let mut promised = vec![0; self.pools.len()];
        for lease in leases {
            for (index, table) in lease.tables.iter().enumerate() {
                let pages = &table.pages[table.first..];
                assert!(pages.len() <= table.promised, "no more pages than promised");
                assert!(table.pages[..table.first].iter().all(|&id| id == 0));
                pages.iter().for_each(|&id| held[index][id as usize] += 1);
                let taken = if self.pools[index].limits.window.is_none() { pages.len() } else { 0 };
                promised[index] += table.promised - taken;
            }
        }
        for ((pool, held), promised) in self.pools.iter().zip(held).zip(promised) {
            pool.pages.check();
            assert_eq!(pool.pages.holders(), held);
            assert_eq!(pool.promised, promised);
            let limit = if pool.limits.window.is_none() {
                pool.pages.free() + pool.pages.unused()
            } else {
                pool.pages.len()
            };
            assert!(promised <= limit, "{promised} pages promised of {limit}");
        }
    }
}

impl Pool {
    /// Returns the first page that a row at `position` sees.
    fn first_visible(&self, position: usize) -> usize {
        self.limits.window.map_or(0, |window| (position + 1).saturating_sub(window) / PAGE)
    }

    /// Returns the most rows of a sequence in one call that the pool has pages for.
    fn rows(&self) -> usize {
        self.limits.window.map_or(usize::MAX, |window| {
            (PAGE * self.pages.len()).saturating_sub(window).saturating_sub(PAGE - 2)
        })
    }

    fn has_room(&self, shared: &[Digest], needed: usize) -> bool {
        if self.limits.window.is_some() {
            return self.promised + needed <= self.pages.len();
        }
        let found = shared.iter().filter_map(|key| self.pages.find(key));
        let woken = found.filter(|&id| !self.pages.is_held(id)).count();
        self.promised + needed - shared.len() + woken <= self.pages.free() + self.pages.unused()
    }

    /// Starts a table with pages of the cache.
    fn open(&mut self, shared: &[Digest], needed: usize) -> Table {
        let first = self.first_visible(shared.len() * PAGE).min(shared.len());
        let mut pages = vec![0; first];
        for id in shared[first..].iter().filter_map(|key| self.pages.find(key)) {
            pages.push(id);
        }
        pages[first..].iter().for_each(|&id| self.pages.share(id));
        self.promised += if self.limits.window.is_none() { needed - pages.len() } else { needed };
        Table { pages, first, promised: needed }
    }
}

impl Lease {
    /// Returns the pages of each pool.
    pub(super) fn pages(&self) -> Vec<&[u32]> {
        self.tables.iter().map(|table| table.pages.as_slice()).collect()
    }
}
