//! How many pages each pool of the cache has.

use bytesize::ByteSize;
use mlxcel_artifacts::entry::PAGE;

use crate::{
    cache_size::CacheSize,
    error::Error,
    model::{ModelLimits, PoolLimits},
};

/// The share of the memory that is free after loading the weights which the cache takes by default at most.
const SHARE: f64 = 0.8;

/// Sets the number of pages of each pool of `limits`. `free` are the bytes that the device has left, if they are known.
///
/// A pool without a window decides how many requests fit: one with a window has enough pages for as many sequences as
/// a call takes, and as many again for pages of earlier requests, but not more than a pool without.
///
/// # Errors
/// There is no room for a page of each pool.
pub(super) fn set_pages(size: CacheSize, limits: &mut ModelLimits, free: Option<u64>) -> Result<(), Error> {
    let of_context = limits.context.div_ceil(PAGE);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "a share of a size"
    )]
    let (wanted, allowed) = match size {
        CacheSize::Sequences(sequences) => {
            let allowed = free.map(|free| (free as f64 * SHARE) as u64);
            (sequences.max(1).saturating_mul(of_context), allowed)
        }
        CacheSize::Bytes(bytes) => (usize::MAX, Some(bytes)),
    };
    let (sequences, rows, context) = (limits.sequences(), limits.rows(), limits.context);
    let pages = |pool: &PoolLimits, most: usize| match pool.window {
        None => most,
        Some(_) => most.min(pool.needed(context, rows).saturating_mul(sequences).saturating_mul(2)),
    };
    // Page 0 is nobody's.
    let bytes = |most: usize| -> u64 {
        let of_pool = |pool: &PoolLimits| pool.bytes(pages(pool, most).saturating_add(1));
        limits.pools.iter().map(of_pool).fold(0, u64::saturating_add)
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

/// Returns the largest number up to `most` that `fits`; 0 if none does. What fits, fits with fewer.
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
            steps: vec![CallSizes { rows: 64, sequences: 4, selected: 4, uniform: false, in_place: false }],
            exact: true,
        }
    }

    fn pages(size: CacheSize, mut limits: ModelLimits, free: Option<u64>) -> Vec<usize> {
        set_pages(size, &mut limits, free).unwrap();
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
        let refused = |size: CacheSize, free| {
            set_pages(size, &mut limits(1000, &[None]), free).unwrap_err().to_string()
        };
        assert_eq!(
            refused(CacheSize::Bytes(1999), None),
            "a cache of 2.0 KiB, expected at least 2.0 KiB, for a page of 64 positions\n\
             hint: give a larger --cache-size, or free memory"
        );
        assert!(refused(CacheSize::default(), Some(1000)).starts_with("a cache of 800 B, expected"));
    }

    #[test]
    fn pages_of_any_size_are_counted() {
        let mut huge = limits(1000, &[None, Some(usize::MAX)]);
        huge.pools.iter_mut().for_each(|pool| pool.page_bytes = usize::MAX / 2);
        let refused = set_pages(CacheSize::Bytes(1 << 40), &mut huge, None).unwrap_err();
        assert!(matches!(refused, Error::CacheTooSmall { expected: ByteSize(u64::MAX), .. }), "{refused}");
        // Without a limit, reserving fails later.
        set_pages(CacheSize::Sequences(usize::MAX), &mut huge, None).unwrap();
        assert_eq!(huge.cache_bytes(), u64::MAX);
    }
}
