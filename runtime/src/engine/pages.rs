//! A pool of pages with counts of their holders, and the cache of whole pages by key.

use std::collections::{BTreeMap, HashMap};

use mlxcel_artifacts::Digest;

/// The pages of a pool. Every page is free, held by sequences, or kept by the cache alone.
#[derive(Debug)]
pub(super) struct PagePool {
    /// Each page by its id; the first is not used.
    pages: Vec<Page>,
    free: Vec<u32>,
    by_key: HashMap<Digest, u32>,
    /// Pages that the cache alone keeps, the least recently used first.
    unused: BTreeMap<u64, u32>,
    /// Counts releases. Larger is later.
    clock: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Page {
    /// Sequences that hold the page.
    holders: usize,
    /// The key under which the cache knows it.
    key: Option<Digest>,
    /// Its key in `unused`, if the cache alone keeps it.
    unused_since: u64,
}

impl PagePool {
    /// Makes a pool of free pages with the ids 1 to `pages`.
    pub(super) fn new(pages: usize) -> Self {
        let last = u32::try_from(pages).unwrap_or(u32::MAX);
        Self {
            pages: vec![Page::default(); last as usize + 1],
            free: (1..=last).rev().collect(),
            by_key: HashMap::new(),
            unused: BTreeMap::new(),
            clock: 0,
        }
    }

    /// Returns the number of pages.
    pub(super) fn len(&self) -> usize {
        self.pages.len() - 1
    }

    /// Returns the number of pages that nothing keeps.
    pub(super) fn free(&self) -> usize {
        self.free.len()
    }

    /// Returns the number of pages that the cache alone keeps.
    pub(super) fn unused(&self) -> usize {
        self.unused.len()
    }

    /// Takes a page for one sequence: a free one, or else the least recently used one of the cache.
    pub(super) fn take(&mut self) -> Option<u32> {
        let id = match self.free.pop() {
            Some(id) => id,
            None => {
                let (_, id) = self.unused.pop_first()?;
                if let Some(key) = self.page(id).key.take() {
                    self.by_key.remove(&key);
                }
                id
            }
        };
        self.page(id).holders = 1;
        Some(id)
    }

    /// Adds a holder to a page that the cache knows.
    pub(super) fn share(&mut self, id: u32) {
        let page = self.page(id);
        page.holders += 1;
        if page.holders == 1 {
            let since = page.unused_since;
            self.unused.remove(&since);
        }
    }

    /// Takes a holder away. Without holders the page is the cache's if it has a key, else free.
    pub(super) fn release(&mut self, id: u32) {
        self.clock += 1;
        let clock = self.clock;
        let page = self.page(id);
        debug_assert!(page.holders > 0, "page {id} is released once for each holder");
        page.holders = page.holders.saturating_sub(1);
        if page.holders > 0 {
            return;
        }
        if page.key.is_some() {
            page.unused_since = clock;
            self.unused.insert(clock, id);
        } else {
            self.free.push(id);
        }
    }

    /// Makes a held page known to the cache, unless another page has the key already.
    pub(super) fn publish(&mut self, id: u32, key: Digest) {
        if self.page(id).key.is_none() && !self.by_key.contains_key(&key) {
            self.page(id).key = Some(key);
            self.by_key.insert(key, id);
        }
    }

    /// Returns the page that the cache has under a key.
    pub(super) fn find(&self, key: &Digest) -> Option<u32> {
        self.by_key.get(key).copied()
    }

    /// Returns true if a sequence holds the page.
    pub(super) fn is_held(&self, id: u32) -> bool {
        self.pages[id as usize].holders > 0
    }

    /// Makes the cache forget all pages.
    pub(super) fn forget(&mut self) {
        self.by_key.clear();
        self.pages.iter_mut().for_each(|page| page.key = None);
        self.free.extend(std::mem::take(&mut self.unused).into_values());
    }

    /// Returns the number of holders of every page, by id.
    #[cfg(test)]
    pub(super) fn holders(&self) -> Vec<usize> {
        self.pages.iter().map(|page| page.holders).collect()
    }

    /// Checks that every page is in exactly one of the three states, and that keys and pages agree.
    #[cfg(test)]
    pub(super) fn check(&self) {
        let mut seen = vec![0; self.pages.len()];
        self.free.iter().chain(self.unused.values()).for_each(|&id| seen[id as usize] += 1);
        for (id, page) in self.pages.iter().enumerate().skip(1) {
            assert_eq!(seen[id] + usize::from(page.holders > 0), 1, "page {id} is in one state");
            if let Some(key) = page.key {
                assert_eq!(self.by_key.get(&key).map(|&id| id as usize), Some(id));
            }
        }
        assert_eq!((seen[0], self.pages[0].holders), (0, 0), "page 0 is never used");
        assert_eq!(self.pages.iter().filter(|page| page.key.is_some()).count(), self.by_key.len());
        assert!(self.free.iter().all(|&id| self.pages[id as usize].key.is_none()));
        assert!(self.unused.iter().all(|(since, &id)| self.pages[id as usize].unused_since == *since));
    }

    fn page(&mut self, id: u32) -> &mut Page {
        &mut self.pages[id as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Digest {
        Digest::of(name.as_bytes())
    }

    #[test]
    fn pages_are_given_once() {
        let mut pool = PagePool::new(2);
        assert_eq!((pool.take(), pool.take(), pool.take()), (Some(1), Some(2), None));
        pool.release(1);
        assert_eq!((pool.free(), pool.take()), (1, Some(1)));
        pool.check();
    }

    #[test]
    fn the_least_recently_used_page_goes_first() {
        let mut pool = PagePool::new(3);
        for name in ["a", "b", "c"] {
            let id = pool.take().unwrap();
            pool.publish(id, key(name));
            pool.release(id);
        }
        let a = pool.find(&key("a")).unwrap();
        pool.share(a);
        pool.release(a);
        assert_eq!((pool.free(), pool.unused()), (0, 3));
        assert_eq!(pool.take(), Some(2));
        pool.check();
        assert_eq!(pool.find(&key("b")), None);
        assert_eq!((pool.find(&key("a")), pool.find(&key("c"))), (Some(1), Some(3)));
    }

    #[test]
    fn a_held_page_stays_and_is_shared() {
        let mut pool = PagePool::new(1);
        let id = pool.take().unwrap();
        pool.publish(id, key("a"));
        pool.share(id);
        pool.release(id);
        assert_eq!((pool.take(), pool.is_held(id)), (None, true));
        pool.forget();
        pool.check();
        pool.release(id);
        assert_eq!(pool.free(), 1);
    }

    #[test]
    fn a_key_has_one_page() {
        let mut pool = PagePool::new(2);
        let (first, second) = (pool.take().unwrap(), pool.take().unwrap());
        pool.publish(first, key("a"));
        pool.publish(second, key("a"));
        assert_eq!(pool.find(&key("a")), Some(first));
        pool.release(second);
        assert_eq!((pool.free(), pool.unused()), (1, 0));
        pool.check();
    }
}
