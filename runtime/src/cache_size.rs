//! How many pages the cache has.

use std::str::FromStr;

use bytesize::ByteSize;
#[cfg(any(feature = "iree", test))]
use mlxcel_artifacts::entry::PAGE;

#[cfg(any(feature = "iree", test))]
use crate::{
    error::Error,
    model::{ModelLimits, PoolLimits},
};

/// The share of the memory that is free after loading the weights which the cache takes by default at most.
#[cfg(any(feature = "iree", test))]
const SHARE: f64 = 0.8;

/// The size of the cache, which is reserved when a model is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheSize {
    /// Room for so many sequences of the whole context, or for what the memory allows if that is less.
    Sequences(usize),
    /// At most so many bytes.
    Bytes(u64),
}

/// The text is no size of a cache.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("found {0:?}, expected a size\nhint: give bytes with a unit, as in 4GiB or 500MiB")]
pub struct ParseCacheSizeError(String);

impl Default for CacheSize {
    fn default() -> Self {
        Self::Sequences(1)
    }
}

impl FromStr for CacheSize {
    type Err = ParseCacheSizeError;

    /// Parses a number of bytes: `4GiB`, `500MB`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let size: Result<ByteSize, _> = text.parse();
        let bytes = size.map(|size| size.as_u64()).ok().filter(|&bytes| bytes > 0);
        bytes.map(Self::Bytes).ok_or_else(|| ParseCacheSizeError(text.to_owned()))
    }
}

#[cfg(any(feature = "iree", test))]
impl CacheSize {
    /// Sets the number of pages of each pool of `limits`. `free` are the bytes that the device has left, if they are known.
    ///
    /// A pool without a window decides how many requests fit: one with a window has enough pages for as many sequences as
    /// a call takes, and as many again for pages of earlier requests, but not more than a pool without.
    ///
    /// # Errors
    /// There is no room for a page of each pool.
    pub(crate) fn set_pages(self, limits: &mut ModelLimits, free: Option<u64>) -> Result<(), Error> {
        let of_context = limits.context.div_ceil(PAGE);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            clippy::cast_sign_loss,
            reason = "a share of a size"
        )]
        let (wanted, allowed) = match self {
            Self::Sequences(sequences) => {
                let allowed = free.map(|free| (free as f64 * SHARE) as u64);
                (sequences.max(1).saturating_mul(of_context), allowed)
            }
            Self::Bytes(bytes) => (usize::MAX, Some(bytes)),
        };
        let (sequences, rows, context) = (limits.sequences(), limits.rows(), limits.context);
        let pages = |pool: &PoolLimits, most: usize| match pool.window {
            None => most,
            Some(_) => most.min(pool.needed(context, rows).saturating_mul(2 * sequences)),
        };
        // Page 0 is nobody's.
        let bytes = |most: usize| -> u64 {
            let of_pool = |pool: &PoolLimits| (pages(pool, most) as u64 + 1) * pool.page_bytes as u64;
            limits.pools.iter().map(of_pool).sum()
        };
        let fits = |most: usize| allowed.is_none_or(|allowed| bytes(most) <= allowed);
        // Slots of pages are numbers of 32 bits.
        let largest = wanted.min(i32::MAX as usize / PAGE - 1);
        let most = largest_that(largest, fits);
        if most == 0 {
            let (found, expected) = (allowed.unwrap_or(0), bytes(1));
            return Err(Error::CacheTooSmall { found: ByteSize(found), expected: ByteSize(expected) });
        }
        let found: Vec<usize> = limits.pools.iter().map(|pool| pages(pool, most)).collect();
        limits.pools.iter_mut().zip(found).for_each(|(pool, pages)| pool.pages = pages);
        Ok(())
    }
}

/// Returns the largest number up to `most` that `fits`; 0 if none does. What fits, fits with fewer.
#[cfg(any(feature = "iree", test))]
fn largest_that(most: usize, fits: impl Fn(usize) -> bool) -> usize {
    if fits(most) {
        return most;
    }
    let (mut fitting, mut failing) = (0, most);
    while failing - fitting > 1 {
        let middle = fitting + (failing - fitting) / 2;
        *(if fits(middle) { &mut fitting } else { &mut failing }) = middle;
    }
    fitting
}

/// Returns the bytes of memory that this process can still get, where the system says.
#[cfg(feature = "iree")]
pub(crate) fn free_memory() -> Option<u64> {
    let mut system = sysinfo::System::new();
    system.refresh_memory();
    let available = Some(system.available_memory()).filter(|&bytes| bytes > 0);
    let group = system.cgroup_limits().map(|limits| limits.free_memory);
    available.into_iter().chain(group).min()
}

#[cfg(test)]
mod tests {
    use mlxcel_artifacts::{Digest, entry::CallSizes};

    use super::*;

    /// A model of pages of 1,000 bytes, with up to 4 sequences and 64 rows in a call.
    fn limits(context: usize, windows: &[Option<usize>]) -> ModelLimits {
        let pool = |&window| PoolLimits { window, pages: 0, page_bytes: 1000 };
        ModelLimits {
            model: Digest::of(b"model"),
            context,
            vocab: 10,
            pools: windows.iter().map(pool).collect(),
            steps: vec![CallSizes { rows: 64, sequences: 4, selected: 4, uniform: false }],
            exact: true,
        }
    }

    fn pages(size: CacheSize, mut limits: ModelLimits, free: Option<u64>) -> Vec<usize> {
        size.set_pages(&mut limits, free).unwrap();
        limits.pools.iter().map(|pool| pool.pages).collect()
    }

    #[test]
    fn the_default_holds_one_sequence() {
        assert_eq!(pages(CacheSize::default(), limits(1000, &[None]), None), [16]);
        assert_eq!(pages(CacheSize::Sequences(3), limits(1000, &[None]), None), [48]);
        // 80 % of 12,000 bytes: page 0 and 8 others.
        assert_eq!(pages(CacheSize::Sequences(3), limits(1000, &[None]), Some(12_000)), [8]);
    }

    #[test]
    fn bytes_are_divided_among_pools() {
        let size = CacheSize::Bytes(100_500);
        assert_eq!(pages(size, limits(1 << 20, &[None]), Some(10)), [99]);
        // A window of 64 needs 3 pages of a sequence, 24 for twice 4 sequences.
        assert_eq!(pages(size, limits(1 << 20, &[None, Some(64)]), None), [74, 24]);
        assert_eq!(pages(CacheSize::Bytes(20_000), limits(1 << 20, &[None, Some(64)]), None), [9, 9]);
        // More than all sequences could see is of no use.
        assert_eq!(pages(size, limits(1 << 20, &[Some(64)]), None), [24]);
    }

    #[test]
    fn a_cache_without_a_page_is_refused() {
        let refused =
            |size: CacheSize, free| size.set_pages(&mut limits(1000, &[None]), free).unwrap_err().to_string();
        assert_eq!(
            refused(CacheSize::Bytes(1999), None),
            "a cache of 2.0 KiB, expected at least 2.0 KiB, for a page of 64 positions\n\
             hint: give a larger --cache-size, or free memory"
        );
        assert!(refused(CacheSize::default(), Some(1000)).starts_with("a cache of 800 B, expected"));
    }

    #[test]
    fn sizes_are_parsed() {
        assert_eq!("4GiB".parse(), Ok(CacheSize::Bytes(4 << 30)));
        assert_eq!("500 MB".parse(), Ok(CacheSize::Bytes(500_000_000)));
        for text in ["", "0", "four", "-1GiB", "4 apples"] {
            let error = text.parse::<CacheSize>().unwrap_err().to_string();
            assert_eq!(
                error,
                format!(
                    "found {text:?}, expected a size\nhint: give bytes with a unit, as in 4GiB or 500MiB"
                )
            );
        }
    }

    #[test]
    #[cfg(all(feature = "iree", target_os = "linux"))]
    fn the_free_memory_is_known_here() {
        assert!(free_memory().is_some_and(|bytes| bytes > 1 << 20));
    }
}
